//! Durations, counts and times in the words of the dashboard.

pub(crate) use parallax_core::explanation::short_duration as duration;
use parallax_core::time::{HOUR, Timestamp};

use crate::views::format::FormattedTime;

/// Formats a measured time: "84 ms", "1.2 s", from a minute on as a length.
pub(crate) fn elapsed(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => duration(i64::try_from(millis).unwrap_or(i64::MAX)),
    }
}

/// Formats a number of things: "1 monitor", "3 monitors".
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats a time in UTC: the clock within the last 18 hours, else date and clock. The script shows it in the
/// person's zone.
pub(crate) fn time(at: Timestamp, now: Timestamp) -> FormattedTime {
    let is_recent = now.since(at).abs() < 18 * HOUR;
    let pattern = if is_recent { "%H:%M UTC" } else { "%-d %b %Y, %H:%M UTC" };
    let text = at.to_utc().map(|utc| utc.format(pattern).to_string()).unwrap_or_default();
    FormattedTime { iso: at.to_string(), text }
}

/// Formats a clock time with seconds, in UTC.
pub(crate) fn clock(at: Timestamp) -> FormattedTime {
    let text = at.to_utc().map(|utc| utc.format("%H:%M:%S UTC").to_string()).unwrap_or_default();
    FormattedTime { iso: at.to_string(), text }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::{DAY, MINUTE, SECOND};

    use super::*;

    #[test]
    fn durations_have_the_units_that_matter() {
        for (millis, expected) in [
            (-5, "0 s"),
            (59 * SECOND, "59 s"),
            (14 * MINUTE + 59 * SECOND, "14 min"),
            (HOUR, "1 h"),
            (3 * HOUR + 12 * MINUTE, "3 h 12 min"),
            (47 * HOUR, "1 day 23 h"),
            (48 * HOUR, "2 days"),
            (41 * DAY, "41 days"),
        ] {
            assert_eq!(duration(millis), expected, "{millis}");
        }
        assert_eq!([count(1, "monitor", "monitors"), count(0, "monitor", "monitors")], ["1 monitor", "0 monitors"]);
    }

    #[test]
    fn a_measured_time_is_never_zero_seconds() {
        assert_eq!(
            [0, 40, 999, 1000, 1249, 59_999].map(elapsed),
            ["0 ms", "40 ms", "999 ms", "1.0 s", "1.2 s", "59.9 s"]
        );
        assert_eq!([60_000, 7_500_000].map(elapsed), ["1 min", "2 h 5 min"]);
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let at = Timestamp::from_millis(1_795_783_560_000);
        assert_eq!(time(at, at + HOUR).text, "12:46 UTC");
        assert_eq!(time(at, at + DAY).text, "27 Nov 2026, 12:46 UTC");
        assert_eq!(clock(at).text, "12:46:00 UTC");
    }
}
