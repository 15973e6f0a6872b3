//! Capability-aware shares: rounds go to agents that can run the check type, as long as there are any.

use std::collections::BTreeMap;

use parallax_core::assign::{ScheduleShare, ScheduledMonitor, share};
use parallax_core::check::CheckKind;
use parallax_core::vantage::{Mesh, Region, Vantage, VantageNo};
use parallax_engine::Capabilities;
use parallax_protocol::check as wire;

/// Key of the agents that share a monitor's rounds: the check type, and the region if only one region runs it.
type Group = (CheckKind, Option<Region>);

/// Builds the mesh for a group: an agent that lacks the capability counts as disconnected if another of the group
/// has it.
fn mesh_for(capabilities: &Capabilities, mesh: &Mesh, (kind, pinned): Group) -> Mesh {
    let is_same_group = |one: &Vantage, other: &Vantage| {
        if kind.is_regional() { one.region == other.region } else { pinned.is_none_or(|it| it == other.region) }
    };
    let vantages = mesh.vantages();
    Mesh::new(vantages.iter().map(|vantage| {
        let another_supports =
            || mesh.available().any(|other| is_same_group(vantage, other) && capabilities.supports(other.no, kind));
        let is_replaced = !capabilities.supports(vantage.no, kind) && another_supports();
        Vantage { connected: vantage.connected && !is_replaced, ..*vantage }
    }))
}

/// Converts a check type that an agent declares.
pub(super) fn check_kind(kind: wire::WireCheckKind) -> CheckKind {
    match kind {
        wire::WireCheckKind::Http => CheckKind::Http,
        wire::WireCheckKind::Tcp => CheckKind::Tcp,
        wire::WireCheckKind::Dns => CheckKind::Dns,
        wire::WireCheckKind::Ping => CheckKind::Ping,
        wire::WireCheckKind::Certificate => CheckKind::Certificate,
        wire::WireCheckKind::Domain => CheckKind::Domain,
        wire::WireCheckKind::Component => CheckKind::Component,
    }
}

/// Computes one vantage's shares, monitor by monitor.
pub(super) struct ShareCalculator<'a> {
    mesh: &'a Mesh,
    capabilities: &'a Capabilities,
    vantage: VantageNo,
    /// The mesh as each group sees it, computed on first use.
    meshes: BTreeMap<Group, Mesh>,
}

impl<'a> ShareCalculator<'a> {
    pub(super) fn new(mesh: &'a Mesh, capabilities: &'a Capabilities, vantage: VantageNo) -> Self {
        Self { mesh, capabilities, vantage, meshes: BTreeMap::new() }
    }

    /// Returns the vantage's share of a monitor, if it has one.
    pub(super) fn share(&mut self, monitor: &ScheduledMonitor) -> Option<ScheduleShare> {
        let kind = monitor.check.kind();
        let group = (kind, monitor.pinned.filter(|_| !kind.is_regional()));
        let mesh = self.meshes.entry(group).or_insert_with(|| mesh_for(self.capabilities, self.mesh, group));
        share(monitor, mesh, self.vantage)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use parallax_core::check::{Check, DomainCheck, TcpCheck};
    use parallax_core::id::{AccountId, MonitorId};
    use parallax_core::vantage::NetworkNo;

    use super::*;

    fn monitor(check: Check) -> ScheduledMonitor {
        let (monitor, check) = (MonitorId::from_u128(1), Arc::new(check));
        let account = AccountId::from_u128(1);
        ScheduledMonitor { monitor, account, slot: 1, revision: 1, check, interval_ms: 60_000, pinned: None }
    }

    fn tcp() -> ScheduledMonitor {
        monitor(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }))
    }

    fn mesh(regions: &[Region]) -> Mesh {
        Mesh::new((1_u16..).zip(regions).map(|(no, region)| Vantage {
            no: VantageNo(no),
            region: *region,
            network: NetworkNo(no),
            connected: true,
            quarantined: false,
            unfit: false,
        }))
    }

    fn only(kinds: &[(u16, CheckKind)]) -> Capabilities {
        Capabilities::new(kinds.iter().map(|(no, kind)| (VantageNo(*no), BTreeSet::from([*kind]))))
    }

    fn every(monitor: &ScheduledMonitor, mesh: &Mesh, capabilities: &Capabilities, no: u16) -> Option<u32> {
        ShareCalculator::new(mesh, capabilities, VantageNo(no)).share(monitor).map(|share| share.every)
    }

    #[test]
    fn an_agent_without_the_capability_gets_no_rounds_if_others_of_the_region_have_it() {
        let monitor = tcp();
        let mesh = mesh(&[Region::Asia, Region::Asia, Region::Europe]);
        let capabilities = only(&[(1, CheckKind::Http), (3, CheckKind::Http)]);
        assert_eq!(every(&monitor, &mesh, &capabilities, 1), None);
        assert_eq!(every(&monitor, &mesh, &capabilities, 2), Some(1));
        // No agent in Europe can: the one there reports it, and the region is not silently left out.
        assert_eq!(every(&monitor, &mesh, &capabilities, 3), Some(1));
    }

    #[test]
    fn an_agent_that_declares_no_types_supports_all() {
        let monitor = tcp();
        let mesh = mesh(&[Region::Asia, Region::Asia]);
        let capabilities = Capabilities::new([(VantageNo(1), BTreeSet::new())]);
        assert_eq!(every(&monitor, &mesh, &capabilities, 1), Some(2));
    }

    #[test]
    fn a_global_check_goes_to_a_capable_agent_in_any_region() {
        let check = Check::Domain(DomainCheck { host: "example.com".to_owned(), warn_days: 14 });
        let monitor = monitor(check);
        let mesh = mesh(&[Region::Asia, Region::Europe]);
        let capabilities = only(&[(1, CheckKind::Tcp)]);
        assert_eq!(every(&monitor, &mesh, &capabilities, 1), None);
        assert_eq!(every(&monitor, &mesh, &capabilities, 2), Some(1));
    }
}
