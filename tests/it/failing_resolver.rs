//! A failing name server of one agent: dead, slow, denying every name, or answering from its cache only. Nothing goes
//! down while the others work.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_core::vantage::Region;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, holds, print_note};
use parallax_tests::netns::{COORDINATOR, NETWORKS, TARGET, Topology};
use serde_json::json;
use tokio::net::UdpSocket;

use crate::scenario_setup::TopologyScene;

/// Longest wait until it is noticed: a host's fitness is tested every thirty seconds, and a dead name server takes
/// six.
const NOTICED: Duration = Duration::from_secs(45);
/// Long enough for the unfit agent to have a turn.
const TURN: Duration = Duration::from_secs(25);
/// Response delay of the slow name server.
const SLOW: Duration = Duration::from_secs(8);
/// Text of the operator alert.
const NOTICE: &str = "is not fit to check";

in_a_world!(an_agent_with_a_sick_resolver_accuses_nobody, sick_resolver);

#[derive(Debug, Clone, Copy)]
enum Mode {
    Well,
    Dead,
    Slow,
    Denying,
    /// Answers for the root from its cache, and SERVFAIL for everything else.
    Cached,
}

async fn sick_resolver(world: Topology) {
    let mode = Arc::new(Mutex::new(Mode::Well));
    let address = SocketAddr::from((COORDINATOR, 53));
    let socket = UdpSocket::bind(address).await.unwrap();
    tokio::spawn(serve(Arc::new(socket), Arc::clone(&mode)));
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let monitor = json!({"url": "http://site.test/", "pinnedRegion": "europe"});
    let mut stage = TopologyScene::start(&world, &NETWORKS, "pro", config, monitor).await;

    // From now on one agent uses another name server.
    let sick = &world.agent_host(Region::Europe, NETWORKS[0]).name;
    let at = world.agent_hosts.iter().position(|spot| spot.name == *sick).unwrap();
    let folder = stage.agents[at].data();
    let settings = folder.join("sick.toml");
    std::fs::write(&settings, format!("resolvers = [\"{address}\"]\n")).unwrap();
    stage.agents[at].process().terminate();
    stage.agents[at].process().wait_for_exit(TURN).await;
    stage.agents[at].run_with(&["--config", &settings.to_string_lossy()]);
    stage.coordinator.wait_for_agents(stage.agents.len()).await;
    let passed = async |stage: &TopologyScene| stage.agents[at].status().map(|status| count(&status, "passed"));
    eventually_every(API_PERIOD, "it checks by its own name server", NOTICED, async || {
        passed(&stage).await.filter(|passed| *passed > 0)
    })
    .await;

    let since = stage.monitor().await["since"].clone();
    for sickness in [Mode::Dead, Mode::Slow, Mode::Denying, Mode::Cached] {
        *mode.lock().unwrap() = sickness;
        let before = count(&stage.agents[at].status().unwrap(), "inconclusive");
        // Its turns continue, and so do the other agent's.
        holds(API_PERIOD, TURN, async || {
            let now = stage.monitor().await;
            let same = now["status"] == "up" && now["since"] == since && now["lastCheck"]["ok"] != false;
            if same { Ok(()) } else { Err(format!("{sickness:?}: {now}")) }
        })
        .await;
        let seen = eventually("a turn of its own is inconclusive", NOTICED, async || {
            let status = stage.agents[at].status()?;
            (count(&status, "inconclusive") > before).then_some(status)
        })
        .await;
        assert_eq!(count(&seen, "failed"), 0, "{sickness:?}: the target is accused");
        print_note(&format!("{sickness:?}: {} rounds inconclusive so far", count(&seen, "inconclusive")));
    }
    eventually("the operator sees it in the list", NOTICED, async || {
        let members = stage.coordinator.members();
        let member = members.iter().find(|member| member["name"] == sick.as_str())?;
        member["faults"].to_string().contains("resolver").then_some(())
    })
    .await;
    *mode.lock().unwrap() = Mode::Well;
    let coordinator = &mut stage.coordinator;
    coordinator.process.wait_for_log("is fit to check again", NOTICED).await;
    let log = coordinator.process.log();
    let notices: Vec<&str> = log.lines().filter(|line| line.contains(NOTICE)).collect();
    assert!(notices.len() == 1 && notices[0].contains("resolver"), "{notices:#?}");
    // Rounds in flight during the recovery are not counted as failures either.
    assert_eq!(count(&stage.agents[at].status().unwrap(), "failed"), 0);
    let now = stage.monitor().await;
    assert_eq!((&now["status"], &now["since"]), (&json!("up"), &since), "{now}");
    let path = format!("/pages/{}/monitors/{}", stage.account.page, now["id"].as_str().unwrap());
    let checks = stage.account.client.get(&format!("{path}/checks")).await.expect_status(200).to_string();
    assert!(checks.contains("resolver does not answer"), "the history says why: {checks}");
}

fn count(status: &serde_json::Value, field: &str) -> u64 {
    status[field].as_u64().unwrap_or_default()
}

/// Responds according to the mode: every name has the target's address, and the root exists.
async fn serve(socket: Arc<UdpSocket>, mode: Arc<Mutex<Mode>>) {
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query).await {
        let now = *mode.lock().unwrap();
        let code = match now {
            Mode::Dead => continue,
            Mode::Well | Mode::Slow => 0,
            Mode::Cached if query[12] == 0 => 0,
            Mode::Cached => 2,
            Mode::Denying => 3,
        };
        let answer = answer(&query[..length], code);
        let socket = Arc::clone(&socket);
        tokio::spawn(async move {
            if matches!(now, Mode::Slow) {
                tokio::time::sleep(SLOW).await;
            }
            socket.send_to(&answer, from).await
        });
    }
}

/// Returns the question with an A record, if one is asked for, or with that response code.
fn answer(query: &[u8], code: u8) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let has_address = code == 0 && query[end - 3] == 1;
    let mut out = query[..2].to_vec();
    out.extend([0x85, 0x80 | code, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
    out.extend(&query[12..end]);
    if has_address {
        out.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        out.extend(TARGET.octets());
    }
    out
}
