//! Atom feed (RFC 4287) of a page's incidents and maintenance: an entry keeps its id across updates.

use std::io;

use parallax_core::incident::Incident;
use parallax_core::page_view::IncidentView;
use quick_xml::events::BytesText;

use super::feed_document::{self, XmlWriter, link_element, text_element};
use super::{FeedError, FeedSite, ID_PREFIX, first_published};

/// Media type.
pub(crate) const MEDIA: &str = "application/atom+xml; charset=utf-8";

/// Writes the feed; `own` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(crate) fn write(site: FeedSite<'_>, own: &str, notices: &[IncidentView]) -> Result<Vec<u8>, FeedError> {
    let page = site.page;
    feed_document::write_feed(site, notices, |ink, feed| {
        let root = ink.create_element("feed").with_attribute(("xmlns", "http://www.w3.org/2005/Atom"));
        let root = root.with_attribute(("xml:lang", page.language.tag()));
        root.write_inner_content(|ink| {
            text_element(ink, "id", &format!("{ID_PREFIX}page/{}", page.id))?;
            text_element(ink, "title", &feed.title())?;
            text_element(ink, "updated", &feed.updated.to_string())?;
            link_element(ink, "link", "self", "application/atom+xml", own)?;
            link_element(ink, "link", "alternate", "text/html", site.url)?;
            ink.create_element("author").write_inner_content(|ink| text_element(ink, "name", &page.name))?;
            text_element(ink, "generator", "Parallax")?;
            feed.entries(ink, "entry", |ink, incident, content| entry(ink, site, incident, content))
        })?;
        Ok(())
    })
}

fn entry(ink: &mut XmlWriter, site: FeedSite<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    text_element(ink, "id", &format!("{ID_PREFIX}incident/{}", incident.id))?;
    text_element(ink, "title", &incident.title)?;
    text_element(ink, "published", &first_published(incident).to_string())?;
    text_element(ink, "updated", &incident.last_change().to_string())?;
    link_element(ink, "link", "alternate", "text/html", &site.incident_url(incident))?;
    ink.create_element("category").with_attribute(("term", incident.kind.name())).write_empty()?;
    let body = ink.create_element("content").with_attribute(("type", "html"));
    body.write_text_content(BytesText::new(content))?;
    Ok(())
}
