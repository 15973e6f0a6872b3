//! Operator alerts, with the real binaries: a dead agent is one alert, not one per monitor, and none again after a
//! restart.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::event::EventKind;
use parallax_core::operator_alert::{OperatorAlert, OperatorProblem};
use parallax_core::vantage::Region;
use parallax_tests::eventually::{API_PERIOD, eventually_every, holds};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_target::TestTarget;
use serde_json::json;

/// Interval of ten seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Longest wait until a lost agent is noticed and the alert's minimum duration has passed.
const SOON: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_agent_is_one_event_for_the_operator_and_none_for_any_monitor() {
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let mut agents = [
        coordinator.start_agent("fra1", "europe", "AS64500", None),
        coordinator.start_agent("fra2", "europe", "AS64501", None),
        coordinator.start_agent("sin1", "asia", "AS64500", None),
        coordinator.start_agent("sin2", "asia", "AS64501", None),
    ];
    coordinator.wait_for_agents(4).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
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
    coordinator.process.wait_for_log("operator alert raised matter=SingleNetwork(Some(Asia))", SOON).await;
    coordinator.process.kill();
    coordinator.restart().await;
    // Longer than the minimum duration of an alert.
    holds(
        API_PERIOD,
        Duration::from_secs(30),
        async || {
            if up().await { Ok(()) } else { Err("a monitor is not up".to_owned()) }
        },
    )
    .await;
    agents[3].run();
    coordinator.process.wait_for_log("operator alert ended matter=SingleNetwork(Some(Asia))", SOON).await;
    coordinator.process.kill();

    let journal = StoredJournal::read(&coordinator.data()).await;
    // Hosts without a resolver are also reported as unfit, and the mesh as having only two networks.
    let is_other = |matter: &OperatorProblem| {
        matches!(matter, OperatorProblem::UnfitHost { .. } | OperatorProblem::OnlyTwoNetworks)
    };
    let notice = |what: &EventKind| match what {
        EventKind::OperatorAlert(notice) if !is_other(&notice.problem) => Some(notice.clone()),
        _ => None,
    };
    let told: Vec<OperatorAlert> = journal.events.iter().filter_map(|one| notice(&one.event.kind)).collect();
    let matter = OperatorProblem::SingleNetwork(Some(Region::Asia));
    assert_eq!(
        told,
        [
            OperatorAlert { problem: matter.clone(), has_ended: false },
            OperatorAlert { problem: matter, has_ended: true }
        ]
    );
}
