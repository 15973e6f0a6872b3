//! Uptime bars of a monitor: one bar per day or part of a day, and the same by region.

mod seen;

use std::collections::BTreeMap;

use parallax_core::board::{Board, Day, Range, Shown};
use parallax_core::event::Status;
use parallax_core::place::Region;
use parallax_core::rollup::{Counts, day_of};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::WatchedTime;

use super::monitor::Close;
use super::tongue::{Voice, Words, fill};
use super::uptime;
use super::words;
use seen::{Seen, label, look};

/// Width and spacing of a region's bars in view box units.
const WIDE: usize = 8;
const STEP: usize = 10;
/// Height of a region's bars.
const HIGH: usize = 16;

/// Maximum age in milliseconds of a response time that is shown as current, if a chart's points are closer
/// together.
const RECENT: i64 = 5 * MINUTE;

/// State of a bar, shown as shape and color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// No data.
    None,
    /// Up.
    Up,
    /// Slow for a large part.
    Slow,
    /// Down for a few minutes.
    Short,
    /// Down for longer.
    Down,
    /// Maintenance only.
    Maintenance,
}

impl Look {
    /// CSS class that sets shape and color.
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

/// Range and context of uptime bars.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    /// Range.
    pub range: Range,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// Time zone and texts.
    pub voice: Voice,
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// CSS class.
    pub class: &'static str,
    /// Date, with the hour for a part of a day; also the URL fragment.
    pub key: String,
    /// Label.
    pub label: String,
    /// Number of incidents that began in it.
    pub incidents: usize,
}

/// Uptime bars of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// CSS class for the number of bars.
    pub class: &'static str,
    /// Bars, oldest first.
    pub cells: Vec<Cell>,
    /// Label below the start.
    pub from: &'static str,
    /// Label below the start if a narrow screen hides the older half.
    pub narrow: Option<&'static str>,
    /// Label below the end.
    pub to: &'static str,
    /// Text alternative of the bars' unit.
    pub units: &'static str,
}

/// Uptime bars of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Region.
    pub name: &'static str,
    /// Width in view box units.
    pub width: usize,
    /// SVG paths by CSS class.
    pub paths: Vec<(&'static str, String)>,
    /// Current response time, or state.
    pub figure: String,
    /// Text alternative: uptime over the range.
    pub summary: String,
}

impl Glance {
    /// Context of the status page.
    pub fn of_board(board: &Board) -> Self {
        let voice = Voice::of(&board.page);
        Self { range: board.range, now: board.now, is_stale: board.is_stale(), voice }
    }

    /// Context of a monitor's page.
    pub fn of_monitor(close: &Close<'_>) -> Self {
        let voice = Voice::of(close.page);
        Self { range: close.range, now: close.now, is_stale: close.is_stale, voice }
    }
}

/// Length of a range as text.
pub const fn length(range: Range, words: &Words) -> &'static str {
    match range {
        Range::Day => words.range_day,
        Range::Week => words.range_week,
        Range::Month => words.range_month,
        Range::Quarter => words.range_quarter,
    }
}

/// Builds a monitor's uptime bars; `incidents` are the start times of its incidents.
pub fn strip(shown: &Shown, glance: Glance, incidents: &[Timestamp]) -> Strip {
    let Glance { range, voice, .. } = glance;
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
    // The last bar includes the present.
    let is_down = |is_last: bool| is_last && !glance.is_stale && is_down(shown);
    let cells = if range.is_by_day() {
        let days = shown.past.days.iter().rev().take(range.days()).enumerate();
        let cell = |(back, day): (usize, &Day)| {
            let began = incidents.iter().filter(|at| day_of(**at, zone) == Some(day.date)).count();
            let seen = Seen { is_down: is_down(back == 0), ..Seen::of(day) };
            cell(day.date.to_string(), said.tongue().full_day(day.date), seen, began)
        };
        days.map(cell).rev().collect()
    } else {
        let slices = shown.past.slices.iter().enumerate();
        slices
            .map(|(at, slice)| {
                let began = incidents.iter().filter(|at| slice.span.contains(**at)).count();
                let from = words::date_time(slice.span.from, voice, "%H:%M");
                let to = words::formatted(slice.span.to, zone, "%H:%M %Z");
                let title = fill(said.span, &[&from, &to]);
                let is_down = is_down(at + 1 == shown.past.slices.len());
                let seen = Seen { counts: slice.counts, uptime: slice.uptime, time: slice.time, is_down };
                cell(words::formatted(slice.span.from, zone, "%Y-%m-%dT%H%M"), title, seen, began)
            })
            .collect()
    };
    Strip { class, cells, from, narrow, to, units }
}

