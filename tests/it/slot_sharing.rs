//! Accounts whose targets never respond, next to one whose targets do: with the real binaries, and few slots.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually_every, holds, print_figure, print_note};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::json;

/// Accounts with black holes, and monitors of each.
const ATTACKERS: usize = 3;
const HANGING: usize = 100;
/// Monitors of the account whose target responds.
const MONITORS: usize = 9;
/// Interval in seconds.
const INTERVAL: u64 = 10;
/// Time for which its rounds are counted.
const SPAN: Duration = Duration::from_secs(60);
/// Longest wait for quick operations.
const SOON: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn black_holes_of_other_accounts_delay_neither_checks_nor_confirmations() {
    let config =
        format!("requests_per_minute = 1000000\n[plans.pro]\nmonitors = {HANGING}\ninterval_seconds = {INTERVAL}\n");
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let folder = coordinator.data().parent().unwrap().to_owned();
    let settings = folder.join("agent.toml");
    std::fs::write(&settings, "concurrency = 32\n").unwrap();
    let _agents = [("fra1", "AS64500"), ("fra2", "AS64501")].map(|(name, network)| {
        let token = coordinator.invite(name, "europe", network, &[]).unwrap();
        let mut agent = AgentProcess::new(name, &folder, None);
        agent.join(coordinator.ready.mesh, &token).unwrap();
        agent.run_with(&["--config", settings.to_str().unwrap()]);
        agent
    });
    coordinator.wait_for_agents(2).await;
    let mut hole = TestTarget::start().await;
    hole.set(TargetMode::Hang).await;
    for _ in 0..ATTACKERS {
        let attacker = coordinator.create_account("pro");
        fill(&attacker, HANGING, &hole).await;
    }
    let mut site = TestTarget::start().await;
    let victim = coordinator.create_account("pro");
    fill(&victim, MONITORS, &site).await;
    until(&victim, "up").await;

    let (before, held) = (site.requests(), hole.requests());
    holds(API_PERIOD, SPAN, async || {
        let monitors = victim.client.monitors(&victim.page).await;
        let is_up = monitors.iter().all(|monitor| monitor["status"] == "up");
        if is_up { Ok(()) } else { Err("the victim's monitors are not up".to_owned()) }
    })
    .await;
    let (rounds, held) = (site.requests() - before, hole.requests() - held);
    let wanted = MONITORS as u64 * SPAN.as_secs() / INTERVAL;
    print_note(&format!("{rounds} of {wanted} rounds next to {held} of {} black holes", ATTACKERS * HANGING));
    // All expected rounds or, on a busy host, which skips rounds that begin late, a fair share: an agent that served
    // all monitors in turn would run one of 34 rounds.
    let has_share = rounds * 3 >= wanted * 2 || rounds * 27 >= held;
    assert!(has_share, "{rounds} rounds, and {held} of others' that hang");

    site.set(TargetMode::Status(503)).await;
    let begun = Instant::now();
    until(&victim, "down").await;
    print_figure("down next to other accounts' black holes", begun.elapsed(), Duration::from_secs(20));
}

async fn fill(account: &TestAccount, count: usize, target: &TestTarget) {
    for number in 0..count {
        let body = json!({"name": format!("m{number}"), "url": format!("{}{number}", target.url())});
        account.client.create_monitor(&account.page, &body).await;
    }
}

async fn until(account: &TestAccount, status: &str) {
    eventually_every(API_PERIOD, &format!("all are {status}"), SOON, async || {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == status).then_some(())
    })
    .await;
}
