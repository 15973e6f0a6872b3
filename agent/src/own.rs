//! The addresses that this agent does not check because they are its own or its coordinator's, kept over a restart: with
//! the schedule on disk it checks before it is connected.

use crate::home::Record;
use crate::shared::Shared;
use parallax_dial::{Host, OwnAddresses};
use parallax_protocol::message::SeenFrom;

/// Takes up what an earlier run knew, and the coordinator's address where it is set as one.
pub(crate) fn recall(own: &OwnAddresses, record: &Record, coordinator: Option<&str>) {
    for address in record.seen_from.iter().rev() {
        own.add_nat(*address);
    }
    own.add_coordinator(record.coordinator_addresses.iter().rev().copied());
    let coordinator = coordinator.unwrap_or(&record.coordinator);
    let host = coordinator.rsplit_once(':').map_or(coordinator, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(Host::Ip(address)) = Host::parse(host) {
        own.add_coordinator([address]);
    }
}

/// Notes in the record what is known now; true where that is other than before.
pub(crate) fn note(own: &OwnAddresses, record: &mut Record) -> bool {
    let (seen_from, coordinator) = (own.nat(), own.coordinator());
    let changed = record.seen_from != seen_from || record.coordinator_addresses != coordinator;
    (record.seen_from, record.coordinator_addresses) = (seen_from, coordinator);
    changed
}

/// Takes in under which address the coordinator sees this host.
pub(crate) fn seen(shared: &Shared, seen: SeenFrom) {
    let own = shared.net.guard().own();
    own.add_nat(seen.address);
    let record = {
        let mut membership = shared.membership();
        if !note(own, &mut membership.record) {
            return;
        }
        membership.record.clone()
    };
    if let Err(error) = shared.home.keep_record(&record) {
        tracing::warn!(%error, "the address that this host is seen under is not kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_dial::{Class, Guard, Policy, Resolver};

    fn record(more: &str) -> Record {
        let known = r#""agent":"1","name":"a","region":"europe","network":"n","mesh":"m",
            "coordinator":"5.5.5.5:7443","coordinator_ms":1,"skew_ms":0"#;
        serde_json::from_str(&format!("{{{known}{more}}}")).unwrap()
    }

    fn guard() -> Guard {
        let resolver = Resolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        Guard::new(resolver, Policy::default()).knowing(OwnAddresses::read_by(|| Ok(Vec::new())))
    }

    #[test]
    fn what_was_known_is_known_again_before_there_is_a_connection() {
        let guard = guard();
        let old = r#","seen_from":["6.6.6.6"],"coordinator_addresses":["2600::7"]"#;
        recall(guard.own(), &record(old), None);
        recall(guard.own(), &record(""), Some("[2600::8]:7443"));
        recall(guard.own(), &record(""), Some("coordinator.example:7443"));
        for address in ["6.6.6.6", "2600::7", "2600::8", "5.5.5.5"] {
            assert_eq!(guard.refusal(address.parse().unwrap()), Ok(Some(Class::OwnHost)), "{address}");
        }
        let mut kept = record("");
        assert!(note(guard.own(), &mut kept));
        assert!(!note(guard.own(), &mut kept));
        let other = self::guard();
        recall(other.own(), &kept, None);
        assert_eq!(other.own().coordinator().len(), guard.own().coordinator().len());
        assert_eq!(other.own().nat(), guard.own().nat());
    }
}
