//! Which places can do which checks, as they named them when they connected.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::check::CheckKind;
use parallax_core::place::PlaceNo;

/// What the connected places can check. A place that names nothing is taken to be able to do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Able(BTreeMap<PlaceNo, BTreeSet<CheckKind>>);

impl Able {
    /// What each place named.
    pub fn new(places: impl IntoIterator<Item = (PlaceNo, BTreeSet<CheckKind>)>) -> Self {
        Self(places.into_iter().filter(|(_, kinds)| !kinds.is_empty()).collect())
    }

    /// Whether the place can check that.
    pub fn can(&self, place: PlaceNo, kind: CheckKind) -> bool {
        self.0.get(&place).is_none_or(|kinds| kinds.contains(&kind))
    }
}
