//! Vendors' status pages: parses their documents into one form, and derives readings from it.

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
mod page_id;
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
    text::ShortText,
};
use serde_json::Value;

pub(super) use bounds::MAX_PAGE;
pub(super) use format::{VendorDocument, VendorFormat, candidates, expand_address, max_requests, normalized_address};
pub(super) use page_id::PageIdSource;

/// Number of names suggested for a missing component, and maximum characters of each.
const MAX_SUGGESTIONS: usize = 3;
const SUGGESTION_LENGTH: usize = 30;
/// Number of names compared with a missing one, and maximum characters of each: a page may have any number of
/// any length.
const MAX_COMPARED: usize = 1000;
const COMPARED_LENGTH: usize = 100;
/// Similarity (Jaro-Winkler, 0 to 1) from which a name is suggested as the intended one.
const MIN_SIMILARITY: f64 = 0.8;

/// Contents of a page, in one form for all products. A page may consist of several documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct VendorPage {
    /// The page's own overall state; `None` if it has none.
    overall: Option<StateLabel>,
    components: Vec<PageComponent>,
    /// Open incidents, newest first.
    incidents: Vec<PageIncident>,
    /// True during planned maintenance.
    in_maintenance: bool,
    /// States and groups of components that another document of the page names, by their ids there.
    states_by_id: BTreeMap<String, StateLabel>,
    groups_by_id: BTreeMap<String, String>,
    /// True if the document is one page of a list and more follow.
    pub(super) has_next: bool,
    /// Error of an unreadable document that may contain more of the components.
    unreadable_part: Option<String>,
}

/// A vendor's word and its mapped state; an unknown word has none, so it never means that all is well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct StateLabel {
    state: Option<VendorState>,
    text: String,
}

/// A component of a vendor's service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PageComponent {
    /// Empty if no other document refers to it.
    id: String,
    name: String,
    /// All nested groups, from the outermost: `A / B`.
    group: Option<String>,
    label: StateLabel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PageIncident {
    title: String,
    /// Names of the affected components; `None` if the page does not list them.
    affected: Option<Vec<String>>,
}

/// Reason why a page that was read has no reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoReading {
    /// No component of that name, with a text about the existing ones.
    Missing(String),
    /// The page has no contents.
    Empty,
    /// A document that may contain the component is unreadable, with the reason.
    Unreadable(String),
    /// A word without a known meaning.
    Unknown(String),
}

impl VendorPage {
    /// Creates the substitute of an unreadable document, with the reason.
    pub(super) fn unreadable(why: String) -> Self {
        Self { unreadable_part: Some(why), ..Self::default() }
    }

