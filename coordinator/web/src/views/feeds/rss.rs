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

/// Writes the feed; `feed_url` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(crate) fn write(site: FeedSite<'_>, feed_url: &str, incident_views: &[IncidentView]) -> Result<Vec<u8>, FeedError> {
    feed_document::write_feed(site, incident_views, |writer, feed| {
        let rss = writer.create_element("rss").with_attribute(("version", "2.0"));
        rss.with_attribute(("xmlns:atom", "http://www.w3.org/2005/Atom")).write_inner_content(|writer| {
            writer.create_element("channel").write_inner_content(|writer| {
                text_element(writer, "title", &feed.title())?;
                text_element(writer, "link", site.url)?;
                text_element(writer, "description", &fill(feed.messages().feed_about, &[&site.page.name]))?;
                text_element(writer, "language", site.page.language.tag())?;
                text_element(writer, "lastBuildDate", &rfc822_time(feed.updated))?;
                text_element(writer, "generator", "Parallax")?;
                text_element(writer, "ttl", TTL)?;
                link_element(writer, "atom:link", "self", "application/rss+xml", feed_url)?;
                feed.entries(writer, "item", |writer, incident, content| item(writer, site, incident, content))
            })?;
            Ok(())
        })?;
        Ok(())
    })
}

fn item(writer: &mut XmlWriter, site: FeedSite<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    let newest = incident.updates.last();
    let posted_at = newest.map_or(incident.published_at(), |update| update.created_at);
    let edit = incident.last_edit().filter(|at| *at > posted_at);
    let newest = newest.map(|update| format!("/{}", update.id)).unwrap_or_default();
    let edit = edit.map(|at| format!("/{}", at.as_millis())).unwrap_or_default();
    text_element(writer, "title", &incident.title)?;
    text_element(writer, "link", &site.incident_url(incident))?;
    let guid = writer.create_element("guid").with_attribute(("isPermaLink", "false"));
    guid.write_text_content(BytesText::new(&format!("{ID_PREFIX}incident/{}{newest}{edit}", incident.id)))?;
    text_element(writer, "pubDate", &rfc822_time(incident.last_change()))?;
    text_element(writer, "category", incident.kind.name())?;
    text_element(writer, "description", content)
}

/// Formats a time as in RFC 822, with a four-digit year.
fn rfc822_time(at: Timestamp) -> String {
    format_pattern(at, Tz::UTC, "%a, %d %b %Y %H:%M:%S +0000")
}
