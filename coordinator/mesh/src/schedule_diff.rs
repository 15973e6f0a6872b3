//! Schedule changes per agent: the difference between its current share and what it was last sent.
//!
//! The sent share is not stored as a list. It follows from the schedule, the mesh and the vantage, so those are
//! stored instead, and an edit costs each session only the work for the edited monitors.

use std::collections::BTreeSet;
use std::sync::Arc;

use parallax_core::assign::{ScheduleShare, ScheduledMonitor};
use parallax_core::id::MonitorId;
use parallax_core::vantage::{Mesh, VantageNo};
use parallax_engine::{Capabilities, MonitorSchedule};

use super::shares::ShareCalculator;

/// Inputs that determine a vantage's share.
#[derive(Debug, Clone, Default)]
pub(super) struct ShareInputs {
    /// The vantage; `None` for an empty share.
    pub(super) vantage: Option<VantageNo>,
    /// The schedule.
    pub(super) schedule: MonitorSchedule,
    /// The connected vantages.
    pub(super) mesh: Arc<Mesh>,
    /// Check types that each vantage can run.
    pub(super) capabilities: Arc<Capabilities>,
}

/// The share last sent to one agent; it outlives the connection.
#[derive(Debug)]
pub(super) struct SentSchedule {
    revision: u64,
    sent: ShareInputs,
}

/// A schedule change to send, after which an agent holds its current share.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScheduleDifference {
    /// The revision it applies to; `None` for a snapshot, which replaces everything.
    pub(super) base: Option<u64>,
    /// The revision after it.
    pub(super) revision: u64,
    /// Added or replaced monitors.
    pub(super) put: Vec<(Arc<ScheduledMonitor>, ScheduleShare)>,
    /// Monitors that the agent must no longer run.
    pub(super) drop: Vec<MonitorId>,
}

impl SentSchedule {
    /// Starts with nothing sent. Revisions count up from `start`, which must be greater than any revision that an
    /// earlier process sent (its start time in ms serves). Then a revision always names the same content.
    pub(super) fn new(start: u64) -> Self {
        Self { revision: start, sent: ShareInputs::default() }
    }

    /// Returns the revision last sent.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the change for an agent that holds the sent share, and records it as sent; `None` if nothing changed.
    pub(super) fn update(&mut self, next: ShareInputs) -> Option<ScheduleDifference> {
        let (mut old, mut new) = (self.sent.share_calculator(), next.share_calculator());
        let (mut put, mut drop) = (Vec::new(), Vec::new());
        for slot in self.sent.possibly_changed_slots(&next) {
            let before = share_of(&self.sent.schedule, slot, old.as_mut());
            let after = share_of(&next.schedule, slot, new.as_mut());
            if let Some((monitor, _)) = before
                && after.is_none_or(|(now, _)| now.monitor != monitor.monitor)
            {
                drop.push(monitor.monitor);
            }
            let content = |(monitor, share): (&Arc<ScheduledMonitor>, ScheduleShare)| {
                (monitor.monitor, monitor.account, monitor.revision, share)
            };
            if let Some((monitor, share)) = after
                && before.map(content) != after.map(content)
            {
                put.push((Arc::clone(monitor), share));
            }
        }
        self.sent = next;
        if drop.is_empty() && put.is_empty() {
            return None;
        }
        let base = Some(self.revision);
        self.revision += 1;
        Some(ScheduleDifference { base, revision: self.revision, put, drop })
    }

    /// Returns the whole share, for an agent that holds anything else, and records it as sent.
    pub(super) fn snapshot(&mut self, next: ShareInputs) -> ScheduleDifference {
        let mut calculator = next.share_calculator();
        let put = next.schedule.iter().filter_map(|monitor| {
            let share = calculator.as_mut()?.share(monitor)?;
            Some((Arc::clone(monitor), share))
        });
        let put = put.collect();
        self.sent = next;
        self.revision += 1;
        ScheduleDifference { base: None, revision: self.revision, put, drop: Vec::new() }
    }
}

impl ShareInputs {
    fn share_calculator(&self) -> Option<ShareCalculator<'_>> {
        Some(ShareCalculator::new(&self.mesh, &self.capabilities, self.vantage?))
    }

    /// Returns the slots whose share may differ: the edited ones, or all if the mesh has changed.
    fn possibly_changed_slots(&self, next: &Self) -> BTreeSet<u32> {
        let is_same_mesh =
            self.vantage == next.vantage && self.mesh == next.mesh && self.capabilities == next.capabilities;
        let edited = is_same_mesh.then(|| next.schedule.changed_since(self.schedule.version())).flatten();
        edited.unwrap_or_else(|| self.schedule.iter().chain(next.schedule.iter()).map(|monitor| monitor.slot).collect())
    }
}

