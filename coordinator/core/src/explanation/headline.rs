//! Title and sentence of an explanation: the first of the rules below that applies.

use crate::check::{Check, CheckKind};
use crate::event::{MonitorStatus, RoundReport};
use crate::observation::{Failure, ProbeOutcome, RoundOutcome};
use crate::time::{SECOND, Timestamp};
use crate::vantage::{Region, RegionSet, VantageNo};

use super::wording::{self, capitalized, clock, long_duration, period_text, short_duration, spelled_count};
use super::{ExplanationFacts, ExplanationKind};

/// Title and sentence.
pub(super) struct ExplanationHeadline {
    pub(super) kind: ExplanationKind,
    pub(super) title: String,
    pub(super) lead: String,
    pub(super) detail: String,
}

impl ExplanationHeadline {
    fn new(kind: ExplanationKind, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, title: title.into(), lead: String::new(), detail: detail.into() }
    }

    fn led_by(self, lead: impl Into<String>) -> Self {
        Self { lead: lead.into(), ..self }
    }
}

/// Explains a state in one sentence.
pub(super) fn headline(facts: &ExplanationFacts<'_>) -> ExplanationHeadline {
    let view = facts.view;
    if facts.monitor.paused {
        return ExplanationHeadline::new(
            ExplanationKind::Paused,
            "Paused",
            "It is not checked, and no alerts are sent.",
        );
    }
    if let Some(until) = facts.maintenance_until {
        return maintenance(facts, until);
    }
    match view.status {
        MonitorStatus::Down => down(facts),
        MonitorStatus::Unknown => no_data(facts),
        MonitorStatus::Slow => slow(facts),
        MonitorStatus::Up => contradicted(facts).unwrap_or_else(|| up(facts)),
    }
}

fn maintenance(facts: &ExplanationFacts<'_>, until: Timestamp) -> ExplanationHeadline {
    let title = format!("In maintenance until {}", clock(until, facts.zone, facts.now));
    let meanwhile = match (facts.view.status, facts.view.down_from) {
        (MonitorStatus::Down, Some(from)) => format!(" It is down from {} meanwhile.", wording::regions(from)),
        (MonitorStatus::Down, None) => " It is down meanwhile.".to_owned(),
        (_, _) => String::new(),
    };
    let detail = format!("No alerts are sent, and rounds don't count toward uptime.{meanwhile}");
    ExplanationHeadline::new(ExplanationKind::Maintenance, title, detail)
}

/// Failures that change nothing: unconfirmed, or contradicted for some minutes.
fn contradicted(facts: &ExplanationFacts<'_>) -> Option<ExplanationHeadline> {
    let view = facts.view;
    if !view.unconfirmed_from.is_empty() {
        return Some(unconfirmed(facts, view.unconfirmed_from));
    }
    let since = view.disputed_since?;
    let regions = disputing_regions(facts);
    let length = short_duration(facts.now.since(since));
    let title = format!("Disputed for {length}");
    let lead = title.clone();
    let detail = match (single(regions), regions.is_empty()) {
        (Some(region), _) if facts.mesh.confirming_networks(Some(region)) <= 1 => {
            let has =
                if facts.mesh.confirming_networks(Some(region)) == 1 { "one network" } else { "no working network" };
            format!("only {0} can't reach it, and {0} has {has}, so it can't be confirmed.", region.title())
        }
        (Some(region), _) => {
            format!("only {} can't reach it, and the networks that were asked contradict each other.", region.title())
        }
        (None, false) => format!("{} can't reach it, and other networks can.", wording::regions(regions)),
        (None, true) => "some networks can't reach it, and others can.".to_owned(),
    };
    Some(ExplanationHeadline::new(ExplanationKind::Disputed, title, detail).led_by(lead))
}

