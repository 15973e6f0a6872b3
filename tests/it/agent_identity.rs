//! Lifecycle of identities, with the real binaries: renewal, rotation of the authority, and theft.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_tests::eventually::{eventually, holds, print_figure, print_note};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_target::TestTarget;
use parallax_tests::udp_relay::UdpRelay;
use serde_json::Value;
use tempfile::TempDir;

use crate::cloned_identity::count_unique_readings;

/// Polling interval of an agent's status file, which is written every five seconds.
pub(crate) const STATUS_POLL: Duration = Duration::from_millis(500);
/// Longest wait for quick operations.
const SOON: Duration = Duration::from_secs(60);

pub(crate) async fn coordinator(config: &str) -> CoordinatorProcess {
    CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await
}

fn rotate(coordinator: &CoordinatorProcess, words: &[&str]) -> Result<Value, String> {
    coordinator.run_command(&[&["mesh", "rotate"], words].concat())
}

/// Waits until no agent is pending.
async fn all_ready(coordinator: &CoordinatorProcess) -> Value {
    eventually("every agent is ready", Duration::from_secs(60), async || {
        let told = rotate(coordinator, &["status"]).unwrap();
        (told["waitingFor"].as_array().is_some_and(Vec::is_empty)).then_some(told)
    })
    .await
}

