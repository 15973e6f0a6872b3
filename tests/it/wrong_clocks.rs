//! Wrong wall clocks: agents join, connect and count, the operator sees the offset of each host's clock, and a clock
//! step of the coordinator delays nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, holds, wall_clock};
use parallax_tests::fake_clock::{FakeClock, SteppableClock};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::json;
use tempfile::TempDir;

use crate::scenario_setup::parse_time;

const MINUTE: i64 = 60_000;
const DAY: i64 = 1440 * MINUTE;

#[tokio::test(flavor = "multi_thread")]
async fn agents_with_any_clock_join_and_their_results_are_of_now() {
    const TEST: &str = "clocks::agents_with_any_clock_join_and_their_results_are_of_now";
    // Offset of each clock in ms; `None` where it depends on the day of the test: the epoch, and the year 2100.
    let clocks = [
        ("behind", "europe", "-600", Some(-10 * MINUTE)),
        ("ahead", "asia", "+600", Some(10 * MINUTE)),
        ("yesterday", "africa", "-86400", Some(-DAY)),
        ("tomorrow", "oceania", "+86400", Some(DAY)),
        ("unset", "north-america", "@1970-01-01 00:00:00", None),
        ("late", "south-america", "@2100-01-01 00:00:00", None),
    ];
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let coordinator = CoordinatorProcess::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config).await;
    let folder = TempDir::new().unwrap();
    let mut agents = Vec::new();
    for (number, (name, region, words, _)) in clocks.iter().enumerate() {
        let Some(clock) = FakeClock::new(TEST, words) else { return };
        let token = coordinator.invite(name, region, &format!("AS{}", 64_500 + number), &[]).unwrap();
        let mut agent = AgentProcess::new(name, folder.path(), None);
        agent.set_clock(clock);
        agent.join(coordinator.ready.mesh, &token).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        agent.run();
        agents.push(agent);
    }
    coordinator.wait_for_agents(clocks.len()).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    let body = json!({"name": "site", "url": target.url()});
    let monitor = account.client.create_monitor(&account.page, &body).await;
    eventually_every(API_PERIOD, "the monitor is up", Duration::from_secs(40), async || {
        (account.client.monitor(&account.page, &monitor).await["status"] == "up").then_some(())
    })
    .await;
    let now = async || account.client.monitor(&account.page, &monitor).await;
    holds(API_PERIOD * 2, Duration::from_secs(24), async || {
        let monitor = now().await;
        let age = wall_clock().since(parse_time(&monitor["lastCheck"]["at"]));
        match monitor["status"] == "up" && (-2_000..60_000).contains(&age) {
            true => Ok(()),
            false => Err(format!("{age} ms old: {monitor}")),
        }
    })
    .await;
    for ((name, _, _, off), agent) in clocks.iter().zip(&mut agents) {
        let member = eventually(&format!("{name} is known to be off"), Duration::from_secs(60), async || {
            let members = coordinator.members();
            members.into_iter().find(|it| it["name"] == *name && it["clockOff"] == true)
        })
        .await;
        let skew = member["clockSkewMs"].as_i64().unwrap();
        match off {
            Some(off) => assert!((skew - off).abs() < 60_000, "{name}: {member}"),
            None => assert!(skew.abs() > 365 * DAY, "{name}: {member}"),
        }
        assert!(member["results"].as_u64() > Some(0) && member["quarantined"] == false, "{member}");
        assert!(member["note"].as_str().is_some_and(|note| note.contains("clock")), "{member}");
        // Connected once, without reconnecting.
        assert_eq!(agent.process().log().matches("connected to the mesh").count(), 1, "{name}");
    }
}

/// Longest wait for an outage at this interval. Agents measure their clock offset once a minute.
const SOON: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_at_once_whatever_the_coordinators_clock_does() {
    const TEST: &str = "clocks::an_outage_is_told_at_once_whatever_the_coordinators_clock_does";
    let folder = TempDir::new().unwrap();
    let Some(clock) = SteppableClock::new(TEST, folder.path()) else { return };
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let coordinator = CoordinatorProcess::serve_in(folder, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config).await;
    let spots = [("fra1", "europe"), ("fra2", "europe"), ("sin1", "asia"), ("sin2", "asia")];
    let agents: Vec<AgentProcess> = (64_500..)
        .zip(spots)
        .map(|(network, (name, region))| coordinator.start_agent(name, region, &format!("AS{network}"), None))
        .collect();
    coordinator.wait_for_agents(agents.len()).await;
    let account = coordinator.create_account("pro");
    let mut target = TestTarget::start().await;
    let body = json!({"name": "site", "url": target.url()});
    let monitor = account.client.create_monitor(&account.page, &body).await;
    let now = async || account.client.monitor(&account.page, &monitor).await;
    let until = async |status: &str| {
        eventually_every(API_PERIOD, &format!("the monitor is {status}"), SOON, async || {
            Some(now().await).filter(|monitor| monitor["status"] == status)
        })
        .await
    };
    until("up").await;
    // Ahead by ten minutes, then back by one.
    let mut before = 0;
    for ahead in [600, 540] {
        clock.set_ahead(ahead);
        target.set(TargetMode::Status(503)).await;
        let down = until("down").await;
        let off = wall_clock().since(parse_time(&down["since"])) + ahead * 1_000;
        assert!((-5_000..60_000).contains(&off), "it is down since {off} ms ago, by the coordinator's clock: {down}");
        // Checks during the step are stored with the wall-clock time of the moment.
        let check = parse_time(&down["lastCheck"]["at"]);
        eventually_every(API_PERIOD, "a later round is kept", SOON, async || {
            (parse_time(&now().await["lastCheck"]["at"]) > check).then_some(())
        })
        .await;
        let off = wall_clock().since(check) + ahead * 1_000;
        assert!((-5_000..60_000).contains(&off), "the check is {off} ms old after a step from {before} s");
        target.set(TargetMode::Pass).await;
        until("up").await;
        before = ahead;
    }
}
