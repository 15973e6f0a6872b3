//! Alerts: recipients, contents and delivery ids.

use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::acknowledgement::{Acknowledgement, ActorName};
use parallax_core::delivery::DeliveryState;
use parallax_core::destination::{Channel, DeliveryHealth, DisableReason, SigningSecrets};
use parallax_core::event::{EditKind, Event, MonitorStatus, ProbeReason, RoundReport, UnjudgedPeriod};
use parallax_core::flapping::{FlapHistory, STABLE_AFTER};
use parallax_core::id::DestinationId;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::vantage::Region;
use parallax_runtime::clock::Clock;
use parallax_store::samples::{account, agent, at, destination, monitor, monitor_id, page, page_id};
use parallax_store::{Op, Store};
use serde_json::Value;

use super::*;
use crate::consumers::{self, ConsumerTurn};

/// A page of a Pro account with two monitors, and a started consumer.
pub(crate) struct AlertBench {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) alerts: Arc<AlertConsumer>,
}

impl AlertBench {
    pub(crate) async fn new(store: Store) -> Self {
        let mut batch = Batch::new();
        batch.write(account(1)).write(page(1, 1, "shop"));
        batch.write(monitor(1, 1, 0)).write(monitor(2, 1, 1)).write(agent(1));
        let kind = EventKind::PageEdited(EditKind::Created);
        batch.event(Event { at: at(1), page: Some(page_id(1)), monitor: None, kind });
        store.commit(batch).await.unwrap();
        consumers::init_cursor::<AlertConsumer>(&store).await.unwrap();
        let evidence_links = EvidenceLinks::new(|monitor, seq, now| {
            format!("https://status.example/evidence/{monitor}-{seq}-{}", now.as_millis())
        });
        let alerts = Arc::new(AlertConsumer::new("https://status.example".to_owned(), None, evidence_links));
        Self { store, clock: Clock::manual(at(50_000)), alerts }
    }

    pub(crate) async fn write(&self, op: impl Into<Op>) {
        let mut batch = Batch::new();
        batch.write(op);
        self.store.commit(batch).await.unwrap();
    }

    pub(crate) async fn commit_events(&self, events: Vec<Event>) -> u64 {
        let batch = Batch { events, ..Batch::new() };
        self.store.commit(batch).await.unwrap().last_event
    }

    pub(crate) async fn consume(&self) -> Result<ConsumerTurn> {
        consumers::consume_next(&self.alerts, &self.store, &self.clock).await
    }

    /// All deliveries of the page, oldest event first.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        let all = self.store.reader().deliveries_of(Some(page_id(1)), None, 10_000).unwrap();
        let mut all: Vec<Delivery> = all.into_iter().map(|it| it.value).collect();
        all.sort_by_key(|it| (it.seq, it.to));
        all
    }
}

/// The change that leads to an alert of this kind.
pub(crate) fn alert_event(kind: AlertKind, monitor: u128, at_ms: i64) -> Event {
    let (from, to) = match kind {
        AlertKind::WentDown => (MonitorStatus::Up, MonitorStatus::Down),
        AlertKind::StillDown => (MonitorStatus::Down, MonitorStatus::Down),
        AlertKind::Recovered => (MonitorStatus::Down, MonitorStatus::Up),
        AlertKind::WentSlow => (MonitorStatus::Up, MonitorStatus::Slow),
        AlertKind::BackToNormal => (MonitorStatus::Slow, MonitorStatus::Up),
    };
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
    let report = RoundReport {
        region: Region::Africa,
        reason: ProbeReason::Scheduled,
        round: Some(1),
        started: at(at_ms - 10),
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(1),
        first_outcome: failed(),
        second: Some((VantageNo(9), failed())),
        third: None,
    };
    let change = StatusChange {
        from,
        to,
        alert: Some(kind),
        since: at(at_ms),
        down_since: Some(at(at_ms)),
        reason: Some(Failure::Refused),
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: vec![report],
        flapping: None,
    };
    Event {
        at: at(at_ms),
        page: Some(page_id(1)),
        monitor: Some(monitor_id(monitor)),
        kind: EventKind::StatusChanged(change),
    }
}

fn webhook(n: u128) -> Destination {
    let secret = SigningSecrets { newest: "whsec_AAAA".to_owned(), previous: None };
    let channel = Channel::Webhook { url: "https://hook.example".to_owned(), secret };
    Destination { channel, ..destination(n, 1) }
}

