//! The public status page.

use askama::Template;
use parallax_core::page_view::{IncidentView, PageView, worst_first};

use super::assets;
use super::frame::PageFrame;
use super::headline::Headline;
use super::incident::{PastDay, build_past_days};
use super::incident_card::IncidentCard;
use super::link_preview::LinkPreview;
use super::messages::PageLocale;
use super::monitor_groups::{MonitorGroup, build_groups};
use super::ranges::{RangeLink, range_links};

/// Number of past days on the page.
const PAST_DAYS: u64 = 7;

/// Maximum number of windows beyond the next week on the page; the calendar has all of them.
const MAX_LATER: usize = 20;

/// The status page.
#[derive(Debug, Clone, Template)]
#[template(path = "public/page.html")]
pub struct StatusPage {
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
    pub fn new(board: &PageView, root: &str, address: &str) -> Self {
        let (page, now) = (&board.page, board.now);
        let voice = PageLocale::of(page);
        let card = |notice: &IncidentView| IncidentCard::of(notice, root, voice, now, true);
        let headline = Headline::of(board);
        let frame =
            PageFrame::new(page, root, &headline.title, now).with_preview(LinkPreview::of(board, &headline, address));
        Self {
            ranges: range_links(&frame.home, board.range, voice.messages),
            frame,
            headline,
            open: worst_first(board.incidents.iter().chain(&board.maintenance)).into_iter().map(card).collect(),
            groups: build_groups(board, root),
            later: board.later_maintenance.iter().take(MAX_LATER).map(card).collect(),
            more_later: board.later_maintenance.len().saturating_sub(MAX_LATER),
            past: build_past_days(board, root, PAST_DAYS),
        }
    }
}
