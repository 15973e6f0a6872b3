//! A mesh that stands as a test says, and whose places looked at all monitors.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use chrono::NaiveDate;
use futures_util::future::{BoxFuture, FutureExt};
use parallax_core::board::Chart;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::place::{Region, RegionSet};
use parallax_core::plan::Plan;
use parallax_core::rollup::Counts;
use parallax_core::time::Timestamp;
use parallax_core::uptime::Span;

use crate::service::Result;
use crate::service::figures::{Figure, Figures, Lanes, NoFigures, Slices, Stretch};
use crate::service::history::{Place, Stand};

/// The regions with a place in service, and those that looked on a day.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mesh(Arc<Mutex<(Vec<Region>, Vec<(Region, NaiveDate)>)>>);

impl Mesh {
    pub(crate) fn stand(&self, regions: &[Region]) {
        self.0.lock().unwrap().0 = regions.to_vec();
    }

    pub(crate) fn look(&self, region: Region, day: NaiveDate) {
        self.0.lock().unwrap().1.push((region, day));
    }
}

impl Figures for Mesh {
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>> {
        NoFigures.last_day(page, monitors, now).boxed()
    }

    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: Place,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Reading>>> {
        NoFigures.readings(monitor, after, limit)
    }

    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<BTreeMap<NaiveDate, Counts>>> {
        NoFigures.days(page, monitor, days, now)
    }

    fn lanes<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<(RegionSet, Lanes)>>> {
        let mut lanes = Lanes::new();
        for (region, day) in &self.0.lock().unwrap().1 {
            if days.contains(day) {
                lanes.entry(*region).or_default().insert(*day, Counts::default());
            }
        }
        std::future::ready(Ok(vec![(RegionSet::default(), lanes); monitors.len()])).boxed()
    }

    fn slices<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<Slices>>> {
        NoFigures.slices(page, monitors, spans)
    }

    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        stretch: Stretch,
    ) -> BoxFuture<'a, Result<Vec<Chart>>> {
        NoFigures.charts(page, monitors, stretch)
    }

    fn stands(&self) -> Vec<Stand> {
        let stand = |region: &Region| Stand { region: *region, network: "AS64500".to_owned(), address: None };
        self.0.lock().unwrap().0.iter().map(stand).collect()
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        NoFigures.can_confirm(page, plan, monitor)
    }
}