#[tokio::test]
async fn the_owner_is_notified_once_that_a_monitor_cannot_be_judged() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    let reason = "registry: its answer has no expiry date";
    let kind = EventKind::Unjudged(UnjudgedPeriod { since: at(5), reason: reason.to_owned() });
    let event = |monitor: u128| Event {
        at: at(9),
        page: Some(page_id(1)),
        monitor: Some(monitor_id(monitor)),
        kind: kind.clone(),
    };
    // The second one's monitor doesn't exist.
    bench.commit_events(vec![event(1), event(99)]).await;
    while bench.consume().await.unwrap() != ConsumerTurn::Idle {}
    let all = bench.deliveries();
    let [delivery] = all.as_slice() else { panic!("{all:?}") };
    let owner = account(1).id;
    assert_eq!((delivery.to, delivery.event.as_str()), (Recipient::Owner(owner), "monitor.unjudged"));
    let DeliveryMessage::Mail(mail) = &delivery.message else { panic!("no mail") };
    assert!(mail.text.contains(reason) && mail.text.contains("no alert was sent"), "{}", mail.text);
}

#[tokio::test]
async fn each_matching_destination_gets_one_message_rendered_at_the_event() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    bench.write(webhook(1)).await;
    bench.write(Destination { events: Some(vec![AlertKind::Recovered]), ..webhook(2) }).await;
    bench.write(Destination { monitors: Some(vec![monitor_id(2)]), ..webhook(3) }).await;
    bench.write(Destination { enabled: false, ..webhook(4) }).await;
    let off = DeliveryHealth { disabled: Some((at(1), DisableReason::Gone)), ..DeliveryHealth::default() };
    bench.write(Destination { health: off, ..webhook(5) }).await;
    let seq = bench.commit_events(vec![alert_event(AlertKind::WentDown, 1, 40_000)]).await;
    assert_eq!(bench.consume().await, Ok(ConsumerTurn::Wrote));
    bench.write(parallax_core::monitor::Monitor { name: "Another".to_owned(), ..monitor(1, 1, 0) }).await;
    let deliveries = bench.deliveries();
    let [delivery] = deliveries.as_slice() else { panic!("{deliveries:?}") };
    assert_eq!(delivery.to, Recipient::Destination(DestinationId::from_u128(1)));
    assert_eq!((delivery.seq, delivery.monitor, delivery.event.as_str()), (seq, Some(monitor_id(1)), "went-down"));
    assert_eq!((delivery.state, delivery.created_at), (DeliveryState::Waiting(at(50_000)), at(50_000)));
    let DeliveryMessage::Json(json) = &delivery.message else { panic!("{delivery:?}") };
    let json: Value = serde_json::from_slice(json).unwrap();
    assert_eq!(json["event"], "went-down");
    assert_eq!((&json["monitor"], &json["pageUrl"]), (&"Monitor 1".into(), &"https://status.example/p/shop".into()));
    assert_eq!(json["at"], 40_000, "the time of the event, not of the message");
    assert_eq!(bench.alerts.counts()[0], (AlertKind::WentDown, 1));
}

#[tokio::test]
async fn webhooks_need_a_plan_that_includes_them_and_mailboxes_do_not() {
    for (plan, expected) in [(Plan::Free, 1), (Plan::Hobby, 2), (Plan::Pro, 2)] {
        let bench = AlertBench::new(Store::in_memory().unwrap()).await;
        bench.write(Account { plan, ..account(1) }).await;
        bench.write(webhook(1)).await;
        bench.write(destination(2, 1)).await;
        bench.commit_events(vec![alert_event(AlertKind::WentDown, 1, 40_000)]).await;
        bench.consume().await.unwrap();
        assert_eq!(bench.deliveries().len(), expected, "{plan:?}");
    }
}

#[tokio::test]
async fn events_without_alert_or_with_a_deleted_subject_create_no_delivery() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    bench.write(webhook(1)).await;
    bench.write(Op::DeleteMonitor(monitor_id(2))).await;
    let mut silent = alert_event(AlertKind::WentDown, 1, 40_000);
    let EventKind::StatusChanged(change) = &mut silent.kind else { unreachable!() };
    change.alert = None;
    let edited = Event { kind: EventKind::PageEdited(EditKind::Changed), ..silent.clone() };
    let elsewhere = Event { page: Some(page_id(7)), ..alert_event(AlertKind::WentDown, 1, 40_001) };
    bench.commit_events(vec![silent, edited, elsewhere, alert_event(AlertKind::WentDown, 2, 40_002)]).await;
    assert_eq!(bench.consume().await, Ok(ConsumerTurn::Skipped));
    assert_eq!(bench.consume().await, Ok(ConsumerTurn::Idle));
    assert_eq!(bench.deliveries(), []);
}

