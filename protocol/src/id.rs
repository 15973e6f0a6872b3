//! Identifiers and regions on the wire.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A monitor's number, the same as in the coordinator's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WireMonitorId(pub u128);

/// An agent's number, as in its certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WireAgentId(pub u128);

/// A start of an agent, drawn at random. Sequence numbers run from 1 within a boot; results that survive a
/// restart keep the boot they were numbered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BootId(pub u64);

impl fmt::Display for WireMonitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for WireAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Region of an agent. The coordinator's record decides it, never the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WireRegion {
    /// `europe`
    Europe,
    /// `north-america`
    NorthAmerica,
    /// `south-america`
    SouthAmerica,
    /// `africa`
    Africa,
    /// `asia`
    Asia,
    /// `oceania`
    Oceania,
}

impl WireRegion {
    /// All regions, in the order of their wire numbers.
    pub const ALL: [Self; 6] =
        [Self::Europe, Self::NorthAmerica, Self::SouthAmerica, Self::Africa, Self::Asia, Self::Oceania];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Europe => "europe",
            Self::NorthAmerica => "north-america",
            Self::SouthAmerica => "south-america",
            Self::Africa => "africa",
            Self::Asia => "asia",
            Self::Oceania => "oceania",
        }
    }
}

impl fmt::Display for WireRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
