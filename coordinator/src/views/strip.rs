//! Strips of a monitor's past: one cell a day, or a slice of a day, and lanes of the same for its regions.

use std::collections::BTreeMap;

use parallax_core::board::{Day, Range, Shown, minutes_down};
use parallax_core::place::Region;
use parallax_core::rollup::{Counts, day_of};
use parallax_core::time::Timestamp;

use super::tongue::{Voice, Words, fill};
use super::words;

/// Minutes down from which a cell counts as one with an outage, rather than with a short one.
const LONG: f64 = 20.0;
/// Minutes down that a cell may have without being shown as another than a good one; its label tells of them.
const BRIEF: f64 = 1.0;
/// Width and distance of a lane's cells, in its own units.
const WIDE: usize = 8;
const STEP: usize = 10;
/// Height of a lane.
const HIGH: usize = 16;

/// How a stretch of time was, as shape and colour.
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

/// One cell of a strip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Its class.
    pub class: &'static str,
    /// Its date, with the hour where it is a part of a day: the fragment of its address.
    pub key: String,
    /// What is said of it.
    pub label: String,
    /// Incidents that began in it.
    pub incidents: usize,
}

/// A monitor's past as a row of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// The class that says how many cells there are.
    pub class: &'static str,
    /// Oldest first.
    pub cells: Vec<Cell>,
    /// What stands below its beginning.
    pub from: &'static str,
    /// The same where a narrow screen leaves its older half out.
    pub narrow: Option<&'static str>,
    /// What stands below its end.
    pub to: &'static str,
    /// What its cells are, for those who don't see it.
    pub units: &'static str,
}

/// A region's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The region.
    pub name: &'static str,
    /// Its width, in its own units.
    pub width: usize,
    /// Paths by class.
    pub paths: Vec<(&'static str, String)>,
    /// Its present response time, or its state.
    pub figure: String,
    /// Its uptime over the lane, for those who don't see it.
    pub summary: String,
}

/// The length of a range in words.
pub const fn length(range: Range, words: &Words) -> &'static str {
    match range {
        Range::Day => words.range_day,
        Range::Week => words.range_week,
        Range::Month => words.range_month,
        Range::Quarter => words.range_quarter,
    }
}

/// A monitor's strip; `incidents` are the moments in which those that concern it began.
pub fn strip(shown: &Shown, range: Range, incidents: &[Timestamp], voice: Voice) -> Strip {
    let Voice { zone, words: said } = voice;
    let (class, from, narrow, to, units) = match range {
        Range::Day => ("s24", said.ago_day, None, said.now, said.hourly),
        Range::Week => ("s28", said.ago_week, None, said.now, said.six_hourly),
        Range::Month => ("s30", said.ago_month, None, said.today, said.daily),
        Range::Quarter => ("s90", said.ago_quarter, Some(said.ago_half), said.today, said.daily),
    };
    let cell = |key: String, title: String, seen: Seen, incidents: usize| Cell {
        class: look(seen).class(),
        key,
        label: label(title, seen, incidents, said),
        incidents,
    };
    let cells = if range.is_by_day() {
        let days = shown.past.days.iter().rev().take(range.days()).rev();
        days.map(|day| {
            let began = incidents.iter().filter(|at| day_of(**at, zone) == Some(day.date)).count();
            cell(day.date.to_string(), said.tongue().full_day(day.date), Seen::of(day), began)
        })
        .collect()
    } else {
        let slices = shown.past.slices.iter();
        slices
            .map(|slice| {
                let began = incidents.iter().filter(|at| slice.span.contains(**at)).count();
                let from = words::date_time(slice.span.from, voice, "%H:%M");
                let to = words::formatted(slice.span.to, zone, "%H:%M %Z");
                let title = fill(said.span, &[&from, &to]);
                let seen = Seen { counts: slice.counts, uptime: slice.uptime, lasted: slice.lasted };
                cell(words::formatted(slice.span.from, zone, "%Y-%m-%dT%H%M"), title, seen, began)
            })
            .collect()
    };
    Strip { class, cells, from, narrow, to, units }
}

/// What was seen of a stretch of time.
#[derive(Debug, Clone, Copy)]
struct Seen {
    counts: Counts,
    uptime: Option<f64>,
    /// Milliseconds that it lasted so far.
    lasted: i64,
}

impl Seen {
    const fn of(day: &Day) -> Self {
        Self { counts: day.counts, uptime: day.uptime, lasted: day.lasted }
    }
}

