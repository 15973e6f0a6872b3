//! A fake mesh with the given regions in service and the regions that checked all monitors.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use chrono::NaiveDate;
use futures_util::future::{BoxFuture, FutureExt};
use parallax_core::board::{Chart, Stretch};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::place::{Region, RegionSet};
use parallax_core::plan::Plan;
use parallax_core::rollup::Counts;
use parallax_core::time::Timestamp;
use parallax_core::uptime::Span;

use crate::service::Result;
use crate::service::figures::{Figure, Figures, NoFigures, SeenByDay, SeenBySlice};
use crate::service::history::{Place, Stand};

/// The regions with an agent in service, and those that ran checks in the last 24 hours.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mesh(Arc<Mutex<(RegionSet, RegionSet)>>);

impl Mesh {
    pub(crate) fn stand(&self, regions: &[Region]) {
        self.0.lock().unwrap().0 = regions.iter().copied().collect();
    }

    pub(crate) fn look(&self, regions: &[Region]) {
        self.0.lock().unwrap().1 = regions.iter().copied().collect();
    }
}

impl Figures for Mesh {
    fn last_day<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>> {
        let figure = Figure { seen: self.0.lock().unwrap().1, ..Figure::default() };
        std::future::ready(vec![figure; monitors.len()]).boxed()
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
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SeenByDay>>> {
        NoFigures.lanes(page, monitors, days, now)
    }

    fn slices<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<SeenBySlice>>> {
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
        let stand = |region| Stand { region, network: "AS64500".to_owned(), address: None };
        self.0.lock().unwrap().0.iter().map(stand).collect()
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        NoFigures.can_confirm(page, plan, monitor)
    }
}
