//! Flapping: a monitor that changes back and forth so often that single changes are no longer worth an alert.
//!
//! Each aspect is counted separately, since one outage of a slow service is three changes of its status and no
//! flapping.

use serde::{Deserialize, Serialize};

use crate::event::AlertKind;
use crate::time::{MINUTE, Timestamp};

/// Number of changes within [`DETECTION_WINDOW`] that count as flapping: down, up, and down again.
pub const MIN_CHANGES: u32 = 3;
/// Milliseconds within which that many changes count as flapping.
pub const DETECTION_WINDOW: i64 = 30 * MINUTE;
/// Milliseconds without a change after which the monitor is stable again.
pub const STABLE_AFTER: i64 = 30 * MINUTE;

/// Aspect of a monitor's status that can flap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Aspect {
    /// Down and up.
    Availability,
    /// Slow and back to normal.
    Speed,
}

impl Aspect {
    /// Aspect that an alert is about.
    pub const fn of(kind: AlertKind) -> Self {
        match kind {
            AlertKind::WentDown | AlertKind::StillDown | AlertKind::Recovered => Self::Availability,
            AlertKind::WentSlow | AlertKind::BackToNormal => Self::Speed,
        }
    }
}

/// Current flapping of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flapping {
    /// Time of the first change.
    pub since: Timestamp,
    /// Number of changes.
    pub changes: u32,
}

impl Flapping {
    /// Returns true if the newest change is the one that started the flapping.
    pub const fn has_begun(&self) -> bool {
        self.changes == MIN_CHANGES
    }
}

/// End of a monitor's flapping: no change for [`STABLE_AFTER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlappingEnd {
    /// Aspect that was flapping.
    pub aspect: Aspect,
    /// All changes.
    pub flapping: Flapping,
    /// Time of the last change.
    pub last_change: Timestamp,
    /// Set if the last change was for the worse: down, or slow.
    pub is_bad: bool,
}

/// Newest announced changes of one aspect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AspectHistory {
    last_change: Option<Timestamp>,
    previous_change: Option<Timestamp>,
    is_bad: bool,
    flapping: Option<Flapping>,
}

/// Newest two announced changes of each aspect, from which flapping is detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlapHistory {
    availability: AspectHistory,
    speed: AspectHistory,
}

impl FlapHistory {
    /// Records a change announced at `now`, and returns the flapping it is part of. A still-down alert is no change,
    /// and an outage resets the speed aspect.
    pub fn record_change(&mut self, kind: AlertKind, now: Timestamp) -> Option<Flapping> {
        if kind == AlertKind::WentDown {
            self.speed = AspectHistory::default();
        }
        let track = self.track(Aspect::of(kind));
        if kind != AlertKind::StillDown {
            track.record_change(matches!(kind, AlertKind::WentDown | AlertKind::WentSlow), now);
        }
        track.flapping
    }

    /// Current flapping: of availability, otherwise of speed.
    pub fn flapping(&self) -> Option<Flapping> {
        self.of(Aspect::Availability).or(self.of(Aspect::Speed))
    }

    /// Current flapping of one aspect.
    pub const fn of(&self, aspect: Aspect) -> Option<Flapping> {
        match aspect {
            Aspect::Availability => self.availability.flapping,
            Aspect::Speed => self.speed.flapping,
        }
    }

    /// Time at which the monitor becomes stable again without further changes; none if nothing flaps.
    pub fn stable_at(&self) -> Option<Timestamp> {
        [self.availability, self.speed].iter().filter_map(AspectHistory::stable_at).min()
    }

    /// Ends the flapping that is over by `now` and returns it. Call again for the other aspect.
    pub fn end(&mut self, now: Timestamp) -> Option<FlappingEnd> {
        [Aspect::Availability, Aspect::Speed].into_iter().find_map(|aspect| {
            let track = self.track(aspect);
            let last = track.last_change.filter(|_| track.stable_at().is_some_and(|at| at <= now))?;
            let flapping = track.flapping.take()?;
            Some(FlappingEnd { aspect, flapping, last_change: last, is_bad: track.is_bad })
        })
    }

    /// Limits times in the future, left by a clock that went back, to now. Returns true if there was one.
    pub fn clamp_to(&mut self, now: Timestamp) -> bool {
        let before = *self;
        for track in [&mut self.availability, &mut self.speed] {
            let moments = [&mut track.last_change, &mut track.previous_change];
            moments.into_iter().flatten().for_each(|at| *at = now.min(*at));
            track.flapping.iter_mut().for_each(|flapping| flapping.since = now.min(flapping.since));
        }
        *self != before
    }

    /// Moves the change times after a step of the wall clock, so that they stay equally far in the past. The start of
    /// the flapping stays as announced.
    pub fn shift(&mut self, by: i64) {
        for track in [&mut self.availability, &mut self.speed] {
            let moments = [&mut track.last_change, &mut track.previous_change];
            moments.into_iter().flatten().for_each(|at| *at = *at + by);
        }
    }

