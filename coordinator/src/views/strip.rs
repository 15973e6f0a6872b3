//! Strips of days: one cell a day for a monitor, and lanes of days for its regions.

use std::collections::BTreeMap;
use std::fmt::Write;

use chrono::NaiveDate;
use parallax_core::board::{Day, Shown};
use parallax_core::event::Status;
use parallax_core::rollup::Counts;

use super::words;

/// Minutes down from which a day counts as one with an outage, rather than with a short one.
const LONG: f64 = 20.0;
/// Minutes down that a day may have without being shown as another than a good one; its label tells of them.
const BRIEF: f64 = 1.0;
/// Width and distance of a lane's days, in its own units.
const WIDE: usize = 8;
const STEP: usize = 10;
/// Height of a lane.
const HIGH: usize = 16;

/// How a day was, as shape and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Nothing is known.
    None,
    /// It was well.
    Up,
    /// Much of it was slow.
    Slow,
    /// It was down for a few minutes.
    Short,
    /// It was down for longer.
    Down,
    /// Nothing but maintenance.
    Maintenance,
}

impl Look {
    /// The class that gives it its shape and colour.
    pub const fn class(self) -> &'static str {
        match self {
            Self::None => "n",
            Self::Up => "u",
            Self::Slow => "s",
            Self::Short => "p",
            Self::Down => "d",
            Self::Maintenance => "m",
        }
    }
}

/// One day of a strip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Its class.
    pub class: &'static str,
    /// Its date, as the fragment of its address.
    pub date: NaiveDate,
    /// What is said of it.
    pub label: String,
}

/// A region's days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The region.
    pub name: &'static str,
    /// Paths by class.
    pub paths: Vec<(&'static str, String)>,
    /// Its newest response time, or its state.
    pub figure: String,
    /// Its uptime over the lane, for those who don't see it.
    pub summary: String,
}

/// A monitor's days; `incidents` says how many of its incidents began on a day.
pub fn cells(shown: &Shown, incidents: &BTreeMap<NaiveDate, usize>) -> Vec<Cell> {
    let cell = |day: &Day| {
        let label = label(day, incidents.get(&day.date).copied().unwrap_or(0));
        Cell { class: look(day.counts, day.uptime).class(), date: day.date, label }
    };
    shown.past.days.iter().map(cell).collect()
}

/// What is said of a day.
pub fn label(day: &Day, incidents: usize) -> String {
    let mut label = words::full_day(day.date);
    label.push_str(": ");
    match day.uptime {
        None if day.counts.excluded > 0 => label.push_str("maintenance"),
        None => label.push_str("no data"),
        Some(uptime) => {
            label.push_str(&words::percent(uptime));
            let down = day.minutes_down();
            if down > 0.0 {
                // Writing to a text does not fail.
                let _ = write!(label, ", {} down", words::minutes(down));
            }
            if look(day.counts, day.uptime) == Look::Slow {
                label.push_str(", slow");
            }
        }
    }
    if incidents > 0 {
        let _ = write!(label, ", {}", words::count(incidents, "incident", "incidents"));
    }
    label
}

/// How a day was.
pub fn look(counts: Counts, uptime: Option<f64>) -> Look {
    let Some(uptime) = uptime else {
        return if counts.excluded > 0 { Look::Maintenance } else { Look::None };
    };
    let day = Day { date: NaiveDate::default(), counts, uptime: Some(uptime) };
    let down = day.minutes_down();
    if down >= LONG {
        Look::Down
    } else if down >= BRIEF {
        Look::Short
    } else if u64::from(counts.slow) * 10 >= u64::from(counts.passed) && counts.slow > 0 {
        Look::Slow
    } else {
        Look::Up
    }
}

