//! RSS 2.0 feed. Readers only show items with a new `guid`, so an item gets a new one with each update and
//! each later edit.

use std::io;

use chrono_tz::Tz;
use parallax_core::board::Notice;
use parallax_core::incident::Incident;
use parallax_core::time::Timestamp;
use quick_xml::events::BytesText;

use super::frame::{self, Ink, link, text};
use super::{MINT, Site, Unwritable};
use crate::views::tongue::fill;
use crate::views::words::formatted;

/// Media type.
pub const MEDIA: &str = "application/rss+xml; charset=utf-8";
/// Cache time for readers in minutes.
const TTL: &str = "5";

/// Writes the feed; `own` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub fn write(site: Site<'_>, own: &str, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    frame::write(site, notices, |ink, told| {
        let rss = ink.create_element("rss").with_attribute(("version", "2.0"));
        rss.with_attribute(("xmlns:atom", "http://www.w3.org/2005/Atom")).write_inner_content(|ink| {
            ink.create_element("channel").write_inner_content(|ink| {
                text(ink, "title", &told.title())?;
                text(ink, "link", site.address)?;
                text(ink, "description", &fill(told.words().feed_about, &[&site.page.name]))?;
                text(ink, "language", site.page.language.tag())?;
                text(ink, "lastBuildDate", &moment(told.updated))?;
                text(ink, "generator", "Parallax")?;
                text(ink, "ttl", TTL)?;
                link(ink, "atom:link", "self", "application/rss+xml", own)?;
                told.entries(ink, "item", |ink, incident, content| item(ink, site, incident, content))
            })?;
            Ok(())
        })?;
        Ok(())
    })
}

fn item(ink: &mut Ink, site: Site<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    let newest = incident.updates.last();
    let said = newest.map_or(incident.made_at(), |update| update.created_at);
    let edit = incident.last_edit().filter(|at| *at > said);
    let newest = newest.map(|update| format!("/{}", update.id)).unwrap_or_default();
    let edit = edit.map(|at| format!("/{}", at.as_millis())).unwrap_or_default();
    text(ink, "title", &incident.title)?;
    text(ink, "link", &site.incident(incident))?;
    let guid = ink.create_element("guid").with_attribute(("isPermaLink", "false"));
    guid.write_text_content(BytesText::new(&format!("{MINT}incident/{}{newest}{edit}", incident.id)))?;
    text(ink, "pubDate", &moment(incident.last_word()))?;
    text(ink, "category", incident.kind.name())?;
    text(ink, "description", content)
}

/// Formats a time as in RFC 822, with a four-digit year.
fn moment(at: Timestamp) -> String {
    formatted(at, Tz::UTC, "%a, %d %b %Y %H:%M:%S +0000")
}
