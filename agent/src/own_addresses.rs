//! Addresses of this host and of its coordinator, which the agent does not check, stored over a restart: with
//! the schedule on disk it checks before it is connected.

use crate::context::AgentContext;
use crate::data_folder::IdentityRecord;
use parallax_dial::{Host, OwnAddresses};
use parallax_protocol::message::ExternalAddress;
use std::net::IpAddr;
use std::time::Duration;

/// Interval at which the record of a relearned address is refreshed, in ms.
const REFRESH_MS: u64 = 60 * 60 * 1000;

/// Restores the addresses of an earlier run, and the coordinator's if it is configured as an address.
pub(crate) fn restore(own: &OwnAddresses, record: &IdentityRecord, coordinator: Option<&str>, now_ms: i64) {
    // Records of earlier versions lack the times.
    let ago = |at: Option<&i64>| {
        let ms = at.map_or(0, |at| now_ms.saturating_sub(*at).max(0));
        Duration::from_millis(ms.unsigned_abs())
    };
    for (at, address) in record.seen_from.iter().enumerate().rev() {
        own.restore_nat(*address, ago(record.seen_from_ms.get(at)));
    }
    for (at, address) in record.coordinator_addresses.iter().enumerate().rev() {
        own.restore_coordinator([*address], ago(record.coordinator_addresses_ms.get(at)));
    }
    let coordinator = coordinator.unwrap_or(&record.coordinator);
    let host = coordinator.rsplit_once(':').map_or(coordinator, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(Host::Ip(address)) = Host::parse(host) {
        own.add_coordinator([address]);
    }
}

/// Updates the record with the current addresses; returns true if they changed, or were learned again.
pub(crate) fn update_record(own: &OwnAddresses, record: &mut IdentityRecord, now_ms: i64) -> bool {
    let now = |known: Vec<(IpAddr, Duration)>| -> (Vec<IpAddr>, Vec<i64>) {
        let at = |age: Duration| now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        known.into_iter().map(|(address, age)| (address, at(age))).unzip()
    };
    let (seen_from, seen_from_ms) = now(own.nat_with_ages());
    let (coordinator, coordinator_ms) = now(own.coordinator_with_ages());
    let is_newer = |before: &[i64], after: &[i64]| {
        before.len() != after.len()
            || before.iter().zip(after).any(|(before, after)| before.abs_diff(*after) >= REFRESH_MS)
    };
    let changed = record.seen_from != seen_from
        || record.coordinator_addresses != coordinator
        || is_newer(&record.seen_from_ms, &seen_from_ms)
        || is_newer(&record.coordinator_addresses_ms, &coordinator_ms);
    if changed {
        (record.seen_from, record.seen_from_ms) = (seen_from, seen_from_ms);
        (record.coordinator_addresses, record.coordinator_addresses_ms) = (coordinator, coordinator_ms);
    }
    changed
}

/// Adds the address under which the coordinator sees this host.
pub(crate) fn add_external_address(shared: &AgentContext, external: ExternalAddress) {
    let own = shared.probes.guard().own_addresses();
    own.add_nat(external.address);
    let record = {
        let mut membership = shared.membership();
        if !update_record(own, &mut membership.record, shared.clock.wall_ms()) {
            return;
        }
        membership.record.clone()
    };
    if let Err(error) = shared.data_folder.store_record(&record) {
        tracing::warn!(%error, "this host's external address could not be saved");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_dial::{BlockedClass, DialGuard, DialPolicy, DnsResolver};

    const NOW: i64 = 1_800_000_000_000;

    fn record(more: &str) -> IdentityRecord {
        let known = r#""agent":"1","name":"a","region":"europe","network":"n","mesh":"m",
            "coordinator":"5.5.5.5:7443","coordinator_ms":1,"skew_ms":0"#;
        serde_json::from_str(&format!("{{{known}{more}}}")).unwrap()
    }

    fn guard() -> DialGuard {
        let resolver = DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        DialGuard::new(resolver, DialPolicy::default()).with_own_addresses(OwnAddresses::from_reader(|| Ok(Vec::new())))
    }

    #[test]
    fn stored_addresses_are_restored_before_the_first_connection() {
        let guard = guard();
        let old = r#","seen_from":["6.6.6.6"],"coordinator_addresses":["2600::7"]"#;
        restore(guard.own_addresses(), &record(old), None, NOW);
        restore(guard.own_addresses(), &record(""), Some("[2600::8]:7443"), NOW);
        restore(guard.own_addresses(), &record(""), Some("coordinator.example:7443"), NOW);
        for address in ["6.6.6.6", "2600::7", "2600::8", "5.5.5.5"] {
            assert_eq!(guard.blocked_class(address.parse().unwrap()), Ok(Some(BlockedClass::OwnHost)), "{address}");
        }
        let mut stored = record("");
        assert!(update_record(guard.own_addresses(), &mut stored, NOW));
        assert!(!update_record(guard.own_addresses(), &mut stored, NOW + 1));
        let other = self::guard();
        restore(other.own_addresses(), &stored, None, NOW + 1000);
        assert_eq!(other.own_addresses().coordinator().len(), guard.own_addresses().coordinator().len());
        assert_eq!(other.own_addresses().nat(), guard.own_addresses().nat());
    }

    #[test]
    fn an_old_address_of_a_nat_ages_over_restarts() {
        const HOUR_MS: i64 = 3_600_000;
        let own = OwnAddresses::from_reader(|| Ok(Vec::new()));
        let mut stored = record(r#","seen_from":["6.6.6.7","6.6.6.6"],"seen_from_ms":[0,0]"#);
        stored.seen_from_ms = vec![NOW, NOW - 20 * HOUR_MS];
        restore(&own, &stored, None, NOW + HOUR_MS);
        assert_eq!(own.nat().len(), 2);
        update_record(&own, &mut stored, NOW + HOUR_MS);
        let own = OwnAddresses::from_reader(|| Ok(Vec::new()));
        restore(&own, &stored, None, NOW + 6 * HOUR_MS);
        assert_eq!(own.nat(), ["6.6.6.7".parse::<IpAddr>().unwrap()]);
    }
}
