//! Capabilities of agents: which check types each one can run, as declared when it connected.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::check::CheckKind;
use parallax_core::vantage::VantageNo;

/// Check types that connected vantages can run. A vantage that declares none is assumed to support all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeMap<VantageNo, BTreeSet<CheckKind>>);

impl Capabilities {
    /// Builds the map from each vantage's declared check types.
    pub fn new(kinds_by_vantage: impl IntoIterator<Item = (VantageNo, BTreeSet<CheckKind>)>) -> Self {
        Self(kinds_by_vantage.into_iter().filter(|(_, kinds)| !kinds.is_empty()).collect())
    }

    /// Returns true if the vantage can run checks of that type.
    pub fn supports(&self, vantage: VantageNo, kind: CheckKind) -> bool {
        self.0.get(&vantage).is_none_or(|kinds| kinds.contains(&kind))
    }
}
