//! Parameters in the addresses of a page's documents: the range of a chart, and a month.

use parallax_core::page_view::TimeRange;

/// Reads the range from the query. Unknown values mean none, so that there are few documents: one for each range,
/// and one for the default.
pub(super) fn range(query: &str) -> Option<TimeRange> {
    let parameter = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
    parameter.and_then(|(_, name)| TimeRange::from_name(&name))
}

/// Reads a month from its path: `2026-11`.
pub(super) fn year_and_month(text: &str) -> Option<(i32, u32)> {
    let (year, month) = text.split_once('-')?;
    let is_plain = year.len() == 4 && month.len() == 2 && text.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let (year, month) = (year.parse().ok()?, month.parse().ok()?);
    (is_plain && (1..=12).contains(&month)).then_some((year, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_range_is_ignored() {
        for (query, expected) in [
            ("range=24h", TimeRange::Day),
            ("a=b&range=7d", TimeRange::Week),
            ("range=30d", TimeRange::Month),
            ("range=90d", TimeRange::Quarter),
        ] {
            assert_eq!(range(query), Some(expected), "{query}");
        }
        for none in ["", "range=", "range=1y", "range=24H", "Range=24h"] {
            assert_eq!(range(none), None, "{none}");
        }
    }

    #[test]
    fn a_month_has_one_address() {
        assert_eq!(year_and_month("2026-11"), Some((2026, 11)));
        for invalid in ["2026-1", "2026-13", "2026-00", "26-11", "+202-11", "2026-11-01", "2026", ""] {
            assert_eq!(year_and_month(invalid), None, "{invalid}");
        }
    }
}
