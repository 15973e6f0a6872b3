//! Common part of Atom and RSS: an XML document with one entry per incident and window.

use std::io;

use parallax_core::board::Notice;
use parallax_core::incident::Incident;
use parallax_core::time::Timestamp;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{Site, Unwritable, entry, xml};
use crate::views::tongue::{Words, fill, words};

/// XML writer into memory.
pub(super) type Ink = Writer<Vec<u8>>;

/// Content of a feed.
pub(super) struct Told<'a> {
    pub(super) site: Site<'a>,
    /// Time of the newest update.
    pub(super) updated: Timestamp,
    entries: Vec<(&'a Incident, String)>,
}

impl Told<'_> {
    /// Title of the feed.
    pub(super) fn title(&self) -> String {
        fill(self.words().feed_title, &[&self.site.page.name])
    }

    /// Texts in the page's language.
    pub(super) fn words(&self) -> &'static Words {
        words(self.site.page.language)
    }

    /// Writes an element per entry; `inside` writes its content from the incident and its updates in HTML.
    pub(super) fn entries(
        &self,
        ink: &mut Ink,
        name: &str,
        inside: impl Fn(&mut Ink, &Incident, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        for (incident, content) in &self.entries {
            ink.create_element(name).write_inner_content(|ink| inside(ink, incident, content))?;
        }
        Ok(())
    }
}

/// Writes the document; `root` writes the root element.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(super) fn write<'a>(
    site: Site<'a>,
    notices: &'a [Notice],
    root: impl FnOnce(&mut Ink, &Told<'a>) -> io::Result<()>,
) -> Result<Vec<u8>, Unwritable> {
    let count = notices.len();
    let tell =
        |notice: &'a Notice| Ok::<_, Unwritable>((&notice.incident, entry::content(site, notice, count)?));
    let entries = notices.iter().map(tell).collect::<Result<_, _>>()?;
    let updated = notices.iter().map(|it| it.incident.last_word()).fold(site.page.created_at, Timestamp::max);
    document(|ink| root(ink, &Told { site, updated, entries }))
}

/// Writes an XML document; `root` writes the root element.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(super) fn document(root: impl FnOnce(&mut Ink) -> io::Result<()>) -> Result<Vec<u8>, Unwritable> {
    let mut ink = Writer::new(Vec::new());
    ink.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    root(&mut ink)?;
    Ok(ink.into_inner())
}

/// Writes an element with a text, without characters that XML doesn't allow.
pub(super) fn text(ink: &mut Ink, name: &str, text: &str) -> io::Result<()> {
    ink.create_element(name).write_text_content(BytesText::new(&xml(text)))?;
    Ok(())
}

/// Writes an empty element with a link.
pub(super) fn link(ink: &mut Ink, name: &str, relation: &str, media: &str, address: &str) -> io::Result<()> {
    let link = ink.create_element(name).with_attribute(("rel", relation));
    link.with_attribute(("type", media)).with_attribute(("href", address)).write_empty()?;
    Ok(())
}
