//! Sitemap (sitemaps.org) of a page: the page, its history, its monitors, and its latest incidents.

use std::io;

use parallax_core::board::{Board, Notice};
use parallax_core::time::Timestamp;

use super::frame::{Ink, document, text};
use super::{Site, Unwritable};

/// Media type.
pub const MEDIA: &str = "application/xml";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// Writes the sitemap.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub fn write(site: Site<'_>, board: &Board, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    document(|ink| {
        let all = ink.create_element("urlset").with_attribute(("xmlns", NAMESPACE));
        all.write_inner_content(|ink| {
            // No `lastmod` for what changes with every check.
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
