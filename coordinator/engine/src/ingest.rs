//! Admission of observations: accepts one, corrects its time, or drops it with a reason.

use parallax_core::observation::Observation;
use parallax_core::time::{DAY, MINUTE, Timestamp};

/// Milliseconds that an observation may begin in the future before its time is corrected.
const MAX_AHEAD: i64 = 2 * MINUTE;
/// Age from which an observation is useless even to history: raw readings are kept 30 days.
const MAX_AGE: i64 = 30 * DAY;

/// Reason for dropping an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// No monitor has that slot (any more).
    UnknownMonitor,
    /// Older than history goes back.
    TooOld,
}

/// Makes an observation fit to be judged. A start in the future becomes now; an end before the start becomes the
/// start.
pub(crate) fn admit(mut observation: Observation, now: Timestamp) -> Result<Observation, DropReason> {
    if now.since(observation.started) > MAX_AGE {
        return Err(DropReason::TooOld);
    }
    let length = observation.ended.since(observation.started).max(0);
    if observation.started.since(now) > MAX_AHEAD {
        observation.started = now;
    }
    observation.ended = observation.started + length;
    Ok(observation)
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{Measurements, ProbeOutcome};
    use parallax_core::vantage::{NetworkNo, Region, VantageNo};

    use super::*;

    fn observation(started: i64, ended: i64) -> Observation {
        Observation {
            revision: 1,
            region: Region::Asia,
            vantage: VantageNo(1),
            network: NetworkNo(1),
            round: Some(7),
            started: Timestamp::from_millis(started),
            ended: Timestamp::from_millis(ended),
            outcome: ProbeOutcome::Passed(Measurements::default()),
        }
    }

    #[test]
    fn a_start_in_the_future_becomes_now_and_keeps_its_length() {
        let now = Timestamp::from_millis(100 * DAY);
        let admitted = admit(observation(101 * DAY, 101 * DAY + 40), now).unwrap();
        assert_eq!((admitted.started, admitted.ended), (now, now + 40));
    }

    #[test]
    fn an_end_before_the_start_is_corrected_and_an_old_observation_dropped() {
        let now = Timestamp::from_millis(100 * DAY);
        let admitted = admit(observation(100 * DAY - 50, 100 * DAY - 90), now).unwrap();
        assert_eq!(admitted.ended, admitted.started);
        assert_eq!(admit(observation(69 * DAY, 69 * DAY), now), Err(DropReason::TooOld));
    }
}
