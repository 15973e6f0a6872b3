//! Assignment of rounds to vantages: regions spread over the interval, vantages of a region taking turns.

mod next_round;

pub use next_round::{NextRound, next_rounds};

use std::sync::Arc;

use crate::check::Check;
use crate::effective::{EffectiveSettings, regions_in_use};
use crate::id::{AccountId, MonitorId};
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet, Vantage, VantageNo};

/// A quarantined vantage runs one in this many rounds, uncounted (shadow rounds).
pub const SHADOW_EVERY: u32 = 10;
/// Tolerance in milliseconds, in addition to four intervals, by which a round may be off its schedule.
pub(crate) const SCHEDULE_TOLERANCE: i64 = 2 * MINUTE;

/// A monitor as the schedule sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledMonitor {
    /// Monitor id.
    pub monitor: MonitorId,
    /// Account of the monitor.
    pub account: AccountId,
    /// Dense number of the monitor.
    pub slot: u32,
    /// Revision of the check.
    pub revision: u32,
    /// The check; never a heartbeat.
    pub check: Arc<Check>,
    /// Milliseconds between two rounds in one region.
    pub interval_ms: u32,
    /// Region it is pinned to, if any.
    pub pinned: Option<Region>,
}

impl ScheduledMonitor {
    /// Returns the schedule entry of a monitor; none if it is paused or a heartbeat.
    pub fn new(settings: &EffectiveSettings, slot: u32, check: &Arc<Check>) -> Option<Self> {
        (!settings.paused && settings.interval_ms > 0).then(|| Self {
            monitor: settings.monitor,
            account: settings.account,
            slot,
            revision: settings.revision,
            check: Arc::clone(check),
            interval_ms: settings.interval_ms,
            pinned: settings.pinned,
        })
    }

    fn phase_hash(&self) -> u64 {
        phase_hash(self.monitor, &self.check)
    }
}

/// Number that determines when a monitor's rounds are due: a hash of its id. Domain monitors use the registered
/// domain, so that all monitors of one domain are due at the same vantage at the same time and its registry is
/// queried once.
pub fn phase_hash(monitor: MonitorId, check: &Check) -> u64 {
    match check {
        Check::Domain(_) => {
            let name = check.host().trim_end_matches('.').to_ascii_lowercase();
            stable_hash(registrable(&name).as_bytes())
        }
        Check::Http(_)
        | Check::Tcp(_)
        | Check::Dns(_)
        | Check::Ping(_)
        | Check::Certificate(_)
        | Check::Heartbeat(_)
        | Check::Component(_) => monitor_hash(monitor),
    }
}

/// Registrable domain of a name; the whole name if it has none.
pub(crate) fn registrable(name: &str) -> &str {
    let mut at = name;
    while let Some(suffix) = psl::suffix(at.as_bytes()) {
        let of_company = suffix.typ() == Some(psl::Type::Private);
        let Ok(suffix) = std::str::from_utf8(suffix.as_bytes()) else { break };
        if !of_company {
            return psl::domain_str(at).unwrap_or(name);
        }
        // A private suffix (one that a company offers its customers) is itself a registration, or lies below one.
        let Some((_, parent)) = suffix.split_once('.') else { break };
        if psl::domain_str(parent).is_none() {
            return suffix;
        }
        at = parent;
    }
    name
}

/// A vantage's share of one monitor: rounds `r` with `r % every == from`, where round `r` is due at `offset_ms + r *
/// interval_ms` after the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleShare {
    /// Milliseconds between two rounds of the region.
    pub interval_ms: u32,
    /// Due time of round 0, in milliseconds after the epoch; less than the interval.
    pub offset_ms: u32,
    /// The vantage runs one in this many rounds.
    pub every: u32,
    /// Remainder that selects its rounds; less than `every`.
    pub from: u32,
}

/// Returns a vantage's share of a monitor, if any.
pub fn share(monitor: &ScheduledMonitor, mesh: &Mesh, vantage: VantageNo) -> Option<ScheduleShare> {
    let vantage = mesh.vantage(vantage).filter(|vantage| vantage.connected)?;
    if monitor.interval_ms == 0 {
        return None;
    }
    if monitor.check.kind().is_regional() {
        regional_share(monitor, mesh, vantage)
    } else {
        mesh_share(monitor, mesh, vantage)
    }
}

