//! Times of maintenance windows in their own zone: when one is, and when a repeating one comes next.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset};
use chrono_tz::Tz;
use parallax_core::recurrence::{Frequency, Recurrence};
use parallax_core::time::Timestamp;

use super::words;

/// Windows that a form shows in advance.
const SHOWN: u32 = 5;

/// A window in its zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowTime {
    /// Day of the start: "Tue 8 Dec 2026".
    pub day: String,
    /// Start and end: "02:00 to 04:00", with the day of an end on another one.
    pub hours: String,
    /// Offset of the zone, and what is special: "UTC+2, after the clock change".
    pub note: String,
}

impl WindowTime {
    /// Writes a window from `start` to `end`; empty beyond the range of the calendar.
    pub(crate) fn of(start: Timestamp, end: Timestamp, zone: Tz) -> Self {
        let (Some(from), Some(to)) = (local(start, zone), local(end, zone)) else {
            return Self { day: String::new(), hours: String::new(), note: String::new() };
        };
        let is_same_day = from.date_naive() == to.date_naive();
        let end = to.format(if is_same_day { "%H:%M" } else { "%a %-d %b, %H:%M" });
        Self {
            day: from.format("%a %-d %b %Y").to_string(),
            hours: format!("{} to {end}", from.format("%H:%M")),
            note: offset(from),
        }
    }

    /// In one line: "Tue 8 Dec 2026, 02:00 to 04:00 (UTC+1)".
    pub(crate) fn line(&self) -> String {
        format!("{}, {} ({})", self.day, self.hours, self.note)
    }
}

/// Returns the next windows of a recurrence whose windows have that length in milliseconds, from the first one that
/// is not over. Clock changes are named.
pub(crate) fn next_windows(recurrence: &Recurrence, length: i64, now: Timestamp) -> Vec<WindowTime> {
    let zone = recurrence.zone;
    let Some(usual) = local(recurrence.first, zone).map(|first| first.time()) else { return Vec::new() };
    let mut before = None;
    let mut windows = Vec::new();
    for number in 0..u32::MAX {
        let Some((start, from)) = recurrence.nth(number).and_then(|at| Some((at, local(at, zone)?))) else { break };
        if start + length <= now {
            continue;
        }
        let mut window = WindowTime::of(start, start + length, zone);
        if from.time() != usual {
            let (missing, starts) = (usual.format("%H:%M"), from.format("%H:%M"));
            window.note = format!("{missing} does not exist that night: starts {starts}");
        } else if before.is_some_and(|before| before != offset(from)) {
            window.note.push_str(", after the clock change");
        }
        before = Some(offset(from));
        windows.push(window);
        if windows.len() >= SHOWN as usize {
            break;
        }
    }
    windows
}

/// Returns the choices of repetition for a start at that local time, as sentences.
pub(crate) fn repetitions(start: Option<NaiveDateTime>) -> Vec<(&'static str, String)> {
    let mut choices = vec![("", "Never".to_owned())];
    choices.extend(Frequency::ALL.map(|every| (every.name(), sentence(every, start.map(|start| start.date())))));
    choices
}

/// Writes a repetition: "Every month on the second Tuesday".
pub(crate) fn sentence(every: Frequency, date: Option<NaiveDate>) -> String {
    match (every, date) {
        (Frequency::Weekly, None) => "Every week on the same weekday".to_owned(),
        (Frequency::Monthly, None) => "Every month on the same date".to_owned(),
        (Frequency::MonthlyWeekday, None) => "Every month on the same weekday".to_owned(),
        (Frequency::Weekly, Some(date)) => format!("Every week on {}", date.format("%A")),
        (Frequency::Monthly, Some(date)) => format!("Every month on the {}", ordinal(date.day())),
        (Frequency::MonthlyWeekday, Some(date)) => {
            let place = ["first", "second", "third", "fourth", "last"][(date.day0() / 7).min(4) as usize];
            format!("Every month on the {place} {}", date.format("%A"))
        }
    }
}

/// Writes a local time for an input of the type `datetime-local`.
pub(crate) fn input_value(at: Timestamp, zone: Tz) -> String {
    local(at, zone).map(|at| at.format("%Y-%m-%dT%H:%M").to_string()).unwrap_or_default()
}

