//! Tests of uptime bars.

use chrono_tz::Tz;
use parallax_core::vantage::RegionSet;

use super::*;
use crate::views::tests::english_locale;

#[test]
fn each_state_has_its_own_shape_in_region_bars() {
    let states = [
        BarState::NoData,
        BarState::Up,
        BarState::Slow,
        BarState::BriefOutage,
        BarState::LongOutage,
        BarState::Maintenance,
    ];
    let shapes: BTreeMap<String, BarState> = states.into_iter().map(|state| (bar_path(0, state), state)).collect();
    assert_eq!(shapes.len(), states.len(), "{shapes:?}");
}

fn context(range: TimeRange) -> RangeContext {
    RangeContext { range, now: crate::views::tests::NOW, is_stale: false, locale: english_locale(Tz::UTC) }
}

#[test]
fn region_bars_show_the_regions_current_value() {
    let asia = RegionSet::only(Region::Asia);
    // Status of the monitor, regions that see it up and down, in maintenance, newest chart points,
    // expected text.
    for (status, up, down, in_maintenance, points, expected) in [
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
        (view.state.seen_up, view.state.seen_down, view.in_maintenance) = (up, down, in_maintenance);
        view.history.chart.regions.insert(Region::Asia, points.clone());
        for (is_stale, expected) in [(false, expected), (true, "no data")] {
            let region_rows = build_region_bars(&view, RangeContext { is_stale, ..context(TimeRange::Quarter) });
            let region_row = region_rows.iter().find(|region_row| region_row.name == "Asia").unwrap();
            assert_eq!(region_row.current_value, expected, "{status:?} {up:?} {down:?} {points:?}");
        }
    }
}

#[test]
fn only_the_newest_bar_shows_an_ongoing_outage() {
    for range in [TimeRange::Day, TimeRange::Quarter] {
        let mut view = crate::views::tests::monitor_view_over(range);
        view.state.status = MonitorStatus::Down;
        (view.state.seen_up, view.state.seen_down) = (RegionSet::NONE, RegionSet::only(Region::Asia));
        let newest = |view: &MonitorView, is_stale| {
            let context = RangeContext { is_stale, ..context(range) };
            let bar = build_bars(view, context, &[]).bars.pop().unwrap();
            let has_brief_outage = |name| {
                let region_row =
                    build_region_bars(view, context).into_iter().find(|region_row| region_row.name == name).unwrap();
                let last = bar_path(region_row.width - BAR_WIDTH, BarState::BriefOutage);
                region_row.paths.iter().any(|(class, path)| *class == "p" && path.ends_with(&last))
            };
            (bar.class, bar.label.ends_with("100 %, down now"), has_brief_outage("Asia"), has_brief_outage("Europe"))
        };
        assert_eq!(newest(&view, false), ("p", true, true, false), "{range:?}");
        assert_eq!(newest(&view, true), ("u", false, false, false), "no agent is checking");
        let bars = build_bars(&view, context(range), &[]).bars;
        assert_eq!(bars.iter().filter(|bar| bar.label.contains("down now")).count(), 1);
        view.in_maintenance = true;
        assert_eq!(newest(&view, false), ("u", false, false, false), "in maintenance");
    }
}

#[test]
fn checks_without_regions_have_no_region_bars() {
    let mut view = crate::views::tests::monitor_view_over(TimeRange::Quarter);
    assert!(!build_region_bars(&view, context(TimeRange::Quarter)).is_empty());
    let vendor = parallax_core::check::ComponentCheck { url: "https://status.example".to_owned(), component: None };
    view.monitor.check = parallax_core::check::Check::Component(vendor);
    assert_eq!(build_region_bars(&view, context(TimeRange::Quarter)), []);
}

#[test]
fn uptime_bars_have_one_bar_per_hour_quarter_day_or_day() {
    for (range, bars, first) in [
        (TimeRange::Day, 24, "26 Nov 2026, 13:00 to 14:00 UTC: no data"),
        (TimeRange::Week, 28, "20 Nov 2026, 18:00 to 00:00 UTC: no data"),
        (TimeRange::Month, 30, "29 Oct 2026: no data"),
        (TimeRange::Quarter, 90, "30 Aug 2026: no data"),
    ] {
        let view = crate::views::tests::monitor_view_over(range);
        let uptime_bars = build_bars(&view, context(range), &[]);
        assert_eq!((uptime_bars.bars.len(), uptime_bars.bars[0].label.as_str()), (bars, first));
        let region_rows = build_region_bars(&view, context(range));
        assert!(region_rows.iter().all(|region_row| region_row.width == bars * BAR_SPACING - 2), "{region_rows:?}");
    }
}
