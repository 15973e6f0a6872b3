//! Atom feed (RFC 4287) of a page's incidents and maintenance: an entry keeps its id across updates.

use std::io;

use parallax_core::board::Notice;
use parallax_core::incident::Incident;
use quick_xml::events::BytesText;

use super::frame::{self, Ink, link, text};
use super::{MINT, Site, Unwritable, first_word};

/// Media type.
pub const MEDIA: &str = "application/atom+xml; charset=utf-8";

/// Writes the feed; `own` is its URL.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub fn write(site: Site<'_>, own: &str, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    let page = site.page;
    frame::write(site, notices, |ink, told| {
        let feed = ink.create_element("feed").with_attribute(("xmlns", "http://www.w3.org/2005/Atom"));
        let feed = feed.with_attribute(("xml:lang", page.language.tag()));
        feed.write_inner_content(|ink| {
            text(ink, "id", &format!("{MINT}page/{}", page.id))?;
            text(ink, "title", &told.title())?;
            text(ink, "updated", &told.updated.to_string())?;
            link(ink, "link", "self", "application/atom+xml", own)?;
            link(ink, "link", "alternate", "text/html", site.address)?;
            ink.create_element("author").write_inner_content(|ink| text(ink, "name", &page.name))?;
            text(ink, "generator", "Parallax")?;
            told.entries(ink, "entry", |ink, incident, content| entry(ink, site, incident, content))
        })?;
        Ok(())
    })
}

fn entry(ink: &mut Ink, site: Site<'_>, incident: &Incident, content: &str) -> io::Result<()> {
    text(ink, "id", &format!("{MINT}incident/{}", incident.id))?;
    text(ink, "title", &incident.title)?;
    text(ink, "published", &first_word(incident).to_string())?;
    text(ink, "updated", &incident.last_word().to_string())?;
    link(ink, "link", "alternate", "text/html", &site.incident(incident))?;
    ink.create_element("category").with_attribute(("term", incident.kind.name())).write_empty()?;
    let body = ink.create_element("content").with_attribute(("type", "html"));
    body.write_text_content(BytesText::new(content))?;
    Ok(())
}
