//! An agent's plan against what was sent to it: revisions and differences.

use std::collections::BTreeMap;

use parallax_core::assign::{Scheduled, Share};
use parallax_core::id::MonitorId;

/// What one agent was last sent, kept over its connections.
#[derive(Debug)]
pub(super) struct Sheet {
    revision: u64,
    sent: BTreeMap<u32, Sent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    monitor: MonitorId,
    revision: u32,
    share: Share,
}

/// What to send so that an agent holds its plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference<'a> {
    /// The revision it changes; none for a snapshot, which replaces everything.
    pub(super) base: Option<u64>,
    /// The revision after it.
    pub(super) revision: u64,
    /// What is added or replaced.
    pub(super) put: Vec<(&'a Scheduled, Share)>,
    /// What is no longer the agent's.
    pub(super) drop: Vec<MonitorId>,
}

impl Sheet {
    /// A sheet of which nothing was sent. Revisions count up from `start`, which must be greater than any that an
    /// earlier process gave out (its moment of start in ms serves): then no agent holds a revision of another content.
    pub(super) fn new(start: u64) -> Self {
        Self { revision: start, sent: BTreeMap::new() }
    }

    /// The revision last sent.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// What must be sent to an agent that holds this sheet; none where it holds its plan already. The sheet is then
    /// taken as sent.
    pub(super) fn update<'a>(
        &mut self,
        monitors: &'a BTreeMap<u32, Scheduled>,
        plan: &BTreeMap<u32, Share>,
    ) -> Option<Difference<'a>> {
        let next = wanted(monitors, plan);
        let stays = |slot: &u32, sent: &Sent| next.get(slot).is_some_and(|new| new.monitor == sent.monitor);
        let drop: Vec<MonitorId> = self
            .sent
            .iter()
            .filter(|(slot, sent)| !stays(slot, sent))
            .map(|(_, sent)| sent.monitor)
            .collect();
        let changed = next.iter().filter(|(slot, new)| self.sent.get(slot) != Some(new));
        let put: Vec<_> = changed.filter_map(|(slot, new)| Some((monitors.get(slot)?, new.share))).collect();
        if drop.is_empty() && put.is_empty() {
            return None;
        }
        let base = Some(self.revision);
        self.revision += 1;
        self.sent = next;
        Some(Difference { base, revision: self.revision, put, drop })
    }

    /// The whole plan, for an agent that holds something else. It is then taken as sent.
    pub(super) fn snapshot<'a>(
        &mut self,
        monitors: &'a BTreeMap<u32, Scheduled>,
        plan: &BTreeMap<u32, Share>,
    ) -> Difference<'a> {
        self.sent = wanted(monitors, plan);
        self.revision += 1;
        let put = self.sent.iter().filter_map(|(slot, new)| Some((monitors.get(slot)?, new.share))).collect();
        Difference { base: None, revision: self.revision, put, drop: Vec::new() }
    }
}

fn wanted(monitors: &BTreeMap<u32, Scheduled>, plan: &BTreeMap<u32, Share>) -> BTreeMap<u32, Sent> {
    let sent = |(slot, share): (&u32, &Share)| {
        let monitor = monitors.get(slot)?;
        Some((*slot, Sent { monitor: monitor.monitor, revision: monitor.revision, share: *share }))
    };
    plan.iter().filter_map(sent).collect()
}

#[cfg(test)]
mod tests {
    use parallax_core::check::{Check, TcpCheck};

    use super::*;

    const SHARE: Share = Share { interval_ms: 60_000, offset_ms: 0, every: 1, from: 0 };

    fn monitor(slot: u32, id: u128, revision: u32) -> (u32, Scheduled) {
        let check = Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 });
        let monitor = MonitorId::from_u128(id);
        (slot, Scheduled { monitor, slot, revision, check, interval_ms: 60_000, pinned: None })
    }

    fn plan(slots: &[u32]) -> BTreeMap<u32, Share> {
        slots.iter().map(|slot| (*slot, SHARE)).collect()
    }

    #[test]
    fn a_snapshot_holds_all_and_nothing_follows_it() {
        let monitors = BTreeMap::from([monitor(1, 10, 1), monitor(2, 20, 1)]);
        let mut sheet = Sheet::new(100);
        let snapshot = sheet.snapshot(&monitors, &plan(&[1, 2]));
        assert_eq!((snapshot.base, snapshot.revision, snapshot.put.len()), (None, 101, 2));
        assert_eq!(sheet.update(&monitors, &plan(&[1, 2])), None);
        assert_eq!(sheet.revision(), 101);
    }

    #[test]
    fn only_what_changed_is_sent() {
        let before = BTreeMap::from([monitor(1, 10, 1), monitor(2, 20, 1), monitor(3, 30, 1)]);
        let mut sheet = Sheet::new(0);
        sheet.snapshot(&before, &plan(&[1, 2, 3]));
        let after =
            BTreeMap::from([monitor(1, 10, 1), monitor(2, 20, 2), monitor(3, 30, 1), monitor(4, 40, 1)]);
        let change = sheet.update(&after, &plan(&[1, 2, 4])).unwrap();
        assert_eq!((change.base, change.revision), (Some(1), 2));
        assert_eq!(change.put.iter().map(|(one, _)| one.slot).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(change.drop, [MonitorId::from_u128(30)]);
    }

    #[test]
    fn another_turn_is_a_change() {
        let monitors = BTreeMap::from([monitor(1, 10, 1)]);
        let mut sheet = Sheet::new(0);
        sheet.snapshot(&monitors, &plan(&[1]));
        let half = BTreeMap::from([(1, Share { every: 2, ..SHARE })]);
        assert_eq!(sheet.update(&monitors, &half).unwrap().put.len(), 1);
    }

    #[test]
    fn a_slot_that_names_another_monitor_drops_the_first() {
        let mut sheet = Sheet::new(0);
        sheet.snapshot(&BTreeMap::from([monitor(1, 10, 1)]), &plan(&[1]));
        let after = BTreeMap::from([monitor(1, 11, 1)]);
        let change = sheet.update(&after, &plan(&[1])).unwrap();
        assert_eq!(change.drop, [MonitorId::from_u128(10)]);
        assert_eq!(change.put.len(), 1);
    }
}
