//! Slowness thresholds of a chart: positions and labels.

use std::collections::BTreeMap;

use parallax_core::page_view::LatencyChart;
use parallax_core::vantage::RegionSet;
use parallax_i18n::page_messages::{PageMessages, fill};

use super::super::format;
use super::region_class;

/// A slowness threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThresholdLine {
    /// CSS class of its line, which has the region's color if the threshold applies to one region only.
    pub class: String,
    /// Regions it applies to; `None` if it applies to all counted regions.
    pub regions: Option<String>,
    /// Label.
    pub label: String,
    /// Position; `None` if it is far above all values.
    pub y: Option<String>,
}

/// Builds the thresholds of a chart in ascending order: one for all counted regions, or one per set of
/// regions that share it. The label of a threshold outside the chart says so, unless nothing is drawn.
pub(super) fn threshold_lines(
    chart: &LatencyChart,
    messages: &PageMessages,
    y: impl Fn(u32) -> Option<String>,
    is_sparse: bool,
) -> Vec<ThresholdLine> {
    let mut shared: BTreeMap<u32, RegionSet> = BTreeMap::new();
    for (region, threshold) in &chart.thresholds {
        shared.entry(*threshold).or_default().insert(*region);
    }
    let line = |(threshold, regions): (u32, RegionSet)| {
        let y = y(threshold).filter(|_| !is_sparse);
        let pattern = if y.is_some() || is_sparse { messages.slow_above } else { messages.slow_beyond };
        let applies_to_all = regions == chart.counted;
        let single_region = regions.iter().next().filter(|_| !applies_to_all && regions.len() == 1);
        ThresholdLine {
            class: single_region.map_or_else(|| "limit".to_owned(), |it| format!("limit {}", region_class(it))),
            regions: (!applies_to_all).then(|| messages.locale().regions(regions)),
            label: fill(pattern, &[&format::format_milliseconds(threshold, messages)]),
            y,
        }
    };
    shared.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use parallax_core::event::MonitorStatus;
    use parallax_core::time::{DAY, Timestamp};
    use parallax_core::vantage::Region;

    use super::super::{mean_chart, region_chart};
    use super::*;
    use crate::views::tests::english_locale;
    use crate::views::tests::monitor_view;

    #[test]
    fn each_threshold_has_a_label_and_a_line_if_it_is_near() {
        let (europe, asia, africa) = (Region::Europe, Region::Asia, Region::Africa);
        let all: RegionSet = [europe, asia, africa].into_iter().collect();
        for (counted, thresholds, expected) in [
            (all, vec![], vec![]),
            (all, vec![(europe, 250), (asia, 250), (africa, 250)], vec!["limit: slow above 250 ms at 20"]),
            (RegionSet::only(asia), vec![(asia, 250)], vec!["limit: slow above 250 ms at 20"]),
            (all, vec![(asia, 300)], vec!["limit r4: Asia slow above 300 ms at 0"]),
            (
                all,
                vec![(europe, 150), (asia, 300), (africa, 150)],
                vec!["limit: Europe and Africa slow above 150 ms at 60", "limit r4: Asia slow above 300 ms at 0"],
            ),
            // Far above all values: label only.
            (RegionSet::only(asia), vec![(asia, 301)], vec!["limit: slow above 301 ms, beyond this chart"]),
            (
                all,
                vec![(europe, 100), (asia, 5000)],
                vec!["limit r0: Europe slow above 100 ms at 0", "limit r4: Asia slow above 5000 ms, beyond this chart"],
            ),
        ] {
            let chart =
                LatencyChart { counted, thresholds: thresholds.into_iter().collect(), ..LatencyChart::default() };
            let description = |line: &ThresholdLine| {
                let regions = line.regions.as_ref().map_or_else(String::new, |regions| format!("{regions} "));
                let y = line.y.as_ref().map_or_else(String::new, |y| format!(" at {y}"));
                format!("{}: {regions}{}{y}", line.class, line.label)
            };
            let view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
            let regions = [europe, asia, africa].map(|region| (region, [Some(100), Some(60)].repeat(3)));
            let chart =
                LatencyChart { regions: regions.into_iter().collect(), to: Timestamp::from_millis(DAY), ..chart };
            for chart_view in [
                mean_chart(&view, &chart, &[], english_locale(Tz::UTC), 9).unwrap(),
                region_chart(&view, &chart, &[], (english_locale(Tz::UTC), chart.to)).unwrap(),
            ] {
                assert_eq!(chart_view.thresholds.iter().map(description).collect::<Vec<_>>(), expected);
            }
        }
    }
}
