//! Kinds of alerts.

use serde::{Deserialize, Serialize};

/// Kind of alert about a change of status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AlertKind {
    /// The monitor went down.
    WentDown,
    /// It is still down.
    StillDown,
    /// It recovered.
    Recovered,
    /// It became slow.
    WentSlow,
    /// It is back to normal speed.
    BackToNormal,
}

impl AlertKind {
    /// Every kind, outages first.
    pub const ALL: [Self; 5] = [Self::WentDown, Self::StillDown, Self::Recovered, Self::WentSlow, Self::BackToNormal];

    /// Name in the API contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WentDown => "went-down",
            Self::StillDown => "still-down",
            Self::Recovered => "recovered",
            Self::WentSlow => "went-slow",
            Self::BackToNormal => "back-to-normal",
        }
    }
}
