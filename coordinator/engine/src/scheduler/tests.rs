//! The scheduler over an in-memory store: due times, missed transitions, and changes from the journal.

use parallax_core::event::EventKind;
use parallax_core::incident::series::Series;
use parallax_core::incident::{Incident, IncidentStatus};
use parallax_core::reminder::ReminderInterval;
use parallax_core::time::{DAY, HOUR, MINUTE};
use parallax_store::Op;
use parallax_store::samples::{at, incident, page, page_id, series, window};

use super::*;

async fn store() -> Store {
    let store = Store::in_memory().unwrap();
    put(&store, page(1, 1, "one")).await;
    store
}

async fn put(store: &Store, op: impl Into<Op>) {
    let mut batch = Batch::new();
    batch.write(op);
    store.commit(batch).await.unwrap();
}

/// Announcements so far: time, incident, change.
fn announcements(store: &Store) -> Vec<(Timestamp, IncidentChange, bool)> {
    let events = store.reader().events_after(0, 999).unwrap();
    let announcement = |event: &Event| match event.kind {
        EventKind::Incident(incident_event) if incident_event.change != IncidentChange::Changed => {
            Some((event.at, incident_event.change, incident_event.notify))
        }
        _ => None,
    };
    events.iter().filter_map(|recorded| announcement(&recorded.event)).collect()
}

fn planned() -> Incident {
    let remind = vec![ReminderInterval::parse("1h").unwrap()];
    Incident { has_begun: false, remind, ends_at: Some(at(3 * HOUR)), ..window(1, 1, 2 * HOUR, true) }
}

#[tokio::test]
async fn a_window_reminds_starts_and_ends_at_its_due_times() {
    let store = store().await;
    put(&store, planned()).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    for now in [HOUR - 1, HOUR, 2 * HOUR - 1, 2 * HOUR, 3 * HOUR - 1, 3 * HOUR, 9 * HOUR] {
        scheduler.run_due(at(now)).await.unwrap();
    }
    assert_eq!(
        announcements(&store),
        [
            (at(HOUR), IncidentChange::Reminder(HOUR), true),
            (at(2 * HOUR), IncidentChange::Started, true),
            (at(3 * HOUR), IncidentChange::Completed, true)
        ]
    );
    let ended = store.reader().incident(planned().id).unwrap().unwrap().value;
    assert_eq!((ended.status, ended.resolved_at), (IncidentStatus::Completed, Some(at(3 * HOUR))));
    assert!(scheduler.due.is_empty());
}

#[tokio::test]
async fn transitions_missed_while_down_are_applied_once_at_the_next_start() {
    let store = store().await;
    put(&store, planned()).await;
    put(&store, Incident { notify: false, ..Incident { id: IncidentId::from_u128(2), ..planned() } }).await;
    for _ in 0..2 {
        Scheduler::start(store.clone()).await.unwrap().run_due(at(90 * HOUR)).await.unwrap();
    }
    assert_eq!(
        announcements(&store),
        [(at(90 * HOUR), IncidentChange::Completed, true), (at(90 * HOUR), IncidentChange::Completed, false)]
    );
    let ended = store.reader().incident(planned().id).unwrap().unwrap().value;
    assert_eq!(ended.resolved_at, Some(at(3 * HOUR)), "it ended as planned");
}

#[tokio::test]
async fn new_moved_and_deleted_incidents_are_read_from_the_journal() {
    let store = store().await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    let write = async |op: Op| {
        let mut batch = Batch::new();
        let incident_event =
            IncidentEvent { incident: planned().id, change: IncidentChange::Changed, update: None, notify: false };
        batch.write(op).event(event(at(0), page_id(1), incident_event));
        store.commit(batch).await.unwrap();
    };
    write(planned().into()).await;
    scheduler.run_due(at(0)).await.unwrap();
    assert_eq!(scheduler.due.first().map(|(due, _)| *due), Some(at(HOUR)));
    write(Incident { remind: vec![], started_at: at(5 * HOUR), ends_at: Some(at(6 * HOUR)), ..planned() }.into()).await;
    scheduler.run_due(at(2 * HOUR)).await.unwrap();
    assert_eq!(scheduler.due.first().map(|(due, _)| *due), Some(at(5 * HOUR)));
    write(Op::DeleteIncident(planned().id)).await;
    scheduler.run_due(at(9 * HOUR)).await.unwrap();
    assert_eq!((scheduler.due.len(), announcements(&store).len()), (0, 0));
}

#[tokio::test]
async fn a_change_not_yet_read_from_the_journal_is_not_overwritten() {
    let store = store().await;
    put(&store, planned()).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    put(
        &store,
        Incident { title: "Moved".to_owned(), started_at: at(5 * HOUR), ends_at: Some(at(6 * HOUR)), ..planned() },
    )
    .await;
    scheduler.run_due(at(5 * HOUR)).await.unwrap();
    let window = store.reader().incident(planned().id).unwrap().unwrap().value;
    assert_eq!((window.title.as_str(), window.has_begun), ("Moved", true));
}

