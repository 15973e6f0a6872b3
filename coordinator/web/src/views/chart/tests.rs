//! Scales, labels, lines, tables and texts of charts.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use parallax_core::event::MonitorStatus;

use super::super::tests::monitor_view;
use super::*;
use crate::views::tests::english_locale;

#[test]
fn chart_scales_end_at_round_numbers() {
    for (max_value, top) in [(0, 10), (7, 10), (11, 20), (121, 200), (262, 300), (301, 400), (999, 1000), (4100, 5000)]
    {
        assert_eq!(round_up(max_value), top, "{max_value}");
    }
    assert!(round_up(u32::MAX) >= 1);
}

#[test]
fn deploy_labels_never_overlap() {
    let mut occupied = [0; 2];
    let labels: Vec<_> = [100, 250, 260, 700, 990].map(|x| place_label(&mut occupied, x, 7)).into();
    let (all, wide) = (Some("tag"), Some("tag wide"));
    assert_eq!(labels, [(all, false), (wide, false), (None, false), (all, false), (wide, true)]);
}

#[test]
fn the_table_has_the_charts_values_and_its_gaps() {
    let regions = BTreeMap::from([(Region::Asia, vec![Some(10), Some(20), None, None])]);
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(DAY));
    let counted = RegionSet::only(Region::Asia);
    let chart = LatencyChart { from, to, counted, regions, ..LatencyChart::default() };
    let lines = [(String::new(), "Asia", chart.mean())];
    let texts = |max_rows| {
        let rows = table(&chart, &lines, (max_rows, false), english_locale(Tz::UTC));
        rows.iter().map(|(at, values)| format!("{} {}", at.text, values.join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(texts(9), ["00:00 10 ms", "06:00 20 ms", "12:00 no data", "18:00 no data"]);
    assert_eq!(texts(2), ["00:00 15 ms", "12:00 no data"]);
}

#[test]
fn a_chart_line_is_interrupted_where_data_is_missing() {
    let (line, area) = path(&[Some(10), Some(20), None, Some(30)], f64::from);
    assert_eq!(line, "M112.5 10L337.5 20M787.5 30h2");
    assert_eq!(area, "M112.5 120L112.5 10L337.5 20V120zM787.5 120L787.5 30V120z");
    assert_eq!(path(&[None, None], f64::from), (String::new(), String::new()));
}

/// A one-day chart with these points in Europe.
fn one_day_chart(points: Vec<Option<u32>>) -> LatencyChart {
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(DAY));
    let regions = BTreeMap::from([(Region::Europe, points)]);
    let thresholds = BTreeMap::from([(Region::Europe, 400)]);
    LatencyChart { from, to, counted: RegionSet::only(Region::Europe), regions, thresholds, ..LatencyChart::default() }
}

#[test]
fn charts_with_too_few_points_have_only_a_table() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let chart_of = |points| mean_chart(&view, &one_day_chart(points), &[], english_locale(Tz::UTC), 9);
    assert_eq!(chart_of(vec![None; 48]), None);
    for (points, is_sparse, threshold_label) in
        [(1, true, "slow above 400 ms"), (2, false, "slow above 400 ms, beyond this chart")]
    {
        let chart_view = chart_of([vec![None; 48 - points], vec![Some(80); points]].concat()).unwrap();
        assert_eq!(
            (chart_view.is_sparse, chart_view.thresholds[0].label.as_str()),
            (is_sparse, threshold_label),
            "{points}"
        );
        assert_eq!(chart_view.table.last().unwrap().1, ["80 ms"], "the table has the data");
    }
}

#[test]
fn a_chart_names_its_range_and_its_regions() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let mut chart = one_day_chart(vec![Some(80); 48]);
    let caption = |chart: &LatencyChart| {
        let chart_view = mean_chart(&view, chart, &[], english_locale(Tz::UTC), 9).unwrap();
        (chart_view.title, chart_view.mean)
    };
    assert_eq!(caption(&chart), ("Response time, last 24 hours".to_owned(), None));
    for region in [Region::Oceania, Region::Asia] {
        chart.regions.insert(region, vec![Some(700); 48]);
    }
    chart.counted.insert(Region::Oceania);
    chart.to = chart.from + 7 * DAY;
    let mean = Some("Mean of Europe and Oceania".to_owned());
    assert_eq!(caption(&chart), ("Response time, last 7 days".to_owned(), mean));
    let by_region = region_chart(&view, &chart, &[], (english_locale(Tz::UTC), chart.to)).unwrap();
    assert_eq!((by_region.lines.len(), by_region.mean), (3, None));
}

#[test]
fn the_times_of_a_chart_of_days_ago_have_a_date() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let chart = one_day_chart(vec![Some(80); 4]);
    let drawn = |age: i64| {
        let chart_view = region_chart(&view, &chart, &[], (english_locale(Tz::UTC), chart.to + age)).unwrap();
        (chart_view.time_formats, chart_view.table[1].0.text.clone())
    };
    for age in [MINUTE, 2 * DAY] {
        assert_eq!(drawn(age), (("c", "c"), "06:00".to_owned()), "{age}");
    }
    assert_eq!(drawn(2 * DAY + 1), (("c", "t"), "1 Jan 1970, 06:00".to_owned()));
}

#[test]
fn a_deploy_just_after_the_end_is_marked_at_the_end() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let chart = one_day_chart(vec![Some(80); 48]);
    let sample = crate::views::tests::page_view().deploys.remove(0);
    let deploy = |ahead: i64| Deploy { at: chart.to + ahead, ..sample.clone() };
    let marker_positions = |ahead| {
        let chart_view = mean_chart(&view, &chart, &[deploy(ahead)], english_locale(Tz::UTC), 9).unwrap();
        chart_view.deploys.into_iter().map(|it| it.x).collect::<Vec<_>>()
    };
    assert_eq!(marker_positions(-DAY / 2), ["50"]);
    for ahead in [0, 20_000, MAX_AHEAD] {
        assert_eq!(marker_positions(ahead), ["100"], "{ahead}");
    }
    assert!(marker_positions(MAX_AHEAD + 1).is_empty() && marker_positions(-DAY - 1).is_empty());
}
