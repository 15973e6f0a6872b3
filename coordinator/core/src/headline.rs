//! The page's headline: one word for how all of its monitors are.

use crate::event::Status;
use crate::incident::Impact;

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
}
