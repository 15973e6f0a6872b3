//! Known products, the addresses of their documents, and detection of the product by a page's address.

use std::cmp::Reverse;

use url::Url;

use super::{
    MAX_PAGE, VendorPage, aws, azure, betterstack, cachet, google, heroku, instatus, kuma, page_id::PageIdSource,
    parallax, slack, statusio, statuspage, statuspal, uptimerobot,
};

/// Maximum size of a document in bytes; typical ones have a tenth of that.
const MAX_DOCUMENT: usize = 1024 * 1024;
/// Maximum size in bytes of documents with years of incidents or all products of a large vendor.
const MAX_LIST_DOCUMENT: usize = 8 * MAX_DOCUMENT;

/// A product's documents.
#[derive(Debug)]
pub(in crate::probe) struct VendorFormat {
    /// The product.
    pub(in crate::probe) name: &'static str,
    /// The page's documents. The first is required; it also identifies the product.
    pub(in crate::probe) documents: &'static [VendorDocument],
    /// Sources of the page's id, best first; empty if no address needs it.
    pub(in crate::probe) ids: &'static [PageIdSource],
    /// Hosts of the product itself.
    own_hosts: &'static [&'static str],
}

/// A document: its possible addresses, best first, and its reader.
///
/// A path that begins with `/` is relative to the page's address. In others, `{origin}` is the address
/// without its path, `{id}` the page's id, and `{n}` the number of the list's page.
#[derive(Debug)]
pub(in crate::probe) struct VendorDocument {
    pub(in crate::probe) paths: &'static [&'static str],
    reader: DocumentReader,
    /// Maximum size in bytes.
    pub(in crate::probe) max_bytes: usize,
}

/// Parses a document, or returns `None` for another shape.
#[derive(Debug, Clone, Copy)]
enum DocumentReader {
    /// The contents are valid until the document changes.
    Stable(fn(&[u8]) -> Option<VendorPage>),
    /// The contents expire by themselves: the reader receives the time, in epoch ms.
    Expiring(fn(&[u8], i64) -> Option<VendorPage>),
}

impl VendorFormat {
    /// Returns the maximum size in bytes of all its documents together, with any number of list pages.
    pub(in crate::probe) fn max_total_bytes(&self) -> usize {
        let lists = self.documents.iter().map(|document| document.max_bytes).filter(|most| *most > MAX_DOCUMENT);
        MAX_PAGE + lists.sum::<usize>()
    }
}

impl VendorDocument {
    const fn new(paths: &'static [&'static str], read: fn(&[u8]) -> Option<VendorPage>) -> Self {
        Self { paths, reader: DocumentReader::Stable(read), max_bytes: MAX_DOCUMENT }
    }

    const fn expiring(paths: &'static [&'static str], read: fn(&[u8], i64) -> Option<VendorPage>) -> Self {
        Self { paths, reader: DocumentReader::Expiring(read), max_bytes: MAX_DOCUMENT }
    }

    const fn list(paths: &'static [&'static str], read: fn(&[u8]) -> Option<VendorPage>) -> Self {
        Self { paths, reader: DocumentReader::Stable(read), max_bytes: MAX_LIST_DOCUMENT }
    }

    /// Reads the document as of a time, epoch ms; returns `None` for another shape.
    pub(in crate::probe) fn read(&self, body: &[u8], now_ms: i64) -> Option<VendorPage> {
        match self.reader {
            DocumentReader::Stable(read) => read(body),
            DocumentReader::Expiring(read) => read(body, now_ms),
        }
    }

    /// Returns true if a reading stays valid until the document changes.
    pub(in crate::probe) const fn is_stable(&self) -> bool {
        matches!(self.reader, DocumentReader::Stable(_))
    }

    /// Returns the addresses of list page `n`, best first; empty if they need an id and there is none.
    pub(in crate::probe) fn addresses(&self, base: &str, id: Option<&str>, n: usize) -> Vec<String> {
        self.paths.iter().filter_map(|path| expand_address(path, base, id, n)).collect()
    }
}

