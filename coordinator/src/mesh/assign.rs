//! Schedule changes per agent: the difference between its current plan and what it was last sent.
//!
//! The sent plan is not stored as a list. It follows from the schedule, the mesh and the vantage, so those are
//! stored instead, and an edit costs each session only the work for the edited monitors.

use std::collections::BTreeSet;
use std::sync::Arc;

use parallax_core::assign::{Scheduled, Share};
use parallax_core::id::MonitorId;
use parallax_core::place::{Mesh, PlaceNo};

use super::able::Dealer;
use crate::flow::{Able, Schedules};

/// Inputs that determine a vantage's plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis {
    /// The vantage; `None` for an empty plan.
    pub(super) place: Option<PlaceNo>,
    /// The schedule.
    pub(super) schedules: Schedules,
    /// The connected vantages.
    pub(super) mesh: Arc<Mesh>,
    /// Check types that each vantage can run.
    pub(super) able: Arc<Able>,
}

/// The plan last sent to one agent; it outlives the connection.
#[derive(Debug)]
pub(super) struct Sheet {
    revision: u64,
    sent: Basis,
}

/// A schedule change to send, after which an agent holds its current plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The revision it applies to; `None` for a snapshot, which replaces everything.
    pub(super) base: Option<u64>,
    /// The revision after it.
    pub(super) revision: u64,
    /// Added or replaced monitors.
    pub(super) put: Vec<(Arc<Scheduled>, Share)>,
    /// Monitors that the agent must no longer run.
    pub(super) drop: Vec<MonitorId>,
}

impl Sheet {
    /// Starts with nothing sent. Revisions count up from `start`, which must be greater than any revision that an
    /// earlier process sent (its start time in ms serves). Then a revision always names the same content.
    pub(super) fn new(start: u64) -> Self {
        Self { revision: start, sent: Basis::default() }
    }

    /// Returns the revision last sent.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the change for an agent that holds the sent plan, and records it as sent; `None` if nothing changed.
    pub(super) fn update(&mut self, next: Basis) -> Option<Difference> {
        let (mut old, mut new) = (self.sent.dealer(), next.dealer());
        let (mut put, mut drop) = (Vec::new(), Vec::new());
        for slot in self.sent.may_differ(&next) {
            let before = held(&self.sent.schedules, slot, old.as_mut());
            let after = held(&next.schedules, slot, new.as_mut());
            if let Some((monitor, _)) = before
                && after.is_none_or(|(now, _)| now.monitor != monitor.monitor)
            {
                drop.push(monitor.monitor);
            }
            let content = |(monitor, share): (&Arc<Scheduled>, Share)| {
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
        Some(Difference { base, revision: self.revision, put, drop })
    }

    /// Returns the whole plan, for an agent that holds anything else, and records it as sent.
    pub(super) fn snapshot(&mut self, next: Basis) -> Difference {
        let mut dealer = next.dealer();
        let put = next.schedules.iter().filter_map(|monitor| {
            let share = dealer.as_mut()?.share(monitor)?;
            Some((Arc::clone(monitor), share))
        });
        let put = put.collect();
        self.sent = next;
        self.revision += 1;
        Difference { base: None, revision: self.revision, put, drop: Vec::new() }
    }
}

impl Basis {
    fn dealer(&self) -> Option<Dealer<'_>> {
        Some(Dealer::new(&self.mesh, &self.able, self.place?))
    }

    /// Returns the slots whose share may differ: the edited ones, or all if the mesh has changed.
    fn may_differ(&self, next: &Self) -> BTreeSet<u32> {
        let is_same_mesh = self.place == next.place && self.mesh == next.mesh && self.able == next.able;
        let edited = is_same_mesh.then(|| next.schedules.changed_since(self.schedules.version())).flatten();
        edited.unwrap_or_else(|| {
            self.schedules.iter().chain(next.schedules.iter()).map(|monitor| monitor.slot).collect()
        })
    }
}

fn held<'a>(
    schedules: &'a Schedules,
    slot: u32,
    dealer: Option<&mut Dealer<'_>>,
) -> Option<(&'a Arc<Scheduled>, Share)> {
    let monitor = schedules.get(slot)?;
    Some((monitor, dealer?.share(monitor)?))
}