    /// Adds the contents of another document of the same page.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.overall.is_none() {
            self.overall.clone_from(&other.overall);
        }
        self.components.extend(other.components.iter().cloned());
        self.incidents.extend(other.incidents.iter().cloned());
        self.in_maintenance |= other.in_maintenance;
        if self.unreadable_part.is_none() {
            self.unreadable_part.clone_from(&other.unreadable_part);
        }
        for component in &mut self.components {
            if let Some(label) = other.states_by_id.get(&component.id) {
                component.label.clone_from(label);
            }
            if let Some(group) = other.groups_by_id.get(&component.id) {
                component.group = Some(group.clone());
            }
        }
    }

    /// Returns the state of a component (its name, `Group / Name`, or a whole group), or of everything.
    ///
    /// # Errors
    /// [`NoReading`] if there is none that can be interpreted.
    pub(super) fn reading(&self, component: Option<&str>) -> Result<VendorReading, NoReading> {
        let component = normalized_component(component);
        let (label, incident) = match &component {
            None => (self.overall_label(), self.incidents.iter().find(|incident| !incident.title.is_empty())),
            Some(name) => {
                let matching: Vec<_> = self.components.iter().filter(|component| component.has_name(name)).collect();
                (worst_label(&matching), self.incident_of(&matching))
            }
        };
        let label = label.ok_or_else(|| self.missing(component.as_deref()))?;
        let Some(state) = label.state else { return Err(NoReading::Unknown(label.text)) };
        let is_well = matches!(state, VendorState::Operational | VendorState::Maintenance);
        let incident = incident.filter(|_| !is_well).map(|incident| ShortText::new(&incident.title));
        Ok(VendorReading { state, vendor_text: ShortText::new(&label.text), incident })
    }

    /// Returns the reason why there is no such component; `name` is normalised.
    fn missing(&self, name: Option<&str>) -> NoReading {
        match (&self.unreadable_part, name) {
            (Some(why), _) => NoReading::Unreadable(why.clone()),
            (None, Some(name)) if self.components.iter().any(|component| !component.name.is_empty()) => {
                NoReading::Missing(self.similar_names(name))
            }
            (None, _) => NoReading::Empty,
        }
    }

    /// Returns the names on the page most similar to that one, or else its first ones.
    fn similar_names(&self, name: &str) -> String {
        let mut seen = BTreeSet::new();
        let own = self.components.iter().map(|component| component.name.as_str());
        let names: Vec<&str> = own.filter(|own| !own.trim().is_empty() && seen.insert(*own)).collect();
        let name: String = name.chars().take(COMPARED_LENGTH).collect();
        let likeness = |own: &str| {
            let own = normalized(&own.chars().take(COMPARED_LENGTH).collect::<String>());
            let is_part = own.contains(&name) || name.contains(&own);
            if is_part { 1.0 } else { strsim::jaro_winkler(&own, &name) }
        };
        let mut alike: Vec<(f64, &str)> = names
            .iter()
            .copied()
            .take(MAX_COMPARED)
            .map(|own| (likeness(own), own))
            .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
            .collect();
        alike.sort_by(|(first, _), (second, _)| second.total_cmp(first));
        let alike: Vec<&str> = alike.into_iter().map(|(_, own)| own).collect();
        if !alike.is_empty() {
            return format!("similar: {}", quoted(&alike));
        }
        let more = names.len().saturating_sub(MAX_SUGGESTIONS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("it has {}{more}", quoted(&names))
    }

    fn overall_label(&self) -> Option<StateLabel> {
        let label = self.overall.clone().or_else(|| worst_label(&self.components.iter().collect::<Vec<_>>()))?;
        if self.in_maintenance && label.state == Some(VendorState::Operational) {
            return Some(StateLabel { state: Some(VendorState::Maintenance), ..label });
        }
        Some(label)
    }

    /// An incident that names a component precedes one that may affect any.
    fn incident_of(&self, components: &[&PageComponent]) -> Option<&PageIncident> {
        let names_one = |incident: &&PageIncident| {
            let named = incident.affected.iter().flatten();
            named.into_iter().any(|name| components.iter().any(|component| component.name == *name))
        };
        self.incidents
            .iter()
            .find(names_one)
            .or_else(|| self.incidents.iter().find(|incident| incident.affected.is_none()))
    }
}

impl PageComponent {
    /// Compares the name; `name` is normalised.
    fn has_name(&self, name: &str) -> bool {
        if normalized(&self.name) == name {
            return true;
        }
        let Some(group) = &self.group else { return false };
        let group = normalized(group);
        group == name
            || group.strip_prefix(name).is_some_and(|inner| inner.starts_with(" / "))
            || [" / ", " > "]
                .iter()
                .any(|joint| bounds::truncate_name(&format!("{group}{joint}{}", normalized(&self.name))) == name)
    }
}

impl StateLabel {
    fn new(text: &str, state: Option<VendorState>) -> Self {
        let text = if text.is_empty() { "no status" } else { text };
        Self { state, text: text.to_owned() }
    }
}

/// Returns the worst of several states. An unknown one hides no outage, and no good one hides it.
fn worst_label(components: &[&PageComponent]) -> Option<StateLabel> {
    components.iter().map(|component| &component.label).max_by_key(|label| Reverse(health_rank(label.state))).cloned()
}

fn health_rank(state: Option<VendorState>) -> u8 {
    match state {
        Some(VendorState::Operational) => 5,
        Some(VendorState::Maintenance) => 4,
        None => 3,
        Some(VendorState::Degraded) => 2,
        Some(VendorState::PartialOutage) => 1,
        Some(VendorState::MajorOutage) => 0,
    }
}

/// Reads an id or a number, which products write in either form.
fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Formats the first few names, in quotation marks.
fn quoted(names: &[&str]) -> String {
    let short = |name: &&str| {
        let cut: String = name.chars().take(SUGGESTION_LENGTH).collect();
        if cut.len() < name.len() { format!("\"{cut}…\"") } else { format!("\"{cut}\"") }
    };
    names.iter().take(MAX_SUGGESTIONS).map(short).collect::<Vec<_>>().join(", ")
}

/// Normalises the name of the component that a monitor requests; `None` for the whole page.
pub(super) fn normalized_component(component: Option<&str>) -> Option<String> {
    component.map(|name| normalized(&bounds::truncate_name(name))).filter(|name| !name.is_empty())
}

/// Normalises names: they are compared without case and with single spaces.
fn normalized(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests;
