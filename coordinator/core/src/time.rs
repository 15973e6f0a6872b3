//! Timestamps in milliseconds since the epoch, their ISO 8601 text, and the hour they belong to.

mod notation;

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};

use chrono::{DateTime, Datelike, NaiveDateTime, SecondsFormat, Timelike, Utc};
use serde::{Deserialize, Serialize};

/// One second in milliseconds.
pub const SECOND: i64 = 1000;
/// One minute in milliseconds.
pub const MINUTE: i64 = 60 * SECOND;
/// One hour in milliseconds.
pub const HOUR: i64 = 60 * MINUTE;
/// One day in milliseconds.
pub const DAY: i64 = 24 * HOUR;

/// Timestamp: milliseconds since 1970-01-01T00:00:00Z. The value `i64::MIN` is reserved as the niche of
/// `Option<Timestamp>`, so that an option takes eight bytes too: a monitor has some twenty of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "i64", into = "i64")]
pub struct Timestamp(NonZeroU64);

/// Flips the sign bit, which maps the order of signed numbers to that of unsigned ones.
const SIGN: u64 = 1 << 63;

impl Timestamp {
    /// Timestamp of this many milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        match NonZeroU64::new(millis.cast_unsigned() ^ SIGN) {
            Some(turned) => Self(turned),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        (self.0.get() ^ SIGN).cast_signed()
    }

    /// Milliseconds from `earlier` to this timestamp; negative if it is before.
    pub const fn since(self, earlier: Self) -> i64 {
        self.as_millis().saturating_sub(earlier.as_millis())
    }

    /// Hour since the epoch of this timestamp.
    pub const fn hour(self) -> i64 {
        self.as_millis().div_euclid(HOUR)
    }

    /// Parses ISO 8601 as the API accepts it: a calendar date, a time of day and an offset, with or without
    /// separators (see `time/notation.rs` for the grammar). Years outside 1970 to 9999 are rejected.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let full = notation::normalize(text.trim())?;
        let moment = DateTime::parse_from_rfc3339(&full).ok()?.timestamp_millis();
        (0..253_402_300_800_000).contains(&moment).then_some(Self::from_millis(moment))
    }

    /// Parses the same without an offset: a local time in an unspecified zone.
    pub fn parse_local(text: &str) -> Option<NaiveDateTime> {
        let wall_clock = Self::parse_iso(&format!("{}Z", text.trim()))?;
        wall_clock.to_utc().map(|moment| moment.naive_utc())
    }

    /// Converts to `chrono`, if the calendar can represent it.
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.as_millis())
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::from_millis(0)
    }
}

impl From<i64> for Timestamp {
    fn from(millis: i64) -> Self {
        Self::from_millis(millis)
    }
}

impl From<Timestamp> for i64 {
    fn from(moment: Timestamp) -> Self {
        moment.as_millis()
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;

    fn add(self, millis: i64) -> Self {
        Self::from_millis(self.as_millis().saturating_add(millis))
    }
}

impl Sub<i64> for Timestamp {
    type Output = Self;

    fn sub(self, millis: i64) -> Self {
        Self::from_millis(self.as_millis().saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    /// Formats as ISO 8601 in UTC with milliseconds, as the API returns every time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(moment) = self.to_utc() else { return write!(f, "{}", self.as_millis()) };
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let year = u32::try_from(moment.year()).ok().filter(|year| *year < 10_000);
        let Some(year) = year else {
            return f.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true));
        };
        // Formatted by hand for speed: a list of monitors contains hundreds of timestamps.
        let parts = [
            (3, 4, year),
            (6, 2, moment.month()),
            (9, 2, moment.day()),
            (12, 2, moment.hour()),
            (15, 2, moment.minute()),
            (18, 2, moment.second()),
            (22, 3, moment.timestamp_subsec_millis()),
        ];
        for (last, digits, mut value) in parts {
            for at in 0..digits {
                if let Some(place) = text.get_mut(last - at) {
                    *place = b'0' + (value % 10) as u8;
                }
                value /= 10;
            }
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
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
    fn a_moment_is_read_as_it_is_written() {
        let moment = Timestamp::from_millis(1_795_783_560_000);
        assert_eq!(moment.to_string(), "2026-11-27T12:46:00.000Z");
        assert_eq!(Timestamp::parse_iso(&moment.to_string()), Some(moment));
    }

    proptest::proptest! {
        #[test]
        fn a_timestamp_is_formatted_as_chrono_does(millis in -100_000_000_000_000_i64..300_000_000_000_000) {
            let moment = Timestamp::from_millis(millis);
            let expected = moment.to_utc().unwrap().to_rfc3339_opts(SecondsFormat::Millis, true);
            proptest::prop_assert_eq!(moment.to_string(), expected);
        }
    }

    #[test]
    fn timestamps_are_ordered_and_none_needs_no_extra_space() {
        let millis = [i64::MIN + 1, -1, 0, 1, i64::MAX];
        let moments = millis.map(Timestamp::from_millis);
        assert!(moments.is_sorted() && moments.map(Timestamp::as_millis) == millis);
        assert_eq!(Timestamp::from_millis(i64::MIN), moments[0]);
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }

    #[test]
    fn hours_are_counted_from_the_epoch() {
        assert_eq!(Timestamp::from_millis(HOUR - 1).hour(), 0);
        assert_eq!(Timestamp::from_millis(HOUR).hour(), 1);
    }
}
