//! Evidence by region: the two rounds that decided, with the outcomes of every network that was asked.

use crate::event::{ProbeReason, RoundReport, StatusChange};
use crate::observation::{ProbeOutcome, RoundOutcome};
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Region, RegionSet, VantageNo};
use crate::verdict::RegionStatus;

use super::{ExplanationFacts, ExplanationKind};

/// Milliseconds after the first failure in which checks of other regions belong to it.
const SWEEP_WINDOW: i64 = MINUTE;

/// Age in milliseconds up to which a round that was not a plain pass explains the present state.
const RECENT: i64 = 15 * MINUTE;

/// Evidence of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRow {
    /// The region.
    pub region: Region,
    /// Its first round that matters.
    pub first: Option<EvidenceRound>,
    /// Its second one.
    pub second: Option<EvidenceRound>,
    /// Conclusion.
    pub verdict: EvidenceVerdict,
}

/// A round with every outcome that decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRound {
    /// Start.
    pub started: Timestamp,
    /// How it ended.
    pub outcome: RoundOutcome,
    /// Outcomes, the first vantage's first: never empty.
    pub seen: Vec<VantageOutcome>,
}

/// Outcome at one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VantageOutcome {
    /// The agent.
    pub vantage: VantageNo,
    /// Its outcome.
    pub outcome: ProbeOutcome,
}

/// Conclusion about a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceVerdict {
    /// Up.
    Up,
    /// Down.
    Down,
    /// Fails, but no second network confirmed it.
    Unconfirmed,
    /// Networks contradict each other.
    Disputed,
    /// One confirmed failure: a second one makes it down.
    Suspected,
    /// No data.
    Unknown,
}

impl EvidenceRound {
    /// Takes the outcomes out of a report.
    pub fn of(report: &RoundReport) -> Self {
        let one = |vantage: VantageNo, outcome: &ProbeOutcome| VantageOutcome { vantage, outcome: outcome.clone() };
        let mut seen = vec![one(report.first_vantage, &report.first_outcome)];
        seen.extend(report.second.as_ref().map(|(vantage, outcome)| one(*vantage, outcome)));
        seen.extend(report.third.as_deref().map(|(vantage, outcome)| one(*vantage, outcome)));
        Self { started: report.started, outcome: report.round_outcome, seen }
    }
}

/// Rows of the table, in the order of regions.
pub(super) fn rows(facts: &ExplanationFacts<'_>, kind: ExplanationKind) -> Vec<EvidenceRow> {
    let is_contradicted =
        matches!(kind, ExplanationKind::Unconfirmed | ExplanationKind::Disputed | ExplanationKind::DisputedRound);
    if !facts.is_regional() || (facts.change.is_none() && !is_contradicted) {
        return Vec::new();
    }
    let known: RegionSet = facts.regions.iter().map(|it| it.region).collect();
    let decided = facts.change.filter(|change| !change.evidence.is_empty());
    let shown = known.union(decided.map(evidence_regions).unwrap_or_default());
    shown.iter().map(|region| row(region, facts, decided)).collect()
}

/// Regions that a change's evidence names.
pub(super) fn evidence_regions(change: &StatusChange) -> RegionSet {
    change.evidence.iter().map(|report| report.region).collect()
}

/// Rounds by which the other regions were checked after the first failure of a change, each region's first.
pub(super) fn sweep<'a>(facts: &ExplanationFacts<'a>, change: &StatusChange) -> Vec<&'a RoundReport> {
    let Some(first) = change.evidence.iter().map(|report| report.started).min() else { return Vec::new() };
    let failed = evidence_regions(change);
    let mut found: Vec<&RoundReport> = Vec::new();
    // Newest first in the facts: the earliest of each region is wanted.
    for report in facts.rounds.iter().rev() {
        let is_of_it = matches!(report.reason, ProbeReason::Sweep | ProbeReason::Second)
            && (first..=first + SWEEP_WINDOW).contains(&report.started)
            && !failed.contains(report.region);
        if is_of_it && !found.iter().any(|it| it.region == report.region) {
            found.push(report);
        }
    }
    found
}

fn row(region: Region, facts: &ExplanationFacts<'_>, decided: Option<&StatusChange>) -> EvidenceRow {
    let mut of_region: Vec<&RoundReport> = decided
        .map(|change| change.evidence.iter().filter(|report| report.region == region).collect())
        .unwrap_or_default();
    of_region.sort_by_key(|report| report.started);
    if of_region.is_empty() {
        let swept = decided.and_then(|change| sweep(facts, change).into_iter().find(|it| it.region == region));
        // Without an outage, the newest round that was not a plain pass shows what is wrong.
        let is_recent = |it: &&RoundReport| {
            it.region == region && it.reason != ProbeReason::Manual && facts.now.since(it.started) <= RECENT
        };
        let newest = || facts.rounds.iter().find(is_recent);
        of_region.extend(swept.or_else(|| if decided.is_none() { newest() } else { None }));
    }
    let mut rounds = of_region.into_iter();
    let first = rounds.next().map(EvidenceRound::of);
    let second = rounds.next_back().map(EvidenceRound::of);
    let verdict = verdict(region, facts, decided, first.as_ref());
    EvidenceRow { region, first, second, verdict }
}

fn verdict(
    region: Region,
    facts: &ExplanationFacts<'_>,
    decided: Option<&StatusChange>,
    first: Option<&EvidenceRound>,
) -> EvidenceVerdict {
    // The table of an outage that is over shows how it was decided then.
    if let Some(change) = decided.filter(|_| facts.view.outage_since.is_none()) {
        return if evidence_regions(change).contains(region) { EvidenceVerdict::Down } else { EvidenceVerdict::Up };
    }
    if let Some(state) = facts.regions.iter().find(|it| it.region == region) {
        return match (state.status, state.not_passed) {
            (RegionStatus::Down, _) => EvidenceVerdict::Down,
            (_, Some(RoundOutcome::Unconfirmed)) => EvidenceVerdict::Unconfirmed,
            (_, Some(RoundOutcome::Disputed)) => EvidenceVerdict::Disputed,
            _ if state.first_failure.is_some() => EvidenceVerdict::Suspected,
            (RegionStatus::Up, _) => EvidenceVerdict::Up,
            (RegionStatus::Unknown, _) => EvidenceVerdict::Unknown,
        };
    }
    match (facts.view.seen_down.contains(region), facts.view.seen_up.contains(region), first.map(|it| it.outcome)) {
        (true, ..) => EvidenceVerdict::Down,
        (_, true, _) => EvidenceVerdict::Up,
        (_, _, Some(RoundOutcome::Failed)) => EvidenceVerdict::Down,
        (_, _, Some(RoundOutcome::Passed)) => EvidenceVerdict::Up,
        _ => EvidenceVerdict::Unknown,
    }
}
