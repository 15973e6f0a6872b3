//! Bulletins: recipients, times, order, and crash safety.

mod kill;

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::event::{Event, EventKind};
use parallax_core::id::{IncidentId, SubscriberId, UpdateId};
use parallax_core::incident::{Incident, IncidentChange, IncidentEvent, IncidentStatus, IncidentUpdate};
use parallax_core::page::Page;
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::{HOUR, Timestamp};
use parallax_store::samples::{
    account, at, bulletin, incident, monitor, monitor_id, page, page_id, subscriber, window,
};
use serde_json::{Value, json};

use super::*;
use crate::consumers::bulletin_fanout::{FanoutTurn, MAX_UNSENT, SLICE_SIZE, fan_out_next};
use crate::consumers::bulletins::BulletinConsumer;

/// A page with a number of subscribers, the consumer, and a clock.
struct BulletinBench {
    store: Store,
    clock: Clock,
    consumer: Arc<BulletinConsumer>,
}

impl BulletinBench {
    async fn new(subscribers: u128) -> Self {
        let store = Store::in_memory().unwrap();
        let clock = Clock::manual(at(HOUR));
        let consumer = Arc::new(BulletinConsumer::new("https://status.example".to_owned(), None));
        let bench = Self { store, clock, consumer };
        // A consumer never receives the very first event.
        bench.commit_event(IncidentId::from_u128(0), IncidentChange::Changed, None, false).await;
        init_cursor::<BulletinConsumer>(&bench.store).await.unwrap();
        bench.put(account(1)).await;
        bench.put(page(1, 1, "one")).await;
        bench.put(monitor(1, 1, 0)).await;
        for n in 1..=subscribers {
            bench.put(confirmed_subscriber(n)).await;
        }
        bench
    }

    async fn put(&self, op: impl Into<Op>) {
        self.store.commit(Batch::new().write(op).clone()).await.unwrap();
    }

    async fn commit_event(&self, incident: IncidentId, change: IncidentChange, update: Option<u128>, notify: bool) {
        let event = IncidentEvent { incident, change, update: update.map(UpdateId::from_u128), notify };
        let event =
            Event { at: self.clock.now(), page: Some(page_id(1)), monitor: None, kind: EventKind::Incident(event) };
        self.store.commit(Batch::new().event(event).clone()).await.unwrap();
    }

    async fn consume(&self) {
        while consume_next(&self.consumer, &self.store, &self.clock).await.unwrap() != ConsumerTurn::Idle {}
    }

    fn open_bulletins(&self) -> Vec<Bulletin> {
        self.store.reader().open_bulletins().unwrap().into_iter().map(|it| it.value).collect()
    }

    fn deliveries(&self) -> Vec<Delivery> {
        let mut deliveries = self.store.reader().deliveries_of(Some(page_id(1)), None, 99_999).unwrap();
        deliveries.reverse();
        deliveries.into_iter().map(|it| it.value).collect()
    }

    async fn fan_out(&self) -> FanoutTurn {
        fan_out_next(&self.store, &self.clock).await.unwrap()
    }

    /// Marks everything that waits as sent.
    async fn send(&self) {
        for delivery in self.deliveries() {
            if let DeliveryState::Waiting(_) = delivery.state {
                self.put(Delivery { state: DeliveryState::Delivered(self.clock.now()), ..delivery }).await;
            }
        }
    }

    /// Number of deliveries by subscriber.
    fn deliveries_by_subscriber(&self) -> BTreeMap<u128, usize> {
        let mut counts = BTreeMap::new();
        for delivery in self.deliveries() {
            if let Recipient::Subscriber(id) = delivery.to {
                *counts.entry(id.to_u128()).or_insert(0) += 1;
            }
        }
        counts
    }
}

fn confirmed_subscriber(n: u128) -> Subscriber {
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&n.to_be_bytes());
    Subscriber { fingerprint, ..subscriber(n, 1, 0) }
}

fn update(id: u128, status: IncidentStatus, body: &str) -> IncidentUpdate {
    let status = status.name().to_owned();
    IncidentUpdate { id: UpdateId::from_u128(id), status, body: body.to_owned(), created_at: at(HOUR) }
}

fn resolved_incident() -> Incident {
    let updates =
        vec![update(1, IncidentStatus::Investigating, "Looking"), update(2, IncidentStatus::Resolved, "Fixed")];
    Incident {
        status: IncidentStatus::Resolved,
        resolved_at: Some(at(2 * HOUR)),
        updates,
        ..incident(7, 1, HOUR, true)
    }
}

