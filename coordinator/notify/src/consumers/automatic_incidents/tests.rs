//! The consumer with a store: results of one batch of events, concurrent edits, and crashes at any point.

use std::sync::Arc;

use parallax_core::alert_settings::AlertSettings;
use parallax_core::event::{AlertKind, EditKind, MonitorStatus, StatusChange};
use parallax_core::flapping::{FlapHistory, STABLE_AFTER};
use parallax_core::id::{MonitorId, UpdateId};
use parallax_core::incident::{Impact, IncidentChange, IncidentStatus, UpdatePost};
use parallax_core::locale::Locale;
use parallax_core::observation::Failure;
use parallax_core::page::branding::Language;
use parallax_core::patch::PatchField;
use parallax_core::time::MINUTE;
use parallax_core::vantage::{Region, RegionSet};
use parallax_runtime::clock::Clock;
use parallax_store::samples::{account, at, monitor, monitor_id, page, page_id, small_options};
use parallax_store::{Store, StoreError, VersionedValue};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::consumers::{ConsumerTurn, consume_next};

fn event(at_ms: i64, n: u128, kind: EventKind) -> Event {
    Event { at: at(at_ms), page: Some(page_id(1)), monitor: Some(monitor_id(n)), kind }
}

fn change(at_ms: i64, n: u128, (from, to): (MonitorStatus, MonitorStatus), alert: Option<AlertKind>) -> Event {
    event(
        at_ms,
        n,
        EventKind::StatusChanged(StatusChange {
            from,
            to,
            alert,
            since: at(at_ms),
            down_since: Some(at(at_ms)),
            reason: Some(Failure::Refused),
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        }),
    )
}

fn down(at_ms: i64, n: u128) -> Event {
    change(at_ms, n, (MonitorStatus::Up, MonitorStatus::Down), Some(AlertKind::WentDown))
}

fn recovered(at_ms: i64, n: u128) -> Event {
    change(at_ms, n, (MonitorStatus::Down, MonitorStatus::Up), Some(AlertKind::Recovered))
}

/// A store with a page of three monitors, and the consumer.
struct IncidentBench {
    store: Store,
    consumer: Arc<IncidentConsumer>,
    clock: Clock,
}

impl IncidentBench {
    async fn new() -> Self {
        Self::with_store(Store::in_memory().unwrap()).await
    }

    async fn with_store(store: Store) -> Self {
        let mut batch = Batch::new();
        batch.write(account(1)).write(page(1, 1, "one"));
        for n in 1..=3 {
            batch.write(monitor(n, 1, 0));
        }
        store.commit(batch).await.unwrap();
        Self { store, consumer: Arc::new(IncidentConsumer), clock: Clock::manual(at(99)) }
    }

    async fn commit_events(&self, events: impl IntoIterator<Item = Event>) {
        let mut batch = Batch::new();
        for event in events {
            batch.event(event);
        }
        self.store.commit(batch).await.unwrap();
    }

    async fn write(&self, op: impl Into<Op>) {
        let mut batch = Batch::new();
        batch.write(op);
        self.store.commit(batch).await.unwrap();
    }

    /// Processes the journal to its end.
    async fn consume_all(&self) {
        while consume_next(&self.consumer, &self.store, &self.clock).await.unwrap() != ConsumerTurn::Idle {}
    }

    fn incident_events(&self) -> Vec<(IncidentChange, bool)> {
        incident_events(&self.store).into_iter().map(|event| (event.change, event.notify)).collect()
    }

    fn open(&self) -> Vec<VersionedValue<Incident>> {
        self.store.reader().incidents_of(page_id(1), true, None, 99).unwrap()
    }

    fn outages(&self) -> Vec<MonitorId> {
        let outages = self.store.reader().announced_outages(page_id(1)).unwrap().unwrap();
        outages.value.down.into_keys().collect()
    }
}

fn incident_events(store: &Store) -> Vec<parallax_core::incident::IncidentEvent> {
    let events = store.reader().events_after(0, 9999).unwrap();
    let incident_event = |journal_event: JournalEvent| match journal_event.event.kind {
        EventKind::Incident(event) => Some(event),
        _ => None,
    };
    events.into_iter().filter_map(incident_event).collect()
}

#[tokio::test]
async fn an_automatic_incident_is_written_in_the_pages_language() {
    let bench = IncidentBench::new().await;
    bench.write(Page { language: Language::De, ..page(1, 1, "one") }).await;
    bench.commit_events([down(1, 1)]).await;
    bench.consume_all().await;
    assert_eq!(bench.open()[0].value.title, "Monitor 1 ist ausgefallen");
}

