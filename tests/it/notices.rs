//! What the operator is told, with the real binaries: a dead agent is one event, none per monitor, and none again over a
//! restart.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::event::What;
use parallax_core::notice::{Matter, Notice};
use parallax_core::place::Region;
use parallax_tests::eventually::{API_PERIOD, eventually_every, holds};
use parallax_tests::installation::Coordinator;
use parallax_tests::journal::Journal;
use parallax_tests::targets::Target;
use serde_json::json;

/// Rounds every ten seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Until a lost agent is missed, and that has lasted.
const SOON: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_agent_is_one_event_for_the_operator_and_none_for_any_monitor() {
    let mut coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let mut agents = [
        coordinator.agent("fra1", "europe", "AS64500", None),
        coordinator.agent("fra2", "europe", "AS64501", None),
        coordinator.agent("sin1", "asia", "AS64500", None),
        coordinator.agent("sin2", "asia", "AS64501", None),
    ];
    coordinator.connected(4).await;
    let account = coordinator.account("pro");
    let target = Target::start().await;
    for name in ["shop", "search", "cart"] {
        let monitor = json!({"name": name, "url": target.url()});
        account.client.create_monitor(&account.page, &monitor).await;
    }
    let up = async || {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == "up")
    };
    eventually_every(API_PERIOD, "all monitors are up", SOON, async || up().await.then_some(())).await;

    agents[3].process().kill();
    coordinator.process.says("operator alert raised matter=OneNetwork(Some(Asia))", SOON).await;
    coordinator.process.kill();
    coordinator.restart().await;
    // Longer than a matter must last to be told.
    holds(API_PERIOD, Duration::from_secs(30), async || {
        if up().await { Ok(()) } else { Err("a monitor is not up".to_owned()) }
    })
    .await;
    agents[3].run();
    coordinator.process.says("operator alert ended matter=OneNetwork(Some(Asia))", SOON).await;
    coordinator.process.kill();

    let journal = Journal::read(&coordinator.data()).await;
    // Hosts without a resolver are reported as unfit besides, and the mesh as one of two networks.
    let is_other = |matter: &Matter| matches!(matter, Matter::HostUnfit { .. } | Matter::TwoNetworks);
    let notice = |what: &What| match what {
        What::Notice(notice) if !is_other(&notice.matter) => Some(notice.clone()),
        _ => None,
    };
    let told: Vec<Notice> = journal.events.iter().filter_map(|one| notice(&one.event.what)).collect();
    let matter = Matter::OneNetwork(Some(Region::Asia));
    assert_eq!(told, [Notice { matter: matter.clone(), ended: false }, Notice { matter, ended: true }]);
}
