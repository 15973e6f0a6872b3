//! Reader and checker for the event journal in a stopped coordinator's store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parallax_core::event::{AlertKind, EditKind, EventKind, MonitorStatus, StatusChange};
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_core::time::Timestamp;
use parallax_store::disk::DiskOptions;
use parallax_store::{JournalEvent, Store};

/// Both journals of a store: events and readings.
#[derive(Debug)]
pub struct StoredJournal {
    /// All events, oldest first.
    pub events: Vec<JournalEvent>,
    /// All readings that are still in the journal, in commit order.
    pub readings: Vec<Reading>,
}

/// Counts of a successful check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalCounts {
    /// Monitors with at least one event.
    pub monitors: usize,
    /// Events in total.
    pub events: usize,
    /// Status changes.
    pub changes: usize,
}

impl StoredJournal {
    /// Reads the store below a coordinator's data directory. No coordinator may be running.
    pub async fn read(data: &Path) -> Self {
        let folder = data.join("store");
        let options = DiskOptions { ballast: 0, ..DiskOptions::default() };
        let store = tokio::task::spawn_blocking(move || Store::on_disk(&folder, options));
        let store = store.await.expect("no panic").expect("the store opens");
        let events = store.reader().events_after(0, usize::MAX).expect("events can be read");
        let entries = store.reader().readings_after(0, usize::MAX).expect("readings can be read");
        store.close().await;
        Self { events, readings: entries.into_iter().flat_map(|entry| entry.readings).collect() }
    }

    /// Verifies the events: sequence numbers have no gaps, and each monitor's events lead from its creation to its
    /// deletion, where every status follows from the previous one, without duplicates and in time order.
    pub fn check(&self) -> Result<JournalCounts, String> {
        let mut paths: BTreeMap<MonitorId, MonitorWalk> = BTreeMap::new();
        let mut right = JournalCounts::default();
        for (wanted, recorded) in (1..).zip(&self.events) {
            if recorded.seq != wanted {
                return Err(format!("event {} stands where {wanted} should", recorded.seq));
            }
            right.events += 1;
            let event = &recorded.event;
            let Some(monitor) = event.monitor else { continue };
            right.changes += usize::from(matches!(event.kind, EventKind::StatusChanged(_)));
            let path = paths.entry(monitor).or_default();
            path.apply(event.at, &event.kind)
                .map_err(|fault| format!("event {wanted} of {monitor}: {fault}: {event:?}"))?;
        }
        right.monitors = paths.len();
        Ok(right)
    }
}

/// State of a monitor while its events are walked.
#[derive(Debug, Default)]
struct MonitorWalk {
    is_there: bool,
    is_gone: bool,
    status: MonitorStatus,
    changed_at: Option<Timestamp>,
    /// Keys of the rounds already seen: region, number, start, and reason.
    rounds: BTreeSet<String>,
}

impl MonitorWalk {
    fn apply(&mut self, at: Timestamp, what: &EventKind) -> Result<(), &'static str> {
        match what {
            EventKind::MonitorEdited(EditKind::Created) if self.is_there || self.is_gone => Err("made twice"),
            EventKind::MonitorEdited(EditKind::Created) => {
                self.is_there = true;
                Ok(())
            }
            _ if !self.is_there && !self.is_gone => Err("before it was made"),
            EventKind::MonitorEdited(EditKind::Deleted) if self.is_gone => Err("gone twice"),
            EventKind::MonitorEdited(EditKind::Deleted) => {
                (self.is_there, self.is_gone) = (false, true);
                Ok(())
            }
            EventKind::MonitorEdited(EditKind::Changed) if self.is_gone => Err("changed after it was gone"),
            EventKind::StatusChanged(change) => self.apply_change(at, change),
            EventKind::Round(report) => {
                let round = (report.region, report.round, report.started, report.reason);
                if self.rounds.insert(format!("{round:?}")) { Ok(()) } else { Err("the same round twice") }
            }
            _ => Ok(()),
        }
    }

    fn apply_change(&mut self, at: Timestamp, change: &StatusChange) -> Result<(), &'static str> {
        if change.from != self.status {
            return Err("it does not follow from the status before");
        }
        if self.changed_at.is_some_and(|before| at < before) {
            return Err("it is before the change that stands before it");
        }
        let is_legal = match change.alert {
            Some(AlertKind::WentDown) => change.to == MonitorStatus::Down && change.from != MonitorStatus::Down,
            Some(AlertKind::StillDown) => change.to == MonitorStatus::Down && change.from == MonitorStatus::Down,
            Some(AlertKind::Recovered) => change.to != MonitorStatus::Down && change.from == MonitorStatus::Down,
            Some(AlertKind::WentSlow) => change.to == MonitorStatus::Slow && change.from != MonitorStatus::Slow,
            Some(AlertKind::BackToNormal) => change.to == MonitorStatus::Up && change.from == MonitorStatus::Slow,
            None => change.to != change.from && change.to != MonitorStatus::Down,
        };
        if !is_legal {
            return Err("the word does not fit the change");
        }
        (self.status, self.changed_at) = (change.to, Some(at));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_core::event::Event;

    fn recorded(seq: u64, what: EventKind) -> JournalEvent {
        let (page, monitor) = (None, Some(MonitorId::from_u128(1)));
        JournalEvent { seq, event: Event { at: Timestamp::from_millis(seq.cast_signed()), page, monitor, kind: what } }
    }

    fn change(from: MonitorStatus, to: MonitorStatus, alert: Option<AlertKind>) -> EventKind {
        EventKind::StatusChanged(StatusChange {
            from,
            to,
            alert,
            since: Timestamp::from_millis(0),
            down_since: None,
            reason: None,
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        })
    }

    fn checked(what: &[EventKind]) -> Result<JournalCounts, String> {
        let events = (1..).zip(what.iter().cloned()).map(|(seq, what)| recorded(seq, what)).collect();
        StoredJournal { events, readings: Vec::new() }.check()
    }

    #[test]
    fn only_a_path_is_right() {
        use MonitorStatus::{Down, Unknown, Up};
        let made = EventKind::MonitorEdited(EditKind::Created);
        let up = change(Unknown, Up, None);
        let down = change(Up, Down, Some(AlertKind::WentDown));
        let back = change(Down, Up, Some(AlertKind::Recovered));
        let right = checked(&[made.clone(), up.clone(), down.clone(), back.clone()]).unwrap();
        assert_eq!(right, JournalCounts { monitors: 1, events: 4, changes: 3 });
        assert!(checked(&[made.clone(), up.clone(), down.clone(), down.clone()]).is_err(), "told twice");
        assert!(checked(&[made.clone(), down, up.clone()]).is_err(), "out of order");
        assert!(checked(&[up, made]).is_err(), "before it was made");
        let holed = StoredJournal { events: vec![recorded(2, back)], readings: Vec::new() };
        assert!(holed.check().is_err(), "a number is missing");
    }
}
