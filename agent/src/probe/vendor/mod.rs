//! Vendors' status pages: their documents to one form, and one reading out of that.

mod aws;
mod azure;
mod betterstack;
mod bounds;
mod cachet;
mod format;
mod google;
mod heroku;
mod instatus;
mod kuma;
mod lenient;
mod parallax;
mod slack;
mod statusio;
mod statuspage;
mod statuspal;
mod uptimerobot;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use parallax_protocol::{
    result::{VendorReading, VendorState},
    text::Detail,
};
use serde_json::Value;

pub(super) use bounds::MAX_PAGE;
pub(super) use format::{Document, Format, Id, base, candidates, place, tries};

/// Names that are shown where a component is not on a page, and characters of each.
const SHOWN: usize = 3;
const NAME_SHOWN: usize = 30;
/// Names that are compared with one that is not on a page, and characters of each: a page may have any number of any length.
const COMPARED: usize = 1000;
const NAME_COMPARED: usize = 100;
/// How much alike two names are (Jaro-Winkler, 0 to 1) for one to be taken for a slip of the other.
const ALIKE: f64 = 0.8;

/// What a page says, in one form for all products. A page may be made of several documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The page's own word for the whole; `None` where it has none.
    overall: Option<Word>,
    components: Vec<Component>,
    /// Open ones, the newest first.
    incidents: Vec<Incident>,
    /// Whether planned work is going on.
    in_maintenance: bool,
    /// Words and groups of components that another document of the page names, by their ids there.
    words: BTreeMap<String, Word>,
    groups: BTreeMap<String, String>,
    /// Whether the document is one sheet of a list that goes on.
    pub(super) goes_on: bool,
    /// Why a document that may have more of the components can't be read.
    lacks: Option<String>,
}

/// A vendor's word and what it means; an unknown one means nothing, least of all that all is well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Word {
    state: Option<VendorState>,
    word: String,
}

/// One part of what a vendor runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Component {
    /// Empty where no other document refers to it.
    id: String,
    name: String,
    /// Of nested groups all, from the outermost: `A / B`.
    group: Option<String>,
    word: Word,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Incident {
    title: String,
    /// Names of the components it touches; `None` where the page does not say.
    touches: Option<Vec<String>>,
}

/// Why a page that was read has no reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoReading {
    /// No component of that name: words for what there is.
    Missing(String),
    /// The page has nothing to read at all.
    Empty,
    /// A document that may have the component can't be read: why.
    Unread(String),
    /// A word without a known meaning.
    Unknown(String),
}

impl Page {
    /// The place of a document that can't be read, with the reason.
    pub(super) fn lacking(why: String) -> Self {
        Self { lacks: Some(why), ..Self::default() }
    }

