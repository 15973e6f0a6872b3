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

    /// Writes an element per entry; `write_content` writes its content from the incident and its updates in HTML.
    pub(super) fn entries(
        &self,
        writer: &mut XmlWriter,
        name: &str,
        write_content: impl Fn(&mut XmlWriter, &Incident, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        for (incident, content) in &self.entries {
            writer.create_element(name).write_inner_content(|writer| write_content(writer, incident, content))?;
        }
        Ok(())
    }
}

/// Writes the document; `write_root` writes the root element.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(super) fn write_feed<'a>(
    site: FeedSite<'a>,
    incident_views: &'a [IncidentView],
    write_root: impl FnOnce(&mut XmlWriter, &FeedContent<'a>) -> io::Result<()>,
) -> Result<Vec<u8>, FeedError> {
    let count = incident_views.len();
    let entry = |incident_view: &'a IncidentView| {
        Ok::<_, FeedError>((&incident_view.incident, entry_content::content(site, incident_view, count)?))
    };
    let entries = incident_views.iter().map(entry).collect::<Result<_, _>>()?;
    let updated = incident_views.iter().map(|it| it.incident.last_change()).fold(site.page.created_at, Timestamp::max);
    write_document(|writer| write_root(writer, &FeedContent { site, updated, entries }))
}

/// Writes an XML document; `write_root` writes the root element.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(super) fn write_document(write_root: impl FnOnce(&mut XmlWriter) -> io::Result<()>) -> Result<Vec<u8>, FeedError> {
    let mut writer = Writer::new(Vec::new());
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    write_root(&mut writer)?;
    Ok(writer.into_inner())
}

/// Writes an element with a text, without characters that XML doesn't allow.
pub(super) fn text_element(writer: &mut XmlWriter, name: &str, text: &str) -> io::Result<()> {
    writer.create_element(name).write_text_content(BytesText::new(&xml_text(text)))?;
    Ok(())
}

/// Writes an empty element with a link.
pub(super) fn link_element(
    writer: &mut XmlWriter,
    name: &str,
    relation: &str,
    media: &str,
    address: &str,
) -> io::Result<()> {
    let link = writer.create_element(name).with_attribute(("rel", relation));
    link.with_attribute(("type", media)).with_attribute(("href", address)).write_empty()?;
    Ok(())
}
