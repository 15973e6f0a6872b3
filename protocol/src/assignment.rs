//! Assignments: the monitors that one agent checks, and changes to them.

use crate::check::WireCheckSpec;
use crate::error::ProtocolError;
use crate::frame::MAX_FRAME;
use crate::id::WireMonitorId;
use serde::{Deserialize, Serialize};

/// A monitor as one agent checks it.
///
/// Rounds are numbered by time: round `r` begins at `offset_ms + r * interval_ms`. The agent runs those with
/// `r % every == turn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The monitor.
    pub monitor: WireMonitorId,
    /// The monitor's dense number in packed results, valid within one [`ScheduleChange::slot_epoch`].
    pub slot: u32,
    /// Revision of the specification; results name it.
    pub revision: u32,
    /// Check to run.
    pub spec: WireCheckSpec,
    /// Length of a round in ms, at least 1000.
    pub interval_ms: u32,
    /// Start of round 0 in ms after the epoch, less than `interval_ms`.
    pub offset_ms: u32,
    /// The agent runs every n-th round, n at least 1.
    pub every: u32,
    /// Round that this agent runs out of each `every`; less than `every`.
    pub turn: u32,
    /// Opaque number of the monitor's account; [`crate::fair_slots::UNKNOWN_ACCOUNT`] if none was sent. From
    /// version 2 on it is sent separately, in [`ScheduleChange::accounts`].
    #[serde(skip)]
    pub account: u32,
}

impl Assignment {
    /// Shortest interval that is accepted, in ms.
    pub const MIN_INTERVAL_MS: u32 = 1000;

    /// Checks the bounds that the fields' documentation states.
    ///
    /// # Errors
    /// [`ProtocolError::Invalid`] naming the field.
    pub fn validate(&self) -> Result<(), ProtocolError> {
        let invalid = |field, rule| Err(ProtocolError::Invalid { field, rule });
        if self.interval_ms < Self::MIN_INTERVAL_MS {
            return invalid("assignment.interval_ms", "must be at least 1000");
        }
        if self.offset_ms >= self.interval_ms {
            return invalid("assignment.offset_ms", "must be less than the interval");
        }
        if self.every == 0 {
            return invalid("assignment.every", "must be at least 1");
        }
        if self.turn >= self.every {
            return invalid("assignment.turn", "must be less than every");
        }
        Ok(())
    }

    /// Returns the round that runs at `now_ms` (epoch ms by the coordinator's clock); 0 before the first.
    pub fn round_at(&self, now_ms: i64) -> u64 {
        let since = now_ms.saturating_sub(i64::from(self.offset_ms)).max(0);
        since.unsigned_abs() / u64::from(self.interval_ms.max(1))
    }

    /// Start of `round`, epoch ms by the coordinator's clock.
    pub fn round_start_ms(&self, round: u64) -> i64 {
        let start = round.saturating_mul(u64::from(self.interval_ms)).saturating_add(u64::from(self.offset_ms));
        i64::try_from(start).unwrap_or(i64::MAX)
    }

    /// Returns true if `round` is one of this agent's.
    pub fn is_own(&self, round: u64) -> bool {
        round % u64::from(self.every.max(1)) == u64::from(self.turn)
    }

    /// Returns the first own round at or after `round`.
    pub fn own_round_from(&self, round: u64) -> u64 {
        let every = u64::from(self.every.max(1));
        let ahead = (u64::from(self.turn) + every - round % every) % every;
        round.saturating_add(ahead)
    }
}

/// A change to an agent's schedule, a whole schedule, or a part of either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleChange {
    /// Epoch of the slot numbering. The coordinator keeps it over a restart only if it keeps every slot's
    /// meaning; within one epoch a slot never comes to mean another monitor.
    pub slot_epoch: u64,
    /// Revision that this change applies to; `None` for a snapshot, which replaces everything.
    pub base: Option<u64>,
    /// Revision after the change.
    pub revision: u64,
    /// Assignments added or replaced.
    pub put: Vec<Assignment>,
    /// Monitors no longer assigned.
    pub drop: Vec<WireMonitorId>,
    /// True if further parts with the same `slot_epoch`, `base` and `revision` follow. A change takes effect with
    /// its last part.
    pub has_more: bool,
}

impl ScheduleChange {
    /// Maximum number of assignments and removals in one change, over all its parts.
    pub const MAX_ENTRIES: usize = 200_000;

    /// Splits a change into parts that each fit a frame. A change that fits stays one part.
    ///
    /// # Errors
    /// [`ProtocolError::FrameTooLong`] when a single assignment does not fit a frame.
    pub fn split(self) -> Result<Vec<Self>, ProtocolError> {
        // Bytes of a frame besides the entries: message tag, header fields, two lengths.
        const ROOM: usize = MAX_FRAME - 64;
        const DROP_BYTES: usize = 19;
        const ACCOUNT_BYTES: usize = 5;
        let (slot_epoch, base, revision) = (self.slot_epoch, self.base, self.revision);
        let fresh = move || Self { slot_epoch, base, revision, put: Vec::new(), drop: Vec::new(), has_more: true };
        let mut parts = Vec::new();
        let mut part = fresh();
        let mut used = 0;
        for assignment in self.put {
            let size = postcard::experimental::serialized_size(&assignment).map_err(|_| ProtocolError::Unencodable)?
                + ACCOUNT_BYTES;
            if size > ROOM {
                return Err(ProtocolError::FrameTooLong { length: size, limit: ROOM });
            }
            if used + size > ROOM {
                parts.push(std::mem::replace(&mut part, fresh()));
                used = 0;
            }
            used += size;
            part.put.push(assignment);
        }
        for monitor in self.drop {
            if used + DROP_BYTES > ROOM {
                parts.push(std::mem::replace(&mut part, fresh()));
                used = 0;
            }
            used += DROP_BYTES;
            part.drop.push(monitor);
        }
        part.has_more = false;
        parts.push(part);
        Ok(parts)
    }

