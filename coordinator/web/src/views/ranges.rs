//! Selectable time ranges: their labels, query strings and links.

use parallax_core::page_view::TimeRange;
use parallax_i18n::page_messages::PageMessages;

/// Length of a range as text.
pub(super) const fn range_label(range: TimeRange, messages: &PageMessages) -> &'static str {
    match range {
        TimeRange::Day => messages.range_day,
        TimeRange::Week => messages.range_week,
        TimeRange::Month => messages.range_month,
        TimeRange::Quarter => messages.range_quarter,
    }
}

/// Query string of a range that the visitor chose. Without one, a page shows the range that its age fills.
pub(super) fn range_query(range: TimeRange) -> String {
    format!("?range={}", range.name())
}

/// A selectable range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeLink {
    /// URL.
    pub href: String,
    /// Length as text.
    pub name: &'static str,
    /// True if selected.
    pub is_selected: bool,
}

/// Returns the selectable ranges of a document at `path`.
pub(super) fn range_links(path: &str, selected: TimeRange, messages: &PageMessages) -> Vec<RangeLink> {
    let choice = |range: TimeRange| RangeLink {
        href: format!("{path}{}", range_query(range)),
        name: range_label(range, messages),
        is_selected: range == selected,
    };
    TimeRange::ALL.into_iter().map(choice).collect()
}
