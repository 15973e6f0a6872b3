//! One agent's name server dies, is slow, denies every name, or knows nothing but its cache, while the others see well:
//! nothing goes down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_core::place::Region;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, holds, note};
use parallax_tests::netns::{COORDINATOR, NETWORKS, TARGET, World};
use serde_json::json;
use tokio::net::UdpSocket;

use crate::stage::Stage;

/// A host is judged once in thirty seconds, and a dead name server takes six.
const NOTICED: Duration = Duration::from_secs(45);
/// Long enough that the sick agent has had a turn.
const TURN: Duration = Duration::from_secs(25);
/// How late the slow server answers.
const SLOW: Duration = Duration::from_secs(8);
/// What the operator is told.
const NOTICE: &str = "is not fit to check";

in_a_world!(an_agent_with_a_sick_resolver_accuses_nobody, sick_resolver);

#[derive(Debug, Clone, Copy)]
enum Mode {
    Well,
    Dead,
    Slow,
    Denying,
    /// Answers for the root out of its cache, and with an error for the rest.
    Cached,
}

async fn sick_resolver(world: World) {
    let mode = Arc::new(Mutex::new(Mode::Well));
    let address = SocketAddr::from((COORDINATOR, 53));
    let socket = UdpSocket::bind(address).await.unwrap();
    tokio::spawn(serve(Arc::new(socket), Arc::clone(&mode)));
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let monitor = json!({"url": "http://site.test/", "pinnedRegion": "europe"});
    let mut stage = Stage::set(&world, &NETWORKS, "pro", config, monitor).await;

    // One agent asks another name server from now on.
    let sick = &world.spot(Region::Europe, NETWORKS[0]).name;
    let at = world.spots.iter().position(|spot| spot.name == *sick).unwrap();
    let folder = stage.agents[at].data();
    let settings = folder.join("sick.toml");
    std::fs::write(&settings, format!("resolvers = [\"{address}\"]\n")).unwrap();
    stage.agents[at].process().terminate();
    stage.agents[at].process().ended(TURN).await;
    stage.agents[at].run_with(&["--config", &settings.to_string_lossy()]);
    stage.coordinator.connected(stage.agents.len()).await;
    let passed = async |stage: &Stage| stage.agents[at].status().map(|status| count(&status, "passed"));
    eventually_every(API_PERIOD, "it checks by its own name server", NOTICED, async || {
        passed(&stage).await.filter(|passed| *passed > 0)
    })
    .await;

    let since = stage.look().await["since"].clone();
    for sickness in [Mode::Dead, Mode::Slow, Mode::Denying, Mode::Cached] {
        *mode.lock().unwrap() = sickness;
        let before = count(&stage.agents[at].status().unwrap(), "inconclusive");
        // Its turns go on meanwhile, and so do the other agent's.
        holds(API_PERIOD, TURN, async || {
            let now = stage.look().await;
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
        note(&format!("{sickness:?}: {} rounds inconclusive so far", count(&seen, "inconclusive")));
    }
    eventually("the operator sees it in the list", NOTICED, async || {
        let members = stage.coordinator.members();
        let member = members.iter().find(|member| member["name"] == sick.as_str())?;
        member["faults"].to_string().contains("resolver").then_some(())
    })
    .await;
    *mode.lock().unwrap() = Mode::Well;
    let coordinator = &mut stage.coordinator;
    coordinator.process.says("is fit to check again", NOTICED).await;
    let log = coordinator.process.log();
    let notices: Vec<&str> = log.lines().filter(|line| line.contains(NOTICE)).collect();
    assert!(notices.len() == 1 && notices[0].contains("resolver"), "{notices:#?}");
    // Rounds that were under way when it came back are held against nobody either.
    assert_eq!(count(&stage.agents[at].status().unwrap(), "failed"), 0);
    let now = stage.look().await;
    assert_eq!((&now["status"], &now["since"]), (&json!("up"), &since), "{now}");
    let path = format!("/pages/{}/monitors/{}", stage.account.page, now["id"].as_str().unwrap());
    let checks = stage.account.client.get(&format!("{path}/checks")).await.is(200).to_string();
    assert!(checks.contains("resolver does not answer"), "the history says why: {checks}");
}

fn count(status: &serde_json::Value, field: &str) -> u64 {
    status[field].as_u64().unwrap_or_default()
}

/// Answers as the mode says: every name has the target's address, and the root exists.
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

/// The question with an A record, if one is asked for; or with that response code.
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
