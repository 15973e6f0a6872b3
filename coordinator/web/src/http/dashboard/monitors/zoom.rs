//! Period to which an address zooms the chart of response times.

use parallax_core::page_view::TimeRange;
use parallax_core::time::{DAY, MINUTE, Timestamp};
use parallax_core::validation::ValidationErrors;

use super::screen;

/// Points of a line.
pub(super) const POINTS: usize = 120;
/// Shortest period, in milliseconds.
const SHORTEST: i64 = 5 * MINUTE;

/// Returns start and end of the period that a query names; none without one. Its start is cut to the longest range: the
/// left edge of a chart is older by the time that the person took.
///
/// # Errors
/// For what is no time, a period that is too short, and one that ended before the longest range or is in the future.
pub(super) fn zoom(query: &str, now: Timestamp) -> Result<Option<(Timestamp, Timestamp)>, ValidationErrors> {
    let time = |name: &str| match screen::param(query, name) {
        Some(text) => match Timestamp::parse_iso(&text) {
            Some(at) => Ok(Some(at)),
            None => Err(ValidationErrors::single(name, "must be a time such as 2026-11-28T10:00:00Z")),
        },
        None => Ok(None),
    };
    let (from, to) = match (time("from")?, time("to")?) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(ValidationErrors::single("from", "is required with to")),
        (Some(_), None) => return Err(ValidationErrors::single("to", "is required with from")),
        (Some(from), Some(to)) => (from, to.min(now)),
    };
    let oldest = now - i64::try_from(TimeRange::Quarter.days()).unwrap_or(1) * DAY;
    if to < oldest + SHORTEST {
        return Err(ValidationErrors::single("to", "must be within the last 90 days"));
    }
    let from = from.max(oldest);
    if from > to || to.since(from) < SHORTEST {
        return Err(ValidationErrors::single("to", "must be at least 5 minutes after from, both in the past"));
    }
    Ok(Some((from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zoom_is_two_times_of_the_last_90_days() {
        let now = Timestamp::parse_iso("2026-11-28T12:00:00Z").unwrap();
        let read = |query: &str| zoom(query, now);
        assert_eq!(read("range=7d"), Ok(None));
        let at = |text: &str| Timestamp::parse_iso(text).unwrap();
        let found = Ok(Some((at("2026-11-28T10:00:00Z"), at("2026-11-28T11:30:00Z"))));
        assert_eq!(read("from=2026-11-28T10:00:00Z&to=2026-11-28T11:30:00Z"), found);
        assert_eq!(read("from=2026-11-28T10%3A00%3A00Z&to=2026-11-28T12%3A30%3A00%2B01%3A00"), found);
        let to_now = Ok(Some((at("2026-11-28T10:00:00Z"), now)));
        assert_eq!(read("from=2026-11-28T10:00:00Z&to=2027-01-01T00:00:00Z"), to_now, "no further than now");
        let from_edge = Ok(Some((at("2026-08-30T12:00:00Z"), at("2026-09-01T00:00:00Z"))));
        assert_eq!(read("from=2026-08-30T11:59:59Z&to=2026-09-01T00:00:00Z"), from_edge, "the edge has moved on");
        for (query, expected) in [
            ("from=yesterday&to=2026-11-28T10:00:00Z", "from must be a time such as 2026-11-28T10:00:00Z"),
            ("from=2026-11-28T10:00:00Z&to=1", "to must be a time such as 2026-11-28T10:00:00Z"),
            ("from=2026-11-28T10:00:00Z", "to is required with from"),
            ("to=2026-11-28T10:00:00Z", "from is required with to"),
            ("from=2026-08-01T00:00:00Z&to=2026-08-30T12:04:59Z", "to must be within the last 90 days"),
            (
                "from=2026-11-28T10:00:00Z&to=2026-11-28T10:04:59Z",
                "to must be at least 5 minutes after from, both in the past",
            ),
            (
                "from=2026-11-28T13:00:00Z&to=2026-11-28T14:00:00Z",
                "to must be at least 5 minutes after from, both in the past",
            ),
        ] {
            assert_eq!(read(query).unwrap_err().to_string(), expected, "{query}");
        }
    }
}