fn share_of<'a>(
    schedule: &'a MonitorSchedule,
    slot: u32,
    calculator: Option<&mut ShareCalculator<'_>>,
) -> Option<(&'a Arc<ScheduledMonitor>, ScheduleShare)> {
    let monitor = schedule.get(slot)?;
    Some((monitor, calculator?.share(monitor)?))
}

#[cfg(test)]
mod tests {
    use parallax_core::check::{Check, TcpCheck};
    use parallax_core::id::AccountId;
    use parallax_core::vantage::{NetworkNo, Region, Vantage};

    use super::*;

    fn monitor(slot: u32, id: u128, revision: u32) -> ScheduledMonitor {
        let check = Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }));
        let monitor = MonitorId::from_u128(id);
        let account = AccountId::from_u128(1);
        ScheduledMonitor { monitor, account, slot, revision, check, interval_ms: 60_000, pinned: None }
    }

    /// Builds inputs of one region with `vantage_count` vantages; the share is the first one's.
    fn inputs(monitors: impl IntoIterator<Item = ScheduledMonitor>, vantage_count: u16) -> ShareInputs {
        let mut schedule = MonitorSchedule::default();
        for monitor in monitors {
            schedule.put(monitor);
        }
        let mesh = Mesh::new((1..=vantage_count).map(|no| Vantage {
            no: VantageNo(no),
            region: Region::Asia,
            network: NetworkNo(no),
            connected: true,
            quarantined: false,
            unfit: false,
        }));
        ShareInputs { vantage: Some(VantageNo(1)), schedule, mesh: Arc::new(mesh), capabilities: Arc::default() }
    }

    /// Returns the same inputs after an edit of the schedule.
    fn edited(inputs: &ShareInputs, edit: impl FnOnce(&mut MonitorSchedule)) -> ShareInputs {
        let mut inputs = inputs.clone();
        edit(&mut inputs.schedule);
        inputs
    }

    #[test]
    fn a_snapshot_has_every_monitor_and_no_change_follows() {
        let inputs = inputs([monitor(1, 10, 1), monitor(2, 20, 1)], 1);
        let mut sent_schedule = SentSchedule::new(100);
        let snapshot = sent_schedule.snapshot(inputs.clone());
        assert_eq!((snapshot.base, snapshot.revision, snapshot.put.len()), (None, 101, 2));
        assert_eq!(sent_schedule.update(inputs), None);
        assert_eq!(sent_schedule.revision(), 101);
    }

    #[test]
    fn only_changes_are_sent() {
        let before = inputs([monitor(1, 10, 1), monitor(2, 20, 1), monitor(3, 30, 1)], 1);
        let mut sent_schedule = SentSchedule::new(0);
        sent_schedule.snapshot(before.clone());
        let after = edited(&before, |schedule| {
            schedule.put(monitor(2, 20, 2));
            schedule.put(monitor(4, 40, 1));
            schedule.remove(3);
        });
        let change = sent_schedule.update(after).unwrap();
        assert_eq!((change.base, change.revision), (Some(1), 2));
        assert_eq!(change.put.iter().map(|(one, _)| one.slot).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(change.drop, [MonitorId::from_u128(30)]);
    }

    #[test]
    fn an_edit_compares_only_the_edited_slots() {
        let before = inputs((0..100_000).map(|slot| monitor(slot, u128::from(slot), 1)), 2);
        let after = edited(&before, |schedule| {
            schedule.put(monitor(70_000, 70_000, 2));
            schedule.put(monitor(70_000, 70_000, 3));
            schedule.remove(9);
        });
        assert_eq!(before.possibly_changed_slots(&after), BTreeSet::from([9, 70_000]));
        assert_eq!(before.possibly_changed_slots(&before), BTreeSet::new());
    }

    #[test]
    fn a_changed_share_is_a_change() {
        let mut sent_schedule = SentSchedule::new(0);
        sent_schedule.snapshot(inputs([monitor(1, 10, 1)], 1));
        let change = sent_schedule.update(inputs([monitor(1, 10, 1)], 2)).unwrap();
        assert_eq!(change.put.iter().map(|(_, share)| share.every).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_slot_reassigned_to_another_monitor_drops_the_first() {
        let before = inputs([monitor(1, 10, 1)], 1);
        let mut sent_schedule = SentSchedule::new(0);
        sent_schedule.snapshot(before.clone());
        let after = edited(&before, |schedule| {
            schedule.put(monitor(1, 11, 1));
        });
        let change = sent_schedule.update(after).unwrap();
        assert_eq!(change.drop, [MonitorId::from_u128(10)]);
        assert_eq!(change.put.len(), 1);
    }
}
