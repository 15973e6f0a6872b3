//! Bulletins: recipients, times, order, and crash safety.

mod kill;

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::{Event, What};
use parallax_core::id::{IncidentId, SubscriberId, UpdateId};
use parallax_core::incident::{Incident, News, Progress, Told, Update};
use parallax_core::page::Page;
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::{HOUR, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::notify::consumers::fanout::{self, AHEAD, SLICE};
use crate::notify::consumers::subscribers::Subscribers;
use crate::storage::contract::samples::{
    account, at, bulletin, incident, monitor, monitor_id, page, page_id, subscriber, window,
};

/// A page with a number of subscribers, the consumer, and a clock.
struct House {
    store: Store,
    clock: Clock,
    reaction: Arc<Subscribers>,
}

impl House {
    async fn new(subscribers: u128) -> Self {
        let store = Store::in_memory().unwrap();
        let clock = Clock::by_hand(at(HOUR));
        let reaction = Arc::new(Subscribers::new("https://status.example".to_owned(), None));
        let house = Self { store, clock, reaction };
        // A consumer never receives the very first event.
        house.happens(IncidentId::from_u128(0), News::Changed, None, false).await;
        begin::<Subscribers>(&house.store).await.unwrap();
        house.put(account(1)).await;
        house.put(page(1, 1, "one")).await;
        house.put(monitor(1, 1, 0)).await;
        for n in 1..=subscribers {
            house.put(known(n)).await;
        }
        house
    }

    async fn put(&self, op: impl Into<Op>) {
        self.store.commit(Batch::new().write(op).clone()).await.unwrap();
    }

    async fn happens(&self, of: IncidentId, news: News, update: Option<u128>, notify: bool) {
        let told = Told { incident: of, news, update: update.map(UpdateId::from_u128), notify };
        let event =
            Event { at: self.clock.now(), page: Some(page_id(1)), monitor: None, what: What::Incident(told) };
        self.store.commit(Batch::new().event(event).clone()).await.unwrap();
    }

    async fn react(&self) {
        while turn(&self.reaction, &self.store, &self.clock).await.unwrap() != Turn::Rests {}
    }

    fn news(&self) -> Vec<Bulletin> {
        self.store.reader().open_bulletins().unwrap().into_iter().map(|it| it.value).collect()
    }

    fn deliveries(&self) -> Vec<Delivery> {
        let mut found = self.store.reader().deliveries_of(Some(page_id(1)), None, 99_999).unwrap();
        found.reverse();
        found.into_iter().map(|it| it.value).collect()
    }

    async fn fan_out(&self) -> fanout::Turn {
        fanout::turn(&self.store, &self.clock).await.unwrap()
    }

    /// Marks everything that waits as sent.
    async fn send(&self) {
        for delivery in self.deliveries() {
            if let Stage::Waiting(_) = delivery.stage {
                self.put(Delivery { stage: Stage::Delivered(self.clock.now()), ..delivery }).await;
            }
        }
    }

    /// Number of deliveries by subscriber.
    fn got(&self) -> BTreeMap<u128, usize> {
        let mut got = BTreeMap::new();
        for delivery in self.deliveries() {
            if let Recipient::Subscriber(id) = delivery.to {
                *got.entry(id.to_u128()).or_insert(0) += 1;
            }
        }
        got
    }
}

fn known(n: u128) -> Subscriber {
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&n.to_be_bytes());
    Subscriber { fingerprint, ..subscriber(n, 1, 0) }
}

fn update(id: u128, status: Progress, body: &str) -> Update {
    let status = status.name().to_owned();
    Update { id: UpdateId::from_u128(id), status, body: body.to_owned(), created_at: at(HOUR) }
}

fn broken() -> Incident {
    let updates = vec![update(1, Progress::Investigating, "Looking"), update(2, Progress::Resolved, "Fixed")];
    Incident {
        status: Progress::Resolved,
        resolved_at: Some(at(2 * HOUR)),
        updates,
        ..incident(7, 1, HOUR, true)
    }
}

