//! The demo's twelve agents: six regions with two networks each, every agent with its own loopback address.

use std::net::{IpAddr, Ipv4Addr};

use parallax_core::vantage::Region;

/// AS numbers reserved for documentation (RFC 5398).
const NETWORKS: [&str; 2] = ["AS64500", "AS64501"];

/// An agent of the demo.
#[derive(Debug)]
pub(in crate::up) struct DemoAgent {
    /// Name of the agent.
    pub(in crate::up) name: &'static str,
    /// Region of the agent.
    pub(in crate::up) region: Region,
    /// Network of the agent.
    pub(in crate::up) network: &'static str,
    /// Last byte of its address.
    host: u8,
}

/// Every agent of the demo.
pub(in crate::up) const DEMO_AGENTS: [DemoAgent; 12] = [
    demo_agent("fra1", Region::Europe, 0, 1),
    demo_agent("ams1", Region::Europe, 1, 2),
    demo_agent("nyc1", Region::NorthAmerica, 0, 3),
    demo_agent("sjc1", Region::NorthAmerica, 1, 4),
    demo_agent("sao1", Region::SouthAmerica, 0, 5),
    demo_agent("scl1", Region::SouthAmerica, 1, 6),
    demo_agent("jnb1", Region::Africa, 0, 7),
    demo_agent("nbo1", Region::Africa, 1, 8),
    demo_agent("sin1", Region::Asia, 0, 9),
    demo_agent("nrt1", Region::Asia, 1, 10),
    demo_agent("syd1", Region::Oceania, 0, 11),
    demo_agent("akl1", Region::Oceania, 1, 12),
];

impl DemoAgent {
    /// Returns the address that it connects and checks from.
    pub(in crate::up) const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 1, self.host)
    }
}

/// Returns the region of a client by its address; none if it is no agent of the demo.
pub(super) fn region_of(address: IpAddr) -> Option<Region> {
    let address = address.to_canonical();
    DEMO_AGENTS.iter().find(|agent| IpAddr::V4(agent.address()) == address).map(|agent| agent.region)
}

const fn demo_agent(name: &'static str, region: Region, network: usize, host: u8) -> DemoAgent {
    DemoAgent { name, region, network: NETWORKS[network], host }
}
