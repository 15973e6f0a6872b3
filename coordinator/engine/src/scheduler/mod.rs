//! Scheduler of time-driven transitions: reminders, starts and ends of incidents and maintenance windows, and
//! the planning of series.
//!
//! Every open incident and series is in an ordered set, keyed by its next due time. The set is in memory: it
//! is rebuilt from the store at startup, and then follows the event journal. Each transition is one batch:
//! the changed record, its expected revision, and the event. Transitions missed while the coordinator was
//! down are due at once.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::id::{IncidentId, PageId, SeriesId, UpdateId};
use parallax_core::incident::series::WindowIds;
use parallax_core::incident::{IncidentChange, IncidentEvent, MAX_UNFINISHED};
use parallax_core::time::{SECOND, Timestamp};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Expect, Presence, Store, StoreError, StoreRead, VersionedValue};
use tokio::sync::watch;

/// Maximum time between two checks of the clock, since it may be stepped.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Delay after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Milliseconds until the next attempt for a record that could not be written.
const POSTPONEMENT: i64 = 60 * SECOND;
/// Journal entries read at once.
const EVENT_BATCH: usize = 512;

/// An object with a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledItem {
    Incident(IncidentId),
    Series(SeriesId),
}

/// The due times of everything that is open.
#[derive(Debug)]
pub struct Scheduler {
    store: Store,
    /// Sequence number of the last journal entry read.
    cursor: u64,
    due: BTreeSet<(Timestamp, ScheduledItem)>,
    due_by_item: BTreeMap<ScheduledItem, (PageId, Timestamp)>,
}

