//! The part of a page that is cached between readings.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::size_of,
};

use parallax_protocol::result::VendorReading;

use crate::probe::vendor::{NoReading, VendorPage};

/// Maximum size in bytes of a page that is cached whole; for a larger one only the requested readings are
/// cached.
const MAX_WHOLE: usize = 64 << 10;

/// A component's reading, or the reason why the page has none.
pub(in crate::probe::component) type ReadingResult = Result<VendorReading, NoReading>;

/// The cached last reading, without its documents.
#[derive(Debug)]
pub(super) enum CachedReading {
    Page(VendorPage),
    /// For a large page: the reading of each requested component.
    Readings(BTreeMap<Option<String>, ReadingResult>),
}

impl CachedReading {
    /// Caches a small page whole, and for a large one only the requested readings.
    pub(super) fn new(mut page: VendorPage, wanted: &BTreeSet<Option<String>>) -> Self {
        page.finish();
        if page.size() <= MAX_WHOLE {
            return Self::Page(page);
        }
        Self::Readings(wanted.iter().map(|name| (name.clone(), page.reading(name.as_deref()))).collect())
    }

    /// Returns the reading of a component; `None` if it is not cached. `component` is a normalised name.
    pub(super) fn reading_of(&self, component: Option<&str>) -> Option<ReadingResult> {
        match self {
            Self::Page(page) => Some(page.reading(component)),
            Self::Readings(all) => all.get(&component.map(str::to_owned)).cloned(),
        }
    }

    pub(super) fn has_all(&self, wanted: &BTreeSet<Option<String>>) -> bool {
        match self {
            Self::Page(_) => true,
            Self::Readings(all) => wanted.iter().all(|name| all.contains_key(name)),
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Page(page) => page.size(),
            Self::Readings(all) => {
                let text_size = |result: &ReadingResult| match result {
                    Ok(reading) => {
                        reading.vendor_text.as_str().len()
                            + reading.incident.as_ref().map_or(0, |incident| incident.as_str().len())
                    }
                    Err(NoReading::Missing(text) | NoReading::Unreadable(text) | NoReading::Unknown(text)) => {
                        text.capacity()
                    }
                    Err(NoReading::Empty) => 0,
                };
                let entry = size_of::<(Option<String>, ReadingResult)>();
                all.iter()
                    .map(|(name, result)| entry + name.as_ref().map_or(0, String::capacity) + text_size(result))
                    .sum()
            }
        }
    }
}