#[test]
fn a_delivery_id_is_derived_from_event_and_receiver_and_sorts_by_time() {
    let journal_event = |seq, at_ms| JournalEvent { seq, event: alert_event(AlertKind::WentDown, 1, at_ms) };
    let to = |n| Recipient::Destination(DestinationId::from_u128(n));
    let id = event_delivery_id(&journal_event(7, 40_000), to(1));
    assert_eq!(id, event_delivery_id(&journal_event(7, 40_000), to(1)));
    for other in
        [event_delivery_id(&journal_event(8, 40_000), to(1)), event_delivery_id(&journal_event(7, 40_000), to(2))]
    {
        assert_ne!(id, other);
    }
    assert!(id < event_delivery_id(&journal_event(1, 40_001), to(1)));
}

#[tokio::test]
async fn agents_are_named_and_removed_ones_numbered() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    let mut names = AgentNameCache::default();
    let event = alert_event(AlertKind::WentDown, 1, 40_000);
    let EventKind::StatusChanged(mut change) = event.kind else { unreachable!() };
    // The third network is named, too.
    change.evidence[0].third = change.evidence[0].second.replace((VantageNo(8), ProbeOutcome::Pending)).map(Box::new);
    let mut labels_for = |n| {
        let labels = names.for_change(&change, account(n).id, bench.store.reader().as_ref()).unwrap();
        let entries = labels.iter().map(|(vantage, it)| (vantage.0, it.name.clone(), it.network.clone()));
        entries.collect::<Vec<_>>()
    };
    let [second, third] = [8, 9].map(|no| (no, format!("place {no}"), "unknown".to_owned()));
    assert_eq!(labels_for(1), [(1, "agent-1".to_owned(), "one".to_owned()), second.clone(), third.clone()]);
    assert_eq!(labels_for(2), [(1, "place 1".to_owned(), "one".to_owned()), second, third]);
}

#[tokio::test]
async fn agents_names_are_shown_to_the_operators_account_only() {
    for (owner, agent_name) in [(1, "agent-1"), (2, "place 1")] {
        let bench = AlertBench::new(Store::in_memory().unwrap()).await;
        bench.write(Account { created_at: at(6), ..account(2) }).await;
        bench.write(page(1, owner, "shop")).await;
        bench.write(webhook(1)).await;
        bench.commit_events(vec![alert_event(AlertKind::WentDown, 1, 40_000)]).await;
        bench.consume().await.unwrap();
        let deliveries = bench.deliveries();
        let [Delivery { message: DeliveryMessage::Json(json), .. }] = deliveries.as_slice() else {
            panic!("{deliveries:?}")
        };
        let json = String::from_utf8_lossy(json).into_owned();
        assert!(json.contains(agent_name), "{json}");
        assert_eq!(json.contains("agent-1"), owner == 1, "{json}");
    }
}

fn chat(n: u128, events: Option<Vec<AlertKind>>) -> Destination {
    let channel = Channel::Slack { url: "https://hooks.slack.example".to_owned() };
    Destination { channel, events, ..destination(n, 1) }
}

