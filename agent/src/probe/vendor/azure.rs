//! The RSS feed of Azure's status: broad incidents only, and usually none.

use chrono::DateTime;
use parallax_protocol::result::VendorState;
use quick_xml::{Reader, events::Event};

use super::{PageComponent, PageIncident, StateLabel, VendorPage, health_rank, normalized};

/// Names of services that can be monitored; the feed contains only those with incidents.
const SERVICES: [&str; 24] = [
    "API Management",
    "App Service",
    "Application Gateway",
    "Azure Cosmos DB",
    "Azure Database for MySQL",
    "Azure Database for PostgreSQL",
    "Azure DevOps",
    "Azure DNS",
    "Azure Front Door",
    "Azure Functions",
    "Azure Kubernetes Service (AKS)",
    "Azure Monitor",
    "Azure OpenAI Service",
    "Azure SQL Database",
    "Event Hubs",
    "ExpressRoute",
    "Key Vault",
    "Load Balancer",
    "Microsoft Azure portal",
    "Microsoft Entra ID",
    "Service Bus",
    "Storage Accounts",
    "Virtual Machines",
    "Virtual Network",
];
/// Maximum nesting of elements; a feed has four levels.
const MAX_DEPTH: usize = 16;
/// Time for which an item that is not marked as resolved stays open, ms.
const FRESH_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of items.
const MAX_ITEMS: usize = 200;

#[derive(Default)]
struct Item {
    title: String,
    description: String,
    categories: Vec<String>,
    published: String,
}

/// Reads the feed as of `now_ms`, epoch ms; returns `None` for another shape. Items published more than a day
/// ago are ignored.
pub(super) fn read(body: &[u8], now_ms: i64) -> Option<VendorPage> {
    let open = |item: &Item| !item.is_resolved() && !item.is_old(now_ms);
    let open: Vec<Item> = items(body)?.into_iter().filter(open).collect();
    let components = SERVICES.into_iter().map(|name| PageComponent {
        name: name.to_owned(),
        label: worst_label(open.iter().filter_map(|item| item.label_for(name))),
        ..PageComponent::default()
    });
    let components = components.collect();
    let overall = worst_label(open.iter().map(Item::label));
    let incidents = open.into_iter().map(|item| {
        let named = SERVICES.into_iter().filter(|service| item.names(service)).map(str::to_owned);
        let touches = Some(named.collect()).filter(|names: &Vec<_>| !names.is_empty());
        PageIncident { affected: touches, title: item.title }
    });
    let incidents = incidents.collect();
    Some(VendorPage { overall: Some(overall), components, incidents, ..VendorPage::default() })
}

fn worst_label(labels: impl Iterator<Item = StateLabel>) -> StateLabel {
    labels
        .min_by_key(|label| health_rank(label.state))
        .unwrap_or_else(|| StateLabel::new("nothing published", Some(VendorState::Operational)))
}

/// Returns the items of a complete, well-formed RSS channel. Entities and types that a document defines
/// itself are not expanded.
fn items(body: &[u8]) -> Option<Vec<Item>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<Vec<u8>> = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut is_feed = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                path.push(start.name().0.as_bytes().to_vec());
                if path.len() > MAX_DEPTH {
                    return None;
                }
                is_feed |= is_at(&path, &[b"rss", b"channel"]);
                if is_at(&path, &[b"rss", b"channel", b"item"]) {
                    items.push(Item::default());
                    if items.len() > MAX_ITEMS {
                        return None;
                    }
                } else if is_at(&path, &[b"rss", b"channel", b"item", b"category"]) {
                    items.last_mut()?.categories.push(String::new());
                }
            }
            Event::End(_) => {
                path.pop()?;
            }
            Event::Text(text) => add(&path, &mut items, &text),
            Event::CData(text) => add(&path, &mut items, &text),
            Event::GeneralRef(name) => {
                let known = quick_xml::escape::unescape(&format!("&{};", &*name)).ok()?.into_owned();
                add(&path, &mut items, &known);
            }
            Event::DocType(_) => return None,
            Event::Eof => break,
            _ => {}
        }
    }
    (is_feed && path.is_empty()).then_some(items)
}