#[cfg(test)]
mod tests {
    use parallax_core::check::{Check, TcpCheck};
    use parallax_core::id::AccountId;
    use parallax_core::place::{NetworkNo, Place, Region};

    use super::*;

    fn monitor(slot: u32, id: u128, revision: u32) -> Scheduled {
        let check = Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }));
        let monitor = MonitorId::from_u128(id);
        let account = AccountId::from_u128(1);
        Scheduled { monitor, account, slot, revision, check, interval_ms: 60_000, pinned: None }
    }

    /// Builds inputs of one region with `places` vantages; the plan is the first one's.
    fn basis(monitors: impl IntoIterator<Item = Scheduled>, places: u16) -> Basis {
        let mut schedules = Schedules::default();
        for monitor in monitors {
            schedules.put(monitor);
        }
        let mesh = Mesh::new((1..=places).map(|no| Place {
            no: PlaceNo(no),
            region: Region::Asia,
            network: NetworkNo(no),
            connected: true,
            quarantined: false,
            unfit: false,
        }));
        Basis { place: Some(PlaceNo(1)), schedules, mesh: Arc::new(mesh), able: Arc::default() }
    }

    /// Returns the same inputs after an edit of the schedule.
    fn edited(basis: &Basis, edit: impl FnOnce(&mut Schedules)) -> Basis {
        let mut basis = basis.clone();
        edit(&mut basis.schedules);
        basis
    }

    #[test]
    fn a_snapshot_holds_all_and_nothing_follows_it() {
        let basis = basis([monitor(1, 10, 1), monitor(2, 20, 1)], 1);
        let mut sheet = Sheet::new(100);
        let snapshot = sheet.snapshot(basis.clone());
        assert_eq!((snapshot.base, snapshot.revision, snapshot.put.len()), (None, 101, 2));
        assert_eq!(sheet.update(basis), None);
        assert_eq!(sheet.revision(), 101);
    }

    #[test]
    fn only_what_changed_is_sent() {
        let before = basis([monitor(1, 10, 1), monitor(2, 20, 1), monitor(3, 30, 1)], 1);
        let mut sheet = Sheet::new(0);
        sheet.snapshot(before.clone());
        let after = edited(&before, |schedules| {
            schedules.put(monitor(2, 20, 2));
            schedules.put(monitor(4, 40, 1));
            schedules.remove(3);
        });
        let change = sheet.update(after).unwrap();
        assert_eq!((change.base, change.revision), (Some(1), 2));
        assert_eq!(change.put.iter().map(|(one, _)| one.slot).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(change.drop, [MonitorId::from_u128(30)]);
    }

    #[test]
    fn an_edit_makes_a_session_look_at_what_was_edited_alone() {
        let before = basis((0..100_000).map(|slot| monitor(slot, u128::from(slot), 1)), 2);
        let after = edited(&before, |schedules| {
            schedules.put(monitor(70_000, 70_000, 2));
            schedules.put(monitor(70_000, 70_000, 3));
            schedules.remove(9);
        });
        assert_eq!(before.may_differ(&after), BTreeSet::from([9, 70_000]));
        assert_eq!(before.may_differ(&before), BTreeSet::new());
    }

    #[test]
    fn another_turn_is_a_change() {
        let mut sheet = Sheet::new(0);
        sheet.snapshot(basis([monitor(1, 10, 1)], 1));
        let change = sheet.update(basis([monitor(1, 10, 1)], 2)).unwrap();
        assert_eq!(change.put.iter().map(|(_, share)| share.every).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_slot_that_names_another_monitor_drops_the_first() {
        let before = basis([monitor(1, 10, 1)], 1);
        let mut sheet = Sheet::new(0);
        sheet.snapshot(before.clone());
        let after = edited(&before, |schedules| {
            schedules.put(monitor(1, 11, 1));
        });
        let change = sheet.update(after).unwrap();
        assert_eq!(change.drop, [MonitorId::from_u128(10)]);
        assert_eq!(change.put.len(), 1);
    }
}
