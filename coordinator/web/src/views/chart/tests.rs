//! Scales, labels, lines, tables and texts of charts.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use parallax_core::event::MonitorStatus;

use super::super::tests::monitor_view;
use super::*;
use crate::views::tests::english_locale;

#[test]
fn scales_end_at_round_numbers() {
    for (most, top) in [(0, 10), (7, 10), (11, 20), (121, 200), (262, 300), (301, 400), (999, 1000), (4100, 5000)] {
        assert_eq!(round_up(most), top, "{most}");
    }
    assert!(round_up(u32::MAX) >= 1);
}

#[test]
fn labels_of_deploys_stand_beside_each_other_or_are_left_out() {
    let mut taken = [0; 2];
    let seen: Vec<_> = [100, 250, 260, 700, 990].map(|x| place_label(&mut taken, x, 7)).into();
    let (all, wide) = (Some("tag"), Some("tag wide"));
    assert_eq!(seen, [(all, false), (wide, false), (None, false), (all, false), (wide, true)]);
}

#[test]
fn a_table_says_what_is_drawn_and_where_nothing_was_measured() {
    let regions = BTreeMap::from([(Region::Asia, vec![Some(10), Some(20), None, None])]);
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(DAY));
    let counted = RegionSet::only(Region::Asia);
    let chart = LatencyChart { from, to, counted, regions, ..LatencyChart::default() };
    let lines = [(String::new(), "Asia", chart.mean())];
    let texts = |most| {
        let rows = table(&chart, &lines, most, english_locale(Tz::UTC));
        rows.iter().map(|(at, values)| format!("{} {}", at.text, values.join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(texts(9), ["00:00 10 ms", "06:00 20 ms", "12:00 no data", "18:00 no data"]);
    assert_eq!(texts(2), ["00:00 15 ms", "12:00 no data"]);
}

#[test]
fn a_line_breaks_where_nothing_was_measured() {
    let (line, area) = path(&[Some(10), Some(20), None, Some(30)], f64::from);
    assert_eq!(line, "M112.5 10L337.5 20M787.5 30h2");
    assert_eq!(area, "M112.5 120L112.5 10L337.5 20V120zM787.5 120L787.5 30V120z");
    assert_eq!(path(&[None, None], f64::from), (String::new(), String::new()));
}

/// A one-day chart with these points in Europe.
fn of_a_day(parts: Vec<Option<u32>>) -> LatencyChart {
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(DAY));
    let regions = BTreeMap::from([(Region::Europe, parts)]);
    let thresholds = BTreeMap::from([(Region::Europe, 400)]);
    LatencyChart { from, to, counted: RegionSet::only(Region::Europe), regions, thresholds }
}

#[test]
fn a_few_points_are_listed_and_not_drawn() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let drawn = |parts| mean_chart(&view, &of_a_day(parts), &[], english_locale(Tz::UTC), 9);
    assert_eq!(drawn(vec![None; 48]), None);
    for (points, is_sparse, limit) in
        [(1, true, "slow above 400 ms"), (2, false, "slow above 400 ms, beyond this chart")]
    {
        let drawing = drawn([vec![None; 48 - points], vec![Some(80); points]].concat()).unwrap();
        assert_eq!((drawing.is_sparse, drawing.thresholds[0].words.as_str()), (is_sparse, limit), "{points}");
        assert_eq!(drawing.table.last().unwrap().1, ["80 ms"], "the table has the data");
    }
}

#[test]
fn a_chart_says_its_time_and_what_it_is_the_mean_of() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let mut chart = of_a_day(vec![Some(80); 48]);
    let caption = |chart: &LatencyChart| {
        let drawing = mean_chart(&view, chart, &[], english_locale(Tz::UTC), 9).unwrap();
        (drawing.title, drawing.mean)
    };
    assert_eq!(caption(&chart), ("Response time, last 24 hours".to_owned(), None));
    for region in [Region::Oceania, Region::Asia] {
        chart.regions.insert(region, vec![Some(700); 48]);
    }
    chart.counted.insert(Region::Oceania);
    chart.to = chart.from + 7 * DAY;
    let mean = Some("Mean of Europe and Oceania".to_owned());
    assert_eq!(caption(&chart), ("Response time, last 7 days".to_owned(), mean));
    let by_region = region_chart(&view, &chart, &[], english_locale(Tz::UTC)).unwrap();
    assert_eq!((by_region.lines.len(), by_region.mean), (3, None));
}

#[test]
fn a_deploy_of_this_minute_is_marked_at_the_end() {
    let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let chart = of_a_day(vec![Some(80); 48]);
    let known = crate::views::tests::page_view().deploys.remove(0);
    let deploy = |ahead: i64| Deploy { at: chart.to + ahead, ..known.clone() };
    let marks = |ahead| {
        let drawing = mean_chart(&view, &chart, &[deploy(ahead)], english_locale(Tz::UTC), 9).unwrap();
        drawing.deploys.into_iter().map(|it| it.x).collect::<Vec<_>>()
    };
    assert_eq!(marks(-DAY / 2), ["50"]);
    for ahead in [0, 20_000, MAX_AHEAD] {
        assert_eq!(marks(ahead), ["100"], "{ahead}");
    }
    assert!(marks(MAX_AHEAD + 1).is_empty() && marks(-DAY - 1).is_empty());
}
