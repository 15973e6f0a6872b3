//! Common part of Atom and RSS: an XML document with one entry per incident and window.

use std::io;

use parallax_core::incident::Incident;
use parallax_core::page_view::IncidentView;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageMessages, fill, messages};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{FeedError, FeedSite, entry_content, xml_text};

/// XML writer into memory.
pub(super) type XmlWriter = Writer<Vec<u8>>;

/// Content of a feed.
pub(super) struct FeedContent<'a> {
    pub(super) site: FeedSite<'a>,
    /// Time of the newest update.
    pub(super) updated: Timestamp,
    entries: Vec<(&'a Incident, String)>,
}

impl FeedContent<'_> {
    /// Title of the feed.
    pub(super) fn title(&self) -> String {
        fill(self.messages().feed_title, &[&self.site.page.name])
    }

    /// Texts in the page's language.
    pub(super) fn messages(&self) -> &'static PageMessages {
        messages(self.site.page.language)
    }

    /// Writes an element per entry; `inside` writes its content from the incident and its updates in HTML.
    pub(super) fn entries(
        &self,
        ink: &mut XmlWriter,
        name: &str,
        inside: impl Fn(&mut XmlWriter, &Incident, &str) -> io::Result<()>,
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
pub(super) fn write_feed<'a>(
    site: FeedSite<'a>,
    notices: &'a [IncidentView],
    root: impl FnOnce(&mut XmlWriter, &FeedContent<'a>) -> io::Result<()>,
) -> Result<Vec<u8>, FeedError> {
    let count = notices.len();
    let tell =
        |notice: &'a IncidentView| Ok::<_, FeedError>((&notice.incident, entry_content::content(site, notice, count)?));
    let entries = notices.iter().map(tell).collect::<Result<_, _>>()?;
    let updated = notices.iter().map(|it| it.incident.last_change()).fold(site.page.created_at, Timestamp::max);
    write_document(|ink| root(ink, &FeedContent { site, updated, entries }))
}

/// Writes an XML document; `root` writes the root element.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(super) fn write_document(root: impl FnOnce(&mut XmlWriter) -> io::Result<()>) -> Result<Vec<u8>, FeedError> {
    let mut ink = Writer::new(Vec::new());
    ink.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    root(&mut ink)?;
    Ok(ink.into_inner())
}

/// Writes an element with a text, without characters that XML doesn't allow.
pub(super) fn text_element(ink: &mut XmlWriter, name: &str, text: &str) -> io::Result<()> {
    ink.create_element(name).write_text_content(BytesText::new(&xml_text(text)))?;
    Ok(())
}

/// Writes an empty element with a link.
pub(super) fn link_element(
    ink: &mut XmlWriter,
    name: &str,
    relation: &str,
    media: &str,
    address: &str,
) -> io::Result<()> {
    let link = ink.create_element(name).with_attribute(("rel", relation));
    link.with_attribute(("type", media)).with_attribute(("href", address)).write_empty()?;
    Ok(())
}
