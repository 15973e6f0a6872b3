//! The same as RSS 2.0. Its readers show an item whose `guid` is new and no other, so an item has a new one with each
//! update.

use std::io;

use chrono_tz::Tz;
use parallax_core::board::Notice;
use parallax_core::time::Timestamp;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, Event};

use super::atom::text;
use super::{MINT, Site, Unwritable, entry, last_word};
use crate::views::tongue::{fill, words};
use crate::views::words::formatted;

/// Its media type.
pub const MEDIA: &str = "application/rss+xml; charset=utf-8";
/// Minutes that a reader may keep it.
const TTL: &str = "5";

/// Writes the feed of those.
///
/// # Errors
/// Where a writer gives up, which none does over memory.
pub fn write(site: Site<'_>, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    let contents: Vec<String> =
        notices.iter().map(|notice| entry::content(site, notice)).collect::<Result<_, _>>()?;
    let page = site.page;
    let said = words(page.language);
    let built = notices.iter().map(|it| last_word(&it.incident)).fold(page.created_at, Timestamp::max);
    let mut writer = Writer::new(Vec::new());
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    let rss = writer.create_element("rss").with_attribute(("version", "2.0"));
    rss.with_attribute(("xmlns:atom", "http://www.w3.org/2005/Atom")).write_inner_content(|writer| {
        writer.create_element("channel").write_inner_content(|writer| {
            text(writer, "title", &fill(said.feed_title, &[&page.name]))?;
            text(writer, "link", site.address)?;
            text(writer, "description", &fill(said.feed_about, &[&page.name]))?;
            text(writer, "language", page.language.tag())?;
            text(writer, "lastBuildDate", &moment(built))?;
            text(writer, "generator", "Parallax")?;
            text(writer, "ttl", TTL)?;
            let own = writer.create_element("atom:link").with_attribute(("rel", "self"));
            own.with_attribute(("type", "application/rss+xml"))
                .with_attribute(("href", site.at("/feed.rss").as_str()))
                .write_empty()?;
            for (notice, content) in notices.iter().zip(&contents) {
                let item = writer.create_element("item");
                item.write_inner_content(|writer| write_item(writer, site, notice, content))?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(writer.into_inner())
}

fn write_item(
    writer: &mut Writer<Vec<u8>>,
    site: Site<'_>,
    notice: &Notice,
    content: &str,
) -> io::Result<()> {
    let incident = &notice.incident;
    let newest = incident.updates.last().map(|update| format!("/{}", update.id)).unwrap_or_default();
    text(writer, "title", &incident.title)?;
    text(writer, "link", &site.incident(incident))?;
    let guid = writer.create_element("guid").with_attribute(("isPermaLink", "false"));
    let name = format!("{MINT}incident/{}{newest}", incident.id);
    guid.write_text_content(quick_xml::events::BytesText::new(&name))?;
    text(writer, "pubDate", &moment(last_word(incident)))?;
    text(writer, "category", incident.kind.name())?;
    text(writer, "description", content)
}

/// As RFC 822 has it, with the year in full.
fn moment(at: Timestamp) -> String {
    formatted(at, Tz::UTC, "%a, %d %b %Y %H:%M:%S +0000")
}
