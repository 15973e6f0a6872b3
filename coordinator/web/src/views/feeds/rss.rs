//! RSS 2.0 feed. Readers only show items with a new `guid`, so an item gets a new one with each update and
//! each later edit.

use std::io;

use chrono_tz::Tz;
use parallax_core::incident::Incident;
use parallax_core::page_view::IncidentView;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::fill;
use quick_xml::events::BytesText;

use super::feed_document::{self, XmlWriter, link_element, text_element};
use super::{FeedError, FeedSite, ID_PREFIX};
use crate::views::format::format_pattern;

/// Media type.
pub(crate) const MEDIA: &str = "application/rss+xml; charset=utf-8";
/// Cache time for readers in minutes.
const TTL: &str = "5";

/// Writes the feed; `own` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(crate) fn write(site: FeedSite<'_>, own: &str, notices: &[IncidentView]) -> Result<Vec<u8>, FeedError> {
    feed_document::write_feed(site, notices, |ink, feed| {
        let rss = ink.create_element("rss").with_attribute(("version", "2.0"));
        rss.with_attribute(("xmlns:atom", "http://www.w3.org/2005/Atom")).write_inner_content(|ink| {
            ink.create_element("channel").write_inner_content(|ink| {
                text_element(ink, "title", &feed.title())?;
                text_element(ink, "link", site.url)?;
                text_element(ink, "description", &fill(feed.messages().feed_about, &[&site.page.name]))?;
                text_element(ink, "language", site.page.language.tag())?;
                text_element(ink, "lastBuildDate", &moment(feed.updated))?;
                text_element(ink, "generator", "Parallax")?;
                text_element(ink, "ttl", TTL)?;
                link_element(ink, "atom:link", "self", "application/rss+xml", own)?;
                feed.entries(ink, "item", |ink, incident, content| item(ink, site, incident, content))
            })?;
            Ok(())
        })?;
        Ok(())
    })
}

fn item(ink: &mut XmlWriter, site: FeedSite<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    let newest = incident.updates.last();
    let posted_at = newest.map_or(incident.published_at(), |update| update.created_at);
    let edit = incident.last_edit().filter(|at| *at > posted_at);
    let newest = newest.map(|update| format!("/{}", update.id)).unwrap_or_default();
    let edit = edit.map(|at| format!("/{}", at.as_millis())).unwrap_or_default();
    text_element(ink, "title", &incident.title)?;
    text_element(ink, "link", &site.incident_url(incident))?;
    let guid = ink.create_element("guid").with_attribute(("isPermaLink", "false"));
    guid.write_text_content(BytesText::new(&format!("{ID_PREFIX}incident/{}{newest}{edit}", incident.id)))?;
    text_element(ink, "pubDate", &moment(incident.last_change()))?;
    text_element(ink, "category", incident.kind.name())?;
    text_element(ink, "description", content)
}

/// Formats a time as in RFC 822, with a four-digit year.
fn moment(at: Timestamp) -> String {
    format_pattern(at, Tz::UTC, "%a, %d %b %Y %H:%M:%S +0000")
}