/// Returns true if the monitor is down and not in maintenance.
fn is_down(shown: &Shown) -> bool {
    shown.view.status == Status::Down && !shown.covered
}

/// State of a day's bar; for the current day, includes a current outage.
pub(super) fn look_of(shown: &Shown, day: &Day, is_present: bool) -> Look {
    look(Seen { is_down: is_present && is_down(shown), ..Seen::of(day) })
}

/// Builds the uptime bars of the regions that judge a monitor, each with the current response time or state.
pub fn lanes(shown: &Shown, glance: Glance) -> Vec<Lane> {
    if !shown.monitor.check.kind().is_regional() {
        return Vec::new();
    }
    let (past, range) = (&shown.past, glance.range);
    if !range.is_by_day() {
        let lengths = || past.slices.iter().map(|slice| slice.time.watched);
        let lane = |(region, parts): (&_, &Vec<Counts>)| {
            lane(shown, *region, parts.iter().copied().zip(lengths()), glance)
        };
        return past.slice_lanes.iter().map(lane).collect();
    }
    let newest: Vec<&Day> = past.days.iter().rev().take(range.days()).rev().collect();
    past.lanes
        .iter()
        .map(|(region, days)| {
            let cell = |day: &&Day| (days.get(&day.date).copied().unwrap_or_default(), day.time.watched);
            lane(shown, *region, newest.iter().map(cell), glance)
        })
        .collect()
}

fn lane(
    shown: &Shown,
    region: Region,
    cells: impl ExactSizeIterator<Item = (Counts, u64)>,
    glance: Glance,
) -> Lane {
    let said = glance.voice.words;
    let mut by_class: BTreeMap<Look, String> = BTreeMap::new();
    let mut sum = Counts::default();
    let mut width = 0;
    let last = cells.len().saturating_sub(1);
    let sees_down = !glance.is_stale && !shown.covered && shown.view.seen_down.contains(region);
    for (at, (counts, watched)) in cells.enumerate() {
        sum.merge(counts);
        let (uptime, time) = (counts.tally().percent(), WatchedTime::of_rounds(watched, counts.tally()));
        let look = look(Seen { counts, uptime, time, is_down: at == last && sees_down });
        by_class.entry(look).or_default().push_str(&bar(at * STEP, look));
        width = at * STEP + WIDE;
    }
    Lane {
        name: said.tongue().region(region),
        width,
        paths: by_class.into_iter().map(|(look, path)| (look.class(), path)).collect(),
        figure: if glance.is_stale { said.no_data.to_owned() } else { figure(shown, region, said) },
        summary: uptime::Uptime::of_share(sum.tally().percent(), shown, glance).text(),
    }
}

/// Current response time or state in a region, whether the region counts or not. Empty if the region is up
/// without a response time.
fn figure(shown: &Shown, region: Region, said: &Words) -> String {
    if shown.view.seen_down.contains(region) {
        return if shown.covered { said.maintenance } else { said.lane_down }.to_owned();
    }
    if !shown.view.seen_up.contains(region) {
        return said.no_data.to_owned();
    }
    let chart = &shown.past.chart;
    let parts = chart.regions.get(&region).map(Vec::as_slice).unwrap_or_default();
    // The last point of a chart may have only just begun, and short ones may have missed a check.
    let width = chart.to.since(chart.from) / i64::try_from(parts.len().max(1)).unwrap_or(i64::MAX);
    let recent = usize::try_from(RECENT / width.max(1)).unwrap_or(usize::MAX).max(2);
    let newest = parts.iter().rev().take(recent).find_map(|part| *part);
    newest.map_or_else(String::new, |latency| words::milliseconds(latency, said))
}