#[tokio::test]
async fn events_of_one_batch_see_the_results_of_earlier_ones() {
    let bench = IncidentBench::new().await;
    let asia = Some(RegionSet::only(Region::Asia));
    let events = [down(1, 1), down(2, 2), event(3, 2, EventKind::ScopeChanged(asia)), down(4, 3), recovered(5, 1)];
    bench.commit_events(events).await;
    bench.consume_all().await;
    let expected = [
        (IncidentChange::Opened, true),
        (IncidentChange::Updated, true),
        (IncidentChange::Changed, false),
        (IncidentChange::Updated, true),
        (IncidentChange::Updated, false),
    ];
    assert_eq!(bench.incident_events(), expected);
    let open = bench.open();
    assert_eq!((open.len(), open[0].value.impact, open[0].value.automatic), (1, Impact::Partial, true));
    assert_eq!(open[0].value.title, "Monitor 1 and 2 others are down");
    assert!(open[0].value.updates[1].body.contains("from Asia"), "{:?}", open[0].value.updates);
    assert_eq!(bench.outages(), [monitor_id(2), monitor_id(3)]);

    bench.commit_events([recovered(6, 3), recovered(MINUTE + 1, 2), recovered(MINUTE + 2, 2)]).await;
    bench.consume_all().await;
    assert_eq!(bench.incident_events()[5..], [(IncidentChange::Updated, false), (IncidentChange::Resolved, true)]);
    assert!(bench.open().is_empty() && bench.outages().is_empty());
}

#[tokio::test]
async fn pausing_or_deleting_a_monitor_ends_its_outage_and_a_silent_outage_opens_no_incident() {
    let bench = IncidentBench::new().await;
    let covered = change(1, 1, (MonitorStatus::Up, MonitorStatus::Down), None);
    bench.commit_events([covered, event(1, 1, EventKind::MonitorEdited(EditKind::Changed))]).await;
    bench.consume_all().await;
    assert!(bench.incident_events().is_empty() && bench.open().is_empty());

    bench.commit_events([down(2, 1), down(2, 2)]).await;
    bench.write(Monitor { paused: true, ..monitor(1, 1, 0) }).await;
    bench.commit_events([event(3, 1, EventKind::MonitorEdited(EditKind::Changed))]).await;
    bench.consume_all().await;
    assert_eq!(bench.outages(), [monitor_id(2)]);
    bench.write(Op::DeleteMonitor(monitor_id(2))).await;
    bench.commit_events([event(4, 2, EventKind::MonitorEdited(EditKind::Deleted))]).await;
    bench.consume_all().await;
    assert_eq!(bench.incident_events(), [(IncidentChange::Opened, true), (IncidentChange::Resolved, false)]);
}

#[tokio::test]
async fn a_component_that_a_smaller_plan_does_not_check_ends_its_incident() {
    let bench = IncidentBench::new().await;
    bench.write(parallax_store::samples::component(4, 1)).await;
    bench.commit_events([down(1, 4)]).await;
    bench.consume_all().await;
    bench.write(parallax_core::account::Account { plan: Plan::Free, ..account(1) }).await;
    bench.commit_events([Event { monitor: None, ..event(2, 1, EventKind::PageEdited(EditKind::Changed)) }]).await;
    bench.consume_all().await;
    assert_eq!(bench.incident_events(), [(IncidentChange::Opened, true), (IncidentChange::Resolved, false)]);
}

#[tokio::test]
async fn no_incident_is_opened_if_switched_off_or_the_page_is_deleted() {
    let bench = IncidentBench::new().await;
    bench
        .write(Op::PutAlertSettings(
            page_id(1),
            AlertSettings { automatic_incidents: false, ..AlertSettings::default() },
        ))
        .await;
    let elsewhere = Event { page: Some(page_id(7)), ..down(1, 1) };
    bench.commit_events([down(1, 1), elsewhere]).await;
    bench.consume_all().await;
    assert_eq!((bench.incident_events(), bench.outages()), (vec![], vec![monitor_id(1)]));
    bench.write(page(1, 1, "one").mark_deleted()).await;
    bench.commit_events([down(2, 2), recovered(3, 1)]).await;
    bench.consume_all().await;
    assert_eq!((bench.incident_events(), bench.outages()), (vec![], vec![monitor_id(1)]));
}

#[tokio::test]
async fn a_concurrent_edit_by_a_person_is_never_overwritten() {
    let bench = IncidentBench::new().await;
    bench.commit_events([down(1, 1)]).await;
    bench.consume_all().await;
    bench.commit_events([recovered(2, 1)]).await;
    let reader = bench.store.reader();
    let late = IncidentConsumer.handle_events(&**reader, &reader.events_after(2, 9).unwrap(), at(9)).unwrap();
    assert!(!late.is_empty());

    let before = bench.open().remove(0);
    let post = UpdatePost {
        status: PatchField::Value("resolved".to_owned()),
        message: PatchField::Value("By hand".to_owned()),
        notify: PatchField::Absent,
    };
    let english = Locale::of(Language::En);
    let (by_hand, ..) = post.validate(&before.value, UpdateId::from_u128(9), english, at(9)).unwrap();
    bench.write(by_hand.clone()).await;
    assert!(matches!(bench.store.commit(late).await, Err(StoreError::Conflict(_))));
    bench.consume_all().await;
    assert_eq!(bench.incident_events(), [(IncidentChange::Opened, true)], "the recovery adds no event");
    assert_eq!(bench.store.reader().incident(by_hand.id).unwrap().unwrap().value, by_hand);
    assert!(bench.outages().is_empty());
}

