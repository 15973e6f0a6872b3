//! The public status page.

use parallax_core::page::branding::{Color, PictureKind};
use parallax_core::page_view::{IncidentView, PageView, worst_first};
use parallax_i18n::page_messages::PageLocale;
use parallax_template::template_file;

use super::accent::accent_css;
use super::assets;
use super::frame::PageFrame;
use super::headline::Headline;
use super::incident::{PastDay, build_past_days};
use super::incident_card::IncidentCard;
use super::link_preview::LinkPreview;
use super::monitor_groups::{MonitorGroup, build_groups};
use super::ranges::{RangeLink, range_links};

/// Number of past days on the page.
const PAST_DAYS: u64 = 7;

/// Maximum number of windows beyond the next week on the page; the calendar has all of them.
const MAX_LATER: usize = 20;

/// The status page.
#[template_file("public/page.html")]
#[derive(Debug, Clone)]
pub(crate) struct StatusPage {
    frame: PageFrame,
    headline: Headline,
    open: Vec<IncidentCard>,
    ranges: Vec<RangeLink>,
    groups: Vec<MonitorGroup>,
    /// Maintenance after the next week.
    later: Vec<IncidentCard>,
    /// Number of such windows that are not listed.
    more_later: usize,
    past: Vec<PastDay>,
}

impl StatusPage {
    /// Builds the status page; its paths begin with `root`, and `address` is its canonical URL.
    pub(crate) fn new(page_view: &PageView, root: &str, address: &str) -> Self {
        let (page, now) = (&page_view.page, page_view.now);
        let locale = PageLocale::of(page);
        let card = |incident_view: &IncidentView| IncidentCard::of(incident_view, root, locale, now, true);
        let headline = Headline::of(page_view);
        let frame = PageFrame::new(page, root, &headline.title, now)
            .with_preview(LinkPreview::of(page_view, &headline, address));
        Self {
            ranges: range_links(&frame.home, page_view.range, locale.messages),
            frame,
            headline,
            open: worst_first(page_view.incidents.iter().chain(&page_view.maintenance)).into_iter().map(card).collect(),
            groups: build_groups(page_view, root),
            later: page_view.later_maintenance.iter().take(MAX_LATER).map(card).collect(),
            more_later: page_view.later_maintenance.len().saturating_sub(MAX_LATER),
            past: build_past_days(page_view, root, PAST_DAYS),
        }
    }

    /// Makes it a preview: the logo and the accent color come from the document itself, and no link leads anywhere.
    pub(crate) fn into_preview(mut self, logo: Option<(PictureKind, Vec<u8>)>, accent: Option<Color>) -> Self {
        use base64::Engine as _;
        let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        self.frame.is_preview = true;
        self.frame.logo = logo.map(|(kind, bytes)| format!("data:{};base64,{}", kind.media(), encode(&bytes)));
        self.frame.accent = accent.map(|it| format!("data:text/css;base64,{}", encode(accent_css(it).as_bytes())));
        self
    }
}
