//! Tests of uptime bars.

use chrono_tz::Tz;
use parallax_core::vantage::RegionSet;

use super::*;
use crate::views::tests::english_locale;

#[test]
fn each_look_has_a_shape_of_its_own_in_lanes_too() {
    let looks = [
        BarState::NoData,
        BarState::Up,
        BarState::Slow,
        BarState::BriefOutage,
        BarState::LongOutage,
        BarState::Maintenance,
    ];
    let shapes: BTreeMap<String, BarState> = looks.into_iter().map(|look| (bar_path(0, look), look)).collect();
    assert_eq!(shapes.len(), looks.len(), "{shapes:?}");
}

fn context(range: TimeRange) -> RangeContext {
    RangeContext { range, now: crate::views::tests::NOW, is_stale: false, locale: english_locale(Tz::UTC) }
}

#[test]
fn a_lane_says_what_its_region_sees_now() {
    let asia = RegionSet::only(Region::Asia);
    // Status of the monitor, regions that see it up and down, in maintenance, newest chart points,
    // expected text.
    for (status, up, down, covered, parts, expected) in [
        (MonitorStatus::Up, asia, RegionSet::NONE, false, vec![Some(80), Some(90)], "90 ms"),
        (MonitorStatus::Up, asia, RegionSet::NONE, false, vec![Some(80), None], "80 ms"),
        (MonitorStatus::Up, asia, RegionSet::NONE, false, vec![Some(80), None, None], ""),
        (MonitorStatus::Up, asia, RegionSet::NONE, true, vec![Some(80)], "80 ms"),
        // No data since yesterday, although it was up then.
        (MonitorStatus::Up, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80), None, None], "no data"),
        (MonitorStatus::Up, RegionSet::only(Region::Europe), RegionSet::NONE, false, vec![Some(80)], "no data"),
        // Down in a region that does not count.
        (MonitorStatus::Up, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
        // The monitor is down; this region passes, or has no agent.
        (MonitorStatus::Down, asia, RegionSet::only(Region::Europe), false, vec![Some(80)], "80 ms"),
        (MonitorStatus::Down, RegionSet::NONE, RegionSet::NONE, false, vec![Some(80)], "no data"),
        (MonitorStatus::Down, RegionSet::NONE, asia, false, vec![Some(80)], "down"),
        (MonitorStatus::Down, RegionSet::NONE, asia, true, vec![Some(80)], "maintenance"),
    ] {
        let mut view = crate::views::tests::monitor_view(1, "Web shop", "Shop", status, 4);
        (view.state.seen_up, view.state.seen_down, view.in_maintenance) = (up, down, covered);
        view.history.chart.regions.insert(Region::Asia, parts.clone());
        for (is_stale, expected) in [(false, expected), (true, "no data")] {
            let lanes = build_region_bars(&view, RangeContext { is_stale, ..context(TimeRange::Quarter) });
            let lane = lanes.iter().find(|lane| lane.name == "Asia").unwrap();
            assert_eq!(lane.current_value, expected, "{status:?} {up:?} {down:?} {parts:?}");
        }
    }
}

#[test]
fn the_cell_that_holds_an_outage_is_no_good_one() {
    for range in [TimeRange::Day, TimeRange::Quarter] {
        let mut view = crate::views::tests::monitor_view_over(range);
        view.state.status = MonitorStatus::Down;
        (view.state.seen_up, view.state.seen_down) = (RegionSet::NONE, RegionSet::only(Region::Asia));
        let newest = |view: &MonitorView, is_stale| {
            let context = RangeContext { is_stale, ..context(range) };
            let cell = build_bars(view, context, &[]).bars.pop().unwrap();
            let short = |name| {
                let lane = build_region_bars(view, context).into_iter().find(|lane| lane.name == name).unwrap();
                let last = bar_path(lane.width - BAR_WIDTH, BarState::BriefOutage);
                lane.paths.iter().any(|(class, path)| *class == "p" && path.ends_with(&last))
            };
            (cell.class, cell.label.ends_with("100 %, down now"), short("Asia"), short("Europe"))
        };
        assert_eq!(newest(&view, false), ("p", true, true, false), "{range:?}");
        assert_eq!(newest(&view, true), ("u", false, false, false), "no agent is checking");
        let cells = build_bars(&view, context(range), &[]).bars;
        assert_eq!(cells.iter().filter(|cell| cell.label.contains("down now")).count(), 1);
        view.in_maintenance = true;
        assert_eq!(newest(&view, false), ("u", false, false, false), "in maintenance");
    }
}

#[test]
fn what_is_the_same_from_everywhere_has_no_lanes() {
    let mut view = crate::views::tests::monitor_view_over(TimeRange::Quarter);
    assert!(!build_region_bars(&view, context(TimeRange::Quarter)).is_empty());
    let vendor = parallax_core::check::ComponentCheck { url: "https://status.example".to_owned(), component: None };
    view.monitor.check = parallax_core::check::Check::Component(vendor);
    assert_eq!(build_region_bars(&view, context(TimeRange::Quarter)), []);
}

#[test]
fn a_strip_has_a_cell_for_each_hour_quarter_or_day_of_its_range() {
    for (range, cells, first) in [
        (TimeRange::Day, 24, "26 Nov 2026, 13:00 to 14:00 UTC: no data"),
        (TimeRange::Week, 28, "20 Nov 2026, 18:00 to 00:00 UTC: no data"),
        (TimeRange::Month, 30, "29 Oct 2026: no data"),
        (TimeRange::Quarter, 90, "30 Aug 2026: no data"),
    ] {
        let view = crate::views::tests::monitor_view_over(range);
        let strip = build_bars(&view, context(range), &[]);
        assert_eq!((strip.bars.len(), strip.bars[0].label.as_str()), (cells, first));
        let lanes = build_region_bars(&view, context(range));
        assert!(lanes.iter().all(|lane| lane.width == cells * BAR_SPACING - 2), "{lanes:?}");
    }
}
