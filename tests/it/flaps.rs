//! kill -9 amid outages: every change is in the journal once, in its order, and none is missing; and a webhook hears of
//! each of them, in that order.

use std::collections::BTreeMap;
use std::time::Duration;

use parallax_core::event::{AlertKind, What};
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, note, wall_clock};
use parallax_tests::journal::Journal;
use parallax_tests::pair;
use parallax_tests::receivers::{Manner, Receiver};
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
    let (mut coordinator, _agents, account) = pair::start(CONFIG).await;
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

/// So many monitors go down and come back every 40 s, so many times, whatever the coordinator has noticed; it is killed
/// about every 15 s at moments that nothing else goes by.
async fn told(monitors: usize, times: usize) {
    const HALF: Duration = Duration::from_secs(20);
    let config = format!("{CONFIG}monitors = 100000\n\n[deliver]\nallow_private = true\n");
    let (mut coordinator, _agents, account) = pair::start(&config).await;
    let receiver = Receiver::start(Manner::Take).await;
    let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
    account.client.post(&format!("/pages/{}/destinations", account.page), &hook).await.is(201);
    let mut site = Target::start().await;
    let mut maker = account.client.clone();
    for number in 0..monitors {
        if number % 50 == 49 {
            // A key may ask 120 times a minute.
            maker = coordinator.api().with_key(Some(&coordinator.key(&account.account, "write")));
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
        for mode in [Mode::Status(500), Mode::Pass] {
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
    // A flap that no kill goes amid, so that each has one; then its last word is awaited.
    for (mode, status, event) in [(Mode::Status(500), "down", "went-down"), (Mode::Pass, "up", "recovered")] {
        site.set(mode).await;
        all_are(status).await;
        eventually(&format!("the last word of each is {event}"), SEEN, async || {
            let (all, _) = receiver.by_monitor();
            let last = |events: &Vec<String>| events.last().is_some_and(|last| last == event);
            (all.len() == monitors && all.values().all(last)).then_some(())
        })
        .await;
    }
    coordinator.process.kill();
    let journal = Journal::read(&coordinator.data()).await;
    let right = journal.check().unwrap();
    for recorded in &journal.events {
        let (Some(monitor), What::Changed(change)) = (recorded.event.monitor, &recorded.event.what) else {
            continue;
        };
        if let Some(kind) = change.alert {
            expected.entry(monitor.to_string()).or_default().push(kind.name().to_owned());
        }
    }
    let (all, again) = receiver.by_monitor();
    assert_eq!(all, expected, "each change, in its order");
    for (monitor, events) in &all {
        let is_legal = events.chunks(2).all(|two| two == ["went-down", "recovered"]);
        assert!(is_legal, "{monitor}: {events:?}");
    }
    let count: usize = all.values().map(Vec::len).sum();
    assert!(count >= monitors * 2, "only {count} events of {monitors} monitors");
    assert!(again <= kills, "{again} came again after {kills} kills");
    note(&format!("{monitors} monitors, {count} events over {kills} kills, {again} came again, {right:?}"));
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
