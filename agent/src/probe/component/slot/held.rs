//! The part of a page that is kept from one reading to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::size_of,
};

use parallax_protocol::result::VendorReading;

use crate::probe::vendor::{NoReading, Page};

/// Bytes of a page that is kept whole; of a larger one only what monitors ask for.
const MAX_WHOLE: usize = 64 << 10;

/// A component's reading, or why the page has none.
pub(in crate::probe::component) type Said = Result<VendorReading, NoReading>;

/// The last reading as it is kept, never its documents beside it.
#[derive(Debug)]
pub(super) enum Held {
    Page(Page),
    /// Of a page that is large: what it says of each component that is asked for.
    Readings(BTreeMap<Option<String>, Said>),
}

impl Held {
    /// Keeps a small page whole, and of a large one the readings that monitors want.
    pub(super) fn new(mut page: Page, wanted: &BTreeSet<Option<String>>) -> Self {
        page.finish();
        if page.weight() <= MAX_WHOLE {
            return Self::Page(page);
        }
        Self::Readings(wanted.iter().map(|name| (name.clone(), page.reading(name.as_deref()))).collect())
    }

    /// Its reading of a component; `None` where that was not kept. `component` is as names are compared.
    pub(super) fn said_of(&self, component: Option<&str>) -> Option<Said> {
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

    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Page(page) => page.weight(),
            Self::Readings(all) => {
                let texts = |said: &Said| match said {
                    Ok(reading) => {
                        reading.word.as_str().len()
                            + reading.incident.as_ref().map_or(0, |incident| incident.as_str().len())
                    }
                    Err(NoReading::Missing(text) | NoReading::Unread(text) | NoReading::Unknown(text)) => {
                        text.capacity()
                    }
                    Err(NoReading::Empty) => 0,
                };
                let entry = size_of::<(Option<String>, Said)>();
                all.iter()
                    .map(|(name, said)| entry + name.as_ref().map_or(0, String::capacity) + texts(said))
                    .sum()
            }
        }
    }
}