fn unconfirmed(facts: &ExplanationFacts<'_>, regions: RegionSet) -> ExplanationHeadline {
    let pinned = facts.monitor.pinned_region;
    let reason = match pinned {
        Some(region) => {
            // Those that can confirm: a host that is unfit to check is connected all the same.
            let networks = facts.mesh.confirming_networks(Some(region));
            let verb = if networks == 1 { "is" } else { "are" };
            let noun = if networks == 1 { "network" } else { "networks" };
            let is_fit =
                facts.mesh.available().filter(|it| it.region == region).all(|it| facts.mesh.can_confirm(it.no));
            let state = if is_fit { "connected" } else { "able to confirm" };
            format!(
                "checked from {} only, where {} {noun} {verb} {state} right now.",
                region.title(),
                spelled_count(networks)
            )
        }
        None => format!("it fails from {}, and no second network could check it.", wording::regions(regions)),
    };
    let title = format!("Failing from {}, not confirmed", wording::regions(regions));
    ExplanationHeadline::new(ExplanationKind::Unconfirmed, title, format!("{reason} Nothing was sent."))
        .led_by("Failing, not confirmed")
}

fn slow(facts: &ExplanationFacts<'_>) -> ExplanationHeadline {
    let since = lasting(facts, facts.view.since);
    if facts.monitor.check.kind() == CheckKind::Component {
        let title = format!("Degraded{since}");
        return ExplanationHeadline::new(
            ExplanationKind::VendorDegraded,
            title,
            "the vendor reports degraded performance.",
        )
        .led_by("Slow");
    }
    let place = facts.view.slow_from.map(|from| format!(" from {}", wording::regions(from))).unwrap_or_default();
    let change = facts.change.filter(|change| change.to == MonitorStatus::Slow);
    let latency = change.and_then(|change| change.latency_ms);
    // Thresholds of regions depend on the plan and differ: then only the change knows which one was crossed.
    let common = facts.monitor.slow_threshold_ms.filter(|_| facts.monitor.slow_thresholds.is_none());
    let threshold = change.and_then(|change| change.threshold_ms).or(common);
    let detail = match (latency, threshold) {
        (Some(latency), Some(threshold)) => format!("{latency} ms{place}, threshold {threshold} ms."),
        (None, Some(threshold)) => format!("responses{place} take longer than {threshold} ms."),
        (_, None) => format!("responses{place} take longer than the threshold."),
    };
    ExplanationHeadline::new(ExplanationKind::Slow, format!("Slow{place}{since}"), detail).led_by("Slow")
}

fn up(facts: &ExplanationFacts<'_>) -> ExplanationHeadline {
    let disputed: RegionSet = disputing_regions(facts);
    let report = facts.rounds.iter().find(|report| {
        report.round_outcome == RoundOutcome::Disputed && (disputed.contains(report.region) || !facts.is_regional())
    });
    match report.filter(|_| !disputed.is_empty()).and_then(|report| disputed_round(facts, report)) {
        Some(detail) => ExplanationHeadline::new(ExplanationKind::DisputedRound, "Up", detail).led_by("Disputed"),
        None => ExplanationHeadline::new(ExplanationKind::Up, "Up", format!("Up{}.", lasting(facts, facts.view.since))),
    }
}

/// Regions whose newest round was disputed.
fn disputing_regions(facts: &ExplanationFacts<'_>) -> RegionSet {
    let disputed = facts.regions.iter().filter(|it| it.not_passed == Some(RoundOutcome::Disputed));
    disputed.map(|it| it.region).collect()
}

fn disputed_round(facts: &ExplanationFacts<'_>, report: &RoundReport) -> Option<String> {
    let outcomes = std::iter::once((report.first_vantage, &report.first_outcome))
        .chain(report.second.as_ref().map(|(vantage, outcome)| (*vantage, outcome)))
        .chain(report.third.as_deref().map(|(vantage, outcome)| (*vantage, outcome)));
    let outcomes: Vec<(VantageNo, &ProbeOutcome)> = outcomes.collect();
    let failed = outcomes.iter().find(|(_, outcome)| matches!(outcome, ProbeOutcome::Failed(..)))?;
    let passed = outcomes.iter().find(|(_, outcome)| matches!(outcome, ProbeOutcome::Passed(_)))?;
    let placed = |vantage: VantageNo| match facts.region(vantage) {
        Some(region) => format!("{} in {}", facts.name(vantage), region.title()),
        None => facts.name(vantage),
    };
    Some(format!(
        "{} could not reach it, {} could. Counted as passed, nothing sent.",
        placed(failed.0),
        placed(passed.0)
    ))
}

