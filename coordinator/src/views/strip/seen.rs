//! Data of one uptime bar: its state and label.

use parallax_core::board::Day;
use parallax_core::rollup::Counts;
use parallax_core::uptime::WatchedTime;

use super::super::tongue::{Words, fill};
use super::super::words;
use super::Look;

/// Minutes of downtime from which a bar shows a long outage.
const LONG: f64 = 20.0;
/// Minutes of downtime up to which a bar still shows as up; its label states the downtime.
const BRIEF: f64 = 1.0;

/// Data of one uptime bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub counts: Counts,
    pub uptime: Option<f64>,
    /// Monitored time and downtime.
    pub time: WatchedTime,
    /// True if the bar includes the present and an outage is ongoing.
    pub is_down: bool,
}

impl Seen {
    /// Data of a day, without a current outage.
    pub(super) const fn of(day: &Day) -> Self {
        Self { counts: day.counts, uptime: day.uptime, time: day.time, is_down: false }
    }
}

/// Label of a bar.
pub(super) fn label(title: String, seen: Seen, incidents: usize, said: &Words) -> String {
    let mut parts = Vec::new();
    match seen.uptime {
        None if seen.counts.excluded > 0 => parts.push(said.maintenance.to_owned()),
        // Before a day's first round nothing else is known.
        None if seen.is_down => {}
        None => parts.push(said.no_data.to_owned()),
        Some(uptime) => {
            parts.push(words::percent(uptime, said));
            let down = seen.time.minutes_down();
            if down > 0.0 {
                parts.push(fill(said.down_for, &[&words::minutes(down, said)]));
            }
        }
    }
    if seen.is_down {
        parts.push(said.down_now.to_owned());
    } else if look(seen) == Look::Slow {
        parts.push(said.slow.to_owned());
    }
    if incidents > 0 {
        parts.push(said.tongue().count(incidents as u64, said.one_incident, said.incidents));
    }
    format!("{title}: {}", parts.join(said.tongue().comma()))
}

/// State of a bar. A bar with a current outage never shows as up, however short the outage is.
pub(super) fn look(seen: Seen) -> Look {
    match so_far(seen) {
        long @ (Look::Short | Look::Down) => long,
        _ if seen.is_down => Look::Short,
        other => other,
    }
}

/// State by the counted rounds. A bar that has just begun and was mostly down doesn't show as up.
fn so_far(Seen { counts, uptime, time, .. }: Seen) -> Look {
    if uptime.is_none() {
        return if counts.excluded > 0 { Look::Maintenance } else { Look::None };
    }
    let down = time.minutes_down();
    if down >= LONG {
        Look::Down
    } else if down >= BRIEF || uptime.is_some_and(|uptime| uptime < 50.0) {
        Look::Short
    } else if u64::from(counts.slow) * 10 >= u64::from(counts.passed) && counts.slow > 0 {
        Look::Slow
    } else {
        Look::Up
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use super::super::super::tongue::english;
    use super::*;

    fn counts(passed: u32, failed: u32, slow: u32, excluded: u32) -> Counts {
        Counts { passed, failed, slow, excluded, ..Counts::default() }
    }

    fn seen(counts: Counts, watched: i64) -> Seen {
        let time = WatchedTime::of_rounds(watched.unsigned_abs(), counts.tally());
        Seen { counts, uptime: counts.tally().percent(), time, is_down: false }
    }

    #[test]
    fn a_cell_looks_as_long_as_it_was_down() {
        for (counts, lasted, expected) in [
            (counts(0, 0, 0, 0), DAY, Look::None),
            (counts(0, 0, 0, 3), DAY, Look::Maintenance),
            (counts(1440, 0, 0, 0), DAY, Look::Up),
            (counts(8639, 1, 0, 0), DAY, Look::Up),
            (counts(1430, 10, 0, 0), DAY, Look::Short),
            (counts(1420, 20, 0, 0), DAY, Look::Down),
            (counts(0, 1, 0, 0), DAY, Look::Down),
            (counts(1440, 0, 144, 0), DAY, Look::Slow),
            (counts(1440, 0, 100, 0), DAY, Look::Up),
            // Ten minutes of an hour, and half of an hour.
            (counts(50, 10, 0, 0), HOUR, Look::Short),
            (counts(30, 30, 0, 0), HOUR, Look::Down),
            // Ten minutes after midnight, down for one of them.
            (counts(54, 6, 0, 0), 10 * MINUTE, Look::Short),
        ] {
            assert_eq!(look(seen(counts, lasted)), expected, "{counts:?}");
        }
    }

    #[test]
    fn a_cells_label_says_all_that_is_known() {
        let said = |counts: Counts, incidents| {
            label("26 Nov 2026".to_owned(), seen(counts, DAY), incidents, english(Tz::UTC).words)
        };
        assert_eq!(said(counts(0, 0, 0, 0), 0), "26 Nov 2026: no data");
        assert_eq!(said(counts(0, 0, 0, 9), 0), "26 Nov 2026: maintenance");
        assert_eq!(said(counts(10, 0, 5, 0), 0), "26 Nov 2026: 100 %, slow");
        assert_eq!(said(counts(1430, 10, 0, 0), 1), "26 Nov 2026: 99.305 %, 10 min down, 1 incident");
        assert_eq!(said(counts(8639, 1, 0, 0), 2), "26 Nov 2026: 99.988 %, under 1 min down, 2 incidents");
    }

    #[test]
    fn a_cell_that_holds_an_outage_is_no_good_one_and_says_so() {
        for (counts, expected, words) in [
            (counts(0, 0, 0, 0), Look::Short, "today: down now"),
            (counts(0, 0, 0, 9), Look::Short, "today: maintenance, down now"),
            (counts(8639, 1, 0, 0), Look::Short, "today: 99.988 %, under 1 min down, down now"),
            (counts(1440, 0, 144, 0), Look::Short, "today: 100 %, down now"),
            (counts(1400, 40, 0, 0), Look::Down, "today: 97.222 %, 40 min down, down now"),
        ] {
            let seen = Seen { is_down: true, ..seen(counts, DAY) };
            assert_eq!(look(seen), expected, "{counts:?}");
            assert_eq!(label("today".to_owned(), seen, 0, english(Tz::UTC).words), words);
        }
    }
}
