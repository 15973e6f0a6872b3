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

use parallax_core::event::{Edited, Event, What};
use parallax_core::id::{IncidentId, PageId, SeriesId, UpdateId};
use parallax_core::incident::series::Names;
use parallax_core::incident::{MAX_UNFINISHED, News, Told};
use parallax_core::time::{SECOND, Timestamp};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::storage::{Batch, Expect, Is, Read, Store, StoreError, Versioned};

/// Maximum time between two looks at the clock, since it may jump.
const UPKEEP: Duration = Duration::from_secs(5);
/// Delay after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Milliseconds until the next attempt for a record that could not be written.
const LATER: i64 = 60 * SECOND;
/// Journal entries read at once.
const AT_ONCE: usize = 512;

/// An object with a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Incident(IncidentId),
    Series(SeriesId),
}

/// The due times of everything that is open.
#[derive(Debug)]
pub struct Calendar {
    store: Store,
    /// Sequence number of the last journal entry read.
    cursor: u64,
    due: BTreeSet<(Timestamp, Entry)>,
    moments: BTreeMap<Entry, (PageId, Timestamp)>,
}

impl Calendar {
    /// Creates the scheduler from everything open in the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn start(store: Store) -> Result<Self, StoreError> {
        let mut calendar = Self { store, cursor: 0, due: BTreeSet::new(), moments: BTreeMap::new() };
        calendar.rebuild().await?;
        Ok(calendar)
    }

    /// Creates the scheduler and applies what was due by `now`: windows begin and end before results are
    /// judged. Transitions that fail are retried by [`Calendar::run`].
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn caught_up(store: Store, now: Timestamp) -> Result<Self, StoreError> {
        let mut calendar = Self::start(store).await?;
        if let Err(error) = calendar.turn(now).await {
            error.log_retry("failed to apply scheduled transitions");
        }
        Ok(calendar)
    }

    /// Runs the scheduler for the life of the process: `caught_up` if given, else a new one read from the
    /// store.
    pub async fn keep(caught_up: Option<Self>, store: Store, clock: Clock) {
        let mut started = caught_up;
        let calendar = loop {
            if let Some(calendar) = started {
                break calendar;
            }
            match Self::start(store.clone()).await {
                Ok(calendar) => started = Some(calendar),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("failed to read open incidents and series for the scheduler");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        calendar.run(clock).await;
    }

    /// Runs for the life of the process.
    pub async fn run(mut self, clock: Clock) {
        let mut edits = self.store.edits_seen();
        loop {
            if let Err(error) = self.turn(clock.now()).await {
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
    pub async fn turn(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.follow().await?;
        self.begin_windows(now).await?;
        while let Some((_, entry)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.come(entry, now).await?;
        }
        Ok(())
    }

    /// Starts windows that are due before any other ends: between the end of one window and the start of the
    /// next, their common monitors must not appear uncovered.
    async fn begin_windows(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let due: Vec<Entry> =
            self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, entry)| *entry).collect();
        if due.len() < 2 {
            return Ok(());
        }
        for entry in due {
            let Entry::Incident(id) = entry else { continue };
            let window = self.store.reader().incident(id);
            if matches!(window, Ok(Some(window)) if window.value.begins_by(now)) {
                self.come(entry, now).await?;
            }
        }
        Ok(())
    }

    /// Applies what is due of one entry.
    async fn come(&mut self, entry: Entry, now: Timestamp) -> Result<(), StoreError> {
        let done = match entry {
            Entry::Incident(id) => self.pass(id, now).await,
            Entry::Series(id) => self.plan(id, now).await,
        };
        match done {
            Ok(()) => Ok(()),
            // The record was changed concurrently: schedule it again by its present state.
            Err(StoreError::Conflict(_)) => self.look(entry),
            // One record that can't be written must not block the others.
            Err(error @ (StoreError::Damaged(_) | StoreError::TooLarge(_))) => {
                tracing::error!(?entry, %error, "failed to update a due incident or series; retrying in a minute");
                self.postpone(entry, now);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn wait(
        &self,
        now: Timestamp,
        edits: &mut watch::Receiver<u64>,
    ) -> Result<(), watch::error::RecvError> {
        let next = self
            .due
            .first()
            .map_or(UPKEEP, |(at, _)| Duration::from_millis(at.since(now).max(0).unsigned_abs()).min(UPKEEP));
        tokio::select! {
            changed = edits.changed() => changed,
            () = tokio::time::sleep(next) => Ok(()),
        }
    }

    /// Applies the due transition of an incident or window.
    async fn pass(&mut self, id: IncidentId, now: Timestamp) -> Result<(), StoreError> {
        let entry = Entry::Incident(id);
        let Some(Versioned { revision, value: mut incident }) = self.store.reader().incident(id)? else {
            self.forget(entry);
            return Ok(());
        };
        if let Some(news) = incident.pass(now) {
            let notify = incident.notify || matches!(news, News::OwnerReminder(_));
            let told = Told { incident: id, news, update: None, notify };
            let mut batch = Batch::new();
            batch.expect(Expect::Incident(id, Is::At(revision))).write(incident.clone());
            batch.event(event(now, incident.page, told));
            self.store.commit(batch).await?;
            tracing::info!(incident = %id, ?news, "incident updated by the scheduler");
        }
        self.note(entry, incident.page, incident.next_due());
        Ok(())
    }

    /// Plans the next window of a series.
    async fn plan(&mut self, id: SeriesId, now: Timestamp) -> Result<(), StoreError> {
        let entry = Entry::Series(id);
        let Some(Versioned { revision, value: mut series }) = self.store.reader().series(id)? else {
            self.forget(entry);
            return Ok(());
        };
        if self.store.reader().standing(series.page)?.open >= MAX_UNFINISHED {
            tracing::warn!(series = %id, "no window planned: the page has reached the limit of unfinished windows");
            self.postpone(entry, now);
            return Ok(());
        }
        let names = Names {
            incident: IncidentId::new(now, rand::random()),
            update: UpdateId::new(now, rand::random()),
        };
        let before = series.next;
        let window = series.plan(now, names);
        if series.next != before {
            let mut batch = Batch::new();
            batch.expect(Expect::Series(id, Is::At(revision))).write(series.clone());
            if let Some(window) = &window {
                let told = Told {
                    incident: window.id,
                    news: News::Scheduled,
                    update: Some(names.update),
                    notify: window.notify,
                };
                batch.write(window.clone()).event(event(now, series.page, told));
            }
            self.store.commit(batch).await?;
        }
        if let Some(window) = window {
            self.note(Entry::Incident(window.id), window.page, window.next_due());
        }
        self.note(entry, series.page, series.next_due());
        Ok(())
    }

    /// Reads everything open from the store.
    async fn rebuild(&mut self) -> Result<(), StoreError> {
        let open = |read: &dyn Read| Ok((read.last_event()?, read.open_incidents()?, read.running_series()?));
        let (cursor, incidents, series) = self.store.read(open).await?;
        self.due.clear();
        self.moments.clear();
        for Versioned { value, .. } in incidents {
            self.note(Entry::Incident(value.id), value.page, value.next_due());
        }
        for Versioned { value, .. } in series {
            self.note(Entry::Series(value.id), value.page, value.next_due());
        }
        self.cursor = cursor;
        Ok(())
    }

    /// Follows the journal: each incident that it names is scheduled by its present state. If the journal was
    /// trimmed past the cursor, everything is read again.
    async fn follow(&mut self) -> Result<(), StoreError> {
        loop {
            let cursor = self.cursor;
            let read = move |read: &dyn Read| Ok((read.last_event()?, read.events_after(cursor, AT_ONCE)?));
            let (newest, events) = self.store.read(read).await?;
            let next = events.first().map_or(newest.saturating_add(1), |event| event.seq);
            if next > cursor.saturating_add(1) {
                tracing::warn!(
                    "the journal was trimmed before the scheduler read it; rebuilding the schedule"
                );
                return self.rebuild().await;
            }
            let Some(last) = events.last() else { return Ok(()) };
            let last = last.seq;
            for recorded in events {
                match (recorded.event.what, recorded.event.page) {
                    (What::Incident(told), _) => self.look(Entry::Incident(told.incident))?,
                    (What::PageEdited(Edited::Deleted), Some(page)) => self.drop_page(page),
                    (
                        What::Changed(_)
                        | What::Round(_)
                        | What::MonitorEdited(_)
                        | What::PageEdited(_)
                        | What::AgentJoined(_)
                        | What::AgentRevoked(_)
                        | What::Quarantine(..)
                        | What::ScopeChanged(_)
                        | What::Notice(_)
                        | What::DeadlineExtended(_)
                        | What::Steady(_)
                        | What::Unjudged(_),
                        _,
                    ) => {}
                }
            }
            self.cursor = last;
        }
    }

    /// Schedules an entry by its present state; an incident together with its series.
    fn look(&mut self, entry: Entry) -> Result<(), StoreError> {
        let reader = self.store.reader();
        match entry {
            Entry::Incident(id) => match reader.incident(id)? {
                Some(Versioned { value, .. }) => {
                    self.note(entry, value.page, value.next_due());
                    if let Some(series) = value.series {
                        self.look(Entry::Series(series))?;
                    }
                }
                None => self.forget(entry),
            },
            Entry::Series(id) => match reader.series(id)? {
                Some(Versioned { value, .. }) => self.note(entry, value.page, value.next_due()),
                None => self.forget(entry),
            },
        }
        Ok(())
    }

    fn note(&mut self, entry: Entry, page: PageId, due: Option<Timestamp>) {
        self.forget(entry);
        if let Some(due) = due {
            self.moments.insert(entry, (page, due));
            self.due.insert((due, entry));
        }
    }

    fn postpone(&mut self, entry: Entry, now: Timestamp) {
        if let Some((page, _)) = self.moments.get(&entry).copied() {
            self.note(entry, page, Some(now + LATER));
        }
    }

    fn forget(&mut self, entry: Entry) {
        if let Some((_, due)) = self.moments.remove(&entry) {
            self.due.remove(&(due, entry));
        }
    }

    fn drop_page(&mut self, page: PageId) {
        let on_page: Vec<Entry> =
            self.moments.iter().filter(|(_, (its, _))| *its == page).map(|(entry, _)| *entry).collect();
        on_page.into_iter().for_each(|entry| self.forget(entry));
    }
}

fn event(now: Timestamp, page: PageId, told: Told) -> Event {
    Event { at: now, page: Some(page), monitor: None, what: What::Incident(told) }
}