/// Due time of round `round` of a region, in milliseconds after the epoch.
pub fn due_ms(offset_ms: u32, interval_ms: u32, round: u64) -> i64 {
    let due = u64::from(offset_ms).saturating_add(round.saturating_mul(u64::from(interval_ms)));
    i64::try_from(due).unwrap_or(i64::MAX)
}

/// Number of rounds nearest to that many milliseconds, which may be negative: the shift of round numbers when the
/// clock that numbers them has stepped.
pub fn rounds_in(span: i64, interval_ms: u32) -> i64 {
    let interval = i64::from(interval_ms);
    if interval == 0 { 0 } else { span.saturating_add(interval / 2).div_euclid(interval) }
}

/// Returns true if the round with that number is due at about that time, given the interval. Rounds are numbered by
/// their interval: those of another interval, which agents may have queued for long, do not belong in the history.
pub fn is_due_about(round: u64, interval_ms: u32, at: Timestamp) -> bool {
    let interval = i64::from(interval_ms);
    let Ok(round) = i64::try_from(round) else { return false };
    let due = Timestamp::from_millis(round.saturating_mul(interval));
    at.since(due).saturating_abs() <= 4 * interval + SCHEDULE_TOLERANCE
}

/// Stable hash of an id that spreads monitors evenly, the same on every host and in every version.
pub fn monitor_hash(monitor: MonitorId) -> u64 {
    stable_hash(&monitor.to_u128().to_be_bytes())
}

/// FNV-1a with 64 bits: the same on every host and in every version. Not collision resistant against chosen input.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Due time of round 0 of a region, for a monitor with that [`phase_hash`]. Regions are spaced evenly over the
/// interval, so that some region checks every `interval / n`.
pub fn offset_ms(spread: u64, interval_ms: u32, regions: RegionSet, region: Region) -> u32 {
    let interval = u64::from(interval_ms.max(1));
    let turn = regions.iter().position(|other| other == region).unwrap_or(0) as u64;
    let step = interval * turn / (regions.len().max(1) as u64);
    // Always less than the interval, which is a u32.
    u32::try_from((spread % interval + step) % interval).unwrap_or(0)
}

fn regional_share(monitor: &ScheduledMonitor, mesh: &Mesh, vantage: &Vantage) -> Option<ScheduleShare> {
    let regions = regions_in_use(monitor.check.kind(), monitor.pinned, mesh);
    if !regions.contains(vantage.region) {
        return None;
    }
    let offset_ms = offset_ms(monitor.phase_hash(), monitor.interval_ms, regions, vantage.region);
    share_by_turns(monitor, vantage, mesh.available().filter(|other| other.region == vantage.region), offset_ms)
}

fn mesh_share(monitor: &ScheduledMonitor, mesh: &Mesh, vantage: &Vantage) -> Option<ScheduleShare> {
    let allowed = |region| monitor.pinned.is_none_or(|pinned| pinned == region);
    if !allowed(vantage.region) {
        return None;
    }
    let offset_ms = offset_ms(monitor.phase_hash(), monitor.interval_ms, RegionSet::NONE, vantage.region);
    share_by_turns(monitor, vantage, mesh.available().filter(|other| allowed(other.region)), offset_ms)
}

