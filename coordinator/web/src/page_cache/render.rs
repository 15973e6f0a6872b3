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
        admitted: &AuthorizedPage,
        paper: &DocumentKind,
    ) -> ServiceResult<(Vec<u8>, Option<Timestamp>)> {
        let (service, page, root) = (&self.0.service, admitted.page(), admitted.path_prefix());
        match paper {
            DocumentKind::Page(range) => {
                let (board, root) = (service.public_pages.view(admitted, *range).await?, root.to_owned());
                let (address, until) = (service.pages.url(page), board.range_changes_at);
                let draw = move || render(&StatusPage::new(&board, &root, &address));
                Ok((run_blocking(draw).await?, until))
            }
            DocumentKind::Monitor(id, range) => {
                let closer = service.public_pages.monitor_detail(admitted, *id, *range).await?;
                let (root, facts) = (root.to_owned(), self.image_badge_data(admitted).await?);
                let (address, until) = (service.pages.url(page), closer.range_until);
                let draw =
                    move || render(&MonitorPage::new(&monitor_detail(&closer, &root), page_link(&address, &facts)));
                Ok((run_blocking(draw).await?, until))
            }
            DocumentKind::Incident(id) => {
                let notice = service.public_pages.incident(admitted, *id).await?;
                let (address, facts) = (service.pages.url(page), self.image_badge_data(admitted).await?);
                let found = page_link(&address, &facts);
                let view = IncidentPage::new((page, root), &notice, found, service.now());
                Ok((or_internal_error(render(&view))?, None))
            }
            DocumentKind::Month(year, month) => {
                let notices = service.public_pages.incidents_in_month(admitted, *year, *month).await?;
                let months = service.public_pages.months(admitted).await?;
                let (address, facts) = (service.pages.url(page), self.image_badge_data(admitted).await?);
                let (found, now) = (page_link(&address, &facts), service.now());
                let view = HistoryPage::new((page, root), (*year, *month), months, &notices, found, now);
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
pub fn monitor_detail<'a>(closer: &'a MonitorDetail, root: &'a str) -> MonitorDetailView<'a> {
    MonitorDetailView {
        page: &closer.page,
        root,
        now: closer.now,
        is_stale: is_stale(closer.regions, std::iter::once(closer.monitor.monitor_and_state()), closer.now),
        view: &closer.monitor,
        range: closer.range,
        open: &closer.open,
        notices: &closer.incidents,
        outages: &closer.outages,
        deploys: &closer.deploys,
    }
}

/// Address of a page, and its preview image.
fn page_link<'a>(address: &'a str, facts: &'a BadgeData) -> PreviewLocation<'a> {
    PreviewLocation { url: address, image_key: facts.preview_key() }
}
