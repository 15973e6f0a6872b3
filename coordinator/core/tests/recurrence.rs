//! Recurring windows compared with an independent reference: Python's zoneinfo with the host's own zone files.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure may panic")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use chrono_tz::Tz;
use parallax_core::recurrence::{Frequency, Recurrence};
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};

/// Zones with every kind of transition: half hours, whole hours, both hemispheres, at midnight, and none at all.
const ZONES: [&str; 30] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Lisbon",
    "Europe/Dublin",
    "Europe/Athens",
    "Europe/Moscow",
    "Europe/Kyiv",
    "Africa/Cairo",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Havana",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Asuncion",
    "America/Nuuk",
    "America/Phoenix",
    "Atlantic/Azores",
    "Asia/Beirut",
    "Asia/Jerusalem",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
];
/// Local times at which clocks change somewhere, and some at which they do not.
const TIMES: [i64; 10] = [
    0,
    30 * MINUTE,
    HOUR + 30 * MINUTE,
    2 * HOUR,
    2 * HOUR + 15 * MINUTE,
    2 * HOUR + 59 * MINUTE,
    3 * HOUR,
    12 * HOUR,
    23 * HOUR + 15 * MINUTE,
    23 * HOUR + 59 * MINUTE,
];
const DAYS: i64 = 400;

#[test]
fn recurrences_over_400_days_match_pythons_zoneinfo() {
    // 1 January 2026, and the days after it.
    let begin = Timestamp::parse_iso("2026-01-01T00:00:00Z").unwrap();
    let mut questions = String::new();
    let mut ours = Vec::new();
    for (shift, name) in ZONES.into_iter().enumerate() {
        let zone: Tz = name.parse().unwrap();
        for every in Frequency::ALL {
            for day in 0..DAYS {
                let time = TIMES[(usize::try_from(day).unwrap() + shift) % TIMES.len()];
                // The local clock shows about that time then, which is all that a first occurrence needs.
                let offset = begin.to_utc().unwrap().with_timezone(&zone).naive_local().and_utc();
                let offset = offset.timestamp_millis() - begin.as_millis();
                let first = begin + (day * DAY + time - offset);
                let turns: &[u32] = if day == 0 { &[1, 2, 5, 9, 13, 26, 43, 44, 57] } else { &[1, 2, 6] };
                for number in turns {
                    writeln!(questions, "{name} {} {} {number}", every.name(), first.as_millis()).unwrap();
                    ours.push(Recurrence { frequency: every, zone, first }.nth(*number).unwrap().as_millis());
                }
            }
        }
    }
    let theirs = ask_python(&questions);
    assert_eq!((ours.len(), theirs.len()), (30 * 3 * (9 + 399 * 3), ours.len()));
    let differ: Vec<String> = questions
        .lines()
        .zip(ours.iter().zip(&theirs))
        .filter(|(_, (ours, theirs))| ours != theirs)
        .map(|(question, (ours, theirs))| format!("{question}: ours {ours}, theirs {theirs}"))
        .collect();
    assert!(differ.is_empty(), "{} differ, first {:#?}", differ.len(), &differ[..differ.len().min(9)]);
}

fn ask_python(questions: &str) -> Vec<i64> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/zones.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reference needs python3 and the host's zone files (tzdata)");
    let mut stdin = python.stdin.take().unwrap();
    let questions = questions.to_owned();
    let asking = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let answer = python.wait_with_output().unwrap();
    asking.join().unwrap().unwrap();
    assert!(answer.status.success(), "the reference failed");
    String::from_utf8(answer.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}