#[tokio::test]
async fn the_owner_is_reminded_of_a_silent_incident() {
    let store = store().await;
    let remind = vec![ReminderInterval::parse("15m").unwrap()];
    put(&store, Incident { remind, created_at: at(0), notify: false, ..incident(1, 1, 0, true) }).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    scheduler.run_due(at(HOUR)).await.unwrap();
    scheduler.run_due(at(2 * HOUR)).await.unwrap();
    assert_eq!(announcements(&store), [(at(HOUR), IncidentChange::OwnerReminder(15 * MINUTE), true)]);
}

#[tokio::test]
async fn a_series_plans_its_next_window_a_week_before_and_skips_past_windows() {
    let store = store().await;
    let monthly = Series { length: HOUR, ..series(1, 1, None) };
    put(&store, monthly.clone()).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    let second = monthly.recurrence.nth(1).unwrap();
    scheduler.run_due(second - 7 * DAY - 1).await.unwrap();
    assert_eq!(announcements(&store), []);
    scheduler.run_due(second - 7 * DAY).await.unwrap();
    assert_eq!(announcements(&store), [(second - 7 * DAY, IncidentChange::Scheduled, true)]);
    let planned = store.reader().incidents_of(page_id(1), true, None, 9).unwrap();
    assert_eq!((planned.len(), planned[0].value.started_at), (1, second));
    // After a long absence, windows wholly in the past are not planned.
    let fifth = monthly.recurrence.nth(4).unwrap();
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    scheduler.run_due(fifth - DAY).await.unwrap();
    let starts: Vec<Timestamp> = store
        .reader()
        .incidents_of(page_id(1), false, None, 9)
        .unwrap()
        .iter()
        .map(|window| window.value.started_at)
        .collect();
    assert_eq!(starts, [fifth, second]);
}

#[tokio::test]
async fn a_deleted_page_leaves_nothing_due() {
    let store = store().await;
    put(&store, planned()).await;
    put(&store, series(1, 1, None)).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    assert_eq!(scheduler.due.len(), 2);
    let mut batch = Batch::new();
    let kind = EventKind::PageEdited(EditKind::Deleted);
    batch.write(Op::DeletePage(page_id(1))).event(Event { at: at(0), page: Some(page_id(1)), monitor: None, kind });
    store.commit(batch).await.unwrap();
    scheduler.run_due(at(0)).await.unwrap();
    assert!(scheduler.due.is_empty() && scheduler.due_by_item.is_empty());
}

#[tokio::test]
async fn a_journal_trimmed_before_it_was_read_makes_the_scheduler_rebuild() {
    let store = store().await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    let mut batch = Batch::new();
    let incident_event =
        IncidentEvent { incident: planned().id, change: IncidentChange::Changed, update: None, notify: false };
    batch.write(planned()).event(event(at(0), page_id(1), incident_event));
    store.commit(batch).await.unwrap();
    put(&store, Op::TrimEvents(u64::MAX)).await;
    scheduler.run_due(at(0)).await.unwrap();
    assert_eq!(scheduler.due.first().map(|(due, _)| *due), Some(at(HOUR)), "rebuilt although the journal is empty");

    let mut batch = Batch::new();
    batch.write(Op::DeleteIncident(planned().id)).event(event(at(0), page_id(1), incident_event));
    store.commit(batch).await.unwrap();
    put(&store, Op::TrimEvents(u64::MAX)).await;
    let other = IncidentEvent { incident: IncidentId::from_u128(99), ..incident_event };
    let mut batch = Batch::new();
    batch.event(event(at(0), page_id(1), other));
    store.commit(batch).await.unwrap();
    scheduler.run_due(at(9 * HOUR)).await.unwrap();
    assert_eq!(
        (scheduler.due.len(), announcement_count(&store, planned().id)),
        (0, 0),
        "rebuilt although the journal begins later"
    );
}

#[tokio::test]
async fn of_adjacent_windows_the_next_starts_before_the_last_ends() {
    let store = store().await;
    let first = Incident { remind: vec![], ..planned() };
    let next = Incident {
        id: IncidentId::from_u128(2),
        started_at: at(3 * HOUR),
        ends_at: Some(at(4 * HOUR)),
        ..first.clone()
    };
    put(&store, first).await;
    put(&store, next).await;
    let mut scheduler = Scheduler::start(store.clone()).await.unwrap();
    for now in [2 * HOUR, 3 * HOUR] {
        scheduler.run_due(at(now)).await.unwrap();
    }
    let changes: Vec<IncidentChange> = announcements(&store).into_iter().map(|(_, changes, _)| changes).collect();
    assert_eq!(changes, [IncidentChange::Started, IncidentChange::Started, IncidentChange::Completed]);
}

/// Number of announcements of one incident.
fn announcement_count(store: &Store, incident: IncidentId) -> usize {
    let events = store.reader().events_after(0, 999).unwrap();
    let is_of_incident = |event: &Event| matches!(event.kind, EventKind::Incident(it) if it.incident == incident);
    events.iter().filter(|recorded| is_of_incident(&recorded.event)).count()
}