/// Runs the same history with or without crashes between steps, and returns the events and the stored
/// incidents.
async fn run_history(seed: u64, kills: bool) -> (Vec<parallax_core::incident::IncidentEvent>, Vec<Incident>) {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = IncidentBench::with_store(Store::on_disk(folder.path(), small_options()).unwrap()).await;
    let (mut random, mut kills_random) = (StdRng::seed_from_u64(seed), StdRng::seed_from_u64(!seed));
    let mut is_down = [false; 3];
    for step in 0..40 {
        let n = random.random_range(0..3_usize);
        let at_ms = step * random.random_range(1..4 * MINUTE);
        let event = if is_down[n] { recovered(at_ms, n as u128 + 1) } else { down(at_ms, n as u128 + 1) };
        is_down[n] = !is_down[n];
        bench.commit_events([event]).await;
        if kills && kills_random.random_bool(0.3) {
            // The consumer crashes after reading the events and before writing, or right after writing.
            if kills_random.random_bool(0.5) {
                bench.consume_all().await;
            } else {
                let events = bench.store.reader().events_after(0, 9999).unwrap();
                drop(IncidentConsumer.handle_events(&**bench.store.reader(), &events, at(99)).unwrap());
            }
            bench.store.close().await;
            drop(bench.store);
            bench.store = Store::on_disk(folder.path(), small_options()).unwrap();
        }
        bench.consume_all().await;
    }
    let incidents = bench.store.reader().incidents_of(page_id(1), false, None, 999).unwrap();
    let incidents = incidents.into_iter().map(|incident| incident.value).collect();
    let events = incident_events(&bench.store);
    bench.store.close().await;
    (events, incidents)
}

#[tokio::test]
async fn crashes_change_neither_events_nor_incidents() {
    for seed in 0..3 {
        let (undisturbed, killed) = (run_history(seed, false).await, run_history(seed, true).await);
        assert_eq!(undisturbed, killed, "seed {seed}");
        let opened = undisturbed.0.iter().filter(|event| event.change == IncidentChange::Opened).count();
        let resolved = undisturbed.0.iter().filter(|event| event.change == IncidentChange::Resolved).count();
        let open = undisturbed.1.iter().filter(|incident| incident.status != IncidentStatus::Resolved).count();
        assert!(opened >= 2 && opened == undisturbed.1.len() && opened - resolved == open, "{undisturbed:?}");
    }
}

#[tokio::test]
async fn a_flapping_monitor_has_one_incident_until_stable_however_events_are_batched() {
    for at_once in [true, false] {
        let bench = IncidentBench::new().await;
        let mut flaps = FlapHistory::default();
        let mut events = Vec::new();
        for n in 0..12 {
            let mut event = if n % 2 == 0 { down(n, 1) } else { recovered(n, 1) };
            let EventKind::StatusChanged(change) = &mut event.kind else { unreachable!() };
            change.flapping = change.alert.and_then(|alert| flaps.record_change(alert, event.at));
            events.push(event);
        }
        let end = at(11) + STABLE_AFTER;
        let flapping_end = flaps.end(end).unwrap();
        events.push(Event { at: end, ..event(0, 1, EventKind::FlappingEnded(flapping_end)) });
        let last = events.pop().unwrap();
        if at_once {
            bench.commit_events(events).await;
            bench.consume_all().await;
        } else {
            for event in events {
                bench.commit_events([event]).await;
                bench.consume_all().await;
            }
        }
        let open = bench.open();
        assert_eq!((open.len(), open[0].value.updates.len()), (1, 1), "{at_once}");
        assert!(open[0].value.updates[0].body.contains(" 12 times since "), "{open:?}");
        assert!(bench.outages().is_empty(), "no outage is open, but the incident is");
        bench.commit_events([last]).await;
        bench.consume_all().await;
        assert!(bench.open().is_empty());
        let notifying = bench.incident_events().into_iter().filter(|(_, notify)| *notify).map(|(change, _)| change);
        let notifying: Vec<IncidentChange> = notifying.collect();
        assert_eq!(
            notifying,
            [IncidentChange::Opened, IncidentChange::Resolved, IncidentChange::Opened, IncidentChange::Resolved],
            "{at_once}"
        );
    }
}
