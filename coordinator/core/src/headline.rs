//! The page's headline: one word for how all of its monitors are.

use std::cmp::Reverse;

use crate::event::Status;
use crate::id::MonitorId;
use crate::incident::{Impact, Incident};

/// The headline of a page whose monitors nobody looks at any more.
pub const STALE: &str = "Nothing is being checked right now";

/// How a page is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indicator {
    /// Nothing is known of any monitor, nobody looks at them any more, or there is none.
    Unknown,
    /// Nothing is wrong.
    Operational,
    /// Some monitor is slow.
    Degraded,
    /// Some monitors are down.
    Partial,
    /// Every monitor is down.
    Major,
    /// Nothing else is wrong, and a maintenance window is under way.
    Maintenance,
}

impl Indicator {
    /// Every indicator, in its order.
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Operational, Self::Degraded, Self::Partial, Self::Major, Self::Maintenance];

    /// What comes of the worst impact of an open incident (one of none counts as none at all); else of the monitors that
    /// are in no window: all down, else some down, else some slow; else of a window that is under way; else of whether
    /// anything is known.
    pub fn of(
        incident: Option<Impact>,
        statuses: impl IntoIterator<Item = Status>,
        maintained: bool,
    ) -> Self {
        match incident {
            Some(Impact::Degraded) => return Self::Degraded,
            Some(Impact::Partial) => return Self::Partial,
            Some(Impact::Major) => return Self::Major,
            Some(Impact::None) | None => {}
        }
        let (mut all, mut unknown, mut slow, mut down) = (0_usize, 0_usize, 0_usize, 0_usize);
        for status in statuses {
            all += 1;
            match status {
                Status::Unknown => unknown += 1,
                Status::Up => {}
                Status::Slow => slow += 1,
                Status::Down => down += 1,
            }
        }
        if down > 0 && down == all {
            Self::Major
        } else if down > 0 {
            Self::Partial
        } else if slow > 0 {
            Self::Degraded
        } else if maintained {
            Self::Maintenance
        } else if unknown == all {
            Self::Unknown
        } else {
            Self::Operational
        }
    }

    /// The name that the status document uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Operational => "operational",
            Self::Degraded => "degraded",
            Self::Partial => "partial",
            Self::Major => "major",
            Self::Maintenance => "maintenance",
        }
    }

    /// The headline in words.
    pub const fn headline(self) -> &'static str {
        match self {
            Self::Unknown => "No data yet",
            Self::Operational => "All systems operational",
            Self::Degraded => "Some systems are slow",
            Self::Partial => "Some systems are down",
            Self::Major => "All systems are down",
            Self::Maintenance => "Maintenance is under way",
        }
    }
}

/// What an open incident has to say of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// How much is affected.
    pub impact: Impact,
    /// Its title is one of ours: it says what went down, and not what is down now.
    pub is_ours: bool,
}

impl Claim {
    /// What an incident says, with its monitors that are still there: id, name, and impact of its own.
    pub fn of(incident: &Incident, monitors: &[(MonitorId, String, Option<Impact>)]) -> Self {
        // Where a person said that it is less than an outage, that is what is said.
        let is_ours =
            incident.impact >= Impact::Partial && incident.has_title_of_ours(incident.first_of(monitors));
        Self { impact: incident.impact, is_ours }
    }
}

/// Which open incident a page's headline quotes, by its place among them; none where the monitors are asked.
///
/// It is the worst; of several a person's before one of ours, and then the first. For one with a title of ours the
/// monitors speak, which come to `now` by themselves, as long as some are seen down; or a person's incident that is as bad
/// as that. Where none is, in a window or as nobody looks, it stands.
pub fn quoted(open: impl IntoIterator<Item = Claim>, now: Indicator) -> Option<usize> {
    let open: Vec<(usize, Claim)> = open.into_iter().enumerate().collect();
    let counted = || open.iter().filter(|(_, claim)| claim.impact > Impact::None);
    let rank = |(_, claim): &&(usize, Claim)| (Reverse(claim.impact), claim.is_ours);
    let (worst, claim) = counted().min_by_key(rank)?;
    let as_bad = match now {
        Indicator::Major if claim.is_ours => Impact::Major,
        Indicator::Partial if claim.is_ours => Impact::Partial,
        _ => return Some(*worst),
    };
    let others = counted().filter(|(_, claim)| !claim.is_ours && claim.impact >= as_bad);
    others.min_by_key(rank).map(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_that_is_true_is_said() {
        use Status::{Down, Slow, Unknown, Up};
        for (statuses, indicator) in [
            (vec![], Indicator::Unknown),
            (vec![Unknown, Unknown], Indicator::Unknown),
            (vec![Unknown, Up], Indicator::Operational),
            (vec![Up, Slow], Indicator::Degraded),
            (vec![Slow, Down], Indicator::Partial),
            (vec![Unknown, Down], Indicator::Partial),
            (vec![Down, Down], Indicator::Major),
        ] {
            assert_eq!(Indicator::of(None, statuses.clone(), false), indicator, "{statuses:?}");
        }
    }

    #[test]
    fn an_incident_speaks_first_and_a_window_last() {
        use Status::{Down, Slow, Up};
        let of = |incident, statuses: &[Status], maintained| {
            Indicator::of(incident, statuses.iter().copied(), maintained)
        };
        assert_eq!(of(Some(Impact::Degraded), &[Down], false), Indicator::Degraded);
        assert_eq!(of(Some(Impact::Major), &[Up], true), Indicator::Major);
        assert_eq!(of(Some(Impact::None), &[Down, Up], true), Indicator::Partial);
        assert_eq!(of(None, &[Slow], true), Indicator::Degraded);
        assert_eq!(
            (of(None, &[Up], true), of(None, &[], true)),
            (Indicator::Maintenance, Indicator::Maintenance)
        );
    }

    #[test]
    fn a_persons_title_is_quoted_and_for_ours_the_monitors_are_asked() {
        use Indicator::{Degraded, Maintenance, Major, Operational, Partial};
        // Impacts by their first letters; those of incidents with a title of ours are capitals.
        let claim = |letter: char| {
            let impact = match letter.to_ascii_lowercase() {
                'n' => Impact::None,
                'd' => Impact::Degraded,
                'p' => Impact::Partial,
                'm' => Impact::Major,
                other => panic!("{other}"),
            };
            Claim { impact, is_ours: letter.is_ascii_uppercase() }
        };
        for (open, now, quoted_at) in [
            ("", Partial, None),
            ("n", Partial, None),
            ("p", Operational, Some(0)),
            ("ndpmp", Operational, Some(3)),
            ("dpp", Major, Some(1)),
            // Ours leave it to the monitors.
            ("P", Partial, None),
            ("M", Partial, None),
            ("P", Major, None),
            ("Pn", Partial, None),
            // None is seen down: it is not over all the same.
            ("P", Operational, Some(0)),
            ("PM", Maintenance, Some(1)),
            ("Pd", Degraded, Some(0)),
            ("P", Indicator::Unknown, Some(0)),
            // A person's that is as bad speaks first, and one that is worse anyway.
            ("Pp", Partial, Some(1)),
            ("Pp", Operational, Some(1)),
            ("Pm", Partial, Some(1)),
            ("Mp", Major, None),
            ("Mp", Partial, Some(1)),
            // What is down is worse than what a person told of.
            ("Pd", Partial, None),
        ] {
            assert_eq!(quoted(open.chars().map(claim), now), quoted_at, "{open} {now:?}");
        }
    }
}