/// What is said of a stretch of time.
fn label(title: String, seen: Seen, incidents: usize, said: &Words) -> String {
    let mut label = title;
    label.push_str(": ");
    match seen.uptime {
        None if seen.counts.excluded > 0 => label.push_str(said.maintenance),
        None => label.push_str(said.no_data),
        Some(uptime) => {
            label.push_str(&words::percent(uptime, said));
            let down = minutes_down(seen.uptime, seen.lasted);
            if down > 0.0 {
                label.push_str(said.tongue().comma());
                label.push_str(&fill(said.down_for, &[&words::minutes(down, said)]));
            }
            if look(seen) == Look::Slow {
                label.push_str(said.tongue().comma());
                label.push_str(said.slow);
            }
        }
    }
    if incidents > 0 {
        label.push_str(said.tongue().comma());
        label.push_str(&said.tongue().count(incidents as u64, said.one_incident, said.incidents));
    }
    label
}

/// How a day was.
pub(super) fn look_of(day: &Day) -> Look {
    look(Seen::of(day))
}

/// How a stretch of time was. One that has just begun, and was down for most of it, is no good one either.
fn look(Seen { counts, uptime, lasted }: Seen) -> Look {
    if uptime.is_none() {
        return if counts.excluded > 0 { Look::Maintenance } else { Look::None };
    }
    let down = minutes_down(uptime, lasted);
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

/// The lanes of a monitor's regions, each with what is seen from there at present: its response time, or that it is down.
/// `is_stale` where nobody looks any more.
pub fn lanes(shown: &Shown, range: Range, is_stale: bool, said: &'static Words) -> Vec<Lane> {
    let now = |region| if is_stale { said.no_data.to_owned() } else { figure(shown, region, said) };
    let past = &shown.past;
    if !range.is_by_day() {
        let lengths: Vec<i64> = past.slices.iter().map(|slice| slice.lasted).collect();
        let lane = |(region, parts): (&_, &Vec<Counts>)| {
            let cells = parts.iter().copied().zip(lengths.iter().copied());
            lane((*region, range), cells, now(*region), said)
        };
        return past.slice_lanes.iter().map(lane).collect();
    }
    let newest: Vec<_> = past.days.iter().rev().take(range.days()).rev().collect();
    past.lanes
        .iter()
        .map(|(region, days)| {
            let cell = |day: &&_| {
                let day: &parallax_core::board::Day = day;
                (days.get(&day.date).copied().unwrap_or_default(), day.lasted)
            };
            lane((*region, range), newest.iter().map(cell), now(*region), said)
        })
        .collect()
}

fn lane(
    (region, range): (Region, Range),
    cells: impl Iterator<Item = (Counts, i64)>,
    figure: String,
    said: &'static Words,
) -> Lane {
    let mut by_class: BTreeMap<Look, String> = BTreeMap::new();
    let mut sum = Counts::default();
    let mut width = 0;
    for (at, (counts, lasted)) in cells.enumerate() {
        sum.merge(counts);
        let look = look(Seen { counts, uptime: counts.tally().percent(), lasted });
        by_class.entry(look).or_default().push_str(&bar(at * STEP, look));
        width = at * STEP + WIDE;
    }
    let uptime =
        sum.tally().percent().map_or_else(|| said.no_data.to_owned(), |share| words::percent(share, said));
    Lane {
        name: said.tongue().region(region),
        width,
        paths: by_class.into_iter().map(|(look, path)| (look.class(), path)).collect(),
        figure,
        summary: fill(said.lane_over, &[&uptime, length(range, said)]),
    }
}

/// What is seen from a region at present, whether it counts or not. Of one that sees it up without a response time, its
/// bars say enough.
fn figure(shown: &Shown, region: Region, said: &Words) -> String {
    if shown.view.seen_down.contains(region) {
        return if shown.covered { said.maintenance } else { said.lane_down }.to_owned();
    }
    if !shown.view.seen_up.contains(region) {
        return said.no_data.to_owned();
    }
    let parts = shown.past.chart.regions.get(&region).map(Vec::as_slice).unwrap_or_default();
    // The last part of a chart may have only just begun.
    let newest = parts.iter().rev().take(2).find_map(|part| *part);
    newest.map_or_else(String::new, |latency| words::milliseconds(latency, said))
}

/// One cell of a lane: the shapes of the strip, small.
fn bar(x: usize, look: Look) -> String {
    match look {
        Look::None => format!("M{x} {}h{WIDE}v3h-{WIDE}z", HIGH - 3),
        Look::Up => format!("M{x} 0h{WIDE}v{HIGH}h-{WIDE}z"),
        Look::Slow => format!("M{x} 6h{WIDE}v{}h-{WIDE}z", HIGH - 6),
        Look::Short => format!("M{x} 5l{WIDE}-5v{HIGH}h-{WIDE}z"),
        Look::Down => format!("M{x} 0l4 5l4-5v{HIGH}h-{WIDE}z"),
        Look::Maintenance => format!("M{x} 8l4-3l4 3v{}h-{WIDE}z", HIGH - 8),
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use chrono_tz::Tz;

    use super::super::tongue::english;
    use super::*;

    fn counts(passed: u32, failed: u32, slow: u32, excluded: u32) -> Counts {
        Counts { passed, failed, slow, excluded, ..Counts::default() }
    }

    fn seen(counts: Counts, lasted: i64) -> Seen {
        Seen { counts, uptime: counts.tally().percent(), lasted }
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
            // Half an hour, and half of an hour.
            (counts(50, 10, 0, 0), HOUR, Look::Short),
            (counts(30, 30, 0, 0), HOUR, Look::Down),
            // Ten minutes after midnight, down for one of them.
            (counts(54, 6, 0, 0), 10 * MINUTE, Look::Short),
        ] {
            assert_eq!(look(seen(counts, lasted)), expected, "{counts:?}");
        }
    }

    #[test]
    fn each_look_has_a_shape_of_its_own_in_lanes_too() {
        let looks = [Look::None, Look::Up, Look::Slow, Look::Short, Look::Down, Look::Maintenance];
        let shapes: BTreeMap<String, Look> = looks.into_iter().map(|look| (bar(0, look), look)).collect();
        assert_eq!(shapes.len(), looks.len(), "{shapes:?}");
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
    fn a_lane_says_what_its_region_sees_now() {
        use parallax_core::event::Status;
        use parallax_core::place::RegionSet;

        let asia = RegionSet::only(Region::Asia);
        // Status of the monitor, regions that see it up and down, whether a window covers it, the newest parts of the chart.
        for (status, up, down, covered, parts, expected) in [
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), Some(90)], "90 ms"),
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), None], "80 ms"),
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), None, None], ""),
            (Status::Up, asia, RegionSet::NONE, true, vec![Some(80)], "80 ms"),
            // Silent since yesterday, however well it looked then.
            (Status::Up, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80), None, None], "no data"),
            (Status::Up, RegionSet::only(Region::Europe), RegionSet::NONE, false, vec![Some(80)], "no data"),
            // It fails from a region that does not count.
            (Status::Up, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
            // The monitor is down, and this region passes, or has nobody to look.
            (Status::Down, asia, RegionSet::only(Region::Europe), false, vec![Some(80)], "80 ms"),
            (Status::Down, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80)], "no data"),
            (Status::Down, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
            (Status::Down, RegionSet::NONE, asia, true, vec![Some(80)], "maintenance"),
        ] {
            let mut shown = crate::views::tests::shown(1, "Web shop", "Shop", status, 4);
            (shown.view.seen_up, shown.view.seen_down, shown.covered) = (up, down, covered);
            shown.past.chart.regions.insert(Region::Asia, parts.clone());
            for (is_stale, expected) in [(false, expected), (true, "no data")] {
                let lanes = lanes(&shown, Range::Quarter, is_stale, english(Tz::UTC).words);
                let lane = lanes.iter().find(|lane| lane.name == "Asia").unwrap();
                assert_eq!(lane.figure, expected, "{status:?} {up:?} {down:?} {parts:?}");
            }
        }
    }

    #[test]
    fn a_strip_has_a_cell_for_each_hour_quarter_or_day_of_its_range() {
        for (range, cells, first) in [
            (Range::Day, 24, "26 Nov 2026, 13:00 to 14:00 UTC: no data"),
            (Range::Week, 28, "20 Nov 2026, 18:00 to 00:00 UTC: no data"),
            (Range::Month, 30, "29 Oct 2026: no data"),
            (Range::Quarter, 90, "30 Aug 2026: no data"),
        ] {
            let shown = crate::views::tests::shown_over(range);
            let strip = strip(&shown, range, &[], english(Tz::UTC));
            assert_eq!((strip.cells.len(), strip.cells[0].label.as_str()), (cells, first));
            let lanes = lanes(&shown, range, false, english(Tz::UTC).words);
            assert!(lanes.iter().all(|lane| lane.width == cells * STEP - 2), "{lanes:?}");
        }
    }
}
