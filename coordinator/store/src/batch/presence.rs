//! Required states of records, as conditions name them.

/// Required state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Not in the store.
    Absent,
    /// In the store, at any revision.
    Present,
    /// In the store, at that revision.
    At(u64),
}

impl Presence {
    /// Returns true if a record of that revision (`None`: absent) is in the required state.
    pub(crate) fn holds(self, revision: Option<u64>) -> bool {
        match self {
            Self::Absent => revision.is_none(),
            Self::Present => revision.is_some(),
            Self::At(expected) => revision == Some(expected),
        }
    }
}
