//! kill -9 amid outages: every change is in the journal once, in its order, and none is missing.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::event::{AlertKind, What};
use parallax_tests::eventually::{API_PERIOD, eventually_every, note};
use parallax_tests::installation::Coordinator;
use parallax_tests::journal::Journal;
use parallax_tests::targets::{Mode, Target};
use serde_json::json;

/// Rounds every ten seconds, so that a test sees several.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Monitors that change together.
const MONITORS: usize = 12;
/// Longest time until a change is seen, with a start of the coordinator in it.
const SEEN: Duration = Duration::from_secs(90);

/// The site goes down and comes back so often, and each time the coordinator is killed as the first monitors change.
async fn flaps(times: usize) {
    let mut coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let _agents = [
        coordinator.agent("fra1", "europe", "AS64500", None),
        coordinator.agent("fra2", "europe", "AS64501", None),
    ];
    coordinator.connected(2).await;
    let account = coordinator.account("pro");
    let mut site = Target::start().await;
    for number in 0..MONITORS {
        let body = json!({"name": format!("m{number}"), "url": site.url()});
        account.client.create_monitor(&account.page, &body).await;
    }
    let are = async |status: &str, wanted: usize| {
        eventually_every(API_PERIOD, &format!("{wanted} are {status}"), SEEN, async || {
            let monitors = account.client.monitors(&account.page).await;
            let so = monitors.iter().filter(|monitor| monitor["status"] == status).count();
            (so >= wanted).then_some(())
        })
        .await;
    };
    are("up", MONITORS).await;
    for _ in 0..times {
        for (mode, status) in [(Mode::Status(500), "down"), (Mode::Pass, "up")] {
            site.set(mode).await;
            are(status, 1).await;
            coordinator.process.kill();
            coordinator.restart().await;
            are(status, MONITORS).await;
        }
    }
    coordinator.process.kill();
    let journal = Journal::read(&coordinator.data()).await;
    let right = journal.check().unwrap();
    let told = |kind: AlertKind| {
        let is = |what: &What| matches!(what, What::Changed(change) if change.alert == Some(kind));
        journal.events.iter().filter(|recorded| is(&recorded.event.what)).count()
    };
    let wanted = MONITORS * times;
    assert_eq!((told(AlertKind::WentDown), told(AlertKind::Recovered)), (wanted, wanted));
    note(&format!("{} kills amid outages, {right:?}", times * 2));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it amid -- --ignored`"]
async fn ten_kills_amid_outages_tell_of_each_once() {
    flaps(5).await;
}
