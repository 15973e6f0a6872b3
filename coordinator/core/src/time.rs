//! Moments as milliseconds since the epoch, their ISO 8601 text, and the hour they lie in.

use std::fmt;
use std::ops::{Add, Sub};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// One second in milliseconds.
pub const SECOND: i64 = 1000;
/// One minute in milliseconds.
pub const MINUTE: i64 = 60 * SECOND;
/// One hour in milliseconds.
pub const HOUR: i64 = 60 * MINUTE;
/// One day in milliseconds.
pub const DAY: i64 = 24 * HOUR;

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment that lies so many milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to this moment; negative when it lies before.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The hour since the epoch that this moment lies in.
    pub const fn hour(self) -> i64 {
        self.0.div_euclid(HOUR)
    }

    /// Reads ISO 8601 with an offset (RFC 3339), as the API takes it. Years outside 1970 to 9999 are refused.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let moment = DateTime::parse_from_rfc3339(text.trim()).ok()?.timestamp_millis();
        (0..253_402_300_800_000).contains(&moment).then_some(Self(moment))
    }

    /// The calendar's view of this moment, where it has one.
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.0)
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;

    fn add(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl Sub<i64> for Timestamp {
    type Output = Self;

    fn sub(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC with milliseconds, as the API gives every time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_utc() {
            Some(moment) => f.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true)),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_in_several_notations_reads_the_same() {
        let moment = Timestamp::from_millis(1_795_783_560_000);
        assert_eq!(moment.to_string(), "2026-11-27T12:46:00.000Z");
        for text in ["2026-11-27T12:46:00Z", "2026-11-27T13:46:00+01:00", "2026-11-27T07:46:00.000-05:00"] {
            assert_eq!(Timestamp::parse_iso(text), Some(moment), "{text}");
        }
    }

    #[test]
    fn text_without_an_offset_or_out_of_range_is_refused() {
        for text in ["2026-11-27T12:46:00", "2026-11-27", "1969-12-31T23:59:59Z", "tomorrow", ""] {
            assert_eq!(Timestamp::parse_iso(text), None, "{text}");
        }
    }

    #[test]
    fn hours_are_counted_from_the_epoch() {
        assert_eq!(Timestamp::from_millis(HOUR - 1).hour(), 0);
        assert_eq!(Timestamp::from_millis(HOUR).hour(), 1);
    }
}