    /// Adds what another document of the same page says.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.overall.is_none() {
            self.overall.clone_from(&other.overall);
        }
        self.components.extend(other.components.iter().cloned());
        self.incidents.extend(other.incidents.iter().cloned());
        self.in_maintenance |= other.in_maintenance;
        if self.lacks.is_none() {
            self.lacks.clone_from(&other.lacks);
        }
        for component in &mut self.components {
            if let Some(word) = other.words.get(&component.id) {
                component.word.clone_from(word);
            }
            if let Some(group) = other.groups.get(&component.id) {
                component.group = Some(group.clone());
            }
        }
    }

    /// What the page says of a component (its name, `Group / Name`, or a whole group), or of everything.
    ///
    /// # Errors
    /// [`NoReading`] where it says nothing that could be understood.
    pub(super) fn reading(&self, component: Option<&str>) -> Result<VendorReading, NoReading> {
        let component = asked(component);
        let (word, incident) = match &component {
            None => (self.whole(), self.incidents.iter().find(|incident| !incident.title.is_empty())),
            Some(name) => {
                let matching: Vec<_> = self.components.iter().filter(|one| one.is_called(name)).collect();
                (worst(&matching), self.incident_of(&matching))
            }
        };
        let word = word.ok_or_else(|| self.missing(component.as_deref()))?;
        let Some(state) = word.state else { return Err(NoReading::Unknown(word.word)) };
        let is_well = matches!(state, VendorState::Operational | VendorState::Maintenance);
        let incident = incident.filter(|_| !is_well).map(|incident| Detail::new(&incident.title));
        Ok(VendorReading { state, word: Detail::new(&word.word), incident })
    }

    /// Why there is no such component; `name` is folded.
    fn missing(&self, name: Option<&str>) -> NoReading {
        match (&self.lacks, name) {
            (Some(why), _) => NoReading::Unread(why.clone()),
            (None, Some(name)) if self.components.iter().any(|one| !one.name.is_empty()) => {
                NoReading::Missing(self.names_like(name))
            }
            (None, _) => NoReading::Empty,
        }
    }

    /// The names on the page that come nearest to that one, or else its first ones.
    fn names_like(&self, name: &str) -> String {
        let mut known = BTreeSet::new();
        let own = self.components.iter().map(|one| one.name.as_str());
        let names: Vec<&str> = own.filter(|own| !own.trim().is_empty() && known.insert(*own)).collect();
        let name: String = name.chars().take(NAME_COMPARED).collect();
        let likeness = |own: &str| {
            let own = folded(&own.chars().take(NAME_COMPARED).collect::<String>());
            let is_part = own.contains(&name) || name.contains(&own);
            if is_part { 1.0 } else { strsim::jaro_winkler(&own, &name) }
        };
        let mut alike: Vec<(f64, &str)> = names
            .iter()
            .copied()
            .take(COMPARED)
            .map(|own| (likeness(own), own))
            .filter(|(alike, _)| *alike >= ALIKE)
            .collect();
        alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let alike: Vec<&str> = alike.into_iter().map(|(_, own)| own).collect();
        if !alike.is_empty() {
            return format!("near it: {}", quoted(&alike));
        }
        let more = names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("it has {}{more}", quoted(&names))
    }

    fn whole(&self) -> Option<Word> {
        let word = self.overall.clone().or_else(|| worst(&self.components.iter().collect::<Vec<_>>()))?;
        if self.in_maintenance && word.state == Some(VendorState::Operational) {
            return Some(Word { state: Some(VendorState::Maintenance), ..word });
        }
        Some(word)
    }

    /// One that names a component comes before one that may touch any.
    fn incident_of(&self, components: &[&Component]) -> Option<&Incident> {
        let names_one = |incident: &&Incident| {
            let named = incident.touches.iter().flatten();
            named.into_iter().any(|name| components.iter().any(|one| one.name == *name))
        };
        self.incidents
            .iter()
            .find(names_one)
            .or_else(|| self.incidents.iter().find(|incident| incident.touches.is_none()))
    }
}

impl Component {
    /// `name` is folded.
    fn is_called(&self, name: &str) -> bool {
        if folded(&self.name) == name {
            return true;
        }
        let Some(group) = &self.group else { return false };
        let group = folded(group);
        group == name
            || group.strip_prefix(name).is_some_and(|inner| inner.starts_with(" / "))
            || [" / ", " > "]
                .iter()
                .any(|joint| bounds::cut_name(&format!("{group}{joint}{}", folded(&self.name))) == name)
    }
}

impl Word {
    fn new(word: &str, state: Option<VendorState>) -> Self {
        let word = if word.is_empty() { "no status" } else { word };
        Self { state, word: word.to_owned() }
    }
}

/// The worst of several words. One that isn't known hides no outage, and no good word hides it.
fn worst(components: &[&Component]) -> Option<Word> {
    components.iter().map(|one| &one.word).max_by_key(|word| Reverse(goodness(word.state))).cloned()
}

fn goodness(state: Option<VendorState>) -> u8 {
    match state {
        Some(VendorState::Operational) => 5,
        Some(VendorState::Maintenance) => 4,
        None => 3,
        Some(VendorState::Degraded) => 2,
        Some(VendorState::PartialOutage) => 1,
        Some(VendorState::MajorOutage) => 0,
    }
}

/// An id or a number, which products write as either.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The first few names, in quotation marks.
fn quoted(names: &[&str]) -> String {
    let short = |name: &&str| {
        let cut: String = name.chars().take(NAME_SHOWN).collect();
        if cut.len() < name.len() { format!("\"{cut}…\"") } else { format!("\"{cut}\"") }
    };
    names.iter().take(SHOWN).map(short).collect::<Vec<_>>().join(", ")
}

/// The component that a monitor asks for, as names are compared; `None` for the whole page.
pub(super) fn asked(component: Option<&str>) -> Option<String> {
    component.map(|name| folded(&bounds::cut_name(name))).filter(|name| !name.is_empty())
}

/// Names are compared without case and with single spaces.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests;
