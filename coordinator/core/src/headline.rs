//! The page's headline: one word for how all of its monitors are.

use crate::event::Status;

/// How a page is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indicator {
    /// Nothing is known of any monitor, or there is none.
    Unknown,
    /// Nothing is wrong.
    Operational,
    /// Some monitor is slow.
    Degraded,
    /// Some monitors are down.
    Partial,
    /// Every monitor is down.
    Major,
}

impl Indicator {
    /// Every indicator, in its order.
    pub const ALL: [Self; 5] = [Self::Unknown, Self::Operational, Self::Degraded, Self::Partial, Self::Major];

    /// What comes of the monitors' statuses: all down, else some down, else some slow, else all unknown.
    pub fn of(statuses: impl IntoIterator<Item = Status>) -> Self {
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
        if unknown == all {
            Self::Unknown
        } else if down == all {
            Self::Major
        } else if down > 0 {
            Self::Partial
        } else if slow > 0 {
            Self::Degraded
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
            assert_eq!(Indicator::of(statuses.clone()), indicator, "{statuses:?}");
        }
    }
}
