//! Vendors' status pages: their documents to one form, and one reading out of that.

mod betterstack;
mod google;
mod heroku;
mod instatus;
mod slack;
mod statuspage;

use std::cmp::Reverse;

use parallax_protocol::{
    result::{VendorReading, VendorState},
    text::Detail,
};
use url::Url;

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
}

/// A vendor's word and what it means; an unknown one means nothing, least of all that all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    state: Option<VendorState>,
    word: String,
}

/// One part of what a vendor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Component {
    name: String,
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
    /// No component of that name.
    Missing,
    /// A word without a known meaning.
    Unknown(String),
}

/// A product's documents.
#[derive(Debug)]
pub(super) struct Format {
    /// Each of the page's documents: where it may lie below the page's address, and its reader. The first must be
    /// there; it is also how the product is recognised.
    pub(super) documents: &'static [Document],
    /// Hosts of the product itself.
    hosts: &'static [&'static str],
}

/// A document: the places it may lie at, best first, and its reader.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) paths: &'static [&'static str],
    pub(super) read: fn(&[u8]) -> Option<Page>,
}

/// The formats, in the order in which an unknown page is tried: a shape that others could be taken for comes first.
pub(super) const FORMATS: &[Format] = &[
    Format {
        documents: &[Document { paths: &["/api/v2/summary.json"], read: statuspage::read }],
        hosts: &["statuspage.io", "status.atlassian.com", "incident.io", "incidentio.com"],
    },
    Format {
        documents: &[
            Document { paths: &["/v3/summary.json", "/summary.json"], read: instatus::summary },
            Document {
                paths: &["/v3/components.json", "/v2/components.json", "/components.json"],
                read: instatus::components,
            },
        ],
        hosts: &["instatus.com"],
    },
    Format {
        documents: &[Document { paths: &["/index.json"], read: betterstack::read }],
        hosts: &["betteruptime.com", "betterstack.com"],
    },
    Format {
        documents: &[Document { paths: &["/api/status/summary.json"], read: statuspage::read }],
        hosts: &["openstatus.dev"],
    },
];

/// Pages of one vendor each, which are recognised by their address alone.
const HOUSES: &[Format] = &[
    Format {
        documents: &[Document { paths: &["/api/v2.0.0/current"], read: slack::read }],
        hosts: &["slack-status.com", "status.slack.com"],
    },
    Format {
        documents: &[Document { paths: &["/api/v4/current-status"], read: heroku::read }],
        hosts: &["status.heroku.com"],
    },
    Format {
        documents: &[
            Document { paths: &["/incidents.json", "/dashboard/incidents.json"], read: google::incidents },
            Document { paths: &["/products.json", "/dashboard/products.json"], read: google::products },
        ],
        hosts: &["status.cloud.google.com", "www.google.com"],
    },
];

/// A page's address without what people copy along with it: `https` added, no query, no path to an incident or feed.
/// `None` for what is no http or https address.
pub(super) fn base(address: &str) -> Option<String> {
    let address = address.trim();
    let with_scheme = if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    let mut url = Url::parse(&with_scheme).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.host_str()?;
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    let mut path = url.path().trim_end_matches('/');
    for tail in ["/history", "/feed"] {
        path = path.strip_suffix(tail).unwrap_or(path);
    }
    for middle in ["/incidents/", "/api/v2/", "/feed.", "/history."] {
        path = path.find(middle).and_then(|at| path.get(..at)).unwrap_or(path);
    }
    let path = path.trim_end_matches('/').to_owned();
    url.set_path(&path);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// The formats to try for a page, the product's own first where its host tells.
pub(super) fn candidates(base: &str) -> Vec<&'static Format> {
    let host =
        Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase)).unwrap_or_default();
    let is_own = |format: &Format| {
        format
            .hosts
            .iter()
            .any(|own| host.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    if let Some(house) = HOUSES.iter().find(|format| is_own(format)) {
        return vec![house];
    }
    let mut formats: Vec<_> = FORMATS.iter().collect();
    formats.sort_by_key(|format| Reverse(is_own(format)));
    formats
}

impl Page {
    /// Adds what another document of the same page says.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.overall.is_none() {
            self.overall.clone_from(&other.overall);
        }
        self.components.extend(other.components.iter().cloned());
        self.incidents.extend(other.incidents.iter().cloned());
        self.in_maintenance |= other.in_maintenance;
    }

    /// What the page says of a component (its name, `Group / Name`, or a whole group), or of everything.
    ///
    /// # Errors
    /// [`NoReading`] where it says nothing that could be understood.
    pub(super) fn reading(&self, component: Option<&str>) -> Result<VendorReading, NoReading> {
        let component = component.map(folded).filter(|name| !name.is_empty());
        let (word, incident) = match &component {
            None => (self.whole(), self.incidents.first()),
            Some(name) => {
                let matching: Vec<_> = self.components.iter().filter(|one| one.is_called(name)).collect();
                (worst(&matching), self.incident_of(&matching))
            }
        };
        let word = word.ok_or(NoReading::Missing)?;
        let Some(state) = word.state else { return Err(NoReading::Unknown(word.word)) };
        let is_well = matches!(state, VendorState::Operational | VendorState::Maintenance);
        let incident = incident.filter(|_| !is_well).map(|incident| Detail::new(&incident.title));
        Ok(VendorReading { state, word: Detail::new(&word.word), incident })
    }

    fn whole(&self) -> Option<Word> {
        let word = self.overall.clone().or_else(|| worst(&self.components.iter().collect::<Vec<_>>()))?;
        if self.in_maintenance && word.state == Some(VendorState::Operational) {
            return Some(Word { state: Some(VendorState::Maintenance), ..word });
        }
        Some(word)
    }

    fn incident_of(&self, components: &[&Component]) -> Option<&Incident> {
        self.incidents.iter().find(|incident| match &incident.touches {
            None => true,
            Some(names) => components.iter().any(|one| names.contains(&one.name)),
        })
    }
}

impl Component {
    /// `name` is folded.
    fn is_called(&self, name: &str) -> bool {
        if folded(&self.name) == name {
            return true;
        }
        let Some(group) = &self.group else { return false };
        folded(group) == name
            || [" / ", " > "].iter().any(|joint| folded(&format!("{group}{joint}{}", self.name)) == name)
    }
}

impl Word {
    fn new(word: &str, state: Option<VendorState>) -> Self {
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

/// Names are compared without case and with single spaces.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests;
