//! A page's incidents and maintenance as an Atom feed (RFC 4287): an entry stays the same one while it is told of.

use std::io;

use parallax_core::board::Notice;
use parallax_core::time::Timestamp;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{MINT, Site, Unwritable, entry, first_word, last_word, xml};
use crate::views::tongue::{fill, words};

/// Its media type.
pub const MEDIA: &str = "application/atom+xml; charset=utf-8";

/// Writes the feed of those.
///
/// # Errors
/// Where a writer gives up, which none does over memory.
pub fn write(site: Site<'_>, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    let contents: Vec<String> =
        notices.iter().map(|notice| entry::content(site, notice)).collect::<Result<_, _>>()?;
    let page = site.page;
    let updated = notices.iter().map(|it| last_word(&it.incident)).fold(page.created_at, Timestamp::max);
    let mut writer = Writer::new(Vec::new());
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    let feed = writer.create_element("feed").with_attribute(("xmlns", "http://www.w3.org/2005/Atom"));
    let feed = feed.with_attribute(("xml:lang", page.language.tag()));
    feed.write_inner_content(|writer| {
        text(writer, "id", &format!("{MINT}page/{}", page.id))?;
        text(writer, "title", &fill(words(page.language).feed_title, &[&page.name]))?;
        text(writer, "updated", &updated.to_string())?;
        link(writer, "self", "application/atom+xml", &site.at("/feed.atom"))?;
        link(writer, "alternate", "text/html", site.address)?;
        let author = writer.create_element("author");
        author.write_inner_content(|writer| text(writer, "name", &page.name))?;
        text(writer, "generator", "Parallax")?;
        for (notice, content) in notices.iter().zip(&contents) {
            let entry = writer.create_element("entry");
            entry.write_inner_content(|writer| write_entry(writer, site, notice, content))?;
        }
        Ok(())
    })?;
    Ok(writer.into_inner())
}

fn write_entry(
    writer: &mut Writer<Vec<u8>>,
    site: Site<'_>,
    notice: &Notice,
    content: &str,
) -> io::Result<()> {
    let incident = &notice.incident;
    text(writer, "id", &format!("{MINT}incident/{}", incident.id))?;
    text(writer, "title", &incident.title)?;
    text(writer, "published", &first_word(incident).to_string())?;
    text(writer, "updated", &last_word(incident).to_string())?;
    link(writer, "alternate", "text/html", &site.incident(incident))?;
    writer.create_element("category").with_attribute(("term", incident.kind.name())).write_empty()?;
    let body = writer.create_element("content").with_attribute(("type", "html"));
    body.write_text_content(BytesText::new(content))?;
    Ok(())
}

/// An element with a text, whatever is in that.
pub(super) fn text(writer: &mut Writer<Vec<u8>>, name: &str, text: &str) -> io::Result<()> {
    writer.create_element(name).write_text_content(BytesText::new(&xml(text)))?;
    Ok(())
}

fn link(writer: &mut Writer<Vec<u8>>, relation: &str, media: &str, address: &str) -> io::Result<()> {
    let link = writer.create_element("link").with_attribute(("rel", relation));
    link.with_attribute(("type", media)).with_attribute(("href", address)).write_empty()?;
    Ok(())
}
