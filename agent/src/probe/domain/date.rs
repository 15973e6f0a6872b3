//! Parsing of dates in registries' formats: month names, various separators, with and without a time.

use chrono::NaiveDate;

/// Registries that write the day before the month, separated by hyphens or slashes: dates of others are
/// parsed in that order only if no other is possible.
const DAY_FIRST: [&str; 11] = ["bg", "cy", "gi", "hk", "il", "im", "mt", "my", "pt", "th", "tn"];

/// Month names, by their first three letters.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Maximum number of parts of a text: a date with time and zone has less than half of them.
const MAX_PARTS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatePart<'a> {
    Number(&'a str),
    Word(&'a str),
    Mark(char),
}

/// Parses a date in the format of a top-level domain's registry, in epoch ms. Without a time it is the day's
/// start, without a zone UTC; text after it is ignored. Returns `None` if the text does not begin with a
/// date, or if the order of day and month is unknown.
pub(super) fn read(text: &str, top: &str) -> Option<i64> {
    let text = text.to_lowercase();
    let mut parts = parts(&text);
    if let [DatePart::Word(word), rest @ ..] = parts.as_slice()
        && is_name(word, &WEEKDAYS)
    {
        parts = rest.to_vec();
    }
    let (day, rest) = with_year_last(&parts).or_else(|| day(&parts, top))?;
    Some(at(day, &rest))
}

/// Splits a text into numbers, words and marks, without spaces, commas and ordinal suffixes.
fn parts(text: &str) -> Vec<DatePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next()
        && parts.len() < MAX_PARTS
    {
        let is_like: fn(char) -> bool = match first {
            _ if first.is_ascii_digit() => |c| c.is_ascii_digit(),
            _ if first.is_alphabetic() => char::is_alphabetic,
            _ => |_| false,
        };
        let end = rest
            .find(|c| !is_like(c))
            .filter(|end| *end > 0)
            .unwrap_or_else(|| if is_like(first) { rest.len() } else { first.len_utf8() });
        let (part, after) = rest.split_at(end);
        let follows_number = matches!(parts.last(), Some(DatePart::Number(_)));
        match part {
            "," => {}
            "st" | "nd" | "rd" | "th" if follows_number => {}
            _ if first.is_ascii_digit() => parts.push(DatePart::Number(part)),
            _ if first.is_alphabetic() => parts.push(DatePart::Word(part)),
            _ => parts.push(DatePart::Mark(first)),
        }
        rest = after.trim_start();
    }
    parts
}

/// Parses `Mar 28 23:59:00 2027`, as C's `asctime` writes it: the date, and the parts of the time.
fn with_year_last<'a>(parts: &[DatePart<'a>]) -> Option<(NaiveDate, Vec<DatePart<'a>>)> {
    let [DatePart::Word(month), DatePart::Number(day), time @ ..] = parts else { return None };
    let (hours, rest) = time.split_at_checked(5)?;
    let [DatePart::Number(_), DatePart::Mark(':'), DatePart::Number(_), DatePart::Mark(':'), DatePart::Number(_)] =
        hours
    else {
        return None;
    };
    let ([DatePart::Number(year), ..] | [DatePart::Word(_), DatePart::Number(year), ..]) = rest else {
        return None;
    };
    Some((date(year, month_of(month)?, day)?, hours.to_vec()))
}

