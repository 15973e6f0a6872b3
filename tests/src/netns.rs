//! A world of network namespaces: a router in the middle, the coordinator, the target and twelve agents around it, each
//! with an address that counts as public, so that the guard of the probes stays on.
//!
//! ```text
//!   agent 0  20.10.0.2 ─┐          ┌─ 5.10.0.2 coordinator (and the test itself)
//!      …                ├─ router ─┼─ 5.20.0.2 target, 5.20.0.53 its name server
//!   agent 11 20.21.0.2 ─┘          └─ 5.20.0.2 again, where nobody listens
//! ```
//!
//! Nothing leaves the world: no namespace has a way out. A test is run twice: outside it builds the world and runs
//! itself again inside the coordinator's namespace; there it plays its scenario against the service on 127.0.0.1.
//! Worlds are named by the process that made them; those of processes that are gone are swept away.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parallax_core::place::Region;
use serde::{Deserialize, Serialize};

use crate::eventually::{FIGURE, leave_out};
use crate::process::{BIN_DIR, folder, kill_all, output};

/// Set to 1 where a world that cannot be made is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_NETNS";
/// Tells the inner run of a test what world it is in.
const INNER: &str = "PARALLAX_TEST_WORLD";
/// First letters of every namespace of ours.
const PREFIX: &str = "plx";
/// Longest run of one scenario.
const LIMIT: Duration = Duration::from_secs(300);
/// Preference and table of the router's rules; above the main table's rule.
const PREFERENCE: u32 = 100;
const NOBODY_TABLE: u32 = 100;

/// Where the target is, seen from every agent.
pub const TARGET: Ipv4Addr = Ipv4Addr::new(5, 20, 0, 2);
/// Where the coordinator's mesh port is.
pub const COORDINATOR: Ipv4Addr = Ipv4Addr::new(5, 10, 0, 2);
/// The name server that every agent asks.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(5, 20, 0, 53);
/// A neighbour of the target's double, on the way to where nobody listens.
const NOBODY: Ipv4Addr = Ipv4Addr::new(5, 30, 0, 2);

/// Networks of the world. Each has one agent in every region.
pub const NETWORKS: [&str; 2] = ["AS64500", "AS64501"];

/// One agent's spot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spot {
    /// Name of the agent: region and network.
    pub name: String,
    /// Its namespace.
    pub netns: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its region.
    pub region: Region,
    /// Its network.
    pub network: String,
}

/// The namespaces, and what can be done to the ways between them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    name: String,
    /// The agents' spots: regions in their order, within a region the networks in theirs.
    pub spots: Vec<Spot>,
}

/// What meets a packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It vanishes.
    Silent,
    /// The target's host refuses it: nobody listens on that port.
    Refused,
}

/// Runs `scenario` in a world of its own; `test` is the full name of the calling test.
///
/// Where no world can be made the test is left out with a word, or fails if `PARALLAX_REQUIRE_NETNS` is 1. Worlds are
/// used one after the other: the scenarios measure seconds.
pub fn run<F: Future<Output = ()>>(test: &str, scenario: impl FnOnce(World) -> F) {
    if let Ok(world) = std::env::var(INNER) {
        let world = serde_json::from_str(&world).expect("the outer run tells the world");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            tokio::time::timeout(LIMIT, scenario(world)).await.expect("scenario ends in time")
        });
        return;
    }
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // A scenario that failed before is no reason not to play this one.
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(reason) = possible() {
        assert!(
            std::env::var(REQUIRE).as_deref() != Ok("1"),
            "{REQUIRE}=1, and no network namespaces: {reason}"
        );
        leave_out(test, "no network namespaces", &reason);
        return;
    }
    let built = Built(World::build().unwrap_or_else(|fault| panic!("the world cannot be built: {fault}")));
    let world = serde_json::to_string(&built.0).expect("a world is JSON");
    let mut inner = Command::new("ip");
    inner
        .args(["netns", "exec", &built.0.ns("c")])
        .arg(std::env::current_exe().expect("a process knows its file"))
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env(INNER, world)
        .env(BIN_DIR, folder());
    match output(inner) {
        Ok(text) => {
            assert!(text.contains("1 passed"), "the inner run found no test `{test}`: {text}");
            for line in text.lines().filter(|line| line.starts_with(FIGURE)) {
                let _ = writeln!(std::io::stdout(), "{line}");
            }
        }
        Err(fault) => panic!("in its world, {fault}"),
    }
}

impl World {
    /// The spot of a region's agent on one of the [`NETWORKS`].
    pub fn spot(&self, region: Region, network: &str) -> &Spot {
        let found = self.spots.iter().find(|spot| spot.region == region && spot.network == network);
        found.expect("every region has an agent on every network")
    }

    /// Namespace of the target.
    pub fn target(&self) -> String {
        self.ns("t")
    }

    /// Namespace of the target's double, which agents reach whose way is cut with [`Cut::Refused`].
    pub fn double(&self) -> String {
        self.ns("x")
    }

    /// Cuts the way from one agent to the target.
    pub fn cut_target(&self, spot: &Spot, cut: Cut) {
        let action = match cut {
            Cut::Silent => "blackhole".to_owned(),
            Cut::Refused => format!("table {NOBODY_TABLE}"),
        };
        self.rule("add", &format!("from {}/32 to {TARGET}/32 {action}", spot.address));
    }

    /// Cuts the target off from everybody.
    pub fn cut_target_off(&self, cut: Cut) {
        for spot in &self.spots {
            self.cut_target(spot, cut);
        }
    }

