//! Context in which uptime over a range is rendered: as figure and as bars.

use parallax_core::page_view::{PageView, TimeRange};
use parallax_core::time::Timestamp;

use super::messages::PageLocale;
use super::monitor_detail::MonitorDetailView;

/// Range, time and language of uptime figures and bars.
#[derive(Debug, Clone, Copy)]
pub struct RangeContext {
    /// Range.
    pub range: TimeRange,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// Time zone and texts.
    pub voice: PageLocale,
}

impl RangeContext {
    /// Context of the status page.
    pub fn of_board(board: &PageView) -> Self {
        let voice = PageLocale::of(&board.page);
        Self { range: board.range, now: board.now, is_stale: board.is_stale(), voice }
    }

    /// Context of a monitor's page.
    pub fn of_monitor(close: &MonitorDetailView<'_>) -> Self {
        let voice = PageLocale::of(close.page);
        Self { range: close.range, now: close.now, is_stale: close.is_stale, voice }
    }
}