/// Returns the zone with its present offset: "Europe/Berlin (now UTC+1)".
pub(crate) fn zone_text(zone: Tz, now: Timestamp) -> String {
    local(now, zone).map(|now| format!("{} (now {})", zone.name(), offset(now))).unwrap_or_default()
}

/// Writes a day: "Tue 8 Dec 2026".
pub(crate) fn day(at: Timestamp, zone: Tz) -> String {
    local(at, zone).map(|at| at.format("%a %-d %b %Y").to_string()).unwrap_or_default()
}

/// Returns how long a window is: "2 h".
pub(crate) fn length(start: Timestamp, end: Timestamp) -> String {
    words::duration(end.since(start))
}

fn local(at: Timestamp, zone: Tz) -> Option<DateTime<Tz>> {
    Some(at.to_utc()?.with_timezone(&zone))
}

fn offset(at: DateTime<Tz>) -> String {
    let minutes = at.offset().fix().local_minus_utc() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    match (minutes.abs() / 60, minutes.abs() % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

fn ordinal(day: u32) -> String {
    let ending = match (day % 10, day % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{day}{ending}")
}

#[cfg(test)]
mod tests {
    use parallax_core::time::HOUR;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }

    #[test]
    fn next_windows_name_clock_changes() {
        let zone = chrono_tz::Europe::Berlin;
        let next = |frequency, first: &str, now: &str| -> Vec<String> {
            let recurrence = Recurrence { frequency, zone, first: at(first) };
            next_windows(&recurrence, 2 * HOUR, at(now)).iter().map(WindowTime::line).collect()
        };
        assert_eq!(
            next(Frequency::MonthlyWeekday, "2026-12-08T01:00:00Z", "2026-12-01T00:00:00Z"),
            [
                "Tue 8 Dec 2026, 02:00 to 04:00 (UTC+1)",
                "Tue 12 Jan 2027, 02:00 to 04:00 (UTC+1)",
                "Tue 9 Feb 2027, 02:00 to 04:00 (UTC+1)",
                "Tue 9 Mar 2027, 02:00 to 04:00 (UTC+1)",
                "Tue 13 Apr 2027, 02:00 to 04:00 (UTC+2, after the clock change)",
            ]
        );
        let weekly = next(Frequency::Weekly, "2027-03-14T01:30:00Z", "2027-03-21T12:00:00Z");
        assert_eq!(weekly[0], "Sun 28 Mar 2027, 03:00 to 05:00 (02:30 does not exist that night: starts 03:00)");
        assert_eq!(weekly[1], "Sun 4 Apr 2027, 02:30 to 04:30 (UTC+2)");
        assert_eq!(weekly.len(), 5);
    }

    #[test]
    fn a_window_over_midnight_names_both_days() {
        let window = WindowTime::of(at("2026-12-08T22:00:00Z"), at("2026-12-09T01:30:00Z"), chrono_tz::Tz::UTC);
        assert_eq!(window.line(), "Tue 8 Dec 2026, 22:00 to Wed 9 Dec, 01:30 (UTC)");
        let [from, to] = ["2026-12-08T22:00:00Z", "2026-12-09T01:30:00Z"].map(at);
        assert_eq!(WindowTime::of(from, to, chrono_tz::Asia::Kolkata).note, "UTC+5:30");
        assert_eq!(length(from, to), "3 h 30 min");
        assert_eq!(input_value(from, chrono_tz::Asia::Kolkata), "2026-12-09T03:30");
    }

    #[test]
    fn repetitions_are_sentences_about_the_chosen_date() {
        let texts = |date: &str| -> Vec<String> {
            let start = Timestamp::parse_local(date);
            repetitions(start).into_iter().skip(1).map(|(_, text)| text).collect()
        };
        for (date, expected) in [
            (
                "2026-12-08T02:00",
                ["Every week on Tuesday", "Every month on the 8th", "Every month on the second Tuesday"],
            ),
            (
                "2026-12-31T02:00",
                ["Every week on Thursday", "Every month on the 31st", "Every month on the last Thursday"],
            ),
            (
                "2026-12-22T02:00",
                ["Every week on Tuesday", "Every month on the 22nd", "Every month on the fourth Tuesday"],
            ),
            (
                "2026-12-11T02:00",
                ["Every week on Friday", "Every month on the 11th", "Every month on the second Friday"],
            ),
        ] {
            assert_eq!(texts(date), expected, "{date}");
        }
        assert_eq!(repetitions(None)[1].1, "Every week on the same weekday");
    }
}
