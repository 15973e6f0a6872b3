//! Heartbeat rules: the deadline for the next ping, moved by pings and, once, by the coordinator's absence; and the
//! run times of jobs.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::boxed_if_set::SharedDefault;
use crate::time::{DAY, MINUTE, Timestamp};

/// Number of pings stored for each monitor: the newest.
pub const MAX_STORED_PINGS: u64 = 10;
/// Maximum stored bytes of a ping's body; the rest is not read.
pub const MAX_STORED_BODY: usize = 10_000;
/// Maximum number of open runs of one job; one more evicts the oldest.
const MAX_OPEN_RUNS: usize = 8;
/// Runs longer than this, in milliseconds, are not measured.
const MAX_RUN_DURATION: i64 = 3 * DAY;
/// Extra milliseconds a job gets after the coordinator returns, in addition to its grace period and the time away:
/// clients retry a lost ping with increasing backoff.
const RETRY_ALLOWANCE: i64 = 5 * MINUTE;

/// Kind of ping that a job sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PingKind {
    /// The job ran.
    Succeeded,
    /// The job started; the deadline stays.
    Started,
    /// The job failed, with its exit code if it gave one.
    Failed(Option<u8>),
    /// A log entry; nothing changes.
    Log,
}

/// Ping as stored and shown to the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPing {
    /// Sequence number within the monitor, from 1.
    pub number: u64,
    /// Time of arrival.
    pub at: Timestamp,
    /// Kind of ping.
    pub kind: PingKind,
    /// Id of the run, if the ping named one.
    pub run: Option<u128>,
    /// Duration of the run that the ping ended, in milliseconds, if its start was reported.
    pub run_ms: Option<u64>,
    /// HTTP method of the request.
    pub method: String,
    /// Client IP: the job's host, or the proxy in front of the coordinator.
    pub client_ip: Option<IpAddr>,
    /// User agent of the client.
    pub user_agent: String,
    /// First bytes of the body, at most [`MAX_STORED_BODY`].
    pub body: Vec<u8>,
}

/// Result of processing a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingReceipt {
    /// Sequence number.
    pub number: u64,
    /// Duration of the run that it ended, in milliseconds.
    pub run_ms: Option<u64>,
}

/// Deadline extension because the coordinator was away when the ping may have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlineExtension {
    /// Time at which the coordinator was last known to run.
    pub away_from: Timestamp,
    /// Time at which it was back.
    pub away_until: Timestamp,
    /// Previous deadline.
    pub before: Timestamp,
    /// New deadline: always later.
    pub deadline: Timestamp,
}

/// State of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatState {
    /// Time of the last ping.
    pub last_ping: Option<Timestamp>,
    /// Deadline for the next ping; none before the first one.
    pub deadline: Option<Timestamp>,
    /// Set if the deadline was extended for the coordinator's absence since the last ping.
    pub extended: bool,
    /// Number of pings of every kind.
    pub ping_count: u64,
    /// Open runs, oldest first, each with its id if it has one and its start.
    pub open_runs: Vec<(Option<u128>, Timestamp)>,
    /// Duration of the newest measured run, in milliseconds.
    pub last_run_ms: Option<u64>,
}

impl SharedDefault for HeartbeatState {
    const DEFAULT: &'static Self = &Self {
        last_ping: None,
        deadline: None,
        extended: false,
        ping_count: 0,
        open_runs: Vec::new(),
        last_run_ms: None,
    };
}

impl HeartbeatState {
    /// Applies a ping: the next is due after the period and the grace, both in milliseconds.
    pub fn set_deadline(&mut self, at: Timestamp, period: i64, grace: i64) {
        self.last_ping = Some(at);
        self.deadline = Some(at + period + grace);
        self.extended = false;
    }

    /// Sets the deadline of a job that is watched again after a pause: a period and the grace, both in milliseconds. The
    /// pings of the pause moved nothing. A job that never reported a run has no deadline before its first one. Returns
    /// false if the deadline stays.
    pub fn set_deadline_after_pause(&mut self, now: Timestamp, period: i64, grace: i64) -> bool {
        let is_missing = self.last_ping.is_some() && self.deadline.is_none();
        if is_missing {
            self.deadline = Some(now + period + grace);
            self.extended = false;
        }
        is_missing
    }

    /// Counts a ping and measures the run that it starts or ends. A run with an id is ended only by that id.
    pub fn count(&mut self, kind: PingKind, run: Option<u128>, at: Timestamp) -> PingReceipt {
        self.ping_count = self.ping_count.saturating_add(1);
        let open = self.open_runs.iter().rposition(|(name, _)| *name == run);
        let run_ms = match kind {
            PingKind::Log => None,
            PingKind::Started => {
                open.map(|open| self.open_runs.remove(open));
                if self.open_runs.len() >= MAX_OPEN_RUNS {
                    self.open_runs.remove(0);
                }
                self.open_runs.push((run, at));
                None
            }
            PingKind::Succeeded | PingKind::Failed(_) => open
                .map(|open| at.since(self.open_runs.remove(open).1))
                .filter(|took| *took < MAX_RUN_DURATION)
                .map(|took| took.max(0).unsigned_abs()),
        };
        self.last_run_ms = run_ms.or(self.last_run_ms);
        PingReceipt { number: self.ping_count, run_ms }
    }

