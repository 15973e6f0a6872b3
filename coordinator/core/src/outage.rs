//! Outage history of a monitor, reconstructed from its status changes.

use crate::event::{MonitorStatus, StatusChange};
use crate::observation::Failure;
use crate::time::Timestamp;
use crate::vantage::RegionSet;

/// Span of time in which a monitor was down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Start.
    pub from: Timestamp,
    /// End; none while it lasts.
    pub to: Option<Timestamp>,
    /// Reason, if known.
    pub reason: Option<Failure>,
    /// Regions it was down in, at the widest, while others saw it up; none if it was down everywhere at any time.
    pub regions: Option<RegionSet>,
}

/// Wider of two scopes, where none means everywhere: the one with more regions; if equal, the first.
pub fn wider_scope(one: Option<RegionSet>, other: Option<RegionSet>) -> Option<RegionSet> {
    let (one, other) = (one?, other?);
    Some(if other.len() > one.len() { other } else { one })
}

/// Reconstructs outages from changes that are read backwards, newest first.
#[derive(Debug)]
pub struct OutageHistory {
    /// Start of the open outage, if there is one.
    open_since: Option<Timestamp>,
    found: Vec<Outage>,
    /// Widest scope since the start of the outage being reconstructed, if it differs from the initial one.
    scope: Option<Option<RegionSet>>,
    /// End of the outage being reconstructed; none if nothing ended it, or another one follows.
    end: Option<OutageEnding>,
}

/// Event that ended an outage.
#[derive(Debug, Clone, Copy)]
enum OutageEnding {
    /// Recovery at that time, with the start of the outage if the change says so.
    Recovered(Timestamp, Option<Timestamp>),
    /// Status unknown since that time.
    Unknown(Timestamp),
}

impl OutageHistory {
    /// Starts without any outages; `lasting` is the start of the open outage, whether its status is known at present
    /// or not.
    pub const fn new(lasting: Option<Timestamp>) -> Self {
        Self { open_since: lasting, found: Vec::new(), scope: None, end: None }
    }

    /// Adds the change that precedes those added so far.
    pub fn push_earlier_change(&mut self, change: StatusChange) {
        // Still-down alerts are repeated: they are no change, but carry the scope.
        if !change.is_transition() {
            if change.to == MonitorStatus::Down {
                self.push_earlier_scope(change.down_from);
            }
            return;
        }
        match (change.to, self.end) {
            (MonitorStatus::Up | MonitorStatus::Slow, _) => {
                self.scope = None;
                self.end = Some(OutageEnding::Recovered(change.since, change.down_since));
            }
            // An unknown status does not end an outage: the recovery after it says which one it ended.
            (MonitorStatus::Unknown, Some(OutageEnding::Recovered(_, Some(_)))) => {}
            // No outage was open after it: the monitor was paused.
            (MonitorStatus::Unknown, _) => self.end = Some(OutageEnding::Unknown(change.since)),
            (MonitorStatus::Down, end) => {
                self.end = None;
                self.push_outage(change, end);
            }
        }
    }

    /// Adds a scope change (none means everywhere) that precedes the changes added so far.
    pub fn push_earlier_scope(&mut self, regions: Option<RegionSet>) {
        self.scope = Some(match self.scope {
            Some(later) => wider_scope(regions, later),
            None => regions,
        });
    }

    /// Number of outages found.
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// Returns true if none was found.
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the outages found, newest first.
    pub fn into_vec(self) -> Vec<Outage> {
        self.found
    }