#[tokio::test]
async fn each_incident_update_is_one_bulletin_as_of_its_event() {
    let bench = BulletinBench::new(1).await;
    // Both events are read late, when the incident is already resolved.
    bench.put(resolved_incident()).await;
    bench.commit_event(resolved_incident().id, IncidentChange::Opened, Some(1), true).await;
    bench.commit_event(resolved_incident().id, IncidentChange::Resolved, Some(2), true).await;
    bench.consume().await;
    let bulletins = bench.open_bulletins();
    let payloads: Vec<Value> = bulletins.iter().map(|it| serde_json::from_slice(&it.json).unwrap()).collect();
    assert_eq!(payloads.len(), 2);
    for (bulletin, payload, event, status, body) in [
        (&bulletins[0], &payloads[0], "incident.created", "investigating", "Looking"),
        (&bulletins[1], &payloads[1], "incident.resolved", "resolved", "Fixed"),
    ] {
        assert_eq!((bulletin.event.as_str(), &payload["event"]), (event, &json!(event)));
        assert_eq!(payload["incident"]["status"], status);
        assert_eq!((&payload["update"]["body"], &payload["at"]), (&json!(body), &json!(at(HOUR).as_millis())));
        assert_eq!((&payload["page"], &payload["pageUrl"]), (&json!("Page 1"), &json!("https://status.example/p/one")));
        assert!(bulletin.mail.text.contains(body) && bulletin.affected == [monitor_id(1)], "{bulletin:?}");
    }
    assert_eq!(payloads[0]["incident"]["resolvedAt"], Value::Null);
    assert_eq!(payloads[0]["incident"]["updates"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_window_sends_bulletins_at_creation_reminder_start_and_end() {
    let bench = BulletinBench::new(1).await;
    let planned = Incident { updates: vec![update(1, IncidentStatus::Scheduled, "Soon")], ..window(7, 1, HOUR, true) };
    bench.put(planned.clone()).await;
    for change in
        [IncidentChange::Scheduled, IncidentChange::Reminder(HOUR), IncidentChange::Started, IncidentChange::Completed]
    {
        bench.commit_event(planned.id, change, None, true).await;
    }
    bench.consume().await;
    let mut events: Vec<(u64, String)> = bench.open_bulletins().into_iter().map(|it| (it.seq, it.event)).collect();
    events.sort();
    let names: Vec<&str> = events.iter().map(|(_, name)| name.as_str()).collect();
    let expected = ["scheduled", "reminder", "started", "completed"].map(|it| format!("maintenance.{it}"));
    assert_eq!(names, expected);
}

#[tokio::test]
async fn silent_changes_and_hidden_pages_create_no_bulletin() {
    let bench = BulletinBench::new(1).await;
    bench.put(resolved_incident()).await;
    bench.commit_event(resolved_incident().id, IncidentChange::Opened, Some(1), false).await;
    bench.commit_event(resolved_incident().id, IncidentChange::Changed, None, true).await;
    bench.commit_event(resolved_incident().id, IncidentChange::Deleted, None, true).await;
    bench.commit_event(IncidentId::from_u128(99), IncidentChange::Opened, None, true).await;
    bench.consume().await;
    assert_eq!(bench.open_bulletins(), []);
    for hidden in [Page { private: true, ..page(1, 1, "one") }, page(1, 1, "one").mark_deleted()] {
        bench.put(hidden).await;
        bench.commit_event(resolved_incident().id, IncidentChange::Opened, Some(1), true).await;
        bench.commit_event(resolved_incident().id, IncidentChange::OwnerReminder(HOUR), None, true).await;
        bench.consume().await;
        assert_eq!(bench.open_bulletins(), []);
    }
    assert_eq!(bench.deliveries(), [], "a deleted page has no owner, and a closed incident needs no update");
}

#[tokio::test]
async fn an_owner_is_reminded_of_an_incident_that_is_still_open() {
    let bench = BulletinBench::new(0).await;
    bench.put(incident(7, 1, HOUR, true)).await;
    bench.commit_event(IncidentId::from_u128(7), IncidentChange::OwnerReminder(HOUR), None, true).await;
    bench.consume().await;
    let [reminder] = &bench.deliveries()[..] else { panic!("expected one delivery") };
    assert_eq!((reminder.to, reminder.is_single_attempt), (Recipient::Owner(page(1, 1, "one").account), false));
    assert!(matches!(&reminder.message, DeliveryMessage::Mail(mail) if mail.text.contains("no update for 1 h")));
}

#[tokio::test]
async fn bulletins_go_out_in_slices_once_most_earlier_deliveries_are_sent() {
    let bench = BulletinBench::new(330).await;
    bench.put(bulletin(HOUR, 1, false)).await;
    let mut turns = 0;
    loop {
        match bench.fan_out().await {
            FanoutTurn::Wrote => turns += 1,
            FanoutTurn::Throttled => {
                let waiting = bench.store.reader().waiting_deliveries().unwrap().len();
                assert!((MAX_UNSENT..MAX_UNSENT + SLICE_SIZE).contains(&waiting), "{waiting}");
                bench.send().await;
            }
            FanoutTurn::Idle => break,
        }
    }
    assert_eq!((turns, bench.deliveries_by_subscriber()), (7, (1..=330).map(|n| (n, 1)).collect()));
}

#[tokio::test]
async fn failing_receivers_do_not_delay_other_subscribers() {
    let bench = BulletinBench::new(300).await;
    bench.put(bulletin(HOUR, 1, false)).await;
    while bench.fan_out().await != FanoutTurn::Idle {
        let later = DeliveryState::Waiting(bench.clock.now() + HOUR);
        for delivery in bench.deliveries() {
            bench.put(Delivery { state: later, ..delivery }).await;
        }
    }
    assert_eq!(bench.deliveries_by_subscriber().len(), 300);
}

#[tokio::test]
async fn a_subscriber_who_leaves_is_skipped_from_the_next_slice_on() {
    let bench = BulletinBench::new(120).await;
    bench.put(bulletin(HOUR, 1, false)).await;
    assert_eq!(bench.fan_out().await, FanoutTurn::Wrote);
    for n in [SLICE_SIZE as u128 + 1, 120] {
        bench.put(Op::DeleteSubscriber(SubscriberId::from_u128(n))).await;
    }
    bench.put(Subscriber { confirmed_at: None, ..confirmed_subscriber(60) }).await;
    bench.put(Subscriber { confirmed_at: Some(at(2 * HOUR)), ..confirmed_subscriber(61) }).await;
    bench.put(Subscriber { monitors: Some(vec![monitor_id(9)]), ..confirmed_subscriber(62) }).await;
    while bench.fan_out().await != FanoutTurn::Idle {
        bench.send().await;
    }
    // The bulletin names no monitor, so subscribers to single monitors receive it too.
    let missing: Vec<u128> = (1..=120).filter(|n| !bench.deliveries_by_subscriber().contains_key(n)).collect();
    assert_eq!(missing, [SLICE_SIZE as u128 + 1, 60, 61, 120]);
}

#[tokio::test]
async fn bulletins_of_one_incident_keep_their_order_and_other_incidents_run_in_parallel() {
    let bench = BulletinBench::new(160).await;
    let first = bulletin(HOUR, 1, false);
    let second = Bulletin { seq: 4, ..bulletin(HOUR + 1, 1, false) };
    let other = Bulletin { seq: 5, incident: IncidentId::from_u128(2), ..bulletin(HOUR + 2, 1, false) };
    for it in [&other, &second, &first] {
        bench.put(it.clone()).await;
    }
    while bench.fan_out().await != FanoutTurn::Idle {
        let seqs: Vec<u64> = bench.deliveries().iter().map(|it| it.seq).collect();
        let count_of = |seq: u64| seqs.iter().filter(|it| **it == seq).count();
        assert!(count_of(4) == 0 || count_of(3) == 160, "{} {}", count_of(3), count_of(4));
        assert!(count_of(4) > 0 || count_of(5) == count_of(3), "{} {}", count_of(3), count_of(5));
        bench.send().await;
    }
    assert_eq!(bench.deliveries_by_subscriber(), (1..=160).map(|n| (n, 3)).collect());
}

#[tokio::test]
async fn hiding_or_deleting_a_page_stops_its_bulletins() {
    for hidden in [Page { private: true, ..page(1, 1, "one") }, page(1, 1, "one").mark_deleted()] {
        let bench = BulletinBench::new(120).await;
        bench.put(bulletin(HOUR, 1, false)).await;
        bench.fan_out().await;
        bench.put(hidden).await;
        assert_eq!(bench.fan_out().await, FanoutTurn::Wrote);
        assert_eq!((bench.fan_out().await, bench.deliveries_by_subscriber().len()), (FanoutTurn::Idle, SLICE_SIZE));
    }
}

#[tokio::test]
async fn fan_out_resumes_after_a_restart_without_repeating_deliveries() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::on_disk(folder.path(), parallax_store::disk::DiskOptions::default()).unwrap();
    let clock = Clock::manual(at(HOUR));
    let store = open();
    let mut batch = Batch::new();
    batch.write(page(1, 1, "one")).write(bulletin(HOUR, 1, false));
    for n in 1..=130 {
        batch.write(confirmed_subscriber(n));
    }
    store.commit(batch).await.unwrap();
    let mut store = Some(store);
    let deliveries = loop {
        let opened = store.take().unwrap_or_else(open);
        let turn = fan_out_next(&opened, &clock).await.unwrap();
        let deliveries = opened.reader().deliveries_of(Some(page_id(1)), None, 999).unwrap();
        for it in &deliveries {
            let sent = DeliveryState::Delivered(Timestamp::from_millis(1));
            opened.commit(Batch::new().write(Delivery { state: sent, ..it.value.clone() }).clone()).await.unwrap();
        }
        opened.close().await;
        drop(opened);
        if turn == FanoutTurn::Idle {
            break deliveries;
        }
    };
    assert_eq!(deliveries.len(), 130);
}