    /// Applies the duration that the job itself reported for the run, in milliseconds: more accurate than the time
    /// between two pings.
    pub fn apply_reported_duration(
        &mut self,
        kind: PingKind,
        stated_ms: Option<u64>,
        receipt: PingReceipt,
    ) -> PingReceipt {
        let is_end = matches!(kind, PingKind::Succeeded | PingKind::Failed(_));
        let stated = stated_ms.filter(|took| is_end && *took < MAX_RUN_DURATION.unsigned_abs());
        self.last_run_ms = stated.or(self.last_run_ms);
        PingReceipt { run_ms: stated.or(receipt.run_ms), ..receipt }
    }

    /// Extends the deadline if the coordinator was away, from `from` to `now`, at some time between the last tenth of
    /// the period and the deadline, so that a ping may have been lost. The new deadline is `now` plus the grace, the
    /// time away and five minutes, at most one period. It is never moved earlier, and at most once between two pings.
    /// `period` and `grace` are in milliseconds. Returns none if the deadline stays.
    pub fn extend_for_absence(
        &mut self,
        from: Timestamp,
        now: Timestamp,
        period: i64,
        grace: i64,
    ) -> Option<DeadlineExtension> {
        let (last, before) = (self.last_ping?, self.deadline?);
        let expected = last + (period - period / 10);
        if self.extended || from >= before || now <= expected {
            return None;
        }
        let away = now.since(from).max(0);
        let more = grace.saturating_add(away).saturating_add(RETRY_ALLOWANCE).min(period);
        let deadline = Some(now + more).filter(|deadline| *deadline > before)?;
        self.deadline = Some(deadline);
        self.extended = true;
        Some(DeadlineExtension { away_from: from, away_until: now, before, deadline })
    }

    /// Extends the deadline when the wall clock jumps forward, so that the job has its full time. Returns false if no
    /// ping is due.
    pub fn extend_for_clock_jump(&mut self, jump: i64) -> bool {
        self.deadline = self.deadline.map(|deadline| deadline + jump);
        self.deadline.is_some() && jump > 0
    }

    /// Adjusts the deadline, if there is one, to changed settings. Both are milliseconds from the ping (or from the
    /// coordinator's return) to the deadline.
    pub fn adjust_deadline(&mut self, before: i64, after: i64) {
        self.deadline = self.deadline.map(|deadline| deadline - before + after);
    }

    /// Returns true if the ping is overdue.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
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

    fn pinged() -> HeartbeatState {
        let mut pulse = HeartbeatState::default();
        pulse.set_deadline(at(0), 60 * MINUTE, 5 * MINUTE);
        pulse
    }

    #[test]
    fn a_ping_sets_the_deadline_to_period_and_grace_later() {
        assert_eq!(pinged().deadline, Some(at(65)));
        assert!(!pinged().is_overdue(at(64)));
        assert!(pinged().is_overdue(at(65)));
    }

    #[test]
    fn a_job_that_is_watched_again_has_a_period_and_the_grace_from_then() {
        let mut pulse = HeartbeatState { deadline: None, extended: true, ..pinged() };
        assert!(pulse.set_deadline_after_pause(at(500), 60 * MINUTE, 5 * MINUTE));
        assert_eq!((pulse.deadline, pulse.extended), (Some(at(565)), false));
        assert!(!pulse.set_deadline_after_pause(at(520), 60 * MINUTE, 5 * MINUTE), "only one that is missing");
        let mut never = HeartbeatState::default();
        assert!(!never.set_deadline_after_pause(at(500), 60 * MINUTE, 5 * MINUTE));
        assert_eq!(never, HeartbeatState::default(), "nothing is late before the first ping");
    }

    #[test]
    fn an_absence_of_the_coordinator_moves_the_deadline_once() {
        let mut pulse = pinged();
        let moved = pulse.extend_for_absence(at(50), at(70), 60 * MINUTE, 5 * MINUTE);
        let wanted = DeadlineExtension { away_from: at(50), away_until: at(70), before: at(65), deadline: at(100) };
        assert_eq!((moved, pulse.deadline), (Some(wanted), Some(at(100))));
        assert_eq!(pulse.extend_for_absence(at(95), at(140), 60 * MINUTE, 5 * MINUTE), None);
        assert_eq!(pulse.deadline, Some(at(100)), "only once between two pings");
        pulse.set_deadline(at(141), 60 * MINUTE, 5 * MINUTE);
        assert!(pulse.extend_for_absence(at(200), at(201), 60 * MINUTE, 5 * MINUTE).is_some());
    }

