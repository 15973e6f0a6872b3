//! Inspection of a monitor for the operator: its machine, its newest rounds, and where its checks run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parallax_core::assign::{self, NextRound};
use parallax_core::event::{EventKind, ProbeReason, RoundReport};
use parallax_core::id::MonitorId;
use parallax_core::machine::{MachineInspection, RegionInspection};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{ProbeOutcome, Reading, RoundOutcome};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, Region, VantageNo};
use parallax_engine::{DriverQuery, MachineCopy, MachineCopyQuery};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::MonitorService;
use super::history::AgentsByNumber;
use crate::{ServiceError, ServiceResult};

/// Time that the driver gets to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Readings read, newest first: several rounds of each of the six regions.
const READINGS: usize = 64;
/// Events read, newest first.
const EVENTS: usize = 512;
/// Rounds returned, besides each region's newest.
const ROUNDS: usize = 12;

/// State of a monitor in full.
#[derive(Debug)]
pub struct MonitorInspection {
    /// The monitor.
    pub monitor: Monitor,
    /// Its page.
    pub page: Page,
    /// Its machine.
    pub machine: MachineInspection,
    /// The mesh as the machine sees it.
    pub mesh: Mesh,
    /// Next round at each agent that runs its checks, earliest first.
    pub next_rounds: Vec<NextRound>,
    /// Newest finished rounds, newest first. Each region has at least its newest stored one: as a reading,
    /// as a report among the newest events, or as evidence of the machine. A region without rounds since an edit of the
    /// target has at least the newest conclusive one.
    pub rounds: Vec<RecentRound>,
    /// All agents, including revoked ones.
    pub agents: AgentsByNumber,
}

/// Finished round with the outcomes of all vantages, as far as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentRound {
    /// Region of the round.
    pub region: Region,
    /// Reason it was run.
    pub reason: ProbeReason,
    /// Number in the schedule, for a scheduled round.
    pub number: Option<u64>,
    /// Start of the round; its due time if it was a plain pass.
    pub started: Timestamp,
    /// Final outcome.
    pub outcome: RoundOutcome,
    /// Response time in milliseconds.
    pub latency_ms: Option<u32>,
    /// Vantage that ran it first.
    pub first_vantage: VantageNo,
    /// Outcome there; none for a plain pass.
    pub first: Option<ProbeOutcome>,
    /// Second vantage and its outcome.
    pub second: Option<(VantageNo, ProbeOutcome)>,
    /// Third vantage and its outcome.
    pub third: Option<(VantageNo, ProbeOutcome)>,
}

impl MonitorService {
    /// Inspects a monitor; called by the operator. Returns `None` if the driver does not know it (yet), or does not
    /// answer in time.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown monitor.
    pub async fn inspect(&self, id: MonitorId) -> ServiceResult<Option<MonitorInspection>> {
        let (monitor, page, agents) = self
            .context
            .store()
            .read(move |store| {
                let Some(monitor) = store.monitor(id)? else { return Ok(None) };
                let (page, agents) = (store.page(monitor.value.page)?, store.agents()?);
                Ok(page.map(|page| (monitor.value, page.value, agents)))
            })
            .await?
            .ok_or(ServiceError::NotFound)?;
        let agents = agents.into_iter().map(|agent| (agent.value.vantage_no, agent.value)).collect();
        let Some(copy) = self.machine_copy(id).await else { return Ok(None) };
        let machine = copy.machine.inspect(&copy.mesh, copy.at);
        let is_regional = machine.settings.kind.is_regional();
        let mut readings = self.context.statistics.readings(&monitor, (copy.at + 1, Region::Europe), READINGS).await?;
        for (region, newest) in regions_without(&readings, &machine.regions, is_regional) {
            let older = self.context.statistics.readings(&monitor, (newest + 1, Region::Europe), READINGS).await?;
            readings.extend(older.into_iter().filter(|reading| !is_regional || reading.region == region));
        }
        let events = self.context.store().read(move |store| store.events_of(id, None, EVENTS)).await?;
        let reports = events.into_iter().filter_map(|event| match event.event.kind {
            EventKind::Round(report) => Some(report),
            _ => None,
        });
        // After those of the journal: evidence has no third vantage.
        let reports = reports.chain(machine.evidence.iter().cloned());
        let rounds = recent_rounds(readings, reports, is_regional);
        let next_rounds = copy.scheduled.as_ref().map(|it| assign::next_rounds(it, &copy.mesh, copy.at));
        Ok(Some(MonitorInspection {
            monitor,
            page,
            machine,
            mesh: copy.mesh,
            next_rounds: next_rounds.unwrap_or_default(),
            rounds,
            agents,
        }))
    }

