//! Filter of a monitor's finished rounds: by outcome, slowness and region.

use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::plan::Plan;
use parallax_core::vantage::Region;

use super::history::{CheckRecord, HistoryService, HistorySlice};
use crate::statistics::CheckCursor;
use crate::{Caller, ServiceResult};

/// Readings read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum readings scanned for one part of a filtered list: a day of a monitor with six regions at a minute each.
const MAX_SCANNED: usize = 8_704;

/// Rounds that a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckFilter {
    /// Only those that ended like this.
    pub outcome: Option<RoundOutcome>,
    /// Only passed rounds above the threshold of their region.
    pub only_slow: bool,
    /// Only those of this region.
    pub region: Option<Region>,
}

impl CheckFilter {
    /// Returns true if the list shows that reading.
    fn admits(&self, reading: &Reading, monitor: &Monitor, plan: Plan) -> bool {
        let is_slow = || {
            let threshold = monitor.slow_threshold(reading.region, plan);
            threshold.zip(reading.latency_ms).is_some_and(|(threshold, latency)| latency > threshold)
        };
        self.outcome.is_none_or(|outcome| outcome == reading.outcome)
            && self.region.is_none_or(|region| region == reading.region)
            && (!self.only_slow || is_slow())
    }
}

impl HistoryService {
    /// Lists those of a monitor's scheduled rounds that a filter admits, newest first. A result may be short, or empty,
    /// although more follow.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a monitor that the caller can't access.
    pub async fn filtered_checks(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        after: Option<CheckCursor>,
        limit: usize,
        filter: CheckFilter,
    ) -> ServiceResult<HistorySlice<CheckRecord, CheckCursor>> {
        if filter == CheckFilter::default() {
            return self.checks(caller, (page, id), after, limit).await;
        }
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        let plan = self.context.account_of(&page)?.plan;
        let mut from = after.unwrap_or((self.context.now() + 1, Region::Europe));
        let (mut found, mut scanned) = (Vec::new(), 0);
        let next = loop {
            let read = self.context.statistics.readings(&monitor, from, READ_AT_ONCE).await?;
            let Some(last) = read.last() else { break None };
            from = (last.due, last.region);
            scanned += read.len();
            let is_end = read.len() < READ_AT_ONCE;
            found.extend(read.into_iter().filter(|reading| filter.admits(reading, &monitor, plan)));
            if found.len() > limit {
                found.truncate(limit);
                break found.last().map(|last: &Reading| (last.due, last.region));
            }
            if is_end {
                break None;
            }
            if scanned >= MAX_SCANNED {
                break Some(from);
            }
        };
        let mut reports = self.reports(id, &found).await?;
        let items = found
            .into_iter()
            .map(|reading| CheckRecord { report: reports.remove(&(reading.region, reading.round)), reading });
        Ok(HistorySlice { items: items.collect(), next, agents: self.context.agents_by_number().await? })
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::Timestamp;
    use parallax_core::vantage::VantageNo;
    use parallax_store::samples::monitor;

    use super::*;

    #[test]
    fn a_filter_admits_what_it_names() {
        let monitor = Monitor { slow_threshold_ms: Some(250), ..monitor(1, 1, 0) };
        let reading = |region, outcome, latency_ms| Reading {
            slot: 0,
            region,
            vantage: VantageNo(1),
            round: 1,
            due: Timestamp::from_millis(0),
            outcome,
            latency_ms,
        };
        let all = [
            reading(Region::Europe, RoundOutcome::Passed, Some(100)),
            reading(Region::Europe, RoundOutcome::Passed, Some(251)),
            reading(Region::Asia, RoundOutcome::Failed, None),
        ];
        let failed = CheckFilter { outcome: Some(RoundOutcome::Failed), ..CheckFilter::default() };
        let slow = CheckFilter { only_slow: true, ..CheckFilter::default() };
        let europe = CheckFilter { region: Some(Region::Europe), ..CheckFilter::default() };
        for (filter, expected) in [
            (CheckFilter::default(), [true, true, true]),
            (failed, [false, false, true]),
            (slow, [false, true, false]),
            (europe, [true, true, false]),
        ] {
            let admitted = all.each_ref().map(|reading| filter.admits(reading, &monitor, Plan::Pro));
            assert_eq!(admitted, expected, "{filter:?}");
        }
    }
}
