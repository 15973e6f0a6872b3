//! Normalization of ISO 8601 timestamps to the format of RFC 3339.

/// Signs of an offset; the last is the minus sign of ISO 8601, for which a hyphen is commonly written.
const SIGNS: [char; 3] = ['+', '-', '\u{2212}'];

/// Rewrites a timestamp in full, if ISO 8601 allows one reading only.
///
/// The accepted input is a calendar date, `T` (`t` and a space are allowed by RFC 3339), a time of day and an offset.
/// Each of the three has its separators or none: `2026-11-27` or `20261127`, `12:46:00` or `124600`, `+01:00` or
/// `+0100`. Seconds are optional, and so are the minutes of an offset; `Z` is the offset of UTC. A fraction is
/// allowed after seconds, with a point or a comma.
///
/// Ranges of day, hour and offset are not validated here.
pub(super) fn normalize(text: &str) -> Option<String> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let at = rest.find(|c| SIGNS.contains(&c) || matches!(c, 'Z' | 'z'))?;
    let (time, offset) = rest.split_at(at);
    let date = groups(date, &[4, 2, 2], '-')?.join("-");
    Some(format!("{date}T{}{}", time_of_day(time)?, in_hours(offset)?))
}

fn time_of_day(text: &str) -> Option<String> {
    let Some((whole, fraction)) = text.split_once(['.', ',']) else {
        let to_minutes = || Some(format!("{}:00", groups(text, &[2, 2], ':')?.join(":")));
        return groups(text, &[2, 2, 2], ':').map(|parts| parts.join(":")).or_else(to_minutes);
    };
    let whole = groups(whole, &[2, 2, 2], ':')?.join(":");
    (!fraction.is_empty() && is_number(fraction)).then(|| format!("{whole}.{fraction}"))
}

fn in_hours(text: &str) -> Option<String> {
    if matches!(text, "Z" | "z") {
        return Some("Z".to_owned());
    }
    let sign = text.chars().next().filter(|sign| SIGNS.contains(sign))?;
    let digits = text.strip_prefix(sign)?;
    let hours = || groups(digits, &[2], ':').map(|hours| format!("{}:00", hours.concat()));
    let offset = groups(digits, &[2, 2], ':').map(|parts| parts.join(":")).or_else(hours)?;
    Some(format!("{}{offset}", if sign == '+' { '+' } else { '-' }))
}

