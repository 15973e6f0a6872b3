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
pub(crate) fn write(
    site: FeedSite<'_>,
    page_view: &PageView,
    incident_views: &[IncidentView],
) -> Result<Vec<u8>, FeedError> {
    write_document(|writer| {
        let urlset = writer.create_element("urlset").with_attribute(("xmlns", NAMESPACE));
        urlset.write_inner_content(|writer| {
            // No `lastmod` for what changes with every check.
            url(writer, site.url, None)?;
            url(writer, &site.path_url("/history"), None)?;
            for view in &page_view.monitors {
                url(writer, &site.path_url(&format!("/monitors/{}", view.monitor.id)), None)?;
            }
            for IncidentView { incident, .. } in incident_views {
                url(writer, &site.incident_url(incident), Some(incident.last_change()))?;
            }
            Ok(())
        })?;
        Ok(())
    })
}

fn url(writer: &mut XmlWriter, address: &str, changed: Option<Timestamp>) -> io::Result<()> {
    writer.create_element("url").write_inner_content(|writer| {
        text_element(writer, "loc", address)?;
        changed.map_or(Ok(()), |at| text_element(writer, "lastmod", &at.to_string()))
    })?;
    Ok(())
}