impl Scheduler {
    /// Creates the scheduler from everything open in the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn start(store: Store) -> Result<Self, StoreError> {
        let mut scheduler = Self { store, cursor: 0, due: BTreeSet::new(), due_by_item: BTreeMap::new() };
        scheduler.rebuild().await?;
        Ok(scheduler)
    }

    /// Creates the scheduler and applies what was due by `now`: windows begin and end before results are
    /// judged. Transitions that fail are retried by [`Scheduler::run`].
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn start_caught_up(store: Store, now: Timestamp) -> Result<Self, StoreError> {
        let mut scheduler = Self::start(store).await?;
        if let Err(error) = scheduler.run_due(now).await {
            error.log_retry("failed to apply scheduled transitions");
        }
        Ok(scheduler)
    }

    /// Runs the scheduler for the life of the process: `caught_up` if given, else a new one read from the
    /// store.
    pub async fn run_from(caught_up: Option<Self>, store: Store, clock: Clock) {
        let mut started = caught_up;
        let scheduler = loop {
            if let Some(scheduler) = started {
                break scheduler;
            }
            match Self::start(store.clone()).await {
                Ok(scheduler) => started = Some(scheduler),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("failed to read open incidents and series for the scheduler");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        scheduler.run(clock).await;
    }

    /// Runs for the life of the process.
    pub async fn run(mut self, clock: Clock) {
        let mut edits = self.store.subscribe_edits();
        loop {
            if let Err(error) = self.run_due(clock.now()).await {
                match error {
                    StoreError::Closed => return,
                    error => error.log_retry("failed to apply scheduled transitions"),
                }
                tokio::time::sleep(RETRY).await;
                continue;
            }
            if self.wait(clock.now(), &mut edits).await.is_err() {
                return;
            }
        }
    }

    /// Follows the journal, then applies everything due by `now`.
    ///
    /// # Errors
    /// If the store can't be read or written; the next call retries.
    pub(crate) async fn run_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.follow_journal().await?;
        self.start_windows(now).await?;
        while let Some((_, entry)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.apply(entry, now).await?;
        }
        Ok(())
    }

    /// Starts windows that are due before any other ends: between the end of one window and the start of the
    /// next, their common monitors must not appear uncovered.
    async fn start_windows(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let due: Vec<ScheduledItem> =
            self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, entry)| *entry).collect();
        if due.len() < 2 {
            return Ok(());
        }
        for entry in due {
            let ScheduledItem::Incident(id) = entry else { continue };
            let window = self.store.reader().incident(id);
            if matches!(window, Ok(Some(window)) if window.value.starts_by(now)) {
                self.apply(entry, now).await?;
            }
        }
        Ok(())
    }

    /// Applies what is due of one entry.
    async fn apply(&mut self, entry: ScheduledItem, now: Timestamp) -> Result<(), StoreError> {
        let result = match entry {
            ScheduledItem::Incident(id) => self.advance_incident(id, now).await,
            ScheduledItem::Series(id) => self.plan_window(id, now).await,
        };
        match result {
            Ok(()) => Ok(()),
            // The record was changed concurrently: schedule it again by its present state.
            Err(StoreError::Conflict(_)) => self.reschedule(entry),
            // One record that can't be written must not block the others.
            Err(error @ (StoreError::Damaged(_) | StoreError::TooLarge(_))) => {
                tracing::error!(?entry, %error, "failed to update a due incident or series; retrying in a minute");
                self.postpone(entry, now);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn wait(&self, now: Timestamp, edits: &mut watch::Receiver<u64>) -> Result<(), watch::error::RecvError> {
        let next = self
            .due
            .first()
            .map_or(MAX_WAIT, |(at, _)| Duration::from_millis(at.since(now).max(0).unsigned_abs()).min(MAX_WAIT));
        tokio::select! {
            changed = edits.changed() => changed,
            () = tokio::time::sleep(next) => Ok(()),
        }
    }

    /// Applies the due transition of an incident or window.
    async fn advance_incident(&mut self, id: IncidentId, now: Timestamp) -> Result<(), StoreError> {
        let entry = ScheduledItem::Incident(id);
        let Some(VersionedValue { revision, value: mut incident }) = self.store.reader().incident(id)? else {
            self.unschedule(entry);
            return Ok(());
        };
        if let Some(change) = incident.apply_due(now) {
            let notify = incident.notify || matches!(change, IncidentChange::OwnerReminder(_));
            let incident_event = IncidentEvent { incident: id, change, update: None, notify };
            let mut batch = Batch::new();
            batch.expect(Expect::Incident(id, Presence::At(revision))).write(incident.clone());
            batch.event(event(now, incident.page, incident_event));
            self.store.commit(batch).await?;
            tracing::info!(incident = %id, news = ?change, "incident updated by the scheduler");
        }
        self.set_due(entry, incident.page, incident.next_due());
        Ok(())
    }

    /// Plans the next window of a series.
    async fn plan_window(&mut self, id: SeriesId, now: Timestamp) -> Result<(), StoreError> {
        let entry = ScheduledItem::Series(id);
        let Some(VersionedValue { revision, value: mut series }) = self.store.reader().series(id)? else {
            self.unschedule(entry);
            return Ok(());
        };
        if self.store.reader().page_counts(series.page)?.open_incidents >= MAX_UNFINISHED {
            tracing::warn!(series = %id, "no window planned: the page has reached the limit of unfinished windows");
            self.postpone(entry, now);
            return Ok(());
        }
        let ids =
            WindowIds { incident: IncidentId::new(now, rand::random()), update: UpdateId::new(now, rand::random()) };
        let index_before = series.next_index;
        let window = series.plan(now, ids);
        if series.next_index != index_before {
            let mut batch = Batch::new();
            batch.expect(Expect::Series(id, Presence::At(revision))).write(series.clone());
            if let Some(window) = &window {
                let incident_event = IncidentEvent {
                    incident: window.id,
                    change: IncidentChange::Scheduled,
                    update: Some(ids.update),
                    notify: window.notify,
                };
                batch.write(window.clone()).event(event(now, series.page, incident_event));
            }
            self.store.commit(batch).await?;
        }
        if let Some(window) = window {
            self.set_due(ScheduledItem::Incident(window.id), window.page, window.next_due());
        }
        self.set_due(entry, series.page, series.next_due());
        Ok(())
    }

    /// Reads everything open from the store.
    async fn rebuild(&mut self) -> Result<(), StoreError> {
        let open = |read: &dyn StoreRead| Ok((read.last_event()?, read.open_incidents()?, read.running_series()?));
        let (cursor, incidents, series) = self.store.read(open).await?;
        self.due.clear();
        self.due_by_item.clear();
        for VersionedValue { value, .. } in incidents {
            self.set_due(ScheduledItem::Incident(value.id), value.page, value.next_due());
        }
        for VersionedValue { value, .. } in series {
            self.set_due(ScheduledItem::Series(value.id), value.page, value.next_due());
        }
        self.cursor = cursor;
        Ok(())
    }

    /// Follows the journal: each incident that it names is scheduled by its present state. If the journal was
    /// trimmed past the cursor, everything is read again.
    async fn follow_journal(&mut self) -> Result<(), StoreError> {
        loop {
            let cursor = self.cursor;
            let read = move |read: &dyn StoreRead| Ok((read.last_event()?, read.events_after(cursor, EVENT_BATCH)?));
            let (newest, events) = self.store.read(read).await?;
            let next = events.first().map_or(newest.saturating_add(1), |event| event.seq);
            if next > cursor.saturating_add(1) {
                tracing::warn!("the journal was trimmed before the scheduler read it; rebuilding the schedule");
                return self.rebuild().await;
            }
            let Some(last) = events.last() else { return Ok(()) };
            let last = last.seq;
            for recorded in events {
                match (recorded.event.kind, recorded.event.page) {
                    (EventKind::Incident(incident_event), _) => {
                        self.reschedule(ScheduledItem::Incident(incident_event.incident))?
                    }
                    (EventKind::PageEdited(EditKind::Deleted), Some(page)) => self.unschedule_page(page),
                    (
                        EventKind::StatusChanged(_)
                        | EventKind::Round(_)
                        | EventKind::MonitorEdited(_)
                        | EventKind::PageEdited(_)
                        | EventKind::AgentJoined(_)
                        | EventKind::AgentRevoked(_)
                        | EventKind::QuarantineChanged(..)
                        | EventKind::ScopeChanged(_)
                        | EventKind::OperatorAlert(_)
                        | EventKind::DeadlineExtended(_)
                        | EventKind::FlappingEnded(_)
                        | EventKind::Unjudged(_)
                        | EventKind::OutageAcknowledged(_)
                        | EventKind::AcknowledgementWithdrawn(_),
                        _,
                    ) => {}
                }
            }
            self.cursor = last;
        }
    }

    /// Schedules an entry by its present state; an incident together with its series.
    fn reschedule(&mut self, entry: ScheduledItem) -> Result<(), StoreError> {
        let reader = self.store.reader();
        match entry {
            ScheduledItem::Incident(id) => match reader.incident(id)? {
                Some(VersionedValue { value, .. }) => {
                    self.set_due(entry, value.page, value.next_due());
                    if let Some(series) = value.series {
                        self.reschedule(ScheduledItem::Series(series))?;
                    }
                }
                None => self.unschedule(entry),
            },
            ScheduledItem::Series(id) => match reader.series(id)? {
                Some(VersionedValue { value, .. }) => self.set_due(entry, value.page, value.next_due()),
                None => self.unschedule(entry),
            },
        }
        Ok(())
    }

    fn set_due(&mut self, entry: ScheduledItem, page: PageId, due: Option<Timestamp>) {
        self.unschedule(entry);
        if let Some(due) = due {
            self.due_by_item.insert(entry, (page, due));
            self.due.insert((due, entry));
        }
    }

    fn postpone(&mut self, entry: ScheduledItem, now: Timestamp) {
        if let Some((page, _)) = self.due_by_item.get(&entry).copied() {
            self.set_due(entry, page, Some(now + POSTPONEMENT));
        }
    }

    fn unschedule(&mut self, entry: ScheduledItem) {
        if let Some((_, due)) = self.due_by_item.remove(&entry) {
            self.due.remove(&(due, entry));
        }
    }

    fn unschedule_page(&mut self, page: PageId) {
        let on_page: Vec<ScheduledItem> =
            self.due_by_item.iter().filter(|(_, (item_page, _))| *item_page == page).map(|(entry, _)| *entry).collect();
        on_page.into_iter().for_each(|entry| self.unschedule(entry));
    }
}

fn event(now: Timestamp, page: PageId, incident_event: IncidentEvent) -> Event {
    Event { at: now, page: Some(page), monitor: None, kind: EventKind::Incident(incident_event) }
}