#[tokio::test]
async fn chats_get_two_messages_about_flapping_and_others_one_for_each_change() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    bench.write(webhook(1)).await;
    bench.write(destination(2, 1)).await;
    bench.write(chat(3, None)).await;
    bench.write(chat(4, Some(vec![AlertKind::Recovered]))).await;
    bench.write(chat(5, Some(vec![AlertKind::WentSlow, AlertKind::StillDown]))).await;
    let mut flaps = FlapHistory::default();
    let mut events = Vec::new();
    for n in 0..40 {
        let kind = if n % 2 == 0 { AlertKind::WentDown } else { AlertKind::Recovered };
        let mut event = alert_event(kind, 1, 40_000 + n);
        let EventKind::StatusChanged(change) = &mut event.kind else { unreachable!() };
        change.flapping = flaps.record_change(kind, event.at);
        events.push(event);
    }
    let mut still_down = alert_event(AlertKind::StillDown, 1, 40_050);
    let EventKind::StatusChanged(change) = &mut still_down.kind else { unreachable!() };
    change.flapping = flaps.record_change(AlertKind::StillDown, still_down.at);
    events.push(still_down);
    let end = at(40_039) + STABLE_AFTER;
    let flapping_end = flaps.end(end).unwrap();
    events.push(Event {
        at: end,
        kind: EventKind::FlappingEnded(flapping_end),
        ..alert_event(AlertKind::Recovered, 1, 0)
    });
    bench.commit_events(events).await;
    while bench.consume().await != Ok(ConsumerTurn::Idle) {}
    let deliveries_to = |n: u128| {
        let is_receiver = |it: &Delivery| it.to == Recipient::Destination(DestinationId::from_u128(n));
        bench.deliveries().into_iter().filter(is_receiver).collect::<Vec<_>>()
    };
    let events_of = |n: u128| deliveries_to(n).into_iter().map(|it| it.event).collect::<Vec<_>>();
    assert_eq!((events_of(1).len(), events_of(2).len()), (41, 41));
    assert_eq!(events_of(3), ["went-down", "recovered", "flapping", "steady"]);
    assert_eq!(events_of(4), ["recovered", "flapping", "steady"]);
    assert_eq!(events_of(5), [""; 0]);
    let json = |delivery: &Delivery| -> Value {
        let DeliveryMessage::Json(json) = &delivery.message else { panic!("{delivery:?}") };
        serde_json::from_slice(json).unwrap()
    };
    let flags: Vec<Value> = deliveries_to(1).iter().map(|it| json(it)["flapping"].clone()).collect();
    assert_eq!(flags.iter().filter(|flag| **flag == true).count(), 39);
    assert_eq!(flags[..2], [false, false]);
    let texts: Vec<String> = deliveries_to(3).iter().map(|it| json(it)["text"].to_string()).collect();
    assert!(texts[2].contains("Flapping: Monitor 1") && texts[3].contains("Stable again: Monitor 1"), "{texts:?}");
    let outage_starts: Vec<_> = deliveries_to(2).iter().map(|it| it.outage_start).collect();
    assert_eq!(outage_starts[..2], [Some(at(40_000)), Some(at(40_001))]);
    assert_eq!(bench.alerts.counts()[0], (AlertKind::WentDown, 20), "every alert is counted");
}

#[tokio::test]
async fn only_still_down_alerts_of_an_acknowledged_outage_are_left_out() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    bench.write(destination(1, 1)).await;
    let acknowledgement =
        Acknowledgement { outage: at(40_000), by: ActorName::new("deploys"), at: at(40_500), note: None };
    bench.write(Monitor { acknowledgement: Some(Box::new(acknowledgement)), ..monitor(1, 1, 0) }).await;
    let event = |kind, outage| {
        let mut event = alert_event(kind, 1, 41_000);
        let EventKind::StatusChanged(change) = &mut event.kind else { unreachable!() };
        change.down_since = Some(at(outage));
        event
    };
    // The first was committed before the acknowledgement and is read after it.
    let next_outage = event(AlertKind::StillDown, 42_000);
    bench
        .commit_events(vec![event(AlertKind::StillDown, 40_000), event(AlertKind::Recovered, 40_000), next_outage])
        .await;
    while bench.consume().await != Ok(ConsumerTurn::Idle) {}
    let sent: Vec<_> = bench.deliveries().into_iter().map(|it| (it.event, it.outage_start)).collect();
    assert_eq!(sent, [("recovered".to_owned(), Some(at(40_000))), ("still-down".to_owned(), Some(at(42_000)))]);
}

#[tokio::test]
async fn only_destinations_that_want_it_get_the_evidence_link() {
    let bench = AlertBench::new(Store::in_memory().unwrap()).await;
    bench.write(webhook(1)).await;
    bench.write(Destination { evidence_link: true, ..webhook(2) }).await;
    let events = [AlertKind::WentDown, AlertKind::Recovered, AlertKind::WentSlow];
    let last = bench.commit_events(events.map(|kind| alert_event(kind, 1, 40_000)).to_vec()).await;
    while bench.consume().await != Ok(ConsumerTurn::Idle) {}
    let urls: Vec<Value> = bench
        .deliveries()
        .iter()
        .map(|delivery| match &delivery.message {
            DeliveryMessage::Json(json) => serde_json::from_slice::<Value>(json).unwrap()["evidenceUrl"].clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let url = |seq: u64| Value::from(format!("https://status.example/evidence/{}-{seq}-50000", monitor_id(1)));
    // By event, then by destination; the last event is about speed.
    assert_eq!(urls, [Value::Null, url(last - 2), Value::Null, url(last - 1), Value::Null, Value::Null]);
}