    /// One agent's network dies: nothing reaches it and nothing it sends arrives, and it is told nothing.
    pub fn silence(&self, spot: &Spot) {
        self.rule("add", &format!("from {}/32 blackhole", spot.address));
        self.rule("add", &format!("to {}/32 blackhole", spot.address));
    }

    /// Takes away every cut.
    pub fn restore(&self) {
        let router = self.ns("r");
        let shown =
            ip(&["-n", &router, "rule", "show", "pref", &PREFERENCE.to_string()]).expect("rules can be read");
        for _ in shown.lines() {
            self.rule("del", "");
        }
    }

    fn rule(&self, verb: &str, rule: &str) {
        let router = self.ns("r");
        let preference = PREFERENCE.to_string();
        let mut words = vec!["-n", &router, "rule", verb, "pref", &preference];
        words.extend(rule.split_whitespace());
        ip(&words).expect("the router takes the rule");
    }

    fn ns(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    fn build() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        sweep();
        let name = format!("{PREFIX}{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let places = Region::ALL.into_iter().flat_map(|region| NETWORKS.map(|network| (region, network)));
        let spots = places.zip(10_u8..).enumerate().map(|(number, ((region, network), octet))| Spot {
            name: format!("{}-{}", region.name(), network.to_lowercase()),
            netns: format!("{name}-a{number}"),
            address: Ipv4Addr::new(20, octet, 0, 2),
            region,
            network: network.to_owned(),
        });
        let world = Self { spots: spots.collect(), name };
        // From here on the guard takes down what was made so far.
        let built = Built(world.clone());
        world.connect()?;
        std::mem::forget(built);
        Ok(world)
    }

    /// Makes the namespaces and the links between them and the router.
    fn connect(&self) -> Result<(), String> {
        let router = self.ns("r");
        ip(&["netns", "add", &router])?;
        // Replies of the target's double take another way back than questions to the target: no reverse-path filter.
        let switches = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done; echo 1 > /proc/sys/net/ipv4/ip_forward";
        ip(&["netns", "exec", &router, "sh", "-c", switches])?;
        batch(&router, "link set lo up")?;
        self.attach("c", &self.ns("c"), COORDINATOR)?;
        self.attach("t", &self.ns("t"), TARGET)?;
        batch(&self.ns("t"), &format!("address add {NAME_SERVER}/24 dev eth0"))?;
        self.attach("x", &self.ns("x"), NOBODY)?;
        batch(&self.ns("x"), &format!("address add {TARGET}/32 dev lo"))?;
        batch(&router, &format!("route add {TARGET}/32 via {NOBODY} table {NOBODY_TABLE}"))?;
        for (number, spot) in self.spots.iter().enumerate() {
            self.attach(&format!("a{number}"), &spot.netns, spot.address)?;
            let folder = Path::new("/etc/netns").join(&spot.netns);
            let text = format!("nameserver {NAME_SERVER}\noptions timeout:1 attempts:2\n");
            fs::create_dir_all(&folder)
                .and_then(|()| fs::write(folder.join("resolv.conf"), text))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(())
    }

    /// A namespace with one link to the router; the router's end has the network's first address.
    fn attach(&self, link: &str, netns: &str, address: Ipv4Addr) -> Result<(), String> {
        let [a, b, c, _] = address.octets();
        let gateway = Ipv4Addr::new(a, b, c, 1);
        ip(&["netns", "add", netns])?;
        batch(
            &self.ns("r"),
            &format!(
                "link add to-{link} type veth peer name eth0 netns {netns}\n\
                 address add {gateway}/24 dev to-{link}\nlink set to-{link} up"
            ),
        )?;
        batch(
            netns,
            &format!(
                "link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\nroute add default via {gateway}"
            ),
        )
    }
}

/// Takes a world down when it is dropped.
struct Built(World);

impl Drop for Built {
    fn drop(&mut self) {
        remove(&format!("{}-", self.0.name));
    }
}

/// Whether namespaces can be made and used here.
fn possible() -> Result<(), String> {
    let name = format!("{PREFIX}{}-probe", std::process::id());
    let made = ip(&["netns", "add", &name])
        .and_then(|_| ip(&["netns", "exec", &name, "true"]))
        .and_then(|_| batch(&name, "link add v0 type veth peer name v1"))
        .and_then(|()| ip(&["-n", &name, "rule", "add", "from", "20.0.0.1", "blackhole"]));
    remove(&name);
    made.map(drop)
}

/// Removes what processes that are gone have left behind.
fn sweep() {
    for name in names() {
        let id =
            name.strip_prefix(PREFIX).and_then(|rest| rest.split(['x', '-']).next()?.parse::<u32>().ok());
        if id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            remove(&name);
        }
    }
}

/// Removes the namespaces whose names begin so, with the processes in them.
fn remove(prefix: &str) {
    for name in names().iter().filter(|name| name.starts_with(prefix)) {
        let inside = ip(&["netns", "pids", name]).unwrap_or_default();
        kill_all(&inside.lines().filter_map(|id| id.trim().parse().ok()).collect::<Vec<i32>>());
        // What is gone already needs no removing.
        let _ = ip(&["netns", "del", name]);
        let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
    }
}

/// Every namespace of this host that has a name.
fn names() -> Vec<String> {
    let list = ip(&["netns", "list"]).unwrap_or_default();
    list.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn ip(words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("ip");
    command.args(words);
    output(command)
}

/// Runs lines of `ip` in a namespace, by one process.
fn batch(netns: &str, lines: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command
        .args(["-n", netns, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("ip: {error}"))?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(format!("{lines}\n").as_bytes()).map_err(|error| format!("ip: {error}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| format!("ip: {error}"))?;
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{lines}: {fault}")) }
}