    fn push_outage(&mut self, change: StatusChange, end: Option<OutageEnding>) {
        let from = change.down_since.unwrap_or(change.since);
        self.push_earlier_scope(change.down_from);
        let (reason, regions) = (change.reason, self.scope.take().flatten());
        // Down again after an unknown status, or announced again at the end of a window: the original start and
        // reason apply.
        if let Some(same) = self.found.last_mut().filter(|newer| newer.from == from) {
            (same.reason, same.regions) = (reason, wider_scope(regions, same.regions));
            return;
        }
        let to = match end {
            Some(OutageEnding::Recovered(at, _)) => Some(at),
            Some(OutageEnding::Unknown(at)) => Some(at).filter(|_| self.open_since != Some(from)),
            None => None,
        };
        self.found.push(Outage { from, to, reason, regions });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a change: `down_since 5` (of the outage that began then), `still 5`, `silent 7`, `back 9` (without its
    /// outage), `back 9 5`, `slow 9`.
    fn change(text: &str) -> StatusChange {
        let tokens: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| tokens.get(at).map(|token| Timestamp::from_millis(token.parse().unwrap()));
        let (from, to) = match tokens[0] {
            "down" => (MonitorStatus::Up, MonitorStatus::Down),
            "still" => (MonitorStatus::Down, MonitorStatus::Down),
            "silent" => (MonitorStatus::Down, MonitorStatus::Unknown),
            "slow" => (MonitorStatus::Down, MonitorStatus::Slow),
            "back" => (MonitorStatus::Down, MonitorStatus::Up),
            other => panic!("{other}"),
        };
        let mut change = StatusChange::new(to, number(1).unwrap());
        change.from = from;
        change.down_since = if to == MonitorStatus::Down { number(1) } else { number(2) };
        change.down_from = (change.to == MonitorStatus::Down).then_some(RegionSet::ALL);
        change
    }

    #[test]
    fn an_outage_has_the_widest_scope_that_it_reached() {
        let regions = |text: &str| match text {
            "all" => None,
            names => Some(names.split('+').map(|name| name.parse().unwrap()).collect::<RegionSet>()),
        };
        // The changes above, each with a scope, and `scope` for a new scope from then on.
        for (story, expected) in [
            ("down 5 asia, back 9", &["asia"][..]),
            ("down 5 asia, scope asia+europe, scope europe, back 9", &["asia+europe"]),
            ("down 5 asia, scope all, scope asia+europe, scope asia, back 9", &["all"]),
            ("down 5 all, scope asia, back 9", &["all"]),
            ("down 5 asia, scope all", &["all"]),
            ("down 5 asia, scope europe, back 9", &["asia"]),
            // The scope of repeated alerts, if the journal has nothing else.
            ("down 5 asia, still 5 asia+europe, still 5 asia, back 9", &["asia+europe"]),
            ("down 5 asia, still 5 all, scope asia, back 9", &["all"]),
            // Each outage has its own scope, even if one ends in an unknown status.
            ("down 5 asia, scope all, back 9, down 12 europe, back 14", &["europe", "all"]),
            ("down 5 europe, back 9, down 12 asia, scope all, back 14", &["all", "europe"]),
            ("down 5 asia, scope all, silent 7, down 9 europe, back 12", &["europe", "all"]),
            ("down 5 asia, scope all, silent 7, down 5 asia, back 9", &["all"]),
            ("down 5 asia, silent 7, down 5 asia, scope all, scope europe, back 9", &["all"]),
            // The journal begins in the middle: an outage without a start leaves nothing behind.
            ("scope all, scope asia, back 9, down 12 europe, back 14", &["europe"]),
        ] {
            let mut outages = OutageHistory::new(None);
            for entry in story.rsplit(", ") {
                let (text, scope) = entry.rsplit_once(' ').unwrap();
                match text {
                    "scope" => outages.push_earlier_scope(regions(scope)),
                    "back" | "silent" => outages.push_earlier_change(change(entry)),
                    _ => outages.push_earlier_change(StatusChange { down_from: regions(scope), ..change(text) }),
                }
            }
            let found: Vec<_> = outages.into_vec().into_iter().map(|outage| outage.regions).collect();
            assert_eq!(found, expected.iter().map(|text| regions(text)).collect::<Vec<_>>(), "{story}");
        }
    }

    #[test]
    fn each_outage_is_one_and_ends_when_it_did() {
        for (story, lasting, expected) in [
            ("", None, ""),
            ("down 5", Some(5), "5-"),
            ("down 5, back 9 5", None, "5-9"),
            ("down 5, slow 9 5", None, "5-9"),
            ("down 5, back 9 5, down 12", Some(12), "12- 5-9"),
            // Still-down alerts in an open outage.
            ("down 5, still 5, still 5, back 9 5", None, "5-9"),
            ("down 5, still 5, back 9 5, down 12, still 12, still 12", Some(12), "12- 5-9"),
            // Unknown in between, at the end, and before the recovery.
            ("down 5, silent 7, down 5, still 5, back 9 5", None, "5-9"),
            ("down 5, silent 6, down 5, silent 7, down 5", Some(5), "5-"),
            ("down 5, silent 7", Some(5), "5-"),
            ("down 5, silent 7, back 9 5", None, "5-9"),
            // A pause drops the outage, and everything after it is new.
            ("down 5, silent 7", None, "5-7"),
            ("down 5, silent 7, back 9", None, "5-7"),
            ("down 5, silent 7, down 9, back 12 9", None, "9-12 5-7"),
            ("down 5, back 9 5, silent 10, back 11", None, "5-9"),
            // Announced at the end of a window, begun or ended within it.
            ("down 5, down 5, back 9 5", None, "5-9"),
            ("down 5, back 9 5, down 12, back 14 12, back 14 5", None, "12-14 5-9"),
            // The journal begins in the middle.
            ("still 5, back 9 5, down 12", Some(12), "12-"),
        ] {
            let mut outages = OutageHistory::new(lasting.map(Timestamp::from_millis));
            story.rsplit(", ").filter(|it| !it.is_empty()).for_each(|it| outages.push_earlier_change(change(it)));
            let entry = |outage: &Outage| {
                let to = outage.to.map_or_else(String::new, |to| to.as_millis().to_string());
                format!("{}-{to}", outage.from.as_millis())
            };
            let found = outages.into_vec();
            assert!(found.iter().all(|outage| outage.regions == Some(RegionSet::ALL)), "{story}: {found:?}");
            assert_eq!(found.iter().map(entry).collect::<Vec<_>>().join(" "), expected, "{story}");
        }
    }
}
