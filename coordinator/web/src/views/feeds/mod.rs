//! Machine-readable forms of a page: a Statuspage-compatible API, feeds, and a calendar of maintenance.

pub(crate) mod atom;
pub(crate) mod calendar;
mod entry_content;
mod feed_document;
pub(crate) mod rss;
pub(crate) mod sitemap;
pub(crate) mod statuspage_api;

use parallax_core::incident::{Incident, IncidentKind};
use parallax_core::page::Page;
use parallax_core::page_view::IncidentView;
use parallax_core::time::Timestamp;

/// Prefix of entry ids (RFC 4151). It contains no host, since a page's host may change while its entries
/// stay.
const ID_PREFIX: &str = "tag:parallax,2026:";

/// A feed or document could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    /// The XML writer failed.
    #[error("can't write a feed: {0}")]
    Xml(#[from] std::io::Error),
    /// The JSON writer failed.
    #[error("can't write a JSON document: {0}")]
    Json(#[from] serde_json::Error),
    /// A template failed.
    #[error(transparent)]
    View(#[from] super::RenderError),
}

/// Page of a feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedSite<'a> {
    /// The page.
    pub page: &'a Page,
    /// Public URL, without a trailing slash.
    pub url: &'a str,
}

impl FeedSite<'_> {
    /// URL of a path on the page.
    pub(in crate::views) fn path_url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(in crate::views) fn incident_url(&self, incident: &Incident) -> String {
        self.path_url(&format!("/incidents/{}", incident.id))
    }
}

/// Maximum number of incidents and windows in one document, unless more are open.
pub(crate) const MAX_ENTRIES: usize = 50;
/// Minimum number of closed ones in one document, if there are as many, so that closings are also visible
/// when many are open.
const MIN_CLOSED: usize = 10;

/// Returns the part of a list that fits in one document, in order: all open ones, and as many others as there
/// is space for.
pub(crate) fn limit_entries<'a>(
    incident_views: impl Iterator<Item = &'a IncidentView> + Clone,
) -> impl Iterator<Item = &'a IncidentView> {
    let open = incident_views.clone().filter(|incident_view| incident_view.incident.is_open()).count();
    let mut slots_left = MAX_ENTRIES.saturating_sub(open).max(MIN_CLOSED);
    incident_views.filter(move |incident_view| {
        if incident_view.incident.is_open() {
            return true;
        }
        let fits = slots_left > 0;
        slots_left = slots_left.saturating_sub(1);
        fits
    })
}

/// Size in bytes of one entry's updates, where `max_bytes` is the share in a document of [`MAX_ENTRIES`] entries: more
/// entries don't make the document larger.
fn scaled_limit(max_bytes: usize, count: usize) -> usize {
    max_bytes * MAX_ENTRIES / count.max(MAX_ENTRIES)
}

/// Time when it was first published: for a window, before it begins.
fn first_published(incident: &Incident) -> Timestamp {
    incident.started_at.min(incident.published_at())
}

/// Returns true for a maintenance window that is in progress.
pub(in crate::views) fn is_in_progress(incident: &Incident, now: Timestamp) -> bool {
    incident.kind == IncidentKind::Maintenance
        && incident.is_open()
        && (incident.has_begun || incident.started_at <= now)
}

/// Removes characters that XML 1.0 doesn't allow (section 2.2) and normalizes line breaks as an XML parser
/// does.
pub(in crate::views) fn xml_text(text: &str) -> String {
    let is_allowed = |character: &char| {
        matches!(
            character,
            '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{1_0000}'..='\u{10_ffff}'
        )
    };
    text.replace("\r\n", "\n")
        .chars()
        .filter(is_allowed)
        .map(|character| if character == '\r' { '\n' } else { character })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
