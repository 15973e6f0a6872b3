//! Times and durations as messages show them.

use chrono::DateTime;
use chrono_tz::Tz;
use parallax_core::locale::Locale;
use parallax_core::page::branding::Language;
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Formats a duration in its two largest units: `3 d 4 h`, `12 min`, `5 s`.
pub(super) fn format_duration(millis: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
    let mut remaining = millis.max(0);
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        if parts.len() < 2 && remaining >= unit {
            parts.push(format!("{} {name}", remaining / unit));
            remaining %= unit;
        } else if !parts.is_empty() {
            break;
        }
    }
    if parts.is_empty() { format!("{millis} ms", millis = millis.max(0)) } else { parts.join(" ") }
}

/// Formats a time in a zone, with the zone: `2026-03-01 10:30:05 (Europe/Berlin, UTC+01:00)`.
pub(super) fn format_time(at: Timestamp, zone: Tz) -> String {
    let Some(utc) = at.to_utc() else { return at.to_string() };
    let local = utc.with_timezone(&zone);
    format!("{} ({})", local.format("%Y-%m-%d %H:%M:%S"), zone_name(&local))
}

/// Formats a time in a zone in the page's language, with the zone: `1 Mar 2026, 10:30 (Europe/Berlin,
/// UTC+01:00)`.
pub(super) fn format_time_in_language(at: Timestamp, zone: Tz, language: Language) -> String {
    let Some(utc) = at.to_utc() else { return at.to_string() };
    let local = utc.with_timezone(&zone);
    let time = local.format("%H:%M").to_string();
    format!("{} ({})", Locale::of(language).date_time(local.date_naive(), &time), zone_name(&local))
}

/// Name of a time's zone with its offset from UTC.
fn zone_name(local: &DateTime<Tz>) -> String {
    match local.timezone() {
        Tz::UTC | Tz::Etc__UTC => "UTC".to_owned(),
        zone => format!("{}, UTC{}", zone.name(), local.format("%:z")),
    }
}