    fn track(&mut self, aspect: Aspect) -> &mut AspectHistory {
        match aspect {
            Aspect::Availability => &mut self.availability,
            Aspect::Speed => &mut self.speed,
        }
    }
}

impl AspectHistory {
    fn record_change(&mut self, is_bad: bool, now: Timestamp) {
        let is_third = self.previous_change.filter(|before| now.since(*before) <= DETECTION_WINDOW);
        self.flapping = match self.flapping {
            Some(on) => Some(Flapping { changes: on.changes.saturating_add(1), ..on }),
            None => is_third.map(|since| Flapping { since, changes: MIN_CHANGES }),
        };
        (self.previous_change, self.last_change, self.is_bad) = (self.last_change, Some(now), is_bad);
    }

    fn stable_at(&self) -> Option<Timestamp> {
        self.last_change.filter(|_| self.flapping.is_some()).map(|last| last + STABLE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * MINUTE)
    }

    #[test]
    fn the_third_change_within_half_an_hour_is_flapping_until_half_an_hour_without_one() {
        use AlertKind::{Recovered, StillDown, WentDown};
        // Times of changes in minutes, and the number of changes in the flapping at each.
        for (changes, counts) in [
            (&[(0, WentDown), (30, Recovered)][..], &[0, 0][..]),
            (&[(0, WentDown), (10, Recovered), (30, WentDown)], &[0, 0, 3]),
            (&[(0, WentDown), (10, Recovered), (31, WentDown), (32, Recovered)], &[0, 0, 0, 3]),
            (&[(0, WentDown), (9, Recovered), (18, WentDown), (47, Recovered), (76, WentDown)], &[0, 0, 3, 4, 5]),
            (&[(0, WentDown), (5, StillDown), (10, StillDown), (15, Recovered)], &[0, 0, 0, 0]),
            (&[(0, WentDown), (1, Recovered), (2, WentDown), (7, StillDown)], &[0, 0, 3, 3]),
            (&[(0, WentDown), (1, Recovered), (2, WentDown), (32, Recovered), (33, WentDown)], &[0, 0, 3, 0, 0]),
        ] {
            let mut flaps = FlapHistory::default();
            let seen: Vec<u32> = changes
                .iter()
                .map(|(minute, kind)| {
                    flaps.end(at(*minute));
                    flaps.record_change(*kind, at(*minute)).map_or(0, |flapping| flapping.changes)
                })
                .collect();
            assert_eq!(seen, counts, "{changes:?}");
        }
    }

    #[test]
    fn its_end_says_how_it_is_and_comes_once() {
        use AlertKind::{BackToNormal, Recovered, WentDown, WentSlow};
        let mut flaps = FlapHistory::default();
        for (minute, kind) in [(0, WentDown), (1, Recovered), (2, WentSlow), (3, WentDown), (4, Recovered)] {
            flaps.record_change(kind, at(minute));
        }
        assert_eq!(flaps.flapping(), Some(Flapping { since: at(0), changes: 4 }));
        assert_eq!((flaps.stable_at(), flaps.end(at(33))), (Some(at(34)), None));
        let steady = FlappingEnd {
            aspect: Aspect::Availability,
            flapping: Flapping { since: at(0), changes: 4 },
            last_change: at(4),
            is_bad: false,
        };
        assert_eq!((flaps.end(at(34)), flaps.end(at(99)), flaps.stable_at()), (Some(steady), None, None));
        for (minute, kind) in [(40, WentSlow), (41, BackToNormal), (42, WentSlow)] {
            flaps.record_change(kind, at(minute));
        }
        let mut down = flaps;
        down.record_change(WentDown, at(43));
        assert_eq!((down.flapping(), down.stable_at()), (None, None), "an outage resets the speed aspect");
        assert!(flaps.end(at(72)).is_some_and(|steady| steady.aspect == Aspect::Speed && steady.is_bad));
    }

    #[test]
    fn a_step_of_the_clock_neither_begins_nor_ends_flapping() {
        use AlertKind::{Recovered, WentDown};
        for jump in [-20, 20] {
            // Two changes ten minutes apart, and the third nineteen minutes later, whatever the clock shows.
            let mut flaps = FlapHistory::default();
            flaps.record_change(WentDown, at(100));
            flaps.record_change(Recovered, at(110));
            flaps.shift(jump * MINUTE);
            let on = flaps.record_change(WentDown, at(129 + jump));
            assert_eq!(on, Some(Flapping { since: at(100 + jump), changes: 3 }), "{jump}");
            flaps.shift(-jump * MINUTE);
            assert_eq!((flaps.stable_at(), flaps.flapping()), (Some(at(159)), on), "{jump}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_does_not_prolong_flapping() {
        let mut flaps = FlapHistory::default();
        for minute in [600, 601, 602] {
            flaps.record_change(AlertKind::WentDown, at(minute));
        }
        assert!(!flaps.clamp_to(at(602)) && flaps.clamp_to(at(10)));
        assert_eq!(flaps.stable_at(), Some(at(40)));
        assert_eq!(flaps.record_change(AlertKind::Recovered, at(11)), Some(Flapping { since: at(10), changes: 4 }));
    }
}
