//! A page for programs: the widely read shape of hosted status pages, feeds, and a calendar of maintenance.

pub mod atom;
pub mod calendar;
pub mod entry;
mod frame;
pub mod rss;
pub mod sitemap;
pub mod v2;

use parallax_core::incident::{Incident, Kind};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;

/// Who mints the names of entries (RFC 4151). It is no host, since a page's host may change while its entries stay.
const MINT: &str = "tag:parallax,2026:";

/// A feed that can't be written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// The writer of XML gave up.
    #[error("a feed can't be written: {0}")]
    Xml(#[from] std::io::Error),
    /// The writer of JSON gave up.
    #[error("a document can't be written: {0}")]
    Json(#[from] serde_json::Error),
    /// A template gave up.
    #[error(transparent)]
    View(#[from] super::Unprintable),
}

/// Whose feed it is.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The page.
    pub page: &'a Page,
    /// Where visitors find it, without a slash at the end.
    pub address: &'a str,
}

impl Site<'_> {
    /// An address on the page.
    pub(in crate::views) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(in crate::views) fn incident(&self, incident: &Incident) -> String {
        self.at(&format!("/incidents/{}", incident.id))
    }
}

/// When it was first to be read of: a window before it begins.
fn first_word(incident: &Incident) -> Timestamp {
    incident.started_at.min(incident.created_at)
}

/// Whether it is a window that is under way.
pub(in crate::views) fn is_under_way(incident: &Incident, now: Timestamp) -> bool {
    incident.kind == Kind::Maintenance && incident.is_open() && (incident.begun || incident.started_at <= now)
}

/// A text as XML 1.0 may hold it (its section 2.2): other characters are left out, and line breaks are as a reader of XML
/// gives them back.
pub(in crate::views) fn xml(text: &str) -> String {
    let is_held = |sign: &char| matches!(sign, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{1_0000}'..='\u{10_ffff}');
    text.replace("\r\n", "\n")
        .chars()
        .filter(is_held)
        .map(|sign| if sign == '\r' { '\n' } else { sign })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