    /// Inspects a monitor's machine alone, with the mesh as it sees it; `None` if the driver does not know it (yet), or
    /// does not answer in time.
    pub(crate) async fn inspect_machine(&self, id: MonitorId) -> Option<(MachineInspection, Mesh)> {
        let copy = self.machine_copy(id).await?;
        Some((copy.machine.inspect(&copy.mesh, copy.at), copy.mesh))
    }

    async fn machine_copy(&self, monitor: MonitorId) -> Option<MachineCopy> {
        let (reply, response) = oneshot::channel();
        let exchange = async {
            self.context.queries.send(DriverQuery::Copy(MachineCopyQuery { monitor, reply })).await.ok()?;
            response.await.ok().flatten()
        };
        timeout(TIMEOUT, exchange).await.ok().flatten()
    }
}

/// Regions that had rounds, but none among `readings`, with the start of their newest round. An edit of the target
/// clears the start; then it is the arrival. For a kind without regions only the one with the newest round.
fn regions_without(readings: &[Reading], regions: &[RegionInspection], is_regional: bool) -> Vec<(Region, Timestamp)> {
    let has_none = |region| !readings.iter().any(|reading| !is_regional || reading.region == region);
    let without_report = regions.iter().filter(|it| has_none(it.region));
    let without_report = without_report.filter_map(|it| Some((it.region, it.newest_started.or(it.newest_arrived)?)));
    if is_regional {
        without_report.collect()
    } else {
        without_report.max_by_key(|(_, newest)| *newest).into_iter().collect()
    }
}

/// Merges readings with the reports of rounds that were not a plain pass, newest first. If a round is reported
/// twice, the first report is used. Each region has at least its newest round among both.
fn recent_rounds(
    readings: Vec<Reading>,
    reports: impl Iterator<Item = RoundReport>,
    is_regional: bool,
) -> Vec<RecentRound> {
    let latencies: BTreeMap<(Region, u64), Option<u32>> =
        readings.iter().map(|reading| ((reading.region, reading.round), reading.latency_ms)).collect();
    let mut reported = BTreeSet::new();
    let reports = reports.filter(|report| reported.insert((report.region, report.round, report.started)));
    let mut rounds: Vec<RecentRound> = reports.map(RecentRound::from).collect();
    for round in &mut rounds {
        let reading = round.number.and_then(|number| latencies.get(&(round.region, number)));
        round.latency_ms = reading.copied().flatten().or(round.latency_ms);
    }
    let is_reported = |rounds: &[RecentRound], reading: &Reading| {
        rounds.iter().any(|round| (round.region, round.number) == (reading.region, Some(reading.round)))
    };
    let plain: Vec<RecentRound> =
        readings.iter().filter(|reading| !is_reported(&rounds, reading)).map(RecentRound::from).collect();
    rounds.extend(plain);
    rounds.sort_by_key(|round| std::cmp::Reverse((round.started, round.number, round.region)));
    let mut seen = BTreeSet::new();
    let mut total = 0;
    rounds.retain(|round| {
        let is_newest = seen.insert(is_regional.then_some(round.region));
        total += 1;
        is_newest || total <= ROUNDS
    });
    rounds
}

impl From<RoundReport> for RecentRound {
    fn from(report: RoundReport) -> Self {
        let latency_ms = match &report.first_outcome {
            ProbeOutcome::Passed(facts) => facts.latency_ms,
            _ => None,
        };
        Self {
            region: report.region,
            reason: report.reason,
            number: report.round,
            started: report.started,
            outcome: report.round_outcome,
            latency_ms,
            first_vantage: report.first_vantage,
            first: Some(report.first_outcome),
            second: report.second,
            third: report.third.map(|third| *third),
        }
    }
}