fn down(facts: &ExplanationFacts<'_>) -> ExplanationHeadline {
    let view = facts.view;
    let lasts = lasting(facts, view.outage_since.or(view.since));
    let reason = view.down_reason.as_ref();
    match facts.monitor.check.kind() {
        CheckKind::Heartbeat => heartbeat_down(facts, reason, &lasts),
        CheckKind::Component => {
            let words =
                reason.map_or_else(|| "The vendor reports an outage".to_owned(), |it| capitalized(&it.to_string()));
            let incident = facts.incident.map(|it| format!(" Incident: “{}”.", it.title)).unwrap_or_default();
            let stop = if words.ends_with(['.', '!', '?']) { "" } else { "." };
            ExplanationHeadline::new(
                ExplanationKind::VendorDown,
                format!("Down{lasts}"),
                format!("{words}{stop}{incident}"),
            )
        }
        _ => {
            let place = view.down_from.map(|from| format!(" from {}", wording::regions(from))).unwrap_or_default();
            let title = format!("Down{place}{lasts}");
            ExplanationHeadline::new(ExplanationKind::Down, title, down_detail(facts, reason))
        }
    }
}

fn down_detail(facts: &ExplanationFacts<'_>, reason: Option<&Failure>) -> String {
    let reason = reason.map_or_else(|| "The check failed".to_owned(), |it| capitalized(&it.to_string()));
    let regions = facts.view.down_from.unwrap_or(facts.view.seen_down);
    let failed = vantages_that_failed(facts, regions);
    let is_there = |vantage: &VantageNo| facts.region(*vantage).is_some_and(|region| regions.contains(region));
    let place = if facts.is_regional() && failed.iter().all(is_there) {
        format!(" in {}", wording::regions(regions))
    } else {
        String::new()
    };
    let witness = match networks_of(facts, &failed) {
        0 | 1 => String::new(),
        networks => format!(", seen by {} networks{place}", spelled_count(networks)),
    };
    let others = facts.view.seen_up.without(regions);
    let checked: RegionSet = facts.regions.iter().map(|it| it.region).collect();
    let are_all_known = !checked.is_empty() && checked.without(regions.union(others)).is_empty();
    let elsewhere = match (single(others), others.len()) {
        // Nothing is known of regions that don't check it, or of those without a recent round.
        (_, 0) if facts.view.down_from.is_some() => String::new(),
        (_, 0) => facts.monitor.pinned_region.map_or_else(
            || " No region reaches it.".to_owned(),
            |region| format!(" It is checked from {} only.", region.title()),
        ),
        (Some(region), _) => format!(" {} reaches it, so visitors there are fine.", region.title()),
        (None, count) if are_all_known => {
            format!(" The other {} regions reach it, so visitors elsewhere are fine.", spelled_count(count))
        }
        (None, count) => {
            let count = capitalized(&spelled_count(count));
            format!(" {count} other regions reach it, so visitors there are fine.")
        }
    };
    format!("{reason}{witness}.{}", if facts.is_regional() { elsewhere } else { String::new() })
}

/// Vantages that saw the rounds of the outage fail, of those rounds that judged one of the regions.
fn vantages_that_failed(facts: &ExplanationFacts<'_>, regions: RegionSet) -> Vec<VantageNo> {
    let reports = facts.change.map(|change| change.evidence.as_slice()).unwrap_or_default();
    let outcomes =
        reports.iter().filter(|report| !facts.is_regional() || regions.contains(report.region)).flat_map(|report| {
            let second = report.second.as_ref().map(|(vantage, outcome)| (*vantage, outcome));
            std::iter::once((report.first_vantage, &report.first_outcome)).chain(second)
        });
    let failed = outcomes.filter(|(_, outcome)| matches!(outcome, ProbeOutcome::Failed(..)));
    failed.map(|(vantage, _)| vantage).collect()
}

/// Number of networks that these vantages are in.
fn networks_of(facts: &ExplanationFacts<'_>, vantages: &[VantageNo]) -> usize {
    let mut networks: Vec<NetworkKey<'_>> = vantages.iter().map(|vantage| network_of(facts, *vantage)).collect();
    networks.sort_unstable();
    networks.dedup();
    networks.len()
}

/// Network by its label; an agent that is no longer known counts as a network of its own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum NetworkKey<'a> {
    Label(&'a str),
    Agent(VantageNo),
}

