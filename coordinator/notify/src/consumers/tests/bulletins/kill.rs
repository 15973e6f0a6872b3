//! kill -9 while bulletins are sent: every subscriber receives them, few receive them twice, and nobody who
//! unsubscribed does.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use parallax_core::id::{AgentId, DeliveryId};
use parallax_store::disk::DiskOptions;
use parallax_store::{Expect, Presence};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::consumers::bulletin_fanout::run_fanout;

const FOLDER: &str = "PARALLAX_BULLETINS_UNDER_TEST";
/// Concurrent deliveries.
const SLOTS: usize = 8;

/// A process that handles events and sends deliveries; each line of its output is an accepted delivery.
#[test]
#[ignore = "not a test: the process that the other tests here kill"]
fn sender() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::on_disk(Path::new(&folder), DiskOptions::default()).unwrap();
        let (clock, new_bulletin) = (Clock::system(), Arc::new(Notify::new()));
        let consumer = Arc::new(BulletinConsumer::new("https://status.example".to_owned(), None));
        tokio::spawn(run_consumer(consumer, store.clone(), clock.clone(), Arc::clone(&new_bulletin)));
        tokio::spawn(run_fanout(store.clone(), clock, new_bulletin, Arc::default()));
        loop {
            let reader = store.reader();
            // Read in the order of the data's flow: a slice committed in between is still seen as waiting.
            let is_read = reader.cursor(BulletinConsumer::NAME).unwrap() == reader.last_event().unwrap();
            let is_fanned_out = is_read && reader.open_bulletins().unwrap().is_empty();
            let waiting = reader.waiting_deliveries().unwrap();
            if waiting.is_empty() && is_fanned_out {
                return;
            }
            join_all(waiting.iter().take(SLOTS).map(|it| send(&store, it.id))).await;
            tokio::task::yield_now().await;
        }
    });
}

/// Sends a delivery, then records it: after a kill in between it is sent again.
async fn send(store: &Store, id: DeliveryId) {
    let stored = store.reader().delivery(id).unwrap().unwrap();
    let Recipient::Subscriber(to) = stored.value.to else { panic!("{stored:?}") };
    let state = if store.reader().subscriber(to).unwrap().is_some() {
        writeln!(std::io::stdout(), "sent {id} {to}").unwrap();
        DeliveryState::Delivered(at(1))
    } else {
        DeliveryState::Dropped(at(1))
    };
    tokio::task::yield_now().await;
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(id, Presence::At(stored.revision))).write(Delivery { state, ..stored.value });
    store.commit(batch).await.unwrap();
}

/// Runs the process until it has sent `limit` deliveries, then kills it; with `None` it runs to its end. Returns
/// the id and subscriber of each delivery that it sent.
fn run_sender(folder: &Path, limit: Option<usize>) -> Vec<(String, String)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "consumers::tests::bulletins::kill::sender", "--nocapture", "--include-ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::result::Result::ok);
    let mut lines = lines.filter_map(|line| {
        let (_, sent) = line.split_once("sent ")?;
        let (id, to) = sent.split_once(' ')?;
        Some((id.to_owned(), to.to_owned()))
    });
    let mut sent: Vec<(String, String)> = match limit {
        Some(limit) => lines.by_ref().take(limit).collect(),
        None => lines.by_ref().collect(),
    };
    if limit.is_some() {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    // Lines that were written before the kill count too.
    sent.extend(lines);
    sent
}

async fn kills(subscribers: u128, kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::on_disk(folder.path(), DiskOptions::default()).unwrap();
    let store = open();
    init_cursor::<BulletinConsumer>(&store).await.unwrap();
    // A consumer never receives the very first event.
    let first = Event { at: at(0), page: None, monitor: None, kind: EventKind::AgentJoined(AgentId::from_u128(1)) };
    store.commit(Batch::new().event(first).clone()).await.unwrap();
    let mut batch = Batch::new();
    batch.write(account(1)).write(page(1, 1, "one")).write(monitor(1, 1, 0)).write(resolved_incident());
    for n in 1..=subscribers {
        batch.write(confirmed_subscriber(n));
    }
    let event = IncidentEvent {
        incident: resolved_incident().id,
        change: IncidentChange::Updated,
        update: Some(UpdateId::from_u128(2)),
        notify: true,
    };
    batch.event(Event { at: at(HOUR), page: Some(page_id(1)), monitor: None, kind: EventKind::Incident(event) });
    store.commit(batch).await.unwrap();
    store.close().await;
    drop(store);

    let mut random = StdRng::from_os_rng();
    let max_limit = subscribers as usize / kills;
    let mut deliveries_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unsubscribed = BTreeSet::new();
    let mut deliveries = 0;
    for n in 0..=kills {
        let limit = (n < kills).then(|| random.random_range(1..max_limit));
        for (id, to) in run_sender(folder.path(), limit) {
            assert!(!unsubscribed.contains(&to), "kill {n}: {to} had unsubscribed");
            deliveries_of.entry(to).or_default().push(id);
            deliveries += 1;
        }
        // Some subscribers without a delivery leave, both of the next slice and of the last.
        let store = open();
        for subscriber in (1..=subscribers).map(SubscriberId::from_u128).filter(|_| n < kills) {
            if !deliveries_of.contains_key(&subscriber.to_string()) && random.random_bool(0.02) {
                store.commit(Batch::new().write(Op::DeleteSubscriber(subscriber)).clone()).await.unwrap();
                unsubscribed.insert(subscriber.to_string());
            }
        }
        store.close().await;
    }
    let store = open();
    assert_eq!(store.reader().waiting_deliveries().unwrap().len(), 0, "the sender ended early");
    store.close().await;
    for to in (1..=subscribers).map(|n| SubscriberId::from_u128(n).to_string()) {
        assert_ne!(deliveries_of.contains_key(&to), unsubscribed.contains(&to), "{to}");
    }
    let ids: BTreeSet<&String> = deliveries_of.values().flatten().collect();
    assert_eq!(ids.len(), deliveries_of.len(), "a repeated delivery has the same id");
    let repeated = deliveries - deliveries_of.len();
    assert!(repeated <= kills * SLOTS, "{repeated} repeated");
}

#[tokio::test]
async fn three_hundred_subscribers_get_their_bulletin_over_five_kills() {
    kills(300, 5).await;
}

#[tokio::test]
#[ignore = "takes minutes: `cargo test -p parallax-notify five_thousand -- --ignored`"]
async fn five_thousand_subscribers_get_their_bulletin_over_thirty_kills() {
    kills(5_000, 30).await;
}
