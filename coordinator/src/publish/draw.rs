//! Rendering of a page's HTML documents: the page itself, its monitors, incidents and months.

use parallax_core::board::none_looks;
use parallax_core::time::Timestamp;

use super::{Boards, Paper, off_the_runtime, printed};
use crate::service::board::Closer;
use crate::service::gate::Admitted;
use crate::service::{Error, Result};
use crate::views::badge::Facts;
use crate::views::incident::{HistoryPage, IncidentPage};
use crate::views::monitor::{Close, MonitorPage};
use crate::views::page::StatusPage;
use crate::views::print;
use crate::views::share::Found;

impl Boards {
    /// Renders a document. The second value is the time until which it may be served: a document with a
    /// default range changes when the page's age reaches the next range.
    pub(super) async fn draw(
        &self,
        admitted: &Admitted,
        paper: &Paper,
    ) -> Result<(Vec<u8>, Option<Timestamp>)> {
        let (service, page, root) = (&self.0.service, admitted.page(), admitted.root());
        match paper {
            Paper::Page(range) => {
                let (board, root) = (service.board(admitted, *range).await?, root.to_owned());
                let (address, until) = (service.page_url(page), board.range_until);
                let draw = move || print(&StatusPage::new(&board, &root, &address));
                Ok((off_the_runtime(draw).await?, until))
            }
            Paper::Monitor(id, range) => {
                let closer = service.closer(admitted, *id, *range).await?;
                let (root, facts) = (root.to_owned(), self.picture_facts(admitted).await?);
                let (address, until) = (service.page_url(page), closer.range_until);
                let draw = move || print(&MonitorPage::new(&close(&closer, &root), found(&address, &facts)));
                Ok((off_the_runtime(draw).await?, until))
            }
            Paper::Incident(id) => {
                let notice = service.notice(admitted, *id).await?;
                let (address, facts) = (service.page_url(page), self.picture_facts(admitted).await?);
                let found = found(&address, &facts);
                let view = IncidentPage::new((page, root), &notice, found, service.now());
                Ok((printed(print(&view))?, None))
            }
            Paper::Month(year, month) => {
                let notices = service.notices_in(admitted, *year, *month).await?;
                let months = service.months(admitted).await?;
                let (address, facts) = (service.page_url(page), self.picture_facts(admitted).await?);
                let (found, now) = (found(&address, &facts), service.now());
                let view = HistoryPage::new((page, root), (*year, *month), months, &notices, found, now);
                Ok((printed(print(&view))?, None))
            }
            Paper::Status
            | Paper::Sheet(_)
            | Paper::Embed(_)
            | Paper::Badges
            | Paper::Other(_)
            | Paper::Note(_) => Err(Error::Internal("this document is rendered by its route".to_owned())),
        }
    }
}

/// Builds the view of a monitor's own page; the page's paths begin with `root`.
pub fn close<'a>(closer: &'a Closer, root: &'a str) -> Close<'a> {
    Close {
        page: &closer.page,
        root,
        now: closer.now,
        is_stale: none_looks(closer.regions, std::iter::once(closer.shown.seen()), closer.now),
        shown: &closer.shown,
        range: closer.range,
        open: &closer.open,
        notices: &closer.notices,
        outages: &closer.outages,
        deploys: &closer.deploys,
    }
}

/// Address of a page, and its preview image.
fn found<'a>(address: &'a str, facts: &'a Facts) -> Found<'a> {
    Found { address, picture: facts.picture() }
}
