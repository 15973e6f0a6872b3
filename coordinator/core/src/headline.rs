//! The page's headline: one indicator that summarizes all of its monitors.

use std::cmp::Reverse;

use crate::event::MonitorStatus;
use crate::id::MonitorId;
use crate::incident::{Impact, Incident};

/// Headline of a page whose monitors are no longer checked.
pub const STALE: &str = "Monitoring is currently unavailable";

/// The overall status of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indicator {
    /// There are no monitors, no data on any of them, or no agents to check them.
    Unknown,
    /// No problem.
    Operational,
    /// Some monitor is slow.
    Degraded,
    /// Some monitors are down.
    Partial,
    /// Every monitor is down.
    Major,
    /// No problem, and a maintenance window is running.
    Maintenance,
}

impl Indicator {
    /// Every indicator, in order.
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Operational, Self::Degraded, Self::Partial, Self::Major, Self::Maintenance];

    /// Computes the indicator from the worst impact of an open incident (an impact of none is ignored); else
    /// from the monitors outside windows: all down, some down, some slow; else from a running window; else
    /// from whether there is data.
    pub fn of(incident: Option<Impact>, statuses: impl IntoIterator<Item = MonitorStatus>, maintained: bool) -> Self {
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
                MonitorStatus::Unknown => unknown += 1,
                MonitorStatus::Up => {}
                MonitorStatus::Slow => slow += 1,
                MonitorStatus::Down => down += 1,
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

    /// Headline in English.
    pub const fn headline(self) -> &'static str {
        match self {
            Self::Unknown => "No data yet",
            Self::Operational => "All systems operational",
            Self::Degraded => "Some systems are slow",
            Self::Partial => "Some systems are down",
            Self::Major => "All systems are down",
            Self::Maintenance => "Maintenance in progress",
        }
    }
}

/// An open incident's contribution to the headline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadlineCandidate {
    /// Impact.
    pub impact: Impact,
    /// True if its title was generated: it names the monitors that went down, which need not be those that
    /// are down now.
    pub has_generated_title: bool,
}

impl HeadlineCandidate {
    /// Builds the claim of an incident, given its monitors that still exist: id, name, and the monitor's own
    /// impact.
    pub fn of(incident: &Incident, monitors: &[(MonitorId, String, Option<Impact>)]) -> Self {
        // If a person lowered the impact below an outage, their judgement counts.
        let is_ours =
            incident.impact >= Impact::Partial && incident.has_generated_title(incident.first_monitor_name(monitors));
        Self { impact: incident.impact, has_generated_title: is_ours }
    }
}

/// Index of the open incident that the headline quotes; none if the headline follows the monitors.
///
/// It is the worst one; among equals a person's comes before one with a generated title, then the first. A
/// generated title may be out of date: while monitors are seen down (`now`), the headline follows the
/// monitors, or quotes a person's incident that is at least as bad. If none is seen down (maintenance, or no
/// agents), the incident is quoted after all.
pub fn quoted_incident(open: impl IntoIterator<Item = HeadlineCandidate>, now: Indicator) -> Option<usize> {
    let open: Vec<(usize, HeadlineCandidate)> = open.into_iter().enumerate().collect();
    let counted = || open.iter().filter(|(_, claim)| claim.impact > Impact::None);
    let rank = |(_, claim): &&(usize, HeadlineCandidate)| (Reverse(claim.impact), claim.has_generated_title);
    let (worst, claim) = counted().min_by_key(rank)?;
    let as_bad = match now {
        Indicator::Major if claim.has_generated_title => Impact::Major,
        Indicator::Partial if claim.has_generated_title => Impact::Partial,
        _ => return Some(*worst),
    };
    let others = counted().filter(|(_, claim)| !claim.has_generated_title && claim.impact >= as_bad);
    others.min_by_key(rank).map(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_the_worst_true_state() {
        use MonitorStatus::{Down, Slow, Unknown, Up};
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
    fn an_incident_precedes_and_a_window_follows_in_the_headline() {
        use MonitorStatus::{Down, Slow, Up};
        let of = |incident, statuses: &[MonitorStatus], maintained| {
            Indicator::of(incident, statuses.iter().copied(), maintained)
        };
        assert_eq!(of(Some(Impact::Degraded), &[Down], false), Indicator::Degraded);
        assert_eq!(of(Some(Impact::Major), &[Up], true), Indicator::Major);
        assert_eq!(of(Some(Impact::None), &[Down, Up], true), Indicator::Partial);
        assert_eq!(of(None, &[Slow], true), Indicator::Degraded);
        assert_eq!((of(None, &[Up], true), of(None, &[], true)), (Indicator::Maintenance, Indicator::Maintenance));
    }

    #[test]
    fn a_persons_title_is_quoted_and_a_generated_one_lists_the_monitors() {
        use Indicator::{Degraded, Maintenance, Major, Operational, Partial};
        // Impacts by their first letters; capitals are incidents with a generated title.
        let claim = |letter: char| {
            let impact = match letter.to_ascii_lowercase() {
                'n' => Impact::None,
                'd' => Impact::Degraded,
                'p' => Impact::Partial,
                'm' => Impact::Major,
                other => panic!("{other}"),
            };
            HeadlineCandidate { impact, has_generated_title: letter.is_ascii_uppercase() }
        };
        for (open, now, quoted_at) in [
            ("", Partial, None),
            ("n", Partial, None),
            ("p", Operational, Some(0)),
            ("ndpmp", Operational, Some(3)),
            ("dpp", Major, Some(1)),
            // Generated titles give way to the monitors.
            ("P", Partial, None),
            ("M", Partial, None),
            ("P", Major, None),
            ("Pn", Partial, None),
            // No monitor is seen down: the incident is still open.
            ("P", Operational, Some(0)),
            ("PM", Maintenance, Some(1)),
            ("Pd", Degraded, Some(0)),
            ("P", Indicator::Unknown, Some(0)),
            // A person's incident that is as bad is quoted first, and so is any that is worse.
            ("Pp", Partial, Some(1)),
            ("Pp", Operational, Some(1)),
            ("Pm", Partial, Some(1)),
            ("Mp", Major, None),
            ("Mp", Partial, Some(1)),
            // The monitors are in a worse state than the person's incident says.
            ("Pd", Partial, None),
        ] {
            assert_eq!(quoted_incident(open.chars().map(claim), now), quoted_at, "{open} {now:?}");
        }
    }
}