/// Parses the date at the start; returns it with the parts after it.
fn day<'a>(parts: &[DatePart<'a>], top: &str) -> Option<(NaiveDate, Vec<DatePart<'a>>)> {
    use DatePart::{Mark, Number, Word};
    let (day, rest) = match parts {
        [Number(digits), rest @ ..] if matches!(digits.len(), 8 | 14) => {
            let (year, month, day) = (digits.get(..4)?, digits.get(4..6)?, digits.get(6..8)?);
            (date(year, month.parse().ok()?, day)?, rest)
        }
        [Number(year), Mark(a), Number(month), Mark(b), Number(day), rest @ ..]
            if is_joint(*a, *b) && year.len() == 4 =>
        {
            (date(year, month.parse().ok()?, day)?, rest)
        }
        [Number(year), Mark(a), Word(month), Mark(b), Number(day), rest @ ..]
            if is_joint(*a, *b) && year.len() == 4 =>
        {
            (date(year, month_of(month)?, day)?, rest)
        }
        [Number(day), Mark('.'), Number(month), Mark('.'), Number(year), rest @ ..] => {
            (date(year, month.parse().ok()?, day)?, rest)
        }
        [Number(a), Mark(j), Number(b), Mark(k), Number(year), rest @ ..] if is_joint(*j, *k) => {
            (in_order(year, a, b, top)?, rest)
        }
        [Number(day), Mark(a), Word(month), Mark(b), Number(year), rest @ ..] if is_joint(*a, *b) => {
            (date(year, month_of(month)?, day)?, rest)
        }
        [Number(day), Word(month), Number(year), rest @ ..] | [Word(month), Number(day), Number(year), rest @ ..] => {
            (date(year, month_of(month)?, day)?, rest)
        }
        _ => return None,
    };
    Some((day, rest.to_vec()))
}

fn is_joint(first: char, second: char) -> bool {
    first == second && matches!(first, '.' | '-' | '/')
}

/// Parses two numbers of which one is the day: in the registry's order, or in the only possible one.
fn in_order(year: &str, first: &str, second: &str, top: &str) -> Option<NaiveDate> {
    let (first_number, second_number): (u32, u32) = (first.parse().ok()?, second.parse().ok()?);
    if DAY_FIRST.contains(&top) || first_number == second_number || first_number > 12 {
        return date(year, second_number, first);
    }
    (second_number > 12).then(|| date(year, first_number, second)).flatten()
}

fn date(year: &str, month: u32, day: &str) -> Option<NaiveDate> {
    let year = year.parse().ok().filter(|_| year.len() == 4)?;
    NaiveDate::from_ymd_opt(year, month, day.parse().ok()?)
}

fn month_of(name: &str) -> Option<u32> {
    let at = MONTHS.iter().position(|month| is_name(name, std::slice::from_ref(month)))?;
    u32::try_from(at + 1).ok()
}

/// Returns true for a name of the list, in full or abbreviated to three letters or more.
fn is_name(word: &str, names: &[&str]) -> bool {
    word.len() >= 3 && names.iter().any(|name| name.starts_with(word))
}

