//! A page for programs: the widely read shape of hosted status pages, feeds, and a calendar of maintenance.

pub mod atom;
pub mod calendar;
pub mod entry;
mod frame;
pub mod rss;
pub mod sitemap;
pub mod v2;

use parallax_core::board::Notice;
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

/// Incidents and windows of one document at most, unless more are open.
pub const LISTED: usize = 50;
/// Those that are over in one document at least, where there are as many: the end of a long list of open ones is told too.
const OVER: usize = 10;

/// The part of a list that one document has, in its order: all that are open, and as many others as there is room for.
pub fn listed<'a>(notices: impl Iterator<Item = &'a Notice> + Clone) -> impl Iterator<Item = &'a Notice> {
    let open = notices.clone().filter(|notice| notice.incident.is_open()).count();
    let mut room = LISTED.saturating_sub(open).max(OVER);
    notices.filter(move |notice| {
        if notice.incident.is_open() {
            return true;
        }
        let has_room = room > 0;
        room = room.saturating_sub(1);
        has_room
    })
}

/// Bytes of one's updates, where `most` is the share of each in a document of [`LISTED`]: a longer list is no longer a
/// document.
fn share_of(most: usize, count: usize) -> usize {
    most * LISTED / count.max(LISTED)
}

/// When it was first to be read of: a window before it begins.
fn first_word(incident: &Incident) -> Timestamp {
    incident.started_at.min(incident.made_at())
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
