//! A topology of network namespaces: a router in the middle, with the coordinator, the target and twelve agents around
//! it. Each has a public address, so that the probes' address guard stays on.
//!
//! ```text
//!   agent 0  20.10.0.2 ─┐          ┌─ 5.10.0.2 coordinator (and the test itself)
//!      …                ├─ router ─┼─ 5.20.0.2 target, 5.20.0.53 its name server
//!   agent 11 20.21.0.2 ─┘          └─ 5.20.0.2 again, where nobody listens
//! ```
//!
//! Nothing leaves the topology: no namespace has a route to the outside. A test runs twice: the outer run builds the
//! topology and starts itself again inside the coordinator's namespace; the inner run plays its scenario against the
//! service on 127.0.0.1. Namespaces are named after the process that made them; those of processes that have ended are
//! removed.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parallax_core::vantage::Region;
use serde::{Deserialize, Serialize};

use crate::eventually::{FIGURE, skip_test};
use crate::process::{BIN_DIR, binary_folder, kill_all, output};

/// Environment variable; if 1, a topology that cannot be built is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_NETNS";
/// Environment variable that gives the inner run its topology.
const INNER: &str = "PARALLAX_TEST_WORLD";
/// Prefix of the names of all namespaces.
const PREFIX: &str = "plx";
/// Timeout of one scenario.
const LIMIT: Duration = Duration::from_secs(300);
/// Preference and table of the router's rules; the preference is above that of the main table.
const PREFERENCE: u32 = 100;
const DECOY_TABLE: u32 = 100;

/// Address of the target, as seen by every agent.
pub const TARGET: Ipv4Addr = Ipv4Addr::new(5, 20, 0, 2);
/// Address of the coordinator's mesh port.
pub const COORDINATOR: Ipv4Addr = Ipv4Addr::new(5, 10, 0, 2);
/// Address of the name server that every agent uses.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(5, 20, 0, 53);
/// Next hop in the decoy's network, on the route to an address where nobody listens.
const DECOY_NEXT_HOP: Ipv4Addr = Ipv4Addr::new(5, 30, 0, 2);

/// Networks of the topology. Each has one agent in every region.
pub const NETWORKS: [&str; 2] = ["AS64500", "AS64501"];

/// Host of one agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentHost {
    /// Name of the agent: region and network.
    pub name: String,
    /// Namespace of the host.
    pub netns: String,
    /// Address of the host.
    pub address: Ipv4Addr,
    /// Region of the agent.
    pub region: Region,
    /// Network of the agent.
    pub network: String,
}

/// The namespaces, and operations on the routes between them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Topology {
    name: String,
    /// Hosts of the agents, ordered by region, then by network.
    pub agent_hosts: Vec<AgentHost>,
}

/// Effect of a cut on packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteCut {
    /// Packets are dropped.
    Drop,
    /// The connection is refused: nobody listens on that port.
    Reject,
}

