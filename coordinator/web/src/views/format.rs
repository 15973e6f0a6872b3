//! Formatting of times, durations and numbers on pages.

use chrono::NaiveDate;
use chrono_tz::Tz;
pub(super) use parallax_core::explanation::capitalized as capitalize;
use parallax_core::rollup::day_of;
use parallax_core::time::{HOUR, Timestamp};
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

/// A time for people and for programs: the script converts it to the visitor's zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormattedTime {
    /// ISO 8601.
    pub iso: String,
    /// In the page's zone, with the zone's name.
    pub text: String,
}

/// Formats date and time.
pub(super) fn format_time(at: Timestamp, locale: PageLocale) -> FormattedTime {
    FormattedTime { iso: at.to_string(), text: format_date_time(at, locale, "%H:%M %Z") }
}

/// Formats date and time with the weekday, for planned maintenance.
pub(super) fn format_planned(at: Timestamp, PageLocale { zone, messages }: PageLocale) -> FormattedTime {
    let time = format_pattern(at, zone, "%H:%M %Z");
    let text = day_of(at, zone).map(|date| messages.locale().weekday_time(date, &time)).unwrap_or_default();
    FormattedTime { iso: at.to_string(), text }
}

/// Formats date and time; `pattern` is a chrono pattern for the time.
pub(super) fn format_date_time(at: Timestamp, PageLocale { zone, messages }: PageLocale, pattern: &str) -> String {
    let time = format_pattern(at, zone, pattern);
    day_of(at, zone).map(|date| messages.locale().date_time(date, &time)).unwrap_or_default()
}

/// Formats a time to the second, without the date if it is today and within the last hour.
pub(super) fn format_clock(at: Timestamp, now: Timestamp, locale: PageLocale) -> FormattedTime {
    const TIME: &str = "%H:%M:%S %Z";
    let is_recent = day_of(at, locale.zone) == day_of(now, locale.zone) && now.since(at) <= HOUR;
    let text = if is_recent { format_pattern(at, locale.zone, TIME) } else { format_date_time(at, locale, TIME) };
    FormattedTime { iso: at.to_string(), text }
}

/// Formats the day without the year.
pub(super) fn format_short_day(at: Timestamp, PageLocale { zone, messages }: PageLocale) -> String {
    day_of(at, zone).map(|date| messages.locale().short_day(date)).unwrap_or_default()
}

/// Formats a month with its year.
pub(super) fn format_month(year: i32, month: u32, messages: &PageMessages) -> String {
    NaiveDate::from_ymd_opt(year, month, 1).map(|first| messages.locale().month(first)).unwrap_or_default()
}

/// Formats a percentage, with three decimals if it is not 100. Never rounds up.
pub(super) fn format_percent(percent: f64, messages: &PageMessages) -> String {
    let thousandths = (percent * 1000.0 + 1e-6).floor();
    if thousandths >= 100_000.0 {
        return "100 %".to_owned();
    }
    messages.locale().number(&format!("{:.3} %", thousandths / 1000.0))
}

/// Formats minutes.
pub(super) fn format_minutes(minutes: f64, messages: &PageMessages) -> String {
    if minutes < 1.0 {
        return messages.under_minute.to_owned();
    }
    let count_text = |pattern, number: u64| fill(pattern, &[&number.to_string()]);
    let whole = minutes.round() as u64;
    match (whole / 60, whole % 60) {
        (0, minutes) => count_text(messages.short_minutes, minutes),
        (hours, 0) => count_text(messages.short_hours, hours),
        (hours, minutes) => {
            format!("{} {}", count_text(messages.short_hours, hours), count_text(messages.short_minutes, minutes))
        }
    }
}

/// Formats minutes, rounded down to whole ones.
pub(super) fn format_whole_minutes(minutes: f64, messages: &PageMessages) -> String {
    // Compensates the loss of an exact value as a binary fraction.
    format_minutes((minutes + 1e-6).floor(), messages)
}

/// Formats milliseconds.
pub(super) fn format_milliseconds(value: u32, messages: &PageMessages) -> String {
    if value < 10_000 {
        format!("{value} ms")
    } else {
        messages.locale().number(&format!("{:.1} s", f64::from(value) / 1000.0))
    }
}

/// Returns a URL if its scheme is http, https or mailto. It was validated on input and is checked again here.
pub(super) fn checked_link(address: &str) -> Option<String> {
    let url = url::Url::parse(address.trim()).ok()?;
    matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.to_string())
}

/// Formats a time in a zone with a chrono pattern; empty if it is out of the calendar's range.
pub(super) fn format_pattern(at: Timestamp, zone: Tz, pattern: &str) -> String {
    at.to_utc().map(|utc| utc.with_timezone(&zone).format(pattern).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use parallax_core::time::SECOND;

    use super::*;
    use crate::views::tests::english_locale;

    fn en() -> &'static PageMessages {
        english_locale(Tz::UTC).messages
    }

    #[test]
    fn only_full_uptime_is_shown_as_100_percent() {
        for (percent, expected) in
            [(100.0, "100 %"), (99.999, "99.999 %"), (99.9999, "99.999 %"), (0.0, "0.000 %"), (99.9, "99.900 %")]
        {
            assert_eq!(format_percent(percent, en()), expected);
        }
    }

    #[test]
    fn times_are_in_the_pages_zone_and_name_it() {
        let at = Timestamp::from_millis(1_795_783_560_000);
        assert_eq!(format_time(at, english_locale(Tz::Europe__Berlin)).text, "27 Nov 2026, 13:46 CET");
        assert_eq!(format_time(at, english_locale(Tz::UTC)).iso, "2026-11-27T12:46:00.000Z");
    }

    #[test]
    fn a_time_of_another_day_or_over_an_hour_ago_has_its_date() {
        let at = Timestamp::from_millis(1_795_783_560_000);
        for (later, expected) in [
            (9 * SECOND, "12:46:00 UTC"),
            (HOUR, "12:46:00 UTC"),
            (HOUR + SECOND, "27 Nov 2026, 12:46:00 UTC"),
            (24 * HOUR, "27 Nov 2026, 12:46:00 UTC"),
        ] {
            assert_eq!(format_clock(at, at + later, english_locale(Tz::UTC)).text, expected, "{later}");
        }
        let midnight = Timestamp::from_millis(1_795_824_000_000);
        let before = format_clock(midnight + -5 * SECOND, midnight + 5 * SECOND, english_locale(Tz::UTC));
        assert_eq!(before.text, "27 Nov 2026, 23:59:55 UTC");
    }

    #[test]
    fn only_harmless_url_schemes_become_links() {
        for bad in ["javascript:alert(1)", " java\tscript:alert(1)", "data:text/html,x", "//a.example", "x", ""] {
            assert_eq!(checked_link(bad), None, "{bad}");
        }
        assert_eq!(checked_link("https://a.example/\"x").as_deref(), Some("https://a.example/%22x"));
        assert_eq!(checked_link("mailto:a@b.example").as_deref(), Some("mailto:a@b.example"));
    }

    #[test]
    fn minutes_are_formatted_in_short_form() {
        assert_eq!(
            [0.4, 59.6, 60.0, 130.0].map(|it| format_minutes(it, en())),
            ["under 1 min", "1 h", "1 h", "2 h 10 min"].map(str::to_owned)
        );
        assert_eq!(
            [0.9, 1.0, 1.999, 3.0 - 1e-9, 59.9].map(|it| format_whole_minutes(it, en())),
            ["under 1 min", "1 min", "1 min", "3 min", "59 min"].map(str::to_owned)
        );
    }
}