/// Expands a path to an address.
pub(in crate::probe) fn expand_address(path: &str, base: &str, id: Option<&str>, n: usize) -> Option<String> {
    let mut address = if path.starts_with('/') { format!("{base}{path}") } else { path.to_owned() };
    if address.contains("{origin}") {
        let origin = Url::parse(base).ok()?.origin().ascii_serialization();
        address = address.replace("{origin}", &origin);
    }
    if address.contains("{id}") {
        address = address.replace("{id}", id?);
    }
    Some(address.replace("{n}", &n.to_string()))
}

/// The formats, in the order in which an unknown page is tried: ambiguous shapes come last.
pub(super) const FORMATS: &[VendorFormat] = &[
    VendorFormat {
        name: "Statuspage",
        documents: &[VendorDocument::new(&["/api/v2/summary.json"], statuspage::read)],
        ids: &[],
        own_hosts: &["statuspage.io", "status.atlassian.com", "incident.io", "incidentio.com"],
    },
    VendorFormat {
        name: "Instatus",
        documents: &[
            VendorDocument::new(&["/v3/summary.json", "/summary.json"], instatus::summary),
            VendorDocument::new(
                &["/v3/components.json", "/v2/components.json", "/components.json"],
                instatus::components,
            ),
        ],
        ids: &[],
        own_hosts: &["instatus.com"],
    },
    VendorFormat {
        name: "Better Stack",
        documents: &[VendorDocument::new(&["/index.json"], betterstack::read)],
        ids: &[],
        own_hosts: &["betteruptime.com", "betterstack.com"],
    },
    VendorFormat {
        name: "OpenStatus",
        documents: &[VendorDocument::new(&["/api/status/summary.json"], statuspage::read)],
        ids: &[],
        own_hosts: &["openstatus.dev"],
    },
    VendorFormat {
        name: "Parallax",
        documents: &[VendorDocument::new(&["/status.json"], parallax::read)],
        ids: &[],
        own_hosts: &[],
    },
    VendorFormat {
        name: "Cachet 3",
        documents: &[
            VendorDocument::new(&["/api/components?include=group&per_page=100&page={n}"], cachet::components3),
            VendorDocument::new(&["/api/status"], cachet::status3),
            VendorDocument::new(&["/api/incidents?sort=-id&per_page=20"], cachet::incidents3),
        ],
        ids: &[],
        own_hosts: &[],
    },
    VendorFormat {
        name: "Cachet 2",
        documents: &[
            VendorDocument::new(&["/api/v1/components?per_page=100&page={n}"], cachet::components2),
            VendorDocument::new(&["/api/v1/status"], cachet::status2),
            VendorDocument::new(&["/api/v1/components/groups?per_page=100&page={n}"], cachet::groups2),
            VendorDocument::new(&["/api/v1/incidents?sort=id&order=desc&per_page=20"], cachet::incidents2),
        ],
        ids: &[],
        own_hosts: &[],
    },
    VendorFormat {
        name: "Uptime Kuma",
        documents: &[
            VendorDocument::new(&["{origin}/api/status-page/{id}"], kuma::page),
            VendorDocument::new(&["{origin}/api/status-page/heartbeat/{id}"], kuma::heartbeats),
        ],
        ids: &[PageIdSource::After("/status/"), PageIdSource::In("{origin}/api/entry-page", kuma::slug)],
        own_hosts: &[],
    },
    VendorFormat {
        name: "Status.io",
        documents: &[VendorDocument::new(&["https://api.status.io/1.0/status/{id}"], statusio::read)],
        ids: &[PageIdSource::In("/", statusio::page_id)],
        own_hosts: &["status.io", "hostedstatus.com"],
    },
    VendorFormat {
        name: "UptimeRobot",
        documents: &[VendorDocument::new(&["{origin}/api/getMonitorList/x?page={n}"], uptimerobot::read)],
        ids: &[],
        own_hosts: &[],
    },
];

