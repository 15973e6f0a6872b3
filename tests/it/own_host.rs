//! The address guard for the agent's own host: monitors reach nothing there, at the address of its NAT, or at the
//! coordinator, by any type of check, as a literal, by a hostname, or through a redirect. A firewall does not filter
//! between a host and itself.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use parallax_core::vantage::Region;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::namespace_site::{NamespaceNameServer, NamespaceSite};
use parallax_tests::netns::{COORDINATOR, NETWORKS, TARGET, Topology};
use parallax_tests::process::{TestProcess, binary, command, output};
use parallax_tests::test_target::TargetMode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UdpSocket;

use crate::scenario_setup::FIRST_VERDICT;

/// Coordinator address that the agent connects to.
const GATE: Ipv4Addr = Ipv4Addr::new(5, 10, 0, 66);
/// Address of the agent behind its NAT.
const NAT: Ipv4Addr = Ipv4Addr::new(5, 10, 0, 77);
/// A second address of the agent's host, of the other family.
const OWN_V6: &str = "2600:77::2";
/// Port of an internal service that customers must not reach.
const PORT: u16 = 8080;
/// Longest wait for a helper process.
const SOON: Duration = Duration::from_secs(30);

const CONFIG: &str = "requests_per_minute = 10000\n[plans.pro]\ninterval_seconds = 10\n";

in_a_world!(nothing_on_the_agents_own_host_is_reached, own_host);

async fn own_host(world: Topology) {
    let spot = world.agent_host(Region::Europe, NETWORKS[0]);
    for address in [GATE, NAT] {
        ip(&["address", "add", &format!("{address}/24"), "dev", "eth0"]);
    }
    ip(&["-n", &spot.netns, "address", "add", &format!("{OWN_V6}/128"), "dev", "lo", "nodad"]);
    let folder = TempDir::new().unwrap();
    let own = [SocketAddr::from((spot.address, PORT)), format!("[{OWN_V6}]:{PORT}").parse().unwrap()];
    let inner = counter(Some(&spot.netns), "inner", &own, &folder).await;
    let outer = [GATE, NAT].map(|address| SocketAddr::from((address, PORT)));
    let outer = counter(None, "outer", &outer, &folder).await;
    let mut site = NamespaceSite::start(&world).await;
    let names = [("site.test", TARGET), ("own.test", spot.address), ("nat.test", NAT), ("gate.test", GATE)];
    let _names = NamespaceNameServer::start(&world, &names).await;

    let coordinator = CoordinatorProcess::serve(SocketAddr::from((COORDINATOR, 7443)), CONFIG).await;
    let gate = SocketAddr::from((GATE, 7443));
    tokio::spawn(nat(gate, SocketAddr::from((NAT, 0)), SocketAddr::from((COORDINATOR, 7443))));
    let token = coordinator.invite(&spot.name, spot.region.name(), &spot.network, &[]).unwrap();
    let mut agent = AgentProcess::new(&spot.name, folder.path(), Some(&spot.netns));
    agent.join(gate, &token).unwrap();
    agent.run();
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");

    let mut monitors = BTreeMap::new();
    let own = spot.address.to_string();
    let mapped = format!("::ffff:{own}");
    let nat = NAT.to_string();
    let gate = GATE.to_string();
    for host in [own.as_str(), &mapped, OWN_V6, "own.test", &nat, "nat.test", &gate, "gate.test"] {
        for body in every_type(host) {
            monitors.insert(body["name"].to_string(), create(&account, &body).await);
        }
    }
    let pings = echoes(&spot.netns);
    for (name, monitor) in &monitors {
        refused(&account, name, monitor).await;
    }
    let redirected = json!({"name": "redirected", "url": "http://site.test/"});
    let redirected = create(&account, &redirected).await;
    for host in [&own, &format!("[{OWN_V6}]"), "own.test", &nat, &gate] {
        site.set(TargetMode::Redirect(format!("http://{host}:{PORT}/"))).await;
        refused(&account, host, &redirected).await;
        site.set(TargetMode::Pass).await;
        until(&account, "the site passes", &redirected, |check| check["ok"] == true).await;
    }
    assert_eq!((connects(&inner), connects(&outer)), (0, 0), "{}{}", inner.log(), outer.log());
    assert_eq!(echoes(&spot.netns), pings, "echoes came to the agent's own host");

    // With `allow_own_host` the same monitors reach it: the guard was what kept them out.
    agent.process().terminate();
    agent.process().wait_for_exit(SOON).await;
    agent.run_with(&["--allow-own-host"]);
    eventually("checks reach the own host once it is open", FIRST_VERDICT, async || {
        let arrived = [&inner, &outer].map(connects);
        (arrived.iter().all(|count| *count > 4) && echoes(&spot.netns) > pings).then_some(())
    })
    .await;
}

