//! Context in which uptime over a range is rendered: as figure and as bars.

use parallax_core::page_view::{PageView, TimeRange};
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::PageLocale;

use super::monitor_detail::MonitorDetailView;

/// Range, time and language of uptime figures and bars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeContext {
    /// Range.
    pub range: TimeRange,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// Time zone and texts.
    pub locale: PageLocale,
}

impl RangeContext {
    /// Context of the status page.
    pub(crate) fn of_page(page_view: &PageView) -> Self {
        let locale = PageLocale::of(&page_view.page);
        Self { range: page_view.range, now: page_view.now, is_stale: page_view.is_stale(), locale }
    }

    /// Context of a monitor's page.
    pub(crate) fn of_monitor(detail: &MonitorDetailView<'_>) -> Self {
        let locale = PageLocale::of(detail.page);
        Self { range: detail.range, now: detail.now, is_stale: detail.is_stale, locale }
    }
}