/// SVG path of one bar, with the same shapes as the large bars.
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
    use chrono_tz::Tz;
    use parallax_core::place::RegionSet;

    use super::super::tongue::english;
    use super::*;

    #[test]
    fn each_look_has_a_shape_of_its_own_in_lanes_too() {
        let looks = [Look::None, Look::Up, Look::Slow, Look::Short, Look::Down, Look::Maintenance];
        let shapes: BTreeMap<String, Look> = looks.into_iter().map(|look| (bar(0, look), look)).collect();
        assert_eq!(shapes.len(), looks.len(), "{shapes:?}");
    }

    fn glance(range: Range) -> Glance {
        Glance { range, now: crate::views::tests::NOW, is_stale: false, voice: english(Tz::UTC) }
    }

    #[test]
    fn a_lane_says_what_its_region_sees_now() {
        let asia = RegionSet::only(Region::Asia);
        // Status of the monitor, regions that see it up and down, in maintenance, newest chart points,
        // expected text.
        for (status, up, down, covered, parts, expected) in [
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), Some(90)], "90 ms"),
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), None], "80 ms"),
            (Status::Up, asia, RegionSet::NONE, false, vec![Some(80), None, None], ""),
            (Status::Up, asia, RegionSet::NONE, true, vec![Some(80)], "80 ms"),
            // No data since yesterday, although it was up then.
            (Status::Up, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80), None, None], "no data"),
            (Status::Up, RegionSet::only(Region::Europe), RegionSet::NONE, false, vec![Some(80)], "no data"),
            // Down in a region that does not count.
            (Status::Up, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
            // The monitor is down; this region passes, or has no agent.
            (Status::Down, asia, RegionSet::only(Region::Europe), false, vec![Some(80)], "80 ms"),
            (Status::Down, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80)], "no data"),
            (Status::Down, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
            (Status::Down, RegionSet::NONE, asia, true, vec![Some(80)], "maintenance"),
        ] {
            let mut shown = crate::views::tests::shown(1, "Web shop", "Shop", status, 4);
            (shown.view.seen_up, shown.view.seen_down, shown.covered) = (up, down, covered);
            shown.past.chart.regions.insert(Region::Asia, parts.clone());
            for (is_stale, expected) in [(false, expected), (true, "no data")] {
                let lanes = lanes(&shown, Glance { is_stale, ..glance(Range::Quarter) });
                let lane = lanes.iter().find(|lane| lane.name == "Asia").unwrap();
                assert_eq!(lane.figure, expected, "{status:?} {up:?} {down:?} {parts:?}");
            }
        }
    }

    #[test]
    fn the_cell_that_holds_an_outage_is_no_good_one() {
        for range in [Range::Day, Range::Quarter] {
            let mut shown = crate::views::tests::shown_over(range);
            shown.view.status = Status::Down;
            (shown.view.seen_up, shown.view.seen_down) = (RegionSet::NONE, RegionSet::only(Region::Asia));
            let newest = |shown: &Shown, is_stale| {
                let glance = Glance { is_stale, ..glance(range) };
                let cell = strip(shown, glance, &[]).cells.pop().unwrap();
                let short = |name| {
                    let lane = lanes(shown, glance).into_iter().find(|lane| lane.name == name).unwrap();
                    let last = bar(lane.width - WIDE, Look::Short);
                    lane.paths.iter().any(|(class, path)| *class == "p" && path.ends_with(&last))
                };
                (cell.class, cell.label.ends_with("100 %, down now"), short("Asia"), short("Europe"))
            };
            assert_eq!(newest(&shown, false), ("p", true, true, false), "{range:?}");
            assert_eq!(newest(&shown, true), ("u", false, false, false), "no agent is checking");
            let cells = strip(&shown, glance(range), &[]).cells;
            assert_eq!(cells.iter().filter(|cell| cell.label.contains("down now")).count(), 1);
            shown.covered = true;
            assert_eq!(newest(&shown, false), ("u", false, false, false), "in maintenance");
        }
    }

    #[test]
    fn what_is_the_same_from_everywhere_has_no_lanes() {
        let mut shown = crate::views::tests::shown_over(Range::Quarter);
        assert!(!lanes(&shown, glance(Range::Quarter)).is_empty());
        let vendor = parallax_core::check::ComponentCheck {
            url: "https://status.example".to_owned(),
            component: None,
        };
        shown.monitor.check = parallax_core::check::Check::Component(vendor);
        assert_eq!(lanes(&shown, glance(Range::Quarter)), []);
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
            let strip = strip(&shown, glance(range), &[]);
            assert_eq!((strip.cells.len(), strip.cells[0].label.as_str()), (cells, first));
            let lanes = lanes(&shown, glance(range));
            assert!(lanes.iter().all(|lane| lane.width == cells * STEP - 2), "{lanes:?}");
        }
    }
}