    #[test]
    fn an_absence_moves_the_deadline_by_its_own_length_and_never_by_more_than_a_period() {
        // Time away from and until, in minutes after a ping; the new deadline, if moved. Period 60 min, grace 5 min.
        for (from, until, deadline) in [
            // A short restart in the last tenth: grace, time away and five minutes from the return.
            (55, 56, Some(67)),
            (63, 64, Some(75)),
            // Before that no ping was expected.
            (10, 53, None),
            (10, 54, None),
            (40, 55, Some(80)),
            // However long the coordinator was away, one period is enough.
            (1, 70, Some(130)),
            // The ping was overdue before the coordinator was away.
            (65, 80, None),
        ] {
            let mut pulse = pinged();
            let moved = pulse.extend_for_absence(at(from), at(until), 60 * MINUTE, 5 * MINUTE);
            assert_eq!(moved.map(|moved| moved.deadline), deadline.map(at), "{from} to {until}");
            assert_eq!(pulse.deadline, deadline.map(at).or(Some(at(65))), "{from} to {until}");
            assert_eq!(pulse.extended, deadline.is_some());
        }
    }

    #[test]
    fn a_restart_long_before_the_deadline_uses_up_no_extension() {
        let (day, hour) = (24 * 60 * MINUTE, 60 * MINUTE);
        let mut pulse = HeartbeatState::default();
        pulse.set_deadline(at(0), day, 2 * hour);
        assert_eq!(pulse.extend_for_absence(at(22 * 60), at(22 * 60 + 1), day, 2 * hour), None);
        let late = pulse.extend_for_absence(at(26 * 60 - 3), at(26 * 60 - 2), day, 2 * hour);
        assert_eq!(late.map(|moved| moved.deadline), Some(at(28 * 60 + 4)));
    }

    #[test]
    fn an_absence_long_before_the_expected_ping_moves_nothing() {
        let mut pulse = pinged();
        assert_eq!(pulse.extend_for_absence(at(10), at(40), 60 * MINUTE, 5 * MINUTE), None);
        assert_eq!(pulse.deadline, Some(at(65)));
    }

    #[test]
    fn a_run_is_measured_from_its_start_to_its_end_by_its_name() {
        let mut pulse = HeartbeatState::default();
        pulse.count(PingKind::Started, Some(7), at(0));
        pulse.count(PingKind::Started, None, at(1));
        assert_eq!(pulse.count(PingKind::Log, Some(7), at(2)), PingReceipt { number: 3, run_ms: None });
        assert_eq!(pulse.count(PingKind::Succeeded, Some(9), at(3)).run_ms, None, "that run never started");
        assert_eq!(pulse.count(PingKind::Failed(Some(1)), Some(7), at(4)).run_ms, Some(4 * 60_000));
        assert_eq!(pulse.count(PingKind::Succeeded, None, at(6)).run_ms, Some(5 * 60_000));
        assert_eq!((pulse.open_runs.len(), pulse.last_run_ms), (0, Some(5 * 60_000)));
    }

    #[test]
    fn the_duration_reported_by_the_job_takes_precedence() {
        let mut pulse = HeartbeatState::default();
        let mut apply = |kind, minute, stated| {
            let receipt = pulse.count(kind, None, at(minute));
            (pulse.apply_reported_duration(kind, stated, receipt).run_ms, pulse.last_run_ms)
        };
        assert_eq!(apply(PingKind::Started, 0, Some(7)), (None, None), "nothing ended");
        assert_eq!(apply(PingKind::Succeeded, 1, Some(1500)), (Some(1500), Some(1500)));
        assert_eq!(apply(PingKind::Failed(None), 2, Some(0)), (Some(0), Some(0)));
        assert_eq!(apply(PingKind::Succeeded, 3, None), (None, Some(0)));
        let days = MAX_RUN_DURATION.unsigned_abs();
        assert_eq!(apply(PingKind::Succeeded, 4, Some(days)), (None, Some(0)), "too long to be measured");
    }

    #[test]
    fn a_run_of_three_days_is_not_measured_and_open_runs_are_bounded() {
        let mut pulse = HeartbeatState::default();
        for run in 0..20 {
            pulse.count(PingKind::Started, Some(run), at(0));
        }
        assert_eq!(pulse.open_runs.len(), MAX_OPEN_RUNS);
        assert_eq!(pulse.count(PingKind::Succeeded, Some(0), at(1)).run_ms, None, "it was evicted");
        assert_eq!(pulse.count(PingKind::Succeeded, Some(19), at(3 * 24 * 60)).run_ms, None);
    }
}