/// Splits digits into groups of these lengths, with the separator between all of them or between none.
fn groups<'a>(text: &'a str, lengths: &[usize], mark: char) -> Option<Vec<&'a str>> {
    let found: Vec<&str> = if text.contains(mark) {
        text.split(mark).collect()
    } else {
        let mut rest = text;
        let mut next = |length: &usize| {
            let (group, after) = rest.split_at_checked(*length)?;
            rest = after;
            Some(group)
        };
        let found = lengths.iter().map_while(&mut next).collect();
        if rest.is_empty() { found } else { return None }
    };
    let is_sound = found.len() == lengths.len()
        && found.iter().zip(lengths).all(|(group, length)| group.len() == *length && is_number(group));
    is_sound.then_some(found)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, FixedOffset, SecondsFormat};
    use proptest::prelude::*;

    use super::super::Timestamp;

    /// Formats a timestamp in one of the accepted notations.
    fn written(moment: DateTime<FixedOffset>, ways: [u8; 4]) -> String {
        let [date, time, fraction, offset] = ways;
        let date = moment.format(["%Y-%m-%d", "%Y%m%d"][usize::from(date % 2)]).to_string();
        let between = ['T', 't', ' '][usize::from(time / 2 % 3)];
        let is_short = fraction % 3 == 2 && moment.format("%S%f").to_string().bytes().all(|digit| digit == b'0');
        let time = match (time % 2, is_short) {
            (0, false) => moment.format("%H:%M:%S").to_string(),
            (0, true) => moment.format("%H:%M").to_string(),
            (_, false) => moment.format("%H%M%S").to_string(),
            (_, true) => moment.format("%H%M").to_string(),
        };
        let fraction = match moment.timestamp_subsec_millis() {
            _ if is_short => String::new(),
            0 if fraction % 3 == 1 => String::new(),
            millis => format!("{}{millis:03}", ['.', ','][usize::from(fraction / 3 % 2)]),
        };
        let plain = moment.format("%z").to_string();
        let minus = if offset / 4 % 2 == 1 { plain.replace('-', "\u{2212}") } else { plain.clone() };
        let offset = match (offset % 4, plain.as_str()) {
            (0, "+0000") => "Z".to_owned(),
            (1, "+0000") => "z".to_owned(),
            (0 | 1, _) => moment.format("%:z").to_string(),
            (2, _) if minus.ends_with("00") => minus.strip_suffix("00").unwrap_or_default().to_owned(),
            _ => minus,
        };
        format!("{date}{between}{time}{fraction}{offset}")
    }

    proptest! {
        #[test]
        fn every_notation_of_a_timestamp_is_read_as_the_full_one(
            millis in 0..253_402_300_800_000_i64, whole in 0..3_u8, minutes in -1439..=1439_i32, zero in 0..3_u8,
            ways in any::<[u8; 4]>(),
        ) {
            // Whole minutes and UTC are too rare to occur by chance.
            let millis = match whole { 0 => millis, 1 => millis / 1000 * 1000, _ => millis / 60_000 * 60_000 };
            let minutes = match zero { 0 => minutes, 1 => minutes / 60 * 60, _ => 0 };
            let zone = FixedOffset::east_opt(minutes * 60).unwrap();
            let moment = DateTime::from_timestamp_millis(millis).unwrap().with_timezone(&zone);
            // An offset may lead into the year 10000, which has five digits.
            prop_assume!(moment.format("%Y").to_string().len() == 4);
            let full = moment.to_rfc3339_opts(SecondsFormat::Millis, false);
            let by_chrono = DateTime::parse_from_rfc3339(&full).unwrap().timestamp_millis();
            let text = written(moment, ways);
            prop_assert_eq!(Timestamp::parse_iso(&text), Some(Timestamp::from_millis(by_chrono)), "{} {}", text, full);
        }

        #[test]
        fn parsed_timestamps_are_complete(text in "[0-9]{2,8}[-:]?[0-9]{0,2}[Tt ]?[0-9:.,]{0,9}[Zz+-]?[0-9:]{0,6}") {
            if Timestamp::parse_iso(&text).is_some() {
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                prop_assert!(digits >= 12, "year, month, day, hour and minute: {}", text);
                prop_assert!(text.contains(['T', 't', ' ']) && text.contains(['Z', 'z', '+', '-']), "{}", text);
            }
        }
    }

    #[test]
    fn programs_write_moments_in_many_ways() {
        let moment = Some(Timestamp::from_millis(1_795_783_560_000));
        for text in [
            "2026-11-27T13:46:00+0100", // strftime's %z
            "2026-11-27T13:46:00+01",   // PostgreSQL
            "2026-11-27T12:46Z",
            "20261127T124600Z",
            "20261127T1346+0100",
            "2026-11-27t12:46:00z",
            "2026-11-27 12:46:00.000+00:00",
            "2026-11-27T07:46:00,000\u{2212}05:00",
            "2026-11-27T12:46:00-00:00",
            "  2026-11-27T12:46:00.00000000000Z\n",
        ] {
            assert_eq!(Timestamp::parse_iso(text), moment, "{text}");
        }
    }

    #[test]
    fn invalid_and_ambiguous_timestamps_are_rejected() {
        for text in [
            "2026-11-27T12:46:00", // no offset
            "2026-11-27T12:46:00 +01:00",
            "2026-11-27T12:46:00+1",
            "2026-11-27T12:46:00+1:00",
            "2026-11-27T12:46:00+010",
            "2026-11-27T12:46:00+01:0",
            "2026-11-27T12:46:00+01:",
            "2026-11-27T12:46:00+01:00:00",
            "2026-11-27T12:46:00+24:00",
            "2026-11-27T12:46:00+01:60",
            "2026-11-27T12:46:00Z+01:00",
            "2026-11-27T12:46:00ZZ",
            "2026-11-27T12:46:00 CET",
            "2026-11-27T12Z",      // 12 o'clock, or any time in that hour
            "2026-11-27T12:46.5Z", // a fraction of a minute
            "2026-11-27T12.5Z",
            "2026-11-27T12:46:00.Z",
            "2026-11-27T12:46:00.5,5Z",
            "2026-11-27T12:4600Z",
            "2026-11-27T1246:00Z",
            "2026-1127T12:46:00Z",
            "202611-27T12:46:00Z",
            "26-11-27T12:46:00Z",
            "2026-11-7T12:46:00Z",
            "2026-11-27T12:46:0Z",
            "2026-11-27TT12:46:00Z",
            "2026-11-27T12:46:00T00Z",
            "+2026-11-27T12:46:00Z",
            "12026-11-27T12:46:00Z",
            "2026-W48-5T12:46:00Z", // week date
            "2026-331T12:46:00Z",   // ordinal date
            "2026-02-29T12:46:00Z",
            "2026-13-01T12:46:00Z",
            "2026-11-27T24:00:00Z", // not allowed by RFC 3339
            "2026-11-27T25:00:00Z",
            "2026-11-27T12:60:00Z",
            "2026-11-27T12:46:61Z",
            "\u{662}\u{660}\u{662}\u{666}-11-27T12:46:00Z",
            "2026-11-27T12:46:00\u{2212}",
            "1969-12-31T23:59:59Z",
            "10000-01-01T00:00:00Z",
            "1795783560",
            "Fri, 27 Nov 2026 12:46:00 GMT",
            "T",
            "Z",
            " ",
        ] {
            assert_eq!(Timestamp::parse_iso(text), None, "{text}");
        }
    }
}