/// Returns the time on a day given by the parts after its date, in epoch ms.
fn at(day: NaiveDate, rest: &[DatePart<'_>]) -> i64 {
    use DatePart::{Mark, Number, Word};
    let midnight = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
    let rest = match rest {
        [Word("t"), rest @ ..] => rest,
        rest => rest,
    };
    let number = |digits: &str| digits.parse::<u32>().ok();
    let (time, zone) = match rest {
        [Number(h), Mark(':'), Number(m), Mark(':'), Number(s), rest @ ..] => {
            let zone = match rest {
                [Mark('.'), Number(_), zone @ ..] => zone,
                zone => zone,
            };
            ((number(h), number(m), number(s)), zone)
        }
        [Number(h), Mark(':'), Number(m), zone @ ..] => ((number(h), number(m), Some(0)), zone),
        _ => return midnight * 1000,
    };
    let (Some(h @ 0..24), Some(m @ 0..60), Some(s @ 0..61)) = time else { return midnight * 1000 };
    (midnight + i64::from(h * 3600 + m * 60 + s) - offset(zone)) * 1000
}

/// Returns the seconds that a zone is ahead of UTC; 0 for a named zone, whose meaning depends on the author.
fn offset(zone: &[DatePart<'_>]) -> i64 {
    use DatePart::{Mark, Number, Word};
    let zone = match zone {
        [Mark('('), zone @ ..] => zone,
        zone => zone,
    };
    let zone = match zone {
        [Word("utc" | "gmt"), zone @ ..] => zone,
        zone => zone,
    };
    let [Mark(sign @ ('+' | '-')), Number(hours), rest @ ..] = zone else { return 0 };
    let minutes = match (hours.len(), rest) {
        (4, _) => hours.get(2..),
        (_, [Mark(':'), Number(minutes), ..]) => Some(*minutes),
        _ => None,
    };
    let hours = if hours.len() == 4 { hours.get(..2) } else { Some(*hours) };
    let read = |digits: Option<&str>| digits.and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0);
    let (hours, minutes) = (read(hours), read(minutes));
    if hours > 14 || minutes > 59 {
        return 0;
    }
    let ahead = hours * 3600 + minutes * 60;
    if *sign == '-' { -ahead } else { ahead }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 May 2027.
    const DAY: i64 = 1_809_129_600_000;
    const HOUR: i64 = 3_600_000;

    #[test]
    fn every_date_format_is_read() {
        for (text, top) in [
            ("2027-05-01", "zz"),
            ("2027/05/01", "jp"),
            ("2027.05.01", "pl"),
            ("2027. 05. 01.", "kr"),
            ("2027-May-01.", "tr"),
            ("20270501", "br"),
            ("20270501 #1234", "br"),
            ("01.05.2027", "cz"),
            ("1.5.2027", "fi"),
            ("01-05-2027", "il"),
            ("01/05/2027", "pt"),
            ("01-May-2027", "uk"),
            ("01-may-2027", "uz"),
            ("01 May 2027", "th"),
            ("1st May 2027", "gg"),
            ("Saturday 1st May 2027", "uk"),
            ("May  1 2027", "is"),
            ("May 1, 2027", "zz"),
            ("Sat May  1 00:00:00 2027", "kg"),
            ("Sat May  1 00:00:00 UTC 2027", "kg"),
            ("2027-05-01 (locked until 2028-01-01)", "zz"),
        ] {
            assert_eq!(read(text, top), Some(DAY), "{text}");
        }
    }

    #[test]
    fn times_with_zones_are_read() {
        for text in [
            "2027-05-01T04:00:00Z",
            "2027-05-01T04:00Z",
            "2027-05-01T06:00+02:00",
            "2027-05-01T04:00:00.000Z",
            "2027-05-01t04:00:00.123456789z",
            "2027-05-01T04:00:00",
            "2027-05-01 04:00:00",
            "2027-05-01 04:00",
            "2027-05-01 06:00:00+02",
            "2027-05-01T00:30:00-0330",
            "2027-05-01 12:00:00 (UTC+8)",
            "2027-05-01 04:00:00 (GMT+0:00)",
            "2027-05-01 04:00:00 CLST",
            "20270501 04:00:00",
            "Sat May 1 04:00:00 2027",
            "1.5.2027 04:00:00",
        ] {
            assert_eq!(read(text, "zz"), Some(DAY + 4 * HOUR), "{text}");
        }
        // An impossible time does not invalidate the day.
        assert_eq!(read("2027-05-01 25:00:00", "zz"), Some(DAY));
    }

    #[test]
    fn an_unknown_date_order_is_not_guessed() {
        assert_eq!(read("01/05/2027", "zz"), None);
        assert_eq!(read("01-05-2027", "zz"), None);
        // 5 January, for a registry that writes the day first.
        assert_eq!(read("05/01/2027", "hk"), read("2027-01-05", "zz"));
        for text in ["31/05/2027", "05/31/2027"] {
            assert_eq!(read(text, "zz"), read("2027-05-31", "zz"), "only one order is possible: {text}");
        }
        assert_eq!(read("05/05/2027", "zz"), read("2027-05-05", "zz"));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "soon",
            "never",
            "08/13/27",
            "2027",
            "2027-13-01",
            "2027-02-30",
            "1 2 3",
            "12:00",
            "99999999",
            "0-UANIC 2027",
            "+",
            "（2027/05/01）",
        ] {
            assert_eq!(read(text, "zz"), None, "{text}");
        }
        assert_eq!(read(&"1".repeat(100_000), "zz"), None);
        assert_eq!(read(&". ".repeat(100_000), "zz"), None);
    }
}