impl From<&Reading> for RecentRound {
    fn from(reading: &Reading) -> Self {
        Self {
            region: reading.region,
            reason: ProbeReason::Scheduled,
            number: Some(reading.round),
            started: reading.due,
            outcome: reading.outcome,
            latency_ms: reading.latency_ms,
            first_vantage: reading.vantage,
            first: None,
            second: None,
            third: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{Failure, Measurements};
    use parallax_core::verdict::RegionStatus;

    use super::*;

    fn reading(region: Region, round: u64) -> Reading {
        let due = Timestamp::from_millis(i64::try_from(round).unwrap() * 60_000);
        let (vantage, outcome) = (VantageNo(1), RoundOutcome::Passed);
        Reading { slot: 1, region, vantage, round, due, outcome, latency_ms: Some(40) }
    }

    fn report(region: Region, round: u64) -> RoundReport {
        let failed = ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
        RoundReport {
            region,
            reason: ProbeReason::Scheduled,
            round: Some(round),
            started: reading(region, round).due + 7,
            round_outcome: RoundOutcome::Disputed,
            first_vantage: VantageNo(1),
            first_outcome: failed,
            second: Some((VantageNo(2), ProbeOutcome::Passed(Measurements::default()))),
            third: None,
        }
    }

    #[test]
    fn a_round_with_a_report_is_listed_once_and_every_region_has_its_newest() {
        let mut readings: Vec<Reading> = (100..140).map(|round| reading(Region::Europe, round)).collect();
        readings.push(reading(Region::Asia, 3));
        let rounds = recent_rounds(readings, [report(Region::Europe, 139)].into_iter(), true);
        assert_eq!(rounds.len(), ROUNDS + 1);
        assert_eq!(rounds.iter().filter(|round| round.number == Some(139)).count(), 1);
        assert_eq!(rounds[0].outcome, RoundOutcome::Disputed);
        assert_eq!(rounds[0].second.as_ref().map(|(vantage, _)| *vantage), Some(VantageNo(2)));
        assert_eq!(rounds.last().map(|round| (round.region, round.number)), Some((Region::Asia, Some(3))));
    }

    #[test]
    fn evidence_is_listed_once_even_if_its_report_left_the_journal() {
        let third = Some(Box::new((VantageNo(3), ProbeOutcome::Passed(Measurements::default()))));
        let journal = [RoundReport { third, ..report(Region::Europe, 139) }];
        let evidence = [report(Region::Europe, 139), report(Region::Africa, 5)];
        let readings = (100..140).map(|round| reading(Region::Europe, round)).collect();
        let rounds = recent_rounds(readings, journal.into_iter().chain(evidence), true);
        assert_eq!(rounds.len(), ROUNDS + 1);
        assert_eq!(rounds.iter().filter(|round| round.number == Some(139)).count(), 1);
        assert_eq!(rounds[0].third.as_ref().map(|(vantage, _)| *vantage), Some(VantageNo(3)));
        assert_eq!(rounds.last().map(|round| (round.region, round.number)), Some((Region::Africa, Some(5))));
    }

    #[test]
    fn a_region_without_recent_rounds_shows_its_newest_round() {
        let state = |region, newest_started| RegionInspection {
            region,
            status: RegionStatus::Unknown,
            counts: true,
            first_failure: None,
            down_since: None,
            failure: None,
            newest_started,
            newest_arrived: None,
            not_passed: None,
            disputed_since: None,
        };
        let at = |round| reading(Region::Asia, round).due;
        let regions =
            [state(Region::Europe, Some(at(139))), state(Region::Asia, Some(at(3))), state(Region::Africa, None)];
        let readings = [reading(Region::Europe, 139)];
        assert_eq!(regions_without(&readings, &regions, true), [(Region::Asia, at(3))]);
        assert_eq!(regions_without(&readings, &regions, false), []);
        assert_eq!(regions_without(&[], &regions, false), [(Region::Europe, at(139))]);
        // After an edit of the target.
        let edited = RegionInspection { newest_arrived: Some(at(3) + 900), ..state(Region::Asia, None) };
        assert_eq!(regions_without(&readings, &[edited], true), [(Region::Asia, at(3) + 900)]);
    }
}