#[tokio::test]
async fn each_word_on_an_incident_is_one_bulletin_of_its_moment() {
    let house = House::new(1).await;
    // Both events are read late, when the incident is already resolved.
    house.put(broken()).await;
    house.happens(broken().id, News::Opened, Some(1), true).await;
    house.happens(broken().id, News::Resolved, Some(2), true).await;
    house.react().await;
    let news = house.news();
    let told: Vec<Value> = news.iter().map(|it| serde_json::from_slice(&it.json).unwrap()).collect();
    assert_eq!(told.len(), 2);
    for (news, told, event, status, body) in [
        (&news[0], &told[0], "incident.created", "investigating", "Looking"),
        (&news[1], &told[1], "incident.resolved", "resolved", "Fixed"),
    ] {
        assert_eq!((news.event.as_str(), &told["event"]), (event, &json!(event)));
        assert_eq!(told["incident"]["status"], status);
        assert_eq!((&told["update"]["body"], &told["at"]), (&json!(body), &json!(at(HOUR).as_millis())));
        assert_eq!(
            (&told["page"], &told["pageUrl"]),
            (&json!("Page 1"), &json!("https://status.example/p/one"))
        );
        assert!(news.mail.text.contains(body) && news.affected == [monitor_id(1)], "{news:?}");
    }
    assert_eq!(told[0]["incident"]["resolvedAt"], Value::Null);
    assert_eq!(told[0]["incident"]["updates"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_window_is_told_at_creation_reminder_start_and_end() {
    let house = House::new(1).await;
    let planned =
        Incident { updates: vec![update(1, Progress::Scheduled, "Soon")], ..window(7, 1, HOUR, true) };
    house.put(planned.clone()).await;
    for news in [News::Scheduled, News::Reminder(HOUR), News::Started, News::Completed] {
        house.happens(planned.id, news, None, true).await;
    }
    house.react().await;
    let mut events: Vec<(u64, String)> = house.news().into_iter().map(|it| (it.seq, it.event)).collect();
    events.sort();
    let names: Vec<&str> = events.iter().map(|(_, name)| name.as_str()).collect();
    let names_of = ["scheduled", "reminder", "started", "completed"].map(|it| format!("maintenance.{it}"));
    assert_eq!(names, names_of);
}

#[tokio::test]
async fn silence_is_kept_where_nobody_is_to_be_told() {
    let house = House::new(1).await;
    house.put(broken()).await;
    house.happens(broken().id, News::Opened, Some(1), false).await;
    house.happens(broken().id, News::Changed, None, true).await;
    house.happens(broken().id, News::Deleted, None, true).await;
    house.happens(IncidentId::from_u128(99), News::Opened, None, true).await;
    house.react().await;
    assert_eq!(house.news(), []);
    for hidden in [Page { private: true, ..page(1, 1, "one") }, page(1, 1, "one").let_go()] {
        house.put(hidden).await;
        house.happens(broken().id, News::Opened, Some(1), true).await;
        house.happens(broken().id, News::OwnerReminder(HOUR), None, true).await;
        house.react().await;
        assert_eq!(house.news(), []);
    }
    assert_eq!(house.deliveries(), [], "a deleted page has no owner, and a closed incident needs no update");
}

#[tokio::test]
async fn an_owner_is_reminded_of_an_incident_that_is_still_open() {
    let house = House::new(0).await;
    house.put(incident(7, 1, HOUR, true)).await;
    house.happens(IncidentId::from_u128(7), News::OwnerReminder(HOUR), None, true).await;
    house.react().await;
    let [reminder] = &house.deliveries()[..] else { panic!("expected one delivery") };
    assert_eq!((reminder.to, reminder.once), (Recipient::Owner(page(1, 1, "one").account), false));
    assert!(matches!(&reminder.letter, Letter::Mail(mail) if mail.text.contains("no update for 1 h")));
}

#[tokio::test]
async fn news_goes_out_in_slices_while_most_of_the_last_are_sent() {
    let house = House::new(330).await;
    house.put(bulletin(HOUR, 1, false)).await;
    let mut turns = 0;
    loop {
        match house.fan_out().await {
            fanout::Turn::Wrote => turns += 1,
            fanout::Turn::Waits => {
                let waiting = house.store.reader().waiting().unwrap().len();
                assert!((AHEAD..AHEAD + SLICE).contains(&waiting), "{waiting}");
                house.send().await;
            }
            fanout::Turn::Rests => break,
        }
    }
    assert_eq!((turns, house.got()), (7, (1..=330).map(|n| (n, 1)).collect()));
}

#[tokio::test]
async fn receivers_that_fail_hold_up_nobody_elses_news() {
    let house = House::new(300).await;
    house.put(bulletin(HOUR, 1, false)).await;
    while house.fan_out().await != fanout::Turn::Rests {
        let later = Stage::Waiting(house.clock.now() + HOUR);
        for delivery in house.deliveries() {
            house.put(Delivery { stage: later, ..delivery }).await;
        }
    }
    assert_eq!(house.got().len(), 300);
}

#[tokio::test]
async fn who_leaves_gets_nothing_from_the_next_slice_on() {
    let house = House::new(120).await;
    house.put(bulletin(HOUR, 1, false)).await;
    assert_eq!(house.fan_out().await, fanout::Turn::Wrote);
    for n in [SLICE as u128 + 1, 120] {
        house.put(Op::DeleteSubscriber(SubscriberId::from_u128(n))).await;
    }
    house.put(Subscriber { confirmed_at: None, ..known(60) }).await;
    house.put(Subscriber { confirmed_at: Some(at(2 * HOUR)), ..known(61) }).await;
    house.put(Subscriber { monitors: Some(vec![monitor_id(9)]), ..known(62) }).await;
    while house.fan_out().await != fanout::Turn::Rests {
        house.send().await;
    }
    // The bulletin names no monitor, so subscribers to single monitors receive it too.
    let missing: Vec<u128> = (1..=120).filter(|n| !house.got().contains_key(n)).collect();
    assert_eq!(missing, [SLICE as u128 + 1, 60, 61, 120]);
}

#[tokio::test]
async fn news_of_one_incident_keeps_its_order_and_others_go_beside() {
    let house = House::new(160).await;
    let first = bulletin(HOUR, 1, false);
    let second = Bulletin { seq: 4, ..bulletin(HOUR + 1, 1, false) };
    let other = Bulletin { seq: 5, incident: IncidentId::from_u128(2), ..bulletin(HOUR + 2, 1, false) };
    for it in [&other, &second, &first] {
        house.put(it.clone()).await;
    }
    while house.fan_out().await != fanout::Turn::Rests {
        let seen: Vec<u64> = house.deliveries().iter().map(|it| it.seq).collect();
        let of = |seq: u64| seen.iter().filter(|it| **it == seq).count();
        assert!(of(4) == 0 || of(3) == 160, "{} {}", of(3), of(4));
        assert!(of(4) > 0 || of(5) == of(3), "{} {}", of(3), of(5));
        house.send().await;
    }
    assert_eq!(house.got(), (1..=160).map(|n| (n, 3)).collect());
}

#[tokio::test]
async fn a_page_that_hides_or_goes_stops_what_is_under_way() {
    for hidden in [Page { private: true, ..page(1, 1, "one") }, page(1, 1, "one").let_go()] {
        let house = House::new(120).await;
        house.put(bulletin(HOUR, 1, false)).await;
        house.fan_out().await;
        house.put(hidden).await;
        assert_eq!(house.fan_out().await, fanout::Turn::Wrote);
        assert_eq!((house.fan_out().await, house.got().len()), (fanout::Turn::Rests, SLICE));
    }
}

#[tokio::test]
async fn a_start_after_a_crash_goes_on_where_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::on_disk(folder.path(), crate::storage::disk::Options::default()).unwrap();
    let clock = Clock::by_hand(at(HOUR));
    let store = open();
    let mut batch = Batch::new();
    batch.write(page(1, 1, "one")).write(bulletin(HOUR, 1, false));
    for n in 1..=130 {
        batch.write(known(n));
    }
    store.commit(batch).await.unwrap();
    let mut store = Some(store);
    let made = loop {
        let opened = store.take().unwrap_or_else(open);
        let done = fanout::turn(&opened, &clock).await.unwrap();
        let made = opened.reader().deliveries_of(Some(page_id(1)), None, 999).unwrap();
        for it in &made {
            let sent = Stage::Delivered(Timestamp::from_millis(1));
            opened
                .commit(Batch::new().write(Delivery { stage: sent, ..it.value.clone() }).clone())
                .await
                .unwrap();
        }
        opened.close().await;
        drop(opened);
        if done == fanout::Turn::Rests {
            break made;
        }
    };
    assert_eq!(made.len(), 130);
}
