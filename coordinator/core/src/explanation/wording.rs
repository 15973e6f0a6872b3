//! Words for times, lengths and numbers in explanations.

use chrono_tz::Tz;

use crate::locale::Locale;
use crate::page::branding::Language;
use crate::rollup::day_of;
use crate::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use crate::vantage::RegionSet;

/// Number in words up to ten, as running text has it.
pub fn spelled_count(number: usize) -> String {
    const WORDS: [&str; 11] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// First letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Length in its largest unit, two from an hour on: `45 s`, `9 min`, `2 h 5 min`, `3 days`. `millis` is in
/// milliseconds.
pub fn short_duration(millis: i64) -> String {
    let millis = millis.max(0);
    let (days, hours, minutes) = (millis / DAY, millis % DAY / HOUR, millis % HOUR / MINUTE);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", millis / SECOND),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, 0) => format!("{hours} h"),
        (0, ..) => format!("{hours} h {minutes} min"),
        (1, 0, _) => "1 day".to_owned(),
        (_, 0, _) => format!("{days} days"),
        (1, ..) => format!("1 day {hours} h"),
        (..) => format!("{days} days {hours} h"),
    }
}

/// Length in words, for titles: `14 minutes`.
pub(super) fn long_duration(millis: i64) -> String {
    english().duration(millis)
}

/// Interval of a job: `every day`, `every 6 h`. `seconds` is in seconds.
pub fn period_text(seconds: u32) -> String {
    match i64::from(seconds) * SECOND {
        DAY => "every day".to_owned(),
        HOUR => "every hour".to_owned(),
        MINUTE => "every minute".to_owned(),
        millis => format!("every {}", short_duration(millis)),
    }
}

/// Time of day; with `yesterday` or the date if it isn't today.
pub fn clock(at: Timestamp, zone: Tz, now: Timestamp) -> String {
    let time = at.to_utc().map(|utc| utc.with_timezone(&zone).format("%H:%M").to_string()).unwrap_or_default();
    match (day_of(at, zone), day_of(now, zone)) {
        (Some(day), Some(today)) if day == today => time,
        (Some(day), Some(today)) if day.succ_opt() == Some(today) => format!("{time} yesterday"),
        (Some(day), _) => format!("{time} on {}", english().short_day(day)),
        (None, _) => time,
    }
}

/// List of regions in a sentence.
pub(super) fn regions(regions: RegionSet) -> String {
    english().regions(regions)
}

/// List of names in a sentence.
pub(super) fn list<T: AsRef<str>>(names: &[T]) -> String {
    english().list(names)
}

fn english() -> &'static Locale {
    Locale::of(Language::En)
}
