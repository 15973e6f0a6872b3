//! kill -9 during outages: every change is in the journal once and in order, none is missing, and a webhook receives
//! each of them in that order.

use std::collections::BTreeMap;
use std::time::Duration;

use parallax_core::event::{AlertKind, EventKind};
use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, print_note, wall_clock};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_target::{TargetMode, TestTarget};
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver};
use serde_json::json;

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Monitors that change together.
const MONITORS: usize = 12;
/// Longest wait for a status change, including a start of the coordinator.
const SEEN: Duration = Duration::from_secs(90);

/// The site goes down and recovers `times` times; each time the coordinator is killed as the first monitors change.
async fn flaps(times: usize) {
    let (mut coordinator, _agents, account) = agent_pair::start(CONFIG).await;
    let mut site = TestTarget::start().await;
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
        for (mode, status) in [(TargetMode::Status(500), "down"), (TargetMode::Pass, "up")] {
            site.set(mode).await;
            are(status, 1).await;
            coordinator.process.kill();
            coordinator.restart().await;
            are(status, MONITORS).await;
        }
    }
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    let right = journal.check().unwrap();
    let told = |kind: AlertKind| {
        let is = |what: &EventKind| matches!(what, EventKind::StatusChanged(change) if change.alert == Some(kind));
        journal.events.iter().filter(|recorded| is(&recorded.event.kind)).count()
    };
    let wanted = MONITORS * times;
    assert_eq!((told(AlertKind::WentDown), told(AlertKind::Recovered)), (wanted, wanted));
    print_note(&format!("{} kills amid outages, {right:?}", times * 2));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it amid -- --ignored`"]
async fn ten_kills_amid_outages_tell_of_each_once() {
    flaps(5).await;
}

/// `monitors` monitors go down and recover every 40 s, `times` times, without waiting for the coordinator, which is
/// killed about every 15 s at unrelated moments.
async fn told(monitors: usize, times: usize) {
    const HALF: Duration = Duration::from_secs(20);
    let config = format!("{CONFIG}monitors = 100000\n\n[deliver]\nallow_private = true\n");
    let (mut coordinator, _agents, account) = agent_pair::start(&config).await;
    let receiver = WebhookReceiver::start(ReceiverMode::Accept).await;
    let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
    account.client.post(&format!("/pages/{}/destinations", account.page), &hook).await.expect_status(201);
    let mut site = TestTarget::start().await;
    let mut maker = account.client.clone();
    for number in 0..monitors {
        if number % 50 == 49 {
            // Each key may send 120 requests a minute.
            maker = coordinator.api().with_key(Some(&coordinator.create_key(&account.account, "write")));
        }
        let body = json!({"name": format!("m{number}"), "url": site.url()});
        maker.create_monitor(&account.page, &body).await;
    }
    let all_are = async |status: &str| {
        eventually_every(API_PERIOD, &format!("all are {status}"), SEEN, async || {
            let all = account.client.monitors(&account.page).await;
            (all.len() == monitors && all.iter().all(|monitor| monitor["status"] == status)).then_some(())
        })
        .await;
    };
    all_are("up").await;
    let mut kills = 0;
    for _ in 0..times {
        for mode in [TargetMode::Status(500), TargetMode::Pass] {
            site.set(mode).await;
            let begun = tokio::time::Instant::now();
            let moment = wall_clock().as_millis().unsigned_abs() % 15_000;
            tokio::time::sleep(Duration::from_millis(moment)).await;
            coordinator.process.kill();
            kills += 1;
            coordinator.restart().await;
            tokio::time::sleep_until(begun + HALF).await;
        }
    }
    all_are("up").await;
    let mut expected = BTreeMap::<String, Vec<String>>::new();
    // One flap without kills, so that each monitor has one; then its last event is awaited.
    for (mode, status, event) in [(TargetMode::Status(500), "down", "went-down"), (TargetMode::Pass, "up", "recovered")]
    {
        site.set(mode).await;
        all_are(status).await;
        eventually(&format!("the last event of each is {event}"), SEEN, async || {
            let (all, _) = receiver.events_by_monitor();
            let last = |events: &Vec<String>| events.last().is_some_and(|last| last == event);
            (all.len() == monitors && all.values().all(last)).then_some(())
        })
        .await;
    }
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    let right = journal.check().unwrap();
    for recorded in &journal.events {
        let (Some(monitor), EventKind::StatusChanged(change)) = (recorded.event.monitor, &recorded.event.kind) else {
            continue;
        };
        if let Some(kind) = change.alert {
            expected.entry(monitor.to_string()).or_default().push(kind.name().to_owned());
        }
    }
    let (all, again) = receiver.events_by_monitor();
    assert_eq!(all, expected, "each change, in its order");
    for (monitor, events) in &all {
        let is_legal = events.chunks(2).all(|two| two == ["went-down", "recovered"]);
        assert!(is_legal, "{monitor}: {events:?}");
    }
    let count: usize = all.values().map(Vec::len).sum();
    assert!(count >= monitors * 2, "only {count} events of {monitors} monitors");
    assert!(again <= kills, "{again} repeated after {kills} kills");
    print_note(&format!("{monitors} monitors, {count} events over {kills} kills, {again} came again, {right:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_hears_of_every_flap_of_twenty_monitors_over_four_kills() {
    told(20, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it hundred_monitors -- --ignored`"]
async fn a_webhook_hears_of_every_flap_of_a_hundred_monitors_over_forty_kills() {
    told(100, 20).await;
}