/// Returns one monitor of every type that connects to a host chosen by the customer.
fn every_type(host: &str) -> Vec<Value> {
    let url_host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = format!("http://{url_host}:{PORT}/");
    let secret = format!("https://{url_host}:{PORT}/");
    vec![
        json!({"name": format!("http {host}"), "url": url}),
        json!({"name": format!("https {host}"), "url": secret}),
        json!({"name": format!("tcp {host}"), "type": "tcp", "host": host, "port": PORT}),
        json!({"name": format!("ping {host}"), "type": "ping", "host": host}),
        json!({"name": format!("certificate {host}"), "type": "certificate", "host": host, "port": PORT}),
        json!({"name": format!("component {host}"), "type": "component", "vendorUrl": url}),
    ]
}

async fn create(account: &TestAccount, body: &Value) -> Value {
    account.client.create_monitor(&account.page, body).await
}

/// Texts of an error that names the agent's own host: as the coordinator writes it, and as the agent does in the reason of
/// an unreadable status page.
const OWN: [&str; 2] = ["own host", "this host"];

async fn refused(account: &TestAccount, name: &str, monitor: &Value) {
    until(account, &format!("{name} is refused"), monitor, |check| {
        check["ok"] == false && check["error"].as_str().is_some_and(|error| OWN.iter().any(|own| error.contains(own)))
    })
    .await;
}

async fn until(account: &TestAccount, what: &str, monitor: &Value, holds: impl Fn(&Value) -> bool) {
    eventually_every(API_PERIOD, what, FIRST_VERDICT, async || {
        let monitor = account.client.monitor(&account.page, monitor).await;
        holds(&monitor["lastCheck"]).then_some(())
    })
    .await;
}

/// Starts a process that reports the local address of each connection.
async fn counter(netns: Option<&str>, name: &str, at: &[SocketAddr], folder: &TempDir) -> TestProcess {
    let mut command = command(netns, &binary("parallax-target"));
    command.arg("count").args(at.iter().map(SocketAddr::to_string));
    let mut process = TestProcess::start(name, command, folder.path());
    process.wait_for_log("ready", SOON).await;
    process
}

fn connects(counter: &TestProcess) -> usize {
    counter.log().matches("connected to").count()
}

/// Returns the ICMP echo requests received in a namespace, of both families.
fn echoes(netns: &str) -> u64 {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", netns, "cat", "/proc/net/snmp", "/proc/net/snmp6"]);
    let text = output(command).unwrap();
    let mut icmp = text.lines().filter_map(|line| line.strip_prefix("Icmp: "));
    let (names, values) = (icmp.next().unwrap(), icmp.next().unwrap());
    let v4 = names.split_whitespace().zip(values.split_whitespace()).find(|(name, _)| *name == "InEchos");
    let v6 = text.lines().find_map(|line| line.strip_prefix("Icmp6InEchos"));
    [v4.unwrap().1, v6.unwrap().trim()].iter().map(|count| count.parse::<u64>().unwrap()).sum()
}

/// Relays one agent's datagrams: it connects to `at`, and the coordinator sees them from `from`.
async fn nat(at: SocketAddr, from: SocketAddr, to: SocketAddr) {
    let (inside, outside) = (Arc::new(UdpSocket::bind(at).await.unwrap()), UdpSocket::bind(from).await.unwrap());
    outside.connect(to).await.unwrap();
    let (mut there, mut back) = (vec![0; 65_535], vec![0; 65_535]);
    let mut agent = None;
    loop {
        tokio::select! {
            Ok((length, peer)) = inside.recv_from(&mut there) => {
                agent = Some(peer);
                let _ = outside.send(&there[..length]).await;
            }
            Ok(length) = outside.recv(&mut back) => if let Some(agent) = agent {
                let _ = inside.send_to(&back[..length], agent).await;
            },
        }
    }
}

fn ip(words: &[&str]) {
    let mut command = Command::new("ip");
    command.args(words);
    output(command).unwrap_or_else(|fault| panic!("{fault}"));
}
