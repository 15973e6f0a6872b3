//! Recurrence of maintenance windows: the same local time, weekly or monthly, in a time zone of its own.
//!
//! A local time that the zone skips (spring forward) becomes the first moment after the gap; one that occurs twice is
//! the first of the two.

use chrono::{DateTime, Datelike, Days, LocalResult, Months, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::time::{HOUR, Timestamp};

/// Frequency of a recurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Frequency {
    /// On the same weekday.
    Weekly,
    /// On the same date, or the month's last day if the month is shorter.
    Monthly,
    /// On the same n-th weekday of the month; the fifth means the last.
    MonthlyWeekday,
}

impl Frequency {
    /// Every frequency, in order.
    pub const ALL: [Self; 3] = [Self::Weekly, Self::Monthly, Self::MonthlyWeekday];

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::MonthlyWeekday => "monthly-weekday",
        }
    }
}

/// First occurrence and frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrence {
    /// Frequency.
    pub frequency: Frequency,
    /// Time zone whose local time is kept.
    pub zone: Tz,
    /// First occurrence.
    pub first: Timestamp,
}

impl Recurrence {
    /// Returns an occurrence by number, the first being 0; none beyond the range of the calendar.
    pub fn nth(&self, number: u32) -> Option<Timestamp> {
        if number == 0 {
            return Some(self.first);
        }
        let first = self.first.to_utc()?.with_timezone(&self.zone).naive_local();
        let date = match self.frequency {
            Frequency::Weekly => first.date().checked_add_days(Days::new(u64::from(number) * 7))?,
            // Chrono uses the month's last day if the month is shorter.
            Frequency::Monthly => first.date().checked_add_months(Months::new(number))?,
            Frequency::MonthlyWeekday => {
                let month = first.date().with_day(1)?.checked_add_months(Months::new(number))?;
                same_weekday(first.date(), month)?
            }
        };
        local_to_timestamp(self.zone, date.and_time(first.time()))
    }
}

/// Day in `month` (given by its first day) with the same weekday and the same position as `date` in its own month.
fn same_weekday(date: NaiveDate, month: NaiveDate) -> Option<NaiveDate> {
    let place = date.day().checked_sub(1)? / 7 + 1;
    if place < 5 {
        return NaiveDate::from_weekday_of_month_opt(
            month.year(),
            month.month(),
            date.weekday(),
            u8::try_from(place).ok()?,
        );
    }
    let of_month = |place| NaiveDate::from_weekday_of_month_opt(month.year(), month.month(), date.weekday(), place);
    of_month(5).or_else(|| of_month(4))
}

/// Timestamp of a local time in a zone; none beyond the range of the calendar.
pub fn local_to_timestamp(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(moment) => Some(millis(&moment.to_utc())),
        LocalResult::Ambiguous(one, other) => Some(millis(&one.min(other).to_utc())),
        LocalResult::None => after_gap(zone, local),
    }
}

/// First moment after `local`, a local time that the zone skips.
fn after_gap(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    // No zone is further from UTC than this, and none skips more than a day.
    let (mut before, mut after) = (
        local.and_utc().timestamp_millis().checked_sub(40 * HOUR)?,
        local.and_utc().timestamp_millis().checked_add(40 * HOUR)?,
    );
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        let displayed = DateTime::from_timestamp_millis(middle)?.with_timezone(&zone).naive_local();
        if displayed < local {
            before = middle;
        } else {
            after = middle;
        }
    }
    Some(Timestamp::from_millis(after))
}

fn millis(moment: &DateTime<Utc>) -> Timestamp {
    Timestamp::from_millis(moment.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(every: Frequency, zone: &str, first: &str, count: u32) -> Vec<String> {
        let zone: Tz = zone.parse().unwrap();
        let recurrence = Recurrence { frequency: every, zone, first: Timestamp::parse_iso(first).unwrap() };
        let local = |at: Timestamp| at.to_utc().unwrap().with_timezone(&zone).format("%F %R").to_string();
        (0..count).map(|number| local(recurrence.nth(number).unwrap())).collect()
    }

    #[test]
    fn the_local_time_is_the_same_across_daylight_saving_changes() {
        let found = starts(Frequency::Weekly, "Europe/Berlin", "2027-03-22T08:00:00+01:00", 3);
        assert_eq!(found, ["2027-03-22 08:00", "2027-03-29 08:00", "2027-04-05 08:00"]);
    }

    #[test]
    fn a_skipped_local_time_is_the_first_one_after_the_gap() {
        let found = starts(Frequency::Weekly, "Europe/Berlin", "2027-03-21T02:30:00+01:00", 3);
        assert_eq!(found, ["2027-03-21 02:30", "2027-03-28 03:00", "2027-04-04 02:30"]);
    }

    #[test]
    fn a_time_that_comes_twice_is_the_first() {
        let zone = "Europe/Berlin".parse().unwrap();
        let first = Timestamp::parse_iso("2027-10-24T02:30:00+02:00").unwrap();
        let found = Recurrence { frequency: Frequency::Weekly, zone, first }.nth(1);
        assert_eq!(found, Timestamp::parse_iso("2027-10-31T02:30:00+02:00"));
    }

    #[test]
    fn the_31st_is_the_last_day_of_shorter_months_and_comes_back() {
        let found = starts(Frequency::Monthly, "UTC", "2027-01-31T10:00:00Z", 4);
        assert_eq!(found, ["2027-01-31 10:00", "2027-02-28 10:00", "2027-03-31 10:00", "2027-04-30 10:00"]);
    }

    #[test]
    fn the_second_tuesday_stays_the_second_and_the_fifth_friday_is_the_last() {
        let second = starts(Frequency::MonthlyWeekday, "UTC", "2027-01-12T10:00:00Z", 3);
        assert_eq!(second, ["2027-01-12 10:00", "2027-02-09 10:00", "2027-03-09 10:00"]);
        let last = starts(Frequency::MonthlyWeekday, "UTC", "2027-01-29T10:00:00Z", 5);
        assert_eq!(
            last,
            ["2027-01-29 10:00", "2027-02-26 10:00", "2027-03-26 10:00", "2027-04-30 10:00", "2027-05-28 10:00"]
        );
    }

    #[test]
    fn what_no_calendar_holds_is_none() {
        let first = Timestamp::parse_iso("9999-12-31T23:00:00Z").unwrap();
        let recurrence = Recurrence { frequency: Frequency::Monthly, zone: Tz::UTC, first };
        assert_eq!(recurrence.nth(u32::MAX), None);
    }
}
