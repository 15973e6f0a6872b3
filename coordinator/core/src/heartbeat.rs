//! When a heartbeat is late: one stored deadline, moved by pings and, once, by our own absence.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What a job's ping said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beat {
    /// The job ran.
    Ran,
    /// The job began; the deadline stays.
    Started,
    /// The job failed, with its exit code if it gave one.
    Failed(Option<u8>),
    /// Something to note; nothing moves.
    Noted,
}

/// A heartbeat's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// When the last ping came.
    pub last: Option<Timestamp>,
    /// When it is down unless a ping comes; none before the first.
    pub deadline: Option<Timestamp>,
    /// The deadline was moved for our own absence since the last ping.
    pub excused: bool,
}

impl Pulse {
    /// A ping came: the next is due a period and the grace later. Both in milliseconds.
    pub fn ping(&mut self, at: Timestamp, period: i64, grace: i64) {
        *self = Self { last: Some(at), deadline: Some(at + period + grace), excused: false };
    }

    /// The coordinator was away from `from` to `now`: where a ping may have been missed by us, the job is given its
    /// period and grace anew, at most once between two pings.
    pub fn excuse(&mut self, from: Timestamp, now: Timestamp, period: i64, grace: i64) {
        let (Some(last), Some(deadline)) = (self.last, self.deadline) else { return };
        let expected = last + period / 10 * 9;
        if !self.excused && from < deadline && now > expected {
            self.deadline = Some(now + period + grace);
            self.excused = true;
        }
    }

    /// The settings changed: the deadline follows them.
    pub fn retime(&mut self, period: i64, grace: i64) {
        if let Some(last) = self.last {
            self.deadline = Some(last + period + grace);
        }
    }

    /// Whether the ping is missing by now.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MINUTE;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE)
    }

    fn pinged() -> Pulse {
        let mut pulse = Pulse::default();
        pulse.ping(at(0), 60 * MINUTE, 5 * MINUTE);
        pulse
    }

    #[test]
    fn a_ping_sets_the_deadline_to_period_and_grace_later() {
        assert_eq!(pinged().deadline, Some(at(65)));
        assert!(!pinged().is_late(at(64)));
        assert!(pinged().is_late(at(65)));
    }

    #[test]
    fn our_absence_around_the_expected_ping_moves_the_deadline_once() {
        let mut pulse = pinged();
        pulse.excuse(at(50), at(70), 60 * MINUTE, 5 * MINUTE);
        assert_eq!(pulse.deadline, Some(at(135)));
        pulse.excuse(at(130), at(140), 60 * MINUTE, 5 * MINUTE);
        assert_eq!(pulse.deadline, Some(at(135)), "only once between two pings");
    }

    #[test]
    fn an_absence_long_before_the_expected_ping_moves_nothing() {
        let mut pulse = pinged();
        pulse.excuse(at(10), at(40), 60 * MINUTE, 5 * MINUTE);
        assert_eq!(pulse.deadline, Some(at(65)));
    }
}