/// Runs `scenario` in its own topology; `test` is the full name of the calling test.
///
/// If no topology can be built, the test is skipped, or fails if `PARALLAX_REQUIRE_NETNS` is 1. Scenarios of one
/// process run one at a time, since they measure seconds; of several processes, `.config/nextest.toml` runs two side by
/// side at most.
pub fn run<F: Future<Output = ()>>(test: &str, scenario: impl FnOnce(Topology) -> F) {
    if let Ok(world) = std::env::var(INNER) {
        let world = serde_json::from_str(&world).expect("the outer run passes the topology");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
        runtime.block_on(async { tokio::time::timeout(LIMIT, scenario(world)).await.expect("scenario ends in time") });
        return;
    }
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // A scenario that failed earlier must not prevent this one.
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(reason) = check_support() {
        assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and no network namespaces: {reason}");
        skip_test(test, "no network namespaces", &reason);
        return;
    }
    let built = TopologyGuard(Topology::build().unwrap_or_else(|fault| panic!("the world cannot be built: {fault}")));
    let world = serde_json::to_string(&built.0).expect("a world is JSON");
    let mut inner = Command::new("ip");
    inner
        .args(["netns", "exec", &built.0.netns_name("c")])
        .arg(std::env::current_exe().expect("a process knows its file"))
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env(INNER, world)
        .env(BIN_DIR, binary_folder());
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

impl Topology {
    /// Returns the host of a region's agent on one of the [`NETWORKS`].
    pub fn agent_host(&self, region: Region, network: &str) -> &AgentHost {
        let found = self.agent_hosts.iter().find(|spot| spot.region == region && spot.network == network);
        found.expect("every region has an agent on every network")
    }

    /// Returns the namespace of the target.
    pub fn target_netns(&self) -> String {
        self.netns_name("t")
    }

    /// Returns the namespace of the decoy, which agents reach whose route is cut with [`RouteCut::Reject`].
    pub fn decoy_netns(&self) -> String {
        self.netns_name("x")
    }

    /// Cuts the route from one agent to the target.
    pub fn cut_target(&self, spot: &AgentHost, cut: RouteCut) {
        let action = match cut {
            RouteCut::Drop => "blackhole".to_owned(),
            RouteCut::Reject => format!("table {DECOY_TABLE}"),
        };
        self.rule("add", &format!("from {}/32 to {TARGET}/32 {action}", spot.address));
    }

    /// Cuts the routes from all agents to the target.
    pub fn cut_target_everywhere(&self, cut: RouteCut) {
        for spot in &self.agent_hosts {
            self.cut_target(spot, cut);
        }
    }

    /// Isolates one agent: all its packets are dropped in both directions, without errors.
    pub fn isolate(&self, spot: &AgentHost) {
        self.rule("add", &format!("from {}/32 blackhole", spot.address));
        self.rule("add", &format!("to {}/32 blackhole", spot.address));
    }

    /// Removes all cuts.
    pub fn remove_cuts(&self) {
        let router = self.netns_name("r");
        let shown = ip(&["-n", &router, "rule", "show", "pref", &PREFERENCE.to_string()]).expect("rules can be read");
        for _ in shown.lines() {
            self.rule("del", "");
        }
    }

    fn rule(&self, verb: &str, rule: &str) {
        let router = self.netns_name("r");
        let preference = PREFERENCE.to_string();
        let mut words = vec!["-n", &router, "rule", verb, "pref", &preference];
        words.extend(rule.split_whitespace());
        ip(&words).expect("the router takes the rule");
    }

    fn netns_name(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    fn build() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        remove_stale();
        let name = format!("{PREFIX}{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let places = Region::ALL.into_iter().flat_map(|region| NETWORKS.map(|network| (region, network)));
        let spots = places.zip(10_u8..).enumerate().map(|(number, ((region, network), octet))| AgentHost {
            name: format!("{}-{}", region.name(), network.to_lowercase()),
            netns: format!("{name}-a{number}"),
            address: Ipv4Addr::new(20, octet, 0, 2),
            region,
            network: network.to_owned(),
        });
        let world = Self { agent_hosts: spots.collect(), name };
        // From here on the guard removes everything created so far.
        let built = TopologyGuard(world.clone());
        world.connect()?;
        std::mem::forget(built);
        Ok(world)
    }

    /// Creates the namespaces and the links between them and the router.
    fn connect(&self) -> Result<(), String> {
        let router = self.netns_name("r");
        ip(&["netns", "add", &router])?;
        // Replies of the decoy take another route than requests to the target, so reverse-path filters are off.
        let switches = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done; \
                        echo 1 > /proc/sys/net/ipv4/ip_forward";
        ip(&["netns", "exec", &router, "sh", "-c", switches])?;
        ip_batch(&router, "link set lo up")?;
        self.attach("c", &self.netns_name("c"), COORDINATOR)?;
        self.attach("t", &self.netns_name("t"), TARGET)?;
        ip_batch(&self.netns_name("t"), &format!("address add {NAME_SERVER}/24 dev eth0"))?;
        self.attach("x", &self.netns_name("x"), DECOY_NEXT_HOP)?;
        ip_batch(&self.netns_name("x"), &format!("address add {TARGET}/32 dev lo"))?;
        ip_batch(&router, &format!("route add {TARGET}/32 via {DECOY_NEXT_HOP} table {DECOY_TABLE}"))?;
        for (number, spot) in self.agent_hosts.iter().enumerate() {
            self.attach(&format!("a{number}"), &spot.netns, spot.address)?;
            let folder = Path::new("/etc/netns").join(&spot.netns);
            let text = format!("nameserver {NAME_SERVER}\noptions timeout:1 attempts:2\n");
            fs::create_dir_all(&folder)
                .and_then(|()| fs::write(folder.join("resolv.conf"), text))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(())
    }

    /// Creates a namespace with one link to the router; the router's end has the network's first address.
    fn attach(&self, link: &str, netns: &str, address: Ipv4Addr) -> Result<(), String> {
        let [a, b, c, _] = address.octets();
        let gateway = Ipv4Addr::new(a, b, c, 1);
        ip(&["netns", "add", netns])?;
        ip_batch(
            &self.netns_name("r"),
            &format!(
                "link add to-{link} type veth peer name eth0 netns {netns}\n\
                 address add {gateway}/24 dev to-{link}\nlink set to-{link} up"
            ),
        )?;
        ip_batch(
            netns,
            &format!(
                "link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\nroute add default via {gateway}"
            ),
        )
    }
}

/// Removes a topology when dropped.
struct TopologyGuard(Topology);

impl Drop for TopologyGuard {
    fn drop(&mut self) {
        remove_namespaces(&format!("{}-", self.0.name));
    }
}

/// Returns an error if namespaces can't be created and used here.
fn check_support() -> Result<(), String> {
    let name = format!("{PREFIX}{}-probe", std::process::id());
    let made = ip(&["netns", "add", &name])
        .and_then(|_| ip(&["netns", "exec", &name, "true"]))
        .and_then(|_| ip_batch(&name, "link add v0 type veth peer name v1"))
        .and_then(|()| ip(&["-n", &name, "rule", "add", "from", "20.0.0.1", "blackhole"]));
    remove_namespaces(&name);
    made.map(drop)
}

/// Removes the namespaces of processes that have ended.
fn remove_stale() {
    for name in namespace_names() {
        let id = name.strip_prefix(PREFIX).and_then(|rest| rest.split(['x', '-']).next()?.parse::<u32>().ok());
        if id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            remove_namespaces(&name);
        }
    }
}

/// Removes the namespaces with that prefix, and kills the processes in them.
fn remove_namespaces(prefix: &str) {
    for name in namespace_names().iter().filter(|name| name.starts_with(prefix)) {
        let inside = ip(&["netns", "pids", name]).unwrap_or_default();
        kill_all(&inside.lines().filter_map(|id| id.trim().parse().ok()).collect::<Vec<i32>>());
        // It may be gone already.
        let _ = ip(&["netns", "del", name]);
        let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
    }
}

/// Returns the names of all named namespaces of this host.
fn namespace_names() -> Vec<String> {
    let list = ip(&["netns", "list"]).unwrap_or_default();
    list.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn ip(words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("ip");
    command.args(words);
    output(command)
}

/// Runs lines of `ip` in a namespace, in one process.
fn ip_batch(netns: &str, lines: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(["-n", netns, "-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("ip: {error}"))?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(format!("{lines}\n").as_bytes()).map_err(|error| format!("ip: {error}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| format!("ip: {error}"))?;
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{lines}: {fault}")) }
}
