//! Sitemap (sitemaps.org) of a page: the page, its history, its monitors, and its latest incidents.

use std::io;

use parallax_core::page_view::{IncidentView, PageView};
use parallax_core::time::Timestamp;

use super::feed_document::{XmlWriter, text_element, write_document};
use super::{FeedError, FeedSite};

/// Media type.
pub(crate) const MEDIA: &str = "application/xml";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// Writes the sitemap.
///
/// # Errors
/// If the XML writer fails, which it doesn't in memory.
pub(crate) fn write(site: FeedSite<'_>, page_view: &PageView, notices: &[IncidentView]) -> Result<Vec<u8>, FeedError> {
    write_document(|ink| {
        let all = ink.create_element("urlset").with_attribute(("xmlns", NAMESPACE));
        all.write_inner_content(|ink| {
            // No `lastmod` for what changes with every check.
            url(ink, site.url, None)?;
            url(ink, &site.path_url("/history"), None)?;
            for view in &page_view.monitors {
                url(ink, &site.path_url(&format!("/monitors/{}", view.monitor.id)), None)?;
            }
            for IncidentView { incident, .. } in notices {
                url(ink, &site.incident_url(incident), Some(incident.last_change()))?;
            }
            Ok(())
        })?;
        Ok(())
    })
}

fn url(ink: &mut XmlWriter, address: &str, changed: Option<Timestamp>) -> io::Result<()> {
    ink.create_element("url").write_inner_content(|ink| {
        text_element(ink, "loc", address)?;
        changed.map_or(Ok(()), |at| text_element(ink, "lastmod", &at.to_string()))
    })?;
    Ok(())
}