fn is_at(path: &[Vec<u8>], at: &[&[u8]]) -> bool {
    path.iter().map(Vec::as_slice).eq(at.iter().copied())
}

/// Adds text to the field that contains it.
fn add(path: &[Vec<u8>], items: &mut [Item], text: &str) {
    let [rss, channel, item, field] = path else { return };
    if !is_at(&[rss.clone(), channel.clone(), item.clone()], &[b"rss", b"channel", b"item"]) {
        return;
    }
    let Some(item) = items.last_mut() else { return };
    match field.as_slice() {
        b"title" => item.title.push_str(text),
        b"pubDate" => item.published.push_str(text),
        b"description" => item.description.push_str(text),
        b"category" => {
            if let Some(category) = item.categories.last_mut() {
                category.push_str(text);
            }
        }
        _ => {}
    }
}

impl Item {
    fn has(&self, terms: &[&str]) -> bool {
        let all = format!("{} {}", self.title, self.description).to_lowercase();
        terms.iter().any(|term| all.split(|c: char| !c.is_alphanumeric()).any(|own| own == *term))
    }

    /// Returns true if the first or last word of the title says so, unless another word says that not all is
    /// resolved. An item open for too long is noticed; one considered resolved too soon would hide an outage.
    fn is_resolved(&self) -> bool {
        const NOT_ALL: [&str; 9] = ["not", "no", "partially", "partly", "being", "still", "ongoing", "except", "until"];
        let title = self.title.to_lowercase();
        let words: Vec<_> = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let ends = [words.first(), words.last()];
        ends.into_iter().flatten().any(|word| matches!(*word, "resolved" | "mitigated"))
            && !words.iter().any(|word| NOT_ALL.contains(word) || word.starts_with("continu"))
    }

    /// An item with an unreadable date may be from today.
    fn is_old(&self, now_ms: i64) -> bool {
        let published = self.published.trim();
        // RFC 822 allows `Z` for UTC; its successor (RFC 5322, section 4.3) treats it as no zone at all.
        let published = published.strip_suffix('Z').map_or_else(|| published.to_owned(), |at| format!("{at}GMT"));
        DateTime::parse_from_rfc2822(&published)
            .is_ok_and(|at| now_ms.saturating_sub(at.timestamp_millis()) >= FRESH_MS)
    }

    fn state(&self) -> VendorState {
        if self.has(&["outage", "down", "unavailable"]) { VendorState::MajorOutage } else { VendorState::Degraded }
    }

    fn label(&self) -> StateLabel {
        StateLabel::new(&self.title, Some(self.state()))
    }

    /// Returns the state of a service by this item. An item that names no known service may affect any, for
    /// example "Network Infrastructure", so all of them become unknown.
    fn label_for(&self, service: &str) -> Option<StateLabel> {
        if self.names(service) {
            return Some(self.label());
        }
        (!SERVICES.into_iter().any(|known| self.names(known))).then(|| StateLabel::new(&self.title, None))
    }

    /// Names come with and without the vendor's name, and with additions such as "(Linux)".
    fn names(&self, service: &str) -> bool {
        let service = normalized_service(service);
        self.categories
            .iter()
            .map(|category| normalized_service(category))
            .any(|category| !category.is_empty() && (category.starts_with(&service) || service.starts_with(&category)))
    }
}

/// Normalises a service's name and removes its vendor's.
fn normalized_service(name: &str) -> String {
    let name = normalized(name);
    let name = name.strip_prefix("microsoft").unwrap_or(&name).trim_start();
    name.strip_prefix("azure").unwrap_or(name).trim_start().to_owned()
}