fn share_by_turns<'a>(
    monitor: &ScheduledMonitor,
    vantage: &Vantage,
    fit: impl Iterator<Item = &'a Vantage>,
    offset_ms: u32,
) -> Option<ScheduleShare> {
    if vantage.quarantined {
        let from = u32::try_from(monitor.phase_hash() % u64::from(SHADOW_EVERY)).unwrap_or(0);
        return Some(ScheduleShare { interval_ms: monitor.interval_ms, offset_ms, every: SHADOW_EVERY, from });
    }
    let fit: Vec<VantageNo> = fit.map(|other| other.no).collect();
    let from = fit.iter().position(|other| *other == vantage.no)?;
    Some(ScheduleShare {
        interval_ms: monitor.interval_ms,
        offset_ms,
        every: u32::try_from(fit.len()).unwrap_or(1),
        from: u32::try_from(from).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::check::{DomainCheck, TcpCheck};
    use crate::vantage::NetworkNo;

    fn monitor(seed: u128) -> ScheduledMonitor {
        ScheduledMonitor {
            monitor: MonitorId::from_u128(seed),
            account: AccountId::from_u128(1),
            slot: 1,
            revision: 1,
            check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
            interval_ms: 60_000,
            pinned: None,
        }
    }

    fn mesh(vantages: &[(u16, Region, bool, bool)]) -> Mesh {
        Mesh::new(vantages.iter().map(|&(no, region, connected, quarantined)| Vantage {
            no: VantageNo(no),
            region,
            network: NetworkNo(no),
            connected,
            quarantined,
            unfit: false,
        }))
    }

    #[test]
    fn every_round_of_a_region_has_exactly_one_vantage() {
        let mesh = mesh(&[
            (1, Region::Asia, true, false),
            (2, Region::Asia, true, false),
            (3, Region::Asia, false, false),
            (4, Region::Europe, true, false),
        ]);
        for round in 0..20_u32 {
            let runners = (1..=3)
                .filter_map(|no| share(&monitor(7), &mesh, VantageNo(no)))
                .filter(|share| round % share.every == share.from)
                .count();
            assert_eq!(runners, 1, "round {round}");
        }
    }

    #[test]
    fn regions_are_spaced_evenly_over_the_interval() {
        let mesh = mesh(&[(1, Region::Asia, true, false), (2, Region::Europe, true, false)]);
        let asia = share(&monitor(7), &mesh, VantageNo(1)).unwrap();
        let europe = share(&monitor(7), &mesh, VantageNo(2)).unwrap();
        let apart = (i64::from(asia.offset_ms) - i64::from(europe.offset_ms)).rem_euclid(60_000);
        assert_eq!(apart, 30_000);
    }

    #[test]
    fn a_quarantined_vantage_runs_one_round_in_ten_in_addition() {
        let mesh = mesh(&[(1, Region::Asia, true, true), (2, Region::Asia, true, false)]);
        assert_eq!(share(&monitor(7), &mesh, VantageNo(1)).map(|share| share.every), Some(SHADOW_EVERY));
        assert_eq!(share(&monitor(7), &mesh, VantageNo(2)).map(|share| share.every), Some(1));
    }

    #[test]
    fn all_monitors_of_one_domain_are_due_at_one_vantage_and_time() {
        let mesh = mesh(&[(1, Region::Asia, true, false), (2, Region::Europe, true, false)]);
        let due = |seed: u128, host: &str| {
            let check = Check::Domain(DomainCheck { host: host.to_owned(), warn_days: 30 });
            let monitor = ScheduledMonitor { check: check.into(), ..monitor(seed) };
            [1, 2].map(|no| share(&monitor, &mesh, VantageNo(no)))
        };
        let first = due(1, "example.co.uk");
        for host in ["www.example.co.uk", "Shop.Example.CO.UK.", "example.co.uk"] {
            assert_eq!(due(77, host), first, "{host}");
        }
        assert_ne!(due(1, "other.co.uk"), first);
        assert_eq!(registrable("bucket.s3.eu-west-1.amazonaws.com"), "amazonaws.com");
        assert_eq!((registrable("someone.github.io"), registrable("co.uk")), ("github.io", "co.uk"));
    }

    #[test]
    fn a_pinned_monitor_runs_only_in_its_region() {
        let mesh = mesh(&[(1, Region::Asia, true, false), (2, Region::Europe, true, false)]);
        let pinned = ScheduledMonitor { pinned: Some(Region::Europe), ..monitor(7) };
        assert_eq!(share(&pinned, &mesh, VantageNo(1)), None);
        assert!(share(&pinned, &mesh, VantageNo(2)).is_some());
    }

    #[test]
    fn monitors_are_spread_over_the_interval() {
        let mesh = mesh(&[(1, Region::Asia, true, false)]);
        let mut seconds = BTreeMap::new();
        for seed in 0..6000_u128 {
            let offset = share(&monitor(seed), &mesh, VantageNo(1)).unwrap().offset_ms;
            *seconds.entry(offset / 1000).or_insert(0_u32) += 1;
        }
        assert!(seconds.values().all(|count| *count <= 300), "no second has three times its share: {seconds:?}");
    }
}
