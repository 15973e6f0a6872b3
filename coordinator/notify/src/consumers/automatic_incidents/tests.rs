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

fn event(when: i64, n: u128, what: EventKind) -> Event {
    Event { at: at(when), page: Some(page_id(1)), monitor: Some(monitor_id(n)), kind: what }
}

fn change(when: i64, n: u128, (from, to): (MonitorStatus, MonitorStatus), alert: Option<AlertKind>) -> Event {
    event(
        when,
        n,
        EventKind::StatusChanged(StatusChange {
            from,
            to,
            alert,
            since: at(when),
            down_since: Some(at(when)),
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

fn down(when: i64, n: u128) -> Event {
    change(when, n, (MonitorStatus::Up, MonitorStatus::Down), Some(AlertKind::WentDown))
}

fn recovered(when: i64, n: u128) -> Event {
    change(when, n, (MonitorStatus::Down, MonitorStatus::Up), Some(AlertKind::Recovered))
}

/// A store with a page of three monitors, and the consumer.
struct IncidentBench {
    store: Store,
    reaction: Arc<IncidentConsumer>,
    clock: Clock,
}

impl IncidentBench {
    async fn new() -> Self {
        Self::over(Store::in_memory().unwrap()).await
    }

    async fn over(store: Store) -> Self {
        let mut batch = Batch::new();
        batch.write(account(1)).write(page(1, 1, "one"));
        for n in 1..=3 {
            batch.write(monitor(n, 1, 0));
        }
        store.commit(batch).await.unwrap();
        Self { store, reaction: Arc::new(IncidentConsumer), clock: Clock::manual(at(99)) }
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
        while consume_next(&self.reaction, &self.store, &self.clock).await.unwrap() != ConsumerTurn::Idle {}
    }

    fn incident_events(&self) -> Vec<(IncidentChange, bool)> {
        incident_events(&self.store).into_iter().map(|told| (told.change, told.notify)).collect()
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
    let told = |recorded: JournalEvent| match recorded.event.kind {
        EventKind::Incident(told) => Some(told),
        _ => None,
    };
    events.into_iter().filter_map(told).collect()
}

#[tokio::test]
async fn an_incident_speaks_the_language_of_its_page() {
    let world = IncidentBench::new().await;
    world.write(Page { language: Language::De, ..page(1, 1, "one") }).await;
    world.commit_events([down(1, 1)]).await;
    world.consume_all().await;
    assert_eq!(world.open()[0].value.title, "Monitor 1 ist ausgefallen");
}

#[tokio::test]
async fn events_of_one_batch_see_what_came_of_those_before_them() {
    let world = IncidentBench::new().await;
    let asia = Some(RegionSet::only(Region::Asia));
    let events = [down(1, 1), down(2, 2), event(3, 2, EventKind::ScopeChanged(asia)), down(4, 3), recovered(5, 1)];
    world.commit_events(events).await;
    world.consume_all().await;
    let expected = [
        (IncidentChange::Opened, true),
        (IncidentChange::Updated, true),
        (IncidentChange::Changed, false),
        (IncidentChange::Updated, true),
        (IncidentChange::Updated, false),
    ];
    assert_eq!(world.incident_events(), expected);
    let open = world.open();
    assert_eq!((open.len(), open[0].value.impact, open[0].value.automatic), (1, Impact::Partial, true));
    assert_eq!(open[0].value.title, "Monitor 1 and 2 others are down");
    assert!(open[0].value.updates[1].body.contains("from Asia"), "{:?}", open[0].value.updates);
    assert_eq!(world.outages(), [monitor_id(2), monitor_id(3)]);

    world.commit_events([recovered(6, 3), recovered(MINUTE + 1, 2), recovered(MINUTE + 2, 2)]).await;
    world.consume_all().await;
    assert_eq!(world.incident_events()[5..], [(IncidentChange::Updated, false), (IncidentChange::Resolved, true)]);
    assert!(world.open().is_empty() && world.outages().is_empty());
}

#[tokio::test]
async fn what_is_paused_or_deleted_is_back_and_a_silent_outage_is_none() {
    let world = IncidentBench::new().await;
    let covered = change(1, 1, (MonitorStatus::Up, MonitorStatus::Down), None);
    world.commit_events([covered, event(1, 1, EventKind::MonitorEdited(EditKind::Changed))]).await;
    world.consume_all().await;
    assert!(world.incident_events().is_empty() && world.open().is_empty());

    world.commit_events([down(2, 1), down(2, 2)]).await;
    world.write(Monitor { paused: true, ..monitor(1, 1, 0) }).await;
    world.commit_events([event(3, 1, EventKind::MonitorEdited(EditKind::Changed))]).await;
    world.consume_all().await;
    assert_eq!(world.outages(), [monitor_id(2)]);
    world.write(Op::DeleteMonitor(monitor_id(2))).await;
    world.commit_events([event(4, 2, EventKind::MonitorEdited(EditKind::Deleted))]).await;
    world.consume_all().await;
    assert_eq!(world.incident_events(), [(IncidentChange::Opened, true), (IncidentChange::Resolved, false)]);
}

#[tokio::test]
async fn a_component_that_a_smaller_plan_does_not_check_is_back() {
    let world = IncidentBench::new().await;
    world.write(parallax_store::samples::component(4, 1)).await;
    world.commit_events([down(1, 4)]).await;
    world.consume_all().await;
    world.write(parallax_core::account::Account { plan: Plan::Free, ..account(1) }).await;
    world.commit_events([Event { monitor: None, ..event(2, 1, EventKind::PageEdited(EditKind::Changed)) }]).await;
    world.consume_all().await;
    assert_eq!(world.incident_events(), [(IncidentChange::Opened, true), (IncidentChange::Resolved, false)]);
}

#[tokio::test]
async fn a_page_may_want_none_and_one_that_is_gone_gets_none() {
    let world = IncidentBench::new().await;
    world
        .write(Op::PutAlertSettings(
            page_id(1),
            AlertSettings { automatic_incidents: false, ..AlertSettings::default() },
        ))
        .await;
    let elsewhere = Event { page: Some(page_id(7)), ..down(1, 1) };
    world.commit_events([down(1, 1), elsewhere]).await;
    world.consume_all().await;
    assert_eq!((world.incident_events(), world.outages()), (vec![], vec![monitor_id(1)]));
    world.write(page(1, 1, "one").mark_deleted()).await;
    world.commit_events([down(2, 2), recovered(3, 1)]).await;
    world.consume_all().await;
    assert_eq!((world.incident_events(), world.outages()), (vec![], vec![monitor_id(1)]));
}

#[tokio::test]
async fn a_person_who_comes_in_between_is_seen_and_then_left_alone() {
    let world = IncidentBench::new().await;
    world.commit_events([down(1, 1)]).await;
    world.consume_all().await;
    world.commit_events([recovered(2, 1)]).await;
    let reader = world.store.reader();
    let late = IncidentConsumer.handle_events(&**reader, &reader.events_after(2, 9).unwrap(), at(9)).unwrap();
    assert!(!late.is_empty());

    let before = world.open().remove(0);
    let post = UpdatePost {
        status: PatchField::Value("resolved".to_owned()),
        message: PatchField::Value("By hand".to_owned()),
        notify: PatchField::Absent,
    };
    let english = Locale::of(Language::En);
    let (by_hand, ..) = post.validate(&before.value, UpdateId::from_u128(9), english, at(9)).unwrap();
    world.write(by_hand.clone()).await;
    assert!(matches!(world.store.commit(late).await, Err(StoreError::Conflict(_))));
    world.consume_all().await;
    assert_eq!(world.incident_events(), [(IncidentChange::Opened, true)], "the recovery adds no event");
    assert_eq!(world.store.reader().incident(by_hand.id).unwrap().unwrap().value, by_hand);
    assert!(world.outages().is_empty());
}

/// Runs the same history with or without crashes between steps, and returns the events and the stored
/// incidents.
async fn run_history(seed: u64, kills: bool) -> (Vec<parallax_core::incident::IncidentEvent>, Vec<Incident>) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = IncidentBench::over(Store::on_disk(folder.path(), small_options()).unwrap()).await;
    let (mut random, mut deaths) = (StdRng::seed_from_u64(seed), StdRng::seed_from_u64(!seed));
    let mut is_down = [false; 3];
    for step in 0..40 {
        let n = random.random_range(0..3_usize);
        let when = step * random.random_range(1..4 * MINUTE);
        let happened = if is_down[n] { recovered(when, n as u128 + 1) } else { down(when, n as u128 + 1) };
        is_down[n] = !is_down[n];
        world.commit_events([happened]).await;
        if kills && deaths.random_bool(0.3) {
            // The consumer crashes after reading the events and before writing, or right after writing.
            if deaths.random_bool(0.5) {
                world.consume_all().await;
            } else {
                let events = world.store.reader().events_after(0, 9999).unwrap();
                drop(IncidentConsumer.handle_events(&**world.store.reader(), &events, at(99)).unwrap());
            }
            world.store.close().await;
            drop(world.store);
            world.store = Store::on_disk(folder.path(), small_options()).unwrap();
        }
        world.consume_all().await;
    }
    let kept = world.store.reader().incidents_of(page_id(1), false, None, 999).unwrap();
    let kept = kept.into_iter().map(|incident| incident.value).collect();
    let told = incident_events(&world.store);
    world.store.close().await;
    (told, kept)
}

#[tokio::test]
async fn kills_change_nothing_of_what_is_told() {
    for seed in 0..3 {
        let (undisturbed, killed) = (run_history(seed, false).await, run_history(seed, true).await);
        assert_eq!(undisturbed, killed, "seed {seed}");
        let opened = undisturbed.0.iter().filter(|told| told.change == IncidentChange::Opened).count();
        let resolved = undisturbed.0.iter().filter(|told| told.change == IncidentChange::Resolved).count();
        let open = undisturbed.1.iter().filter(|incident| incident.status != IncidentStatus::Resolved).count();
        assert!(opened >= 2 && opened == undisturbed.1.len() && opened - resolved == open, "{undisturbed:?}");
    }
}

#[tokio::test]
async fn what_flaps_has_one_incident_until_it_is_steady_whatever_is_read_together() {
    for at_once in [true, false] {
        let world = IncidentBench::new().await;
        let mut flaps = FlapHistory::default();
        let mut events = Vec::new();
        for n in 0..12 {
            let mut event = if n % 2 == 0 { down(n, 1) } else { recovered(n, 1) };
            let EventKind::StatusChanged(change) = &mut event.kind else { unreachable!() };
            change.flapping = change.alert.and_then(|alert| flaps.record_change(alert, event.at));
            events.push(event);
        }
        let end = at(11) + STABLE_AFTER;
        let steady = flaps.end(end).unwrap();
        events.push(Event { at: end, ..event(0, 1, EventKind::FlappingEnded(steady)) });
        let last = events.pop().unwrap();
        if at_once {
            world.commit_events(events).await;
            world.consume_all().await;
        } else {
            for event in events {
                world.commit_events([event]).await;
                world.consume_all().await;
            }
        }
        let open = world.open();
        assert_eq!((open.len(), open[0].value.updates.len()), (1, 1), "{at_once}");
        assert!(open[0].value.updates[0].body.contains(" 12 times since "), "{open:?}");
        assert!(world.outages().is_empty(), "no outage is open, but the incident is");
        world.commit_events([last]).await;
        world.consume_all().await;
        assert!(world.open().is_empty());
        let loud = world.incident_events().into_iter().filter(|(_, notify)| *notify).map(|(news, _)| news);
        let loud: Vec<IncidentChange> = loud.collect();
        assert_eq!(
            loud,
            [IncidentChange::Opened, IncidentChange::Resolved, IncidentChange::Opened, IncidentChange::Resolved],
            "{at_once}"
        );
    }
}
