//! Rendering of a page's HTML documents: the page itself, its monitors, incidents and months.

use parallax_core::page_view::is_stale;
use parallax_core::time::Timestamp;
use parallax_service::page_access::authorize::AuthorizedPage;
use parallax_service::public_pages::page_view::MonitorDetail;
use parallax_service::{ServiceError, ServiceResult};

use super::{DocumentKind, PageCache, or_internal_error, run_blocking};
use crate::views::badge::BadgeData;
use crate::views::incident::{HistoryPage, IncidentPage};
use crate::views::link_preview::PreviewLocation;
use crate::views::monitor::MonitorPage;
use crate::views::monitor_detail::MonitorDetailView;
use crate::views::page::StatusPage;
use crate::views::render;

impl PageCache {
    /// Renders a document. The second value is the time until which it may be served: a document with a
    /// default range changes when the page's age reaches the next range.
    pub(super) async fn render(
        &self,
        authorized: &AuthorizedPage,
        kind: &DocumentKind,
    ) -> ServiceResult<(Vec<u8>, Option<Timestamp>)> {
        let (service, page, root) = (&self.0.service, authorized.page(), authorized.path_prefix());
        match kind {
            DocumentKind::Page(range) => {
                let (page_view, root) = (service.public_pages.view(authorized, *range).await?, root.to_owned());
                let (address, expires_at) = (service.pages.url(page), page_view.range_changes_at);
                let render_page = move || render(&StatusPage::new(&page_view, &root, &address));
                Ok((run_blocking(render_page).await?, expires_at))
            }
            DocumentKind::Monitor(id, range) => {
                let detail = service.public_pages.monitor_detail(authorized, *id, *range).await?;
                let (root, badge_data) = (root.to_owned(), self.image_badge_data(authorized).await?);
                let (address, expires_at) = (service.pages.url(page), detail.range_until);
                let render_page = move || {
                    render(&MonitorPage::new(&monitor_detail(&detail, &root), page_link(&address, &badge_data)))
                };
                Ok((run_blocking(render_page).await?, expires_at))
            }
            DocumentKind::Incident(id) => {
                let incident = service.public_pages.incident(authorized, *id).await?;
                let (address, badge_data) = (service.pages.url(page), self.image_badge_data(authorized).await?);
                let location = page_link(&address, &badge_data);
                let view = IncidentPage::new((page, root), &incident, location, service.now());
                Ok((or_internal_error(render(&view))?, None))
            }
            DocumentKind::Month(year, month) => {
                let incidents = service.public_pages.incidents_in_month(authorized, *year, *month).await?;
                let months = service.public_pages.months(authorized).await?;
                let (address, badge_data) = (service.pages.url(page), self.image_badge_data(authorized).await?);
                let (location, now) = (page_link(&address, &badge_data), service.now());
                let view = HistoryPage::new((page, root), (*year, *month), months, &incidents, location, now);
                Ok((or_internal_error(render(&view))?, None))
            }
            DocumentKind::Status
            | DocumentKind::StatusFeed(_)
            | DocumentKind::Embed(_)
            | DocumentKind::BadgeData
            | DocumentKind::Other(_)
            | DocumentKind::Markdown(_) => {
                Err(ServiceError::Internal("this document is rendered by its route".to_owned()))
            }
        }
    }
}

/// Builds the view of a monitor's own page; the page's paths begin with `root`.
pub fn monitor_detail<'a>(detail: &'a MonitorDetail, root: &'a str) -> MonitorDetailView<'a> {
    MonitorDetailView {
        page: &detail.page,
        root,
        now: detail.now,
        is_stale: is_stale(detail.regions, std::iter::once(detail.monitor.monitor_and_state()), detail.now),
        view: &detail.monitor,
        range: detail.range,
        open: &detail.open,
        incidents: &detail.incidents,
        outages: &detail.outages,
        deploys: &detail.deploys,
    }
}

/// Address of a page, and its preview image.
fn page_link<'a>(address: &'a str, badge_data: &'a BadgeData) -> PreviewLocation<'a> {
    PreviewLocation { url: address, image_key: badge_data.preview_key() }
}