/// Vendors with a single page, and products hosted only on their own domains: detected by address alone.
pub(super) const SINGLE_HOST_FORMATS: &[VendorFormat] = &[
    VendorFormat {
        name: "Slack",
        documents: &[VendorDocument::new(&["/api/v2.0.0/current"], slack::read)],
        ids: &[],
        own_hosts: &["slack-status.com", "status.slack.com"],
    },
    VendorFormat {
        name: "Heroku",
        documents: &[VendorDocument::new(&["/api/v4/current-status"], heroku::read)],
        ids: &[],
        own_hosts: &["status.heroku.com"],
    },
    VendorFormat {
        name: "Google",
        documents: &[
            VendorDocument::list(&["/incidents.json", "/dashboard/incidents.json"], google::incidents),
            VendorDocument::list(&["/products.json", "/dashboard/products.json"], google::products),
        ],
        ids: &[],
        own_hosts: &["status.cloud.google.com", "www.google.com"],
    },
    VendorFormat {
        name: "AWS",
        documents: &[
            VendorDocument::list(&["https://health.aws.amazon.com/public/currentevents"], aws::events),
            VendorDocument::list(&["https://servicedata-us-west-2-prod.s3.amazonaws.com/services.json"], aws::services),
        ],
        ids: &[],
        own_hosts: &["health.aws.amazon.com", "status.aws.amazon.com"],
    },
    VendorFormat {
        name: "Azure",
        documents: &[VendorDocument::expiring(
            &["https://rssfeed.azure.status.microsoft/en-us/status/feed/"],
            azure::read,
        )],
        ids: &[],
        own_hosts: &["azure.status.microsoft", "status.azure.com"],
    },
    // The same name below both hosts may belong to two customers.
    VendorFormat {
        name: "Statuspal",
        documents: &[VendorDocument::new(&["https://statuspal.io/api/v2/status_pages/{id}/summary"], statuspal::read)],
        ids: &[PageIdSource::Host],
        own_hosts: &["statuspal.io"],
    },
    VendorFormat {
        name: "Statuspal",
        documents: &[VendorDocument::new(&["https://statuspal.eu/api/v2/status_pages/{id}/summary"], statuspal::read)],
        ids: &[PageIdSource::Host],
        own_hosts: &["statuspal.eu"],
    },
    VendorFormat {
        name: "UptimeRobot",
        documents: &[VendorDocument::new(&["{origin}/api/getMonitorList/{id}?page={n}"], uptimerobot::read)],
        ids: &[PageIdSource::After("/")],
        own_hosts: &["stats.uptimerobot.com"],
    },
];

/// Normalises a page's address: adds `https`, removes the query and paths to incidents or feeds, which people
/// copy along. Returns `None` if it is not an http or https address.
pub(in crate::probe) fn normalized_address(address: &str) -> Option<String> {
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
    for tail in ["/history", "/feed", "/status.json"] {
        path = path.strip_suffix(tail).unwrap_or(path);
    }
    for middle in ["/incidents/", "/api/v2/", "/feed.", "/history."] {
        path = path.find(middle).and_then(|at| path.get(..at)).unwrap_or(path);
    }
    let path = path.trim_end_matches('/').to_owned();
    url.set_path(&path);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Returns the formats to try for a page, the product's own first if its address shows it.
pub(in crate::probe) fn candidates(base: &str) -> Vec<&'static VendorFormat> {
    let host = Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase)).unwrap_or_default();
    let is_own = |format: &VendorFormat| {
        format
            .own_hosts
            .iter()
            .any(|own| host.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    if let Some(format) = SINGLE_HOST_FORMATS.iter().find(|format| is_own(format)) {
        return vec![format];
    }
    let mut formats: Vec<_> = FORMATS.iter().collect();
    formats.sort_by_key(|format| Reverse(is_own(format) || format.ids.iter().any(|id| id.in_address(base).is_some())));
    formats
}

/// Returns the maximum number of requests until a page is known to have this format or not.
pub(in crate::probe) fn max_requests(format: &VendorFormat, base: &str) -> usize {
    let has_id = format.ids.iter().any(|id| id.in_address(base).is_some());
    let id_documents = format.ids.iter().filter(|id| matches!(id, PageIdSource::In(..))).count();
    format.documents.first().map_or(0, |document| document.paths.len()) + if has_id { 0 } else { id_documents }
}
