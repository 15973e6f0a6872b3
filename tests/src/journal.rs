//! The journal of events read from a stopped coordinator's store, and held against what may happen in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parallax_coordinator::storage::disk::Options;
use parallax_coordinator::storage::{Recorded, Store};
use parallax_core::event::{AlertKind, Change, Edited, Status, What};
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_core::time::Timestamp;

/// Both journals of a store.
#[derive(Debug)]
pub struct Journal {
    /// Every event, oldest first.
    pub events: Vec<Recorded>,
    /// Every reading that is still in the journal, in the order of commits.
    pub readings: Vec<Reading>,
}

/// How much was found to be right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Right {
    /// Monitors that anything happened to.
    pub monitors: usize,
    /// Events in all.
    pub events: usize,
    /// Changes of a status.
    pub changes: usize,
}

impl Journal {
    /// Reads the store below a coordinator's data directory, while no coordinator runs.
    pub async fn read(data: &Path) -> Self {
        let folder = data.join("store");
        let options = Options { ballast: 0, ..Options::default() };
        let store = tokio::task::spawn_blocking(move || Store::on_disk(&folder, options));
        let store = store.await.expect("no panic").expect("the store opens");
        let events = store.reader().events_after(0, usize::MAX).expect("events can be read");
        let entries = store.reader().readings_after(0, usize::MAX).expect("readings can be read");
        store.close().await;
        Self { events, readings: entries.into_iter().flat_map(|entry| entry.readings).collect() }
    }

    /// Holds the events against what may happen: no number is missing, and each monitor's events are a path from its
    /// making to its end on which every status follows from the one before, none twice and none before its time.
    pub fn check(&self) -> Result<Right, String> {
        let mut paths: BTreeMap<MonitorId, Walk> = BTreeMap::new();
        let mut right = Right::default();
        for (wanted, recorded) in (1..).zip(&self.events) {
            if recorded.seq != wanted {
                return Err(format!("event {} stands where {wanted} should", recorded.seq));
            }
            right.events += 1;
            let event = &recorded.event;
            let Some(monitor) = event.monitor else { continue };
            right.changes += usize::from(matches!(event.what, What::Changed(_)));
            let path = paths.entry(monitor).or_default();
            path.go(event.at, &event.what)
                .map_err(|fault| format!("event {wanted} of {monitor}: {fault}: {event:?}"))?;
        }
        right.monitors = paths.len();
        Ok(right)
    }
}

/// Where a monitor is on its path.
#[derive(Debug, Default)]
struct Walk {
    is_there: bool,
    is_gone: bool,
    status: Status,
    changed_at: Option<Timestamp>,
    /// What begins a round: region, number, start, and reason.
    rounds: BTreeSet<String>,
}

impl Walk {
    fn go(&mut self, at: Timestamp, what: &What) -> Result<(), &'static str> {
        match what {
            What::MonitorEdited(Edited::Created) if self.is_there || self.is_gone => Err("made twice"),
            What::MonitorEdited(Edited::Created) => {
                self.is_there = true;
                Ok(())
            }
            _ if !self.is_there && !self.is_gone => Err("before it was made"),
            What::MonitorEdited(Edited::Deleted) if self.is_gone => Err("gone twice"),
            What::MonitorEdited(Edited::Deleted) => {
                (self.is_there, self.is_gone) = (false, true);
                Ok(())
            }
            What::MonitorEdited(Edited::Changed) if self.is_gone => Err("changed after it was gone"),
            What::Changed(change) => self.change(at, change),
            What::Round(report) => {
                let round = (report.region, report.round, report.started, report.reason);
                if self.rounds.insert(format!("{round:?}")) { Ok(()) } else { Err("the same round twice") }
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, at: Timestamp, change: &Change) -> Result<(), &'static str> {
        if change.from != self.status {
            return Err("it does not follow from the status before");
        }
        if self.changed_at.is_some_and(|before| at < before) {
            return Err("it is before the change that stands before it");
        }
        let is_legal = match change.alert {
            Some(AlertKind::WentDown) => change.to == Status::Down && change.from != Status::Down,
            Some(AlertKind::StillDown) => change.to == Status::Down && change.from == Status::Down,
            Some(AlertKind::Recovered) => change.to != Status::Down && change.from == Status::Down,
            Some(AlertKind::WentSlow) => change.to == Status::Slow && change.from != Status::Slow,
            Some(AlertKind::BackToNormal) => change.to == Status::Up && change.from == Status::Slow,
            None => change.to != change.from && change.to != Status::Down,
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

    fn recorded(seq: u64, what: What) -> Recorded {
        let (page, monitor) = (None, Some(MonitorId::from_u128(1)));
        Recorded { seq, event: Event { at: Timestamp::from_millis(seq.cast_signed()), page, monitor, what } }
    }

    fn change(from: Status, to: Status, alert: Option<AlertKind>) -> What {
        What::Changed(Change {
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

    fn checked(what: &[What]) -> Result<Right, String> {
        let events = (1..).zip(what.iter().cloned()).map(|(seq, what)| recorded(seq, what)).collect();
        Journal { events, readings: Vec::new() }.check()
    }

    #[test]
    fn only_a_path_is_right() {
        use Status::{Down, Unknown, Up};
        let made = What::MonitorEdited(Edited::Created);
        let up = change(Unknown, Up, None);
        let down = change(Up, Down, Some(AlertKind::WentDown));
        let back = change(Down, Up, Some(AlertKind::Recovered));
        let right = checked(&[made.clone(), up.clone(), down.clone(), back.clone()]).unwrap();
        assert_eq!(right, Right { monitors: 1, events: 4, changes: 3 });
        assert!(checked(&[made.clone(), up.clone(), down.clone(), down.clone()]).is_err(), "told twice");
        assert!(checked(&[made.clone(), down, up.clone()]).is_err(), "out of order");
        assert!(checked(&[up, made]).is_err(), "before it was made");
        let holed = Journal { events: vec![recorded(2, back)], readings: Vec::new() };
        assert!(holed.check().is_err(), "a number is missing");
    }
}