/// The regions' days of a monitor, each with its figure: the newest response time of the chart, or that it is down.
pub fn lanes(shown: &Shown) -> Vec<Lane> {
    let is_down_everywhere = shown.view.status == Status::Down && shown.view.down_from.is_none();
    let down_from = shown.view.down_from.filter(|_| shown.view.status == Status::Down);
    shown
        .past
        .lanes
        .iter()
        .map(|(region, days)| {
            let mut by_class: BTreeMap<Look, String> = BTreeMap::new();
            let mut sum = Counts::default();
            for (at, day) in shown.past.days.iter().enumerate() {
                let counts = days.get(&day.date).copied().unwrap_or_default();
                sum.merge(counts);
                let look = look(counts, counts.tally().percent());
                by_class.entry(look).or_default().push_str(&bar(at * STEP, look));
            }
            let newest =
                shown.past.chart.regions.get(region).and_then(|parts| parts.iter().rev().find_map(|it| *it));
            let is_down = is_down_everywhere || down_from.is_some_and(|regions| regions.contains(*region));
            let figure = match newest {
                _ if is_down => "down".to_owned(),
                Some(latency) => words::milliseconds(latency),
                None => String::new(),
            };
            let uptime = sum.tally().percent().map_or_else(|| "no data".to_owned(), words::percent);
            Lane {
                name: region.title(),
                paths: by_class.into_iter().map(|(look, path)| (look.class(), path)).collect(),
                figure,
                summary: format!("{uptime} over {} days", shown.past.days.len()),
            }
        })
        .collect()
}

/// One day of a lane: the shapes of the strip, small.
fn bar(x: usize, look: Look) -> String {
    match look {
        Look::None => format!("M{x} {}h{WIDE}v3h-{WIDE}z", HIGH - 3),
        Look::Up | Look::Maintenance => format!("M{x} 0h{WIDE}v{HIGH}h-{WIDE}z"),
        Look::Slow => format!("M{x} 6h{WIDE}v{}h-{WIDE}z", HIGH - 6),
        Look::Short => format!("M{x} 5l{WIDE}-5v{HIGH}h-{WIDE}z"),
        Look::Down => format!("M{x} 0l4 5l4-5v{HIGH}h-{WIDE}z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u32, failed: u32, slow: u32, excluded: u32) -> Counts {
        Counts { passed, failed, slow, excluded, ..Counts::default() }
    }

    #[test]
    fn a_day_looks_as_long_as_it_was_down() {
        for (counts, expected) in [
            (counts(0, 0, 0, 0), Look::None),
            (counts(0, 0, 0, 3), Look::Maintenance),
            (counts(1440, 0, 0, 0), Look::Up),
            (counts(8639, 1, 0, 0), Look::Up),
            (counts(1430, 10, 0, 0), Look::Short),
            (counts(1420, 20, 0, 0), Look::Down),
            (counts(0, 1, 0, 0), Look::Down),
            (counts(1440, 0, 144, 0), Look::Slow),
            (counts(1440, 0, 100, 0), Look::Up),
        ] {
            assert_eq!(look(counts, counts.tally().percent()), expected, "{counts:?}");
        }
    }

    #[test]
    fn a_days_label_says_all_that_is_known() {
        let date = NaiveDate::from_ymd_opt(2026, 11, 26).unwrap();
        let said = |counts: Counts, incidents| {
            label(&Day { date, counts, uptime: counts.tally().percent() }, incidents)
        };
        assert_eq!(said(counts(0, 0, 0, 0), 0), "26 Nov 2026: no data");
        assert_eq!(said(counts(0, 0, 0, 9), 0), "26 Nov 2026: maintenance");
        assert_eq!(said(counts(10, 0, 5, 0), 0), "26 Nov 2026: 100 %, slow");
        assert_eq!(said(counts(1430, 10, 0, 0), 1), "26 Nov 2026: 99.305 %, 10 min down, 1 incident");
        assert_eq!(said(counts(8639, 1, 0, 0), 2), "26 Nov 2026: 99.988 %, under 1 min down, 2 incidents");
    }
}
