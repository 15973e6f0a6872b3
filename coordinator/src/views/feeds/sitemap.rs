//! What searches may find of a page (the protocol of sitemaps.org): the page, its history, its monitors, and what it told
//! of last.

use std::io;

use parallax_core::board::{Board, Notice};
use parallax_core::time::Timestamp;

use super::frame::{Ink, document, text};
use super::{Site, Unwritable};

/// Its media type.
pub const MEDIA: &str = "application/xml";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// Writes it.
///
/// # Errors
/// Where a writer gives up, which none does over memory.
pub fn write(site: Site<'_>, board: &Board, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    document(|ink| {
        let all = ink.create_element("urlset").with_attribute(("xmlns", NAMESPACE));
        all.write_inner_content(|ink| {
            // What changes with every check has no moment that would tell anything.
            url(ink, site.address, None)?;
            url(ink, &site.at("/history"), None)?;
            for shown in &board.monitors {
                url(ink, &site.at(&format!("/monitors/{}", shown.monitor.id)), None)?;
            }
            for Notice { incident, .. } in notices {
                url(ink, &site.incident(incident), Some(incident.last_word()))?;
            }
            Ok(())
        })?;
        Ok(())
    })
}

fn url(ink: &mut Ink, address: &str, changed: Option<Timestamp>) -> io::Result<()> {
    ink.create_element("url").write_inner_content(|ink| {
        text(ink, "loc", address)?;
        changed.map_or(Ok(()), |at| text(ink, "lastmod", &at.to_string()))
    })?;
    Ok(())
}
