//! Atom feed (RFC 4287) of a page's incidents and maintenance: an entry keeps its id across updates.

use std::io;

use parallax_core::incident::Incident;
use parallax_core::page_view::IncidentView;
use quick_xml::events::BytesText;

use super::feed_document::{self, XmlWriter, link_element, text_element};
use super::{FeedError, FeedSite, ID_PREFIX, first_published};

/// Media type.
pub(crate) const MEDIA: &str = "application/atom+xml; charset=utf-8";

/// Writes the feed; `feed_url` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(crate) fn write(site: FeedSite<'_>, feed_url: &str, incident_views: &[IncidentView]) -> Result<Vec<u8>, FeedError> {
    let page = site.page;
    feed_document::write_feed(site, incident_views, |writer, feed| {
        let root = writer.create_element("feed").with_attribute(("xmlns", "http://www.w3.org/2005/Atom"));
        let root = root.with_attribute(("xml:lang", page.language.tag()));
        root.write_inner_content(|writer| {
            text_element(writer, "id", &format!("{ID_PREFIX}page/{}", page.id))?;
            text_element(writer, "title", &feed.title())?;
            text_element(writer, "updated", &feed.updated.to_string())?;
            link_element(writer, "link", "self", "application/atom+xml", feed_url)?;
            link_element(writer, "link", "alternate", "text/html", site.url)?;
            writer.create_element("author").write_inner_content(|writer| text_element(writer, "name", &page.name))?;
            text_element(writer, "generator", "Parallax")?;
            feed.entries(writer, "entry", |writer, incident, content| entry(writer, site, incident, content))
        })?;
        Ok(())
    })
}

fn entry(writer: &mut XmlWriter, site: FeedSite<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    text_element(writer, "id", &format!("{ID_PREFIX}incident/{}", incident.id))?;
    text_element(writer, "title", &incident.title)?;
    text_element(writer, "published", &first_published(incident).to_string())?;
    text_element(writer, "updated", &incident.last_change().to_string())?;
    link_element(writer, "link", "alternate", "text/html", &site.incident_url(incident))?;
    writer.create_element("category").with_attribute(("term", incident.kind.name())).write_empty()?;
    let body = writer.create_element("content").with_attribute(("type", "html"));
    body.write_text_content(BytesText::new(content))?;
    Ok(())
}
