//! A fake mesh with the given regions in service and the regions that checked all monitors.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use chrono::NaiveDate;
use futures_util::future::{BoxFuture, FutureExt};
use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, LatencyBand, LatencyChart};
use parallax_core::plan::Plan;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::Timestamp;
use parallax_core::uptime::TimeSpan;
use parallax_core::vantage::{Region, RegionSet};

use crate::ServiceResult;
use crate::statistics::{
    CheckCursor, DailyOutcomes, MonitorStatistics, NoStatistics, ServingAgent, SliceOutcomes, Statistics,
};

/// The regions with an agent in service, and those that ran checks in the last 24 hours.
#[derive(Debug, Clone, Default)]
pub struct FakeMesh(Arc<Mutex<(RegionSet, RegionSet)>>);

impl FakeMesh {
    pub fn set_in_service(&self, regions: &[Region]) {
        self.0.lock().unwrap().0 = regions.iter().copied().collect();
    }

    pub fn set_checked(&self, regions: &[Region]) {
        self.0.lock().unwrap().1 = regions.iter().copied().collect();
    }
}

impl Statistics for FakeMesh {
    fn last_day<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _now: Timestamp,
    ) -> BoxFuture<'a, Vec<MonitorStatistics>> {
        let statistics =
            MonitorStatistics { checked_regions: self.0.lock().unwrap().1, ..MonitorStatistics::default() };
        std::future::ready(vec![statistics; monitors.len()]).boxed()
    }

    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: CheckCursor,
        limit: usize,
    ) -> BoxFuture<'a, ServiceResult<Vec<Reading>>> {
        NoStatistics.readings(monitor, after, limit)
    }

    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<BTreeMap<NaiveDate, OutcomeCounts>>> {
        NoStatistics.days(page, monitor, days, now)
    }

    fn outcomes_by_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<Vec<DailyOutcomes>>> {
        NoStatistics.outcomes_by_day(page, monitors, days, now)
    }

    fn outcomes_by_slice<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [TimeSpan],
    ) -> BoxFuture<'a, ServiceResult<Vec<SliceOutcomes>>> {
        NoStatistics.outcomes_by_slice(page, monitors, spans)
    }

    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        range: ChartRange,
    ) -> BoxFuture<'a, ServiceResult<Vec<LatencyChart>>> {
        NoStatistics.charts(page, monitors, range)
    }

    fn latency<'a>(
        &'a self,
        _page: &'a Page,
        _monitor: &'a Monitor,
        range: ChartRange,
        _now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<LatencyChart>> {
        Box::pin(std::future::ready(Ok(made_up_latency(range))))
    }

    fn agents_in_service(&self) -> Vec<ServingAgent> {
        let agent = |region| ServingAgent { region, network: "AS64500".to_owned(), address: None };
        self.0.lock().unwrap().0.iter().map(agent).collect()
    }

    fn confirming_networks(&self) -> ConfirmingNetworks {
        let by_region: BTreeMap<Region, usize> = self.0.lock().unwrap().0.iter().map(|region| (region, 1)).collect();
        ConfirmingNetworks { total: usize::from(!by_region.is_empty()), by_region, ..ConfirmingNetworks::default() }
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        NoStatistics.can_confirm(page, plan, monitor)
    }
}

/// Two lines: a counted one of Europe with a gap at its start, and one of Asia.
fn made_up_latency(range: ChartRange) -> LatencyChart {
    let line = |first: Option<u32>, rest: u32| -> Vec<Option<u32>> {
        std::iter::once(first).chain(std::iter::repeat(Some(rest))).take(range.buckets).collect()
    };
    let band = |median: &Option<u32>| median.map(|it| LatencyBand { min: it - 10, max: it + 10 });
    let regions = BTreeMap::from([(Region::Europe, line(None, 100)), (Region::Asia, line(Some(300), 300))]);
    LatencyChart {
        from: range.from,
        to: range.to,
        counted: RegionSet::only(Region::Europe),
        bands: regions.iter().map(|(region, line)| (*region, line.iter().map(band).collect())).collect(),
        regions,
        thresholds: BTreeMap::from([(Region::Europe, 400)]),
    }
}
