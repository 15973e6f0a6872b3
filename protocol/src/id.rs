//! Identifiers and places as they cross the mesh.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A monitor's number, the same in the coordinator's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MonitorId(pub u128);

/// An agent's number, as its certificate bears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgentId(pub u128);

/// One start of an agent, drawn at random. Sequence numbers run from 1 within a boot; results that outlive
/// a restart keep the boot they were numbered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BootId(pub u64);

impl fmt::Display for MonitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The region an agent stands in. The coordinator's record decides it, never the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Region {
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

impl Region {
    /// Every region, in the order of its wire number.
    pub const ALL: [Self; 6] =
        [Self::Europe, Self::NorthAmerica, Self::SouthAmerica, Self::Africa, Self::Asia, Self::Oceania];

    /// The name used in the service's interface.
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

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