pub(crate) fn member(coordinator: &CoordinatorProcess, name: &str) -> Value {
    let members = coordinator.members();
    members.into_iter().find(|member| member["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_over_and_over_on_one_connection_and_a_stopped_agent_returns_in_its_time() {
    let coordinator = coordinator("[mesh]\ncertificate_life_seconds = 18\n").await;
    let mut agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let before = std::fs::read(agent.data().join("credentials.pem")).unwrap();
    // For three certificate lifetimes the agent stays connected, without reconnecting.
    holds(STATUS_POLL, Duration::from_secs(50), async || match agent.status() {
        Some(now) if now["connections"].as_u64() > Some(1) => Err(format!("reconnected: {now}")),
        _ => Ok(()),
    })
    .await;
    assert_eq!(member(&coordinator, "fra1")["connected"], true);
    let renewed = agent.process().log().matches("certificate renewed").count();
    assert!((3..=5).contains(&renewed), "{renewed} renewals in 50 s with a life of 18 s");
    assert_ne!(std::fs::read(agent.data().join("credentials.pem")).unwrap(), before);
    // After a kill it reconnects with the certificate on its disk.
    agent.process().kill();
    agent.run();
    coordinator.wait_for_agents(1).await;
    // An agent that was away for longer than the rest of its certificate's lifetime is refused.
    agent.process().kill();
    holds(STATUS_POLL, Duration::from_secs(20), async || Ok(())).await;
    let said = agent.process().log().matches("not connected").count();
    agent.run();
    eventually("it says that it is not connected", SOON, async || {
        (agent.process().log().matches("not connected").count() > said).then_some(())
    })
    .await;
    eventually("nor is it", SOON, async || (member(&coordinator, "fra1")["connected"] == false).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_exchanged_with_an_agent_away_in_each_phase_and_taken_back_once() {
    let mut coordinator = coordinator("").await;
    let mut away = coordinator.start_agent("away", "asia", "AS64501", None);
    let here = coordinator.start_agent("here", "europe", "AS64500", None);
    coordinator.wait_for_agents(2).await;
    let before = rotate(&coordinator, &["status"]).unwrap();
    assert_eq!(before["phase"], "settled");
    let early = coordinator.invite("early", "africa", "AS64502", &[]).unwrap();
    for refused in ["switch", "finish", "abort"] {
        assert!(rotate(&coordinator, &[refused]).is_err(), "{refused} before the start");
    }

    // Away while the new authority is announced.
    away.process().kill();
    let started = rotate(&coordinator, &["start"]).unwrap();
    assert_eq!((&started["phase"], &started["signing"]), (&Value::from("spreading"), &before["signing"]));
    let new = started["alsoTrusted"].clone();
    eventually("the connected agent has received it", SOON, async || {
        (rotate(&coordinator, &["status"]).unwrap()["waitingFor"] == Value::from(vec!["away"])).then_some(())
    })
    .await;
    let refused = rotate(&coordinator, &["switch"]).unwrap_err();
    assert!(refused.contains("away"), "it names the pending agents: {refused}");
    away.run();
    all_ready(&coordinator).await;

    // Away, and the coordinator killed, while all agents renew.
    away.process().kill();
    let switched = rotate(&coordinator, &["switch"]).unwrap();
    assert_eq!((&switched["phase"], &switched["signing"]), (&Value::from("switched"), &new));
    coordinator.process.kill();
    coordinator.restart().await;
    assert_eq!(rotate(&coordinator, &["status"]).unwrap()["phase"], "switched");
    assert!(rotate(&coordinator, &["finish"]).unwrap_err().contains("away"));
    away.run();
    coordinator.wait_for_agents(2).await;
    all_ready(&coordinator).await;
    // A token from before the rotation is still valid.
    let folder = TempDir::new().unwrap();
    let mut newcomer = AgentProcess::new("early", folder.path(), None);
    newcomer.join(coordinator.ready.mesh, &early).unwrap();
    newcomer.run();
    coordinator.wait_for_agents(3).await;
    all_ready(&coordinator).await;

    // Aborted, with one agent away that has already renewed.
    away.process().kill();
    let back = rotate(&coordinator, &["abort"]).unwrap();
    assert_eq!((&back["phase"], &back["signing"]), (&Value::from("spreading"), &before["signing"]));
    assert!(rotate(&coordinator, &["abort"]).unwrap_err().contains("away"));
    away.run();
    coordinator.wait_for_agents(3).await;
    eventually("it can be given up", SOON, async || rotate(&coordinator, &["abort"]).ok()).await;
    assert_eq!(
        rotate(&coordinator, &["status"]).unwrap(),
        serde_json::json!({
            "phase": "settled", "signing": before["signing"], "alsoTrusted": null,
            "agents": 3, "ready": 3, "waitingFor": [],
        })
    );

    // Again, to the end.
    rotate(&coordinator, &["start"]).unwrap();
    all_ready(&coordinator).await;
    rotate(&coordinator, &["switch"]).unwrap();
    all_ready(&coordinator).await;
    let finished = rotate(&coordinator, &["finish"]).unwrap();
    assert_eq!((&finished["phase"], &finished["alsoTrusted"]), (&Value::from("settled"), &Value::Null));
    assert_ne!(finished["signing"], before["signing"]);
    coordinator.process.kill();
    coordinator.restart().await;
    coordinator.wait_for_agents(3).await;
    let late = coordinator.invite("late", "oceania", "AS64503", &[]).unwrap();
    AgentProcess::new("late", folder.path(), None).join(coordinator.ready.mesh, &late).unwrap();
    // The agent writes its status a moment after it is connected.
    eventually("the agent says so too", SOON, async || {
        here.status().is_some_and(|now| now["connected"] == true).then_some(())
    })
    .await;
}

/// Returns the results that arrived from an agent, each counted once, and those that it reports to have made.
fn came_and_made(coordinator: &CoordinatorProcess, agent: &AgentProcess, name: &str) -> Option<(u64, u64)> {
    let (member, status) = (member(coordinator, name), agent.status()?);
    let sum = |of: &Value, names: &[&str]| names.iter().filter_map(|name| of[*name].as_u64()).sum::<u64>();
    assert_eq!(sum(&member, &["dropped"]), 0, "{member}");
    let came = sum(&member, &["results"]) - sum(&member, &["duplicates"]);
    Some((came, sum(&status, &["passed", "failed", "inconclusive"])))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it exchanged_under_load -- --ignored`"]
async fn the_authority_is_exchanged_under_load_with_an_agent_away_in_each_phase_and_no_result_is_lost() {
    const MONITORS: usize = 500;
    let config = "requests_per_minute = 1000000\n[plans.pro]\ninterval_seconds = 5\nmonitors = 1000\n";
    let mut coordinator = coordinator(config).await;
    let mut away = coordinator.start_agent("away", "oceania", "AS64501", None);
    let here = [("fra", "europe", "AS64502"), ("sin", "asia", "AS64503"), ("cpt", "africa", "AS64504")]
        .map(|(name, region, network)| (name, coordinator.start_agent(name, region, network, None)));
    coordinator.wait_for_agents(4).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    for number in 0..MONITORS {
        let body = serde_json::json!({"name": format!("m{number}"), "url": target.url()});
        account.client.create_monitor(&account.page, &body).await;
    }
    let counts = || here.each_ref().map(|(name, agent)| came_and_made(&coordinator, agent, name).unwrap_or_default());
    let before: u64 = counts().iter().map(|(came, _)| came).sum();
    let begun = std::time::Instant::now();
    let leave = async |away: &mut AgentProcess| {
        away.process().terminate();
        away.process().wait_for_exit(Duration::from_secs(20)).await;
    };

    leave(&mut away).await;
    rotate(&coordinator, &["start"]).unwrap();
    eventually("the connected agents have received it", Duration::from_secs(60), async || {
        (rotate(&coordinator, &["status"]).unwrap()["waitingFor"] == Value::from(vec!["away"])).then_some(())
    })
    .await;
    away.run();
    all_ready(&coordinator).await;
    leave(&mut away).await;
    rotate(&coordinator, &["switch"]).unwrap();
    away.run();
    all_ready(&coordinator).await;
    leave(&mut away).await;
    rotate(&coordinator, &["abort"]).unwrap();
    away.run();
    eventually("it can be given up", Duration::from_secs(60), async || rotate(&coordinator, &["abort"]).ok()).await;
    rotate(&coordinator, &["start"]).unwrap();
    all_ready(&coordinator).await;
    rotate(&coordinator, &["switch"]).unwrap();
    all_ready(&coordinator).await;
    leave(&mut away).await;
    rotate(&coordinator, &["finish"]).unwrap();
    away.run();
    coordinator.wait_for_agents(4).await;

    let rate = (counts().iter().map(|(came, _)| came).sum::<u64>() - before) as f64 / begun.elapsed().as_secs_f64();
    print_note(&format!("{rate:.0} results a second over an exchange of {:.0?}", begun.elapsed()));
    assert!(rate > 150.0, "that is no load: {rate}");
    for (name, agent) in &here {
        let made = came_and_made(&coordinator, agent, name).expect("it runs").1;
        let came = eventually(&format!("{made} of {name} have come"), Duration::from_secs(60), async || {
            came_and_made(&coordinator, agent, name).map(|(came, _)| came).filter(|came| *came >= made)
        })
        .await;
        eventually("no more came than was made", Duration::from_secs(15), async || {
            came_and_made(&coordinator, agent, name).filter(|(_, made)| *made >= came)
        })
        .await;
        assert_eq!(agent.status().expect("it runs")["connections"], 1, "{name} stayed connected");
    }
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    journal.check().unwrap();
    print_note(&format!("{} readings, none twice", count_unique_readings(&journal)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_killed_right_after_a_switch_has_its_agent_back_before_the_old_connection_times_out() {
    // Without the stateless reset derived from the secret, it takes 15 s or more.
    const LIMIT: Duration = Duration::from_secs(9);
    const MOST: Duration = Duration::from_secs(13);
    let mut coordinator = coordinator("").await;
    let _agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let secret = std::fs::read(coordinator.data().join("mesh-secret")).unwrap();
    rotate(&coordinator, &["start"]).unwrap();
    all_ready(&coordinator).await;
    rotate(&coordinator, &["switch"]).unwrap();
    all_ready(&coordinator).await;
    coordinator.process.kill();
    coordinator.restart().await;
    let begun = std::time::Instant::now();
    coordinator.wait_for_agents(1).await;
    print_figure("back after a switch and a kill", begun.elapsed(), LIMIT);
    assert!(begun.elapsed() <= MOST);
    assert_eq!(std::fs::read(coordinator.data().join("mesh-secret")).unwrap(), secret, "made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_is_out_within_a_second() {
    let coordinator = coordinator("").await;
    let mut agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    let begun = std::time::Instant::now();
    agent.process().wait_for_log("this agent was revoked", SOON).await;
    print_figure("a revoked agent is out", begun.elapsed(), Duration::from_secs(1));
    assert_eq!(member(&coordinator, "fra1")["connected"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_hosts_with_one_token_exactly_one_joins() {
    let coordinator = coordinator("").await;
    let folder = TempDir::new().unwrap();
    let token = coordinator.invite("one", "europe", "AS64500", &[]).unwrap();
    let joins = (0..20).map(|number| {
        let agent = AgentProcess::new(&format!("host{number}"), folder.path(), None);
        let (mesh, token) = (coordinator.ready.mesh, token.clone());
        tokio::task::spawn_blocking(move || agent.join(mesh, &token))
    });
    let mut joined = 0;
    for join in joins.collect::<Vec<_>>() {
        joined += usize::from(join.await.unwrap().is_ok());
    }
    assert_eq!(joined, 1);
    assert_eq!(coordinator.members().iter().filter(|member| member["status"] != "invited").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_guesses_end_a_token_and_its_guesser_is_told_nothing_more() {
    let coordinator = coordinator("").await;
    let folder = TempDir::new().unwrap();
    let token = coordinator.invite("one", "europe", "AS64500", &[]).unwrap();
    let (id, rest) = token.split_once('.').expect("a token has parts");
    let (secret, hash) = rest.split_once('.').expect("a token has three parts");
    let join = |number: u32, token: &str| {
        AgentProcess::new(&format!("host{number}"), folder.path(), None)
            .join(coordinator.ready.mesh, token)
            .unwrap_err()
    };
    for number in 0..5 {
        // Changes the first hexadecimal digit of the secret; the case of digits does not matter.
        let first = secret[..1].to_uppercase();
        let wrong = ["A", "B", "C", "D", "E", "F"].into_iter().filter(|letter| **letter != first);
        let letter = wrong.into_iter().nth(number as usize).expect("five are left");
        let said = join(number, &format!("{id}.{letter}{}.{hash}", &secret[1..]));
        assert!(said.contains("forged"), "{said}");
    }
    assert!(join(6, &token).contains("forged"), "the valid token is refused with the same reason");
    assert!(coordinator.members().is_empty(), "it is no open invitation any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_man_in_the_middle_with_another_authority_gets_no_secret() {
    let (here, mut middle) = (coordinator("").await, coordinator("").await);
    let relay = UdpRelay::start(middle.ready.mesh, 1).await;
    relay.capture();
    let token = here.invite("one", "europe", "AS64500", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    let agent = AgentProcess::new("one", folder.path(), None);
    let said = agent.join(relay.address(), &token).unwrap_err();
    assert!(said.contains("belongs to another installation"), "{said}");
    let captured = relay.captured();
    assert!(captured.len() > 1_000, "they have met");
    for part in token.split('.') {
        assert!(!captured.windows(part.len()).any(|bytes| bytes == part.as_bytes()), "{part} went over the wire");
    }
    // The man in the middle received nothing either: its handshake failed before the first frame.
    middle.process.wait_for_log("handshake failed", SOON).await;
    let log = middle.process.log();
    assert!(!log.contains("a join request was refused"), "{log}");
    // The same relay to the right coordinator; the token is still valid.
    let relay = UdpRelay::start(here.ready.mesh, 1).await;
    agent.join(relay.address(), &token).expect("nothing was used up");
}
