//! Next rounds of a monitor: for each vantage that runs any, its next round and the time at which it is due.

use super::{ScheduledMonitor, due_ms, share};
use crate::time::Timestamp;
use crate::vantage::{Mesh, Region, Vantage, VantageNo};

/// Next round of a monitor at one vantage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextRound {
    /// Vantage that runs it.
    pub vantage: VantageNo,
    /// Region of the vantage.
    pub region: Region,
    /// Number of the round.
    pub round: u64,
    /// Time at which it is due.
    pub due: Timestamp,
    /// Set for a shadow round of a quarantined vantage, which does not count.
    pub is_shadow: bool,
}

/// Returns the next round of the monitor at each vantage that runs it, earliest first.
pub fn next_rounds(monitor: &ScheduledMonitor, mesh: &Mesh, now: Timestamp) -> Vec<NextRound> {
    let next = |vantage: &Vantage| {
        let share = share(monitor, mesh, vantage.no)?;
        let since = now.as_millis().saturating_sub(i64::from(share.offset_ms)).max(0).unsigned_abs();
        let first = since.div_ceil(u64::from(share.interval_ms));
        let every = u64::from(share.every.max(1));
        let round = first + (u64::from(share.from) + every - first % every) % every;
        let due = Timestamp::from_millis(due_ms(share.offset_ms, share.interval_ms, round));
        let is_shadow = vantage.quarantined;
        Some(NextRound { vantage: vantage.no, region: vantage.region, round, due, is_shadow })
    };
    let mut rounds: Vec<NextRound> = mesh.vantages().iter().filter_map(next).collect();
    rounds.sort_by_key(|round| (round.due, round.vantage));
    rounds
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::check::{Check, TcpCheck};
    use crate::id::{AccountId, MonitorId};
    use crate::vantage::NetworkNo;

    fn vantage(no: u16, region: Region) -> Vantage {
        let (no, network) = (VantageNo(no), NetworkNo(no));
        Vantage { no, region, network, connected: true, quarantined: false, unfit: false }
    }

    #[test]
    fn the_next_rounds_are_those_of_the_shares() {
        let monitor = ScheduledMonitor {
            monitor: MonitorId::from_u128(7),
            account: AccountId::from_u128(1),
            slot: 1,
            revision: 1,
            check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
            interval_ms: 60_000,
            pinned: None,
        };
        let places = [vantage(1, Region::Asia), vantage(2, Region::Asia), vantage(3, Region::Europe)];
        let mesh = Mesh::new(places);
        let now = Timestamp::from_millis(1_795_783_560_123);
        let rounds = next_rounds(&monitor, &mesh, now);
        assert_eq!(rounds.len(), 3);
        for next in &rounds {
            let share = share(&monitor, &mesh, next.vantage).unwrap();
            assert_eq!(next.round % u64::from(share.every), u64::from(share.from));
            let wait = next.due.since(now);
            assert!((0..i64::from(share.every * share.interval_ms)).contains(&wait), "{next:?}");
        }
        let asia: Vec<u64> = rounds.iter().filter(|next| next.region == Region::Asia).map(|next| next.round).collect();
        assert_eq!(asia[0] + 1, asia[1], "two agents of a region take turns");
        let away = Mesh::new([Vantage { connected: false, ..vantage(1, Region::Asia) }]);
        assert!(next_rounds(&monitor, &away, now).is_empty());
    }
}