fn network_of<'a>(facts: &'a ExplanationFacts<'_>, vantage: VantageNo) -> NetworkKey<'a> {
    facts.agents.get(&vantage).map_or(NetworkKey::Agent(vantage), |label| NetworkKey::Label(&label.network))
}

fn heartbeat_down(facts: &ExplanationFacts<'_>, reason: Option<&Failure>, lasts: &str) -> ExplanationHeadline {
    if let Some(Failure::JobFailed(code)) = reason {
        let code = code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
        let at = facts.view.outage_since.map(|at| format!(" at {}", clock(at, facts.zone, facts.now)));
        let detail = format!("The job reported a failure{code}{}.", at.unwrap_or_default());
        return ExplanationHeadline::new(ExplanationKind::JobFailed, format!("Down{lasts}: the job failed"), detail);
    }
    // A failure that was reported later has set the deadline of the ping after it.
    let deadline = facts.deadline.filter(|at| *at <= facts.now).or(facts.view.outage_since);
    let by = deadline.map(|at| format!(" by {}", clock(at, facts.zone, facts.now))).unwrap_or_default();
    let mut facts_text = Vec::new();
    facts_text.extend(facts.view.last_ping_at.map(|at| format!("last {}", clock(at, facts.zone, facts.now))));
    if let Check::Heartbeat(check) = &facts.monitor.check {
        facts_text.push(period_text(check.period_seconds));
        if check.grace_seconds > 0 {
            facts_text.push(format!("{} grace", short_duration(i64::from(check.grace_seconds) * SECOND)));
        }
    }
    let detail = format!("No ping{by} ({}).", facts_text.join(", "));
    ExplanationHeadline::new(ExplanationKind::PingMissing, format!("Down{lasts}: ping missing"), detail)
}

fn no_data(facts: &ExplanationFacts<'_>) -> ExplanationHeadline {
    let view = facts.view;
    if facts.monitor.check.kind() == CheckKind::Heartbeat {
        let by = facts.deadline.map(|at| format!(" by {}", clock(at, facts.zone, facts.now))).unwrap_or_default();
        let (title, detail) = match view.last_ping_at {
            Some(_) => ("Waiting for the next ping", format!("It goes down unless the next ping arrives{by}.")),
            None => ("Waiting for the first ping", "It is watched from the first ping on.".to_owned()),
        };
        return ExplanationHeadline::new(ExplanationKind::NoPingYet, title, detail);
    }
    if !view.unconfirmed_from.is_empty() {
        return unconfirmed(facts, view.unconfirmed_from);
    }
    let Some(last) = &view.last_check else {
        let detail = "The first check starts within 5 s of an agent's schedule.";
        return ExplanationHeadline::new(ExplanationKind::NotYetChecked, "Not checked yet", detail);
    };
    if view.unjudged {
        let reason = last.error.as_ref().map_or_else(|| "no usable answer".to_owned(), ToString::to_string);
        let detail = format!("its checks can't be judged: {reason}. The fault isn't the target's.");
        return ExplanationHeadline::new(ExplanationKind::Unjudged, "No data", detail).led_by("No data");
    }
    let age = short_duration(facts.now.since(last.at));
    let may_check = |region: Region| facts.monitor.pinned_region.is_none_or(|pinned| pinned == region);
    let is_connected = facts.mesh.vantages().iter().any(|it| it.is_available() && may_check(it.region));
    let why = match (is_connected, facts.monitor.pinned_region) {
        (false, Some(_)) => "no agent in its region is connected.",
        (false, None) => "no agent is connected.",
        (true, _) => "its agents sent no usable result.",
    };
    let before = match (last.ok, view.outage_since) {
        (_, Some(_)) => " It was down.",
        (true, None) => " It was up.",
        (false, None) => " Its last check failed; no outage was confirmed.",
    };
    let detail = format!("No fresh result for {age}: {why}{before}");
    ExplanationHeadline::new(ExplanationKind::NoFreshResult, format!("No fresh result for {age}"), detail)
}

/// Clause with the length of a state; empty if it is not known.
fn lasting(facts: &ExplanationFacts<'_>, since: Option<Timestamp>) -> String {
    since.map(|since| format!(" for {}", long_duration(facts.now.since(since)))).unwrap_or_default()
}

/// The only region of a set.
fn single(regions: RegionSet) -> Option<Region> {
    regions.iter().next().filter(|_| regions.len() == 1)
}