    /// The accounts of `put`, in its order.
    pub fn accounts(&self) -> Vec<u32> {
        self.put.iter().map(|assignment| assignment.account).collect()
    }

    /// Sets the accounts of `put`, in its order.
    ///
    /// # Errors
    /// [`ProtocolError::Invalid`] if the count differs; nothing is changed then.
    pub fn set_accounts(&mut self, accounts: &[u32]) -> Result<(), ProtocolError> {
        if accounts.len() != self.put.len() {
            let rule = "must have one entry for each assignment";
            return Err(ProtocolError::Invalid { field: "schedule.accounts", rule });
        }
        for (assignment, account) in self.put.iter_mut().zip(accounts) {
            assignment.account = *account;
        }
        Ok(())
    }
}

/// Reassembles a change from its parts.
#[derive(Debug, Default)]
pub struct ScheduleChangeAssembler {
    waiting: Option<ScheduleChange>,
}

impl ScheduleChangeAssembler {
    /// Takes the next part; returns the whole change with its last one. Every assignment is checked.
    ///
    /// # Errors
    /// [`ProtocolError::Invalid`] for a part that does not belong to the previous one, for too many entries,
    /// or for an assignment out of bounds. The parts collected so far are dropped then.
    pub fn push(&mut self, part: ScheduleChange) -> Result<Option<ScheduleChange>, ProtocolError> {
        let invalid = |field, rule| Err(ProtocolError::Invalid { field, rule });
        for assignment in &part.put {
            if let Err(error) = assignment.validate() {
                self.waiting = None;
                return Err(error);
            }
        }
        let more = part.has_more;
        let whole = match self.waiting.take() {
            None => part,
            Some(mut whole) => {
                if (whole.slot_epoch, whole.base, whole.revision) != (part.slot_epoch, part.base, part.revision) {
                    return invalid("schedule", "a part belongs to another change");
                }
                whole.put.extend(part.put);
                whole.drop.extend(part.drop);
                whole
            }
        };
        if whole.put.len() + whole.drop.len() > ScheduleChange::MAX_ENTRIES {
            return invalid("schedule", "must have at most 200000 entries");
        }
        if more {
            self.waiting = Some(whole);
            return Ok(None);
        }
        Ok(Some(ScheduleChange { has_more: false, ..whole }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::WireTcpCheck;

    fn assignment(n: u32) -> Assignment {
        Assignment {
            monitor: WireMonitorId(u128::from(n)),
            slot: n,
            revision: 1,
            spec: WireCheckSpec::Tcp(WireTcpCheck { host: "h".repeat(2000), port: 80 }),
            interval_ms: 60_000,
            offset_ms: 7_000,
            every: 3,
            turn: 2,
            account: n,
        }
    }

    #[test]
    fn rounds_follow_the_clock_and_the_turn() {
        let a = assignment(1);
        assert_eq!(a.round_at(66_999), 0);
        assert_eq!(a.round_at(67_000), 1);
        assert_eq!(a.round_start_ms(1), 67_000);
        assert_eq!(a.round_at(-5), 0);
        assert_eq!(a.own_round_from(0), 2);
        assert_eq!(a.own_round_from(2), 2);
        assert_eq!(a.own_round_from(3), 5);
        assert!(a.is_own(5) && !a.is_own(6));
    }

    #[test]
    fn a_large_change_is_split_into_frames_and_reassembled() {
        let whole = ScheduleChange {
            slot_epoch: 9,
            base: None,
            revision: 4,
            put: (0..2000).map(assignment).collect(),
            drop: vec![WireMonitorId(u128::MAX)],
            has_more: false,
        };
        let parts = whole.clone().split().unwrap();
        assert!(parts.len() > 3);
        let mut collected = ScheduleChangeAssembler::default();
        let mut done = None;
        for part in parts {
            let accounts = vec![u32::MAX; part.put.len()];
            let frame = crate::message::ToAgent::ScheduleByAccount { change: part.clone(), accounts };
            assert!(crate::frame::encode(&frame, MAX_FRAME).is_ok());
            assert!(done.is_none());
            done = collected.push(part).unwrap();
        }
        assert_eq!(done, Some(whole));
    }

    #[test]
    fn a_part_of_another_change_is_refused() {
        let part = |revision, more| ScheduleChange {
            slot_epoch: 1,
            base: None,
            revision,
            put: vec![],
            drop: vec![],
            has_more: more,
        };
        let mut collected = ScheduleChangeAssembler::default();
        assert_eq!(collected.push(part(1, true)), Ok(None));
        assert!(collected.push(part(2, false)).is_err());
        assert!(collected.push(part(2, false)).unwrap().is_some());
    }

    #[test]
    fn accounts_are_sent_separately_for_older_peers() {
        let change = ScheduleChange {
            slot_epoch: 1,
            base: None,
            revision: 1,
            put: (1..=3).map(assignment).collect(),
            drop: vec![],
            has_more: false,
        };
        let bytes = postcard::to_stdvec(&change).unwrap();
        let mut read: ScheduleChange = postcard::from_bytes(&bytes).unwrap();
        assert!(read.put.iter().all(|assignment| assignment.account == 0));
        assert!(read.set_accounts(&[1, 2]).is_err());
        read.set_accounts(&change.accounts()).unwrap();
        assert_eq!(read, change);
    }

    #[test]
    fn bounds_are_named() {
        let broken = Assignment { every: 0, ..assignment(1) };
        assert_eq!(broken.validate().unwrap_err().to_string(), "assignment.every: must be at least 1");
    }
}
