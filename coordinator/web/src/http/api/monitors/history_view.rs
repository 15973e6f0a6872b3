//! Checks, events and daily uptime as the API returns them.

use parallax_core::event::{EventKind, RoundReport, StatusChange};
use parallax_core::observation::{Measurements, PhaseDurations, ProbeOutcome};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_service::monitors::history::{AgentsByNumber, CheckNowResult, CheckRecord, JournalEvent, MonitorDay};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::value_schemas;

/// A page of a list of checks, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct CheckList {
    pub(super) checks: Vec<CheckDocument>,
    /// Value of `cursor` for the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// A page of a list of events, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EventList {
    pub(super) events: Vec<EventDocument>,
    /// Value of `cursor` for the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// A finished round. `first`, `second` and `third` are kept only for rounds that did not simply pass.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CheckRecord")]
pub(in crate::http) struct CheckDocument {
    /// Time it was due or happened.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    #[schemars(with = "value_schemas::Region")]
    region: &'static str,
    /// Round number in the schedule.
    round: u64,
    #[schemars(with = "value_schemas::RoundResult")]
    result: &'static str,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    place: VantageDocument,
    first: Option<OutcomeDocument>,
    second: Option<OutcomeDocument>,
    /// Outcome from a third network if the first two contradict each other: two of three decide.
    third: Option<OutcomeDocument>,
}

/// The agent that ran the check; the network is null if the agent is no longer known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Place")]
struct VantageDocument {
    /// Agent number.
    number: u16,
    /// Region of the agent.
    #[schemars(with = "Option<value_schemas::Region>")]
    region: Option<&'static str>,
    /// Network of the agent.
    network: Option<String>,
}

/// The outcome of one agent. `ok` is null if it could not check.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sight")]
struct OutcomeDocument {
    place: VantageDocument,
    /// True if the check passed.
    ok: Option<bool>,
    /// http: status received.
    status_code: Option<u16>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// IP address that was checked.
    address: Option<String>,
    phases: Option<PhasesDocument>,
    /// Reason it did not pass.
    error: Option<String>,
}

/// Duration of each phase, in microseconds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Phases")]
struct PhasesDocument {
    dns_us: Option<u32>,
    connect_us: Option<u32>,
    tls_us: Option<u32>,
    first_byte_us: Option<u32>,
    transfer_us: Option<u32>,
}

/// A change of status, or of the regions the monitor is down from, with the rounds that led to it; a heartbeat
/// deadline that was extended because the service was not running when the ping may have arrived; or an acknowledgement
/// of an outage, or its withdrawal.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorEvent")]
pub(in crate::http) struct EventDocument {
    /// Event id; later events have greater ids.
    id: String,
    /// Monitor id.
    monitor_id: String,
    /// Time it was due or happened.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    #[schemars(with = "value_schemas::EventKind")]
    kind: &'static str,
    /// Status before.
    #[schemars(with = "Option<value_schemas::MonitorStatus>")]
    from: Option<&'static str>,
    /// Status after.
    #[schemars(with = "Option<value_schemas::MonitorStatus>")]
    to: Option<&'static str>,
    /// Start of the new status.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    since: Option<String>,
    /// Start of the outage.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    down_since: Option<String>,
    /// Regions the monitor is down from, while others see it up.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    down_from: Option<Vec<&'static str>>,
    /// Reason of the outage.
    reason: Option<String>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// Threshold that was crossed, in milliseconds.
    threshold_ms: Option<u32>,
    /// Duration of what ended, in milliseconds.
    duration_ms: Option<u64>,
    /// True if the monitor was flapping: at least the third change within 30 minutes.
    flapping: bool,
    /// Rounds that led to it.
    evidence: Vec<RoundDocument>,
    /// deadline-extended: time the service was not running. Pings sent then may be lost.
    away: Option<AbsenceDocument>,
    /// deadline-extended: new deadline for the ping.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    deadline: Option<String>,
    /// deadline-extended: previous deadline.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    deadline_before: Option<String>,
    /// acknowledged, acknowledgement-withdrawn: name of the person or API key.
    by: Option<String>,
    /// acknowledged: note of one line.
    note: Option<String>,
}

/// A time in which the service was not running.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Away")]
struct AbsenceDocument {
    /// Last time it was known to run.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    from: String,
    /// Time it was back.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    until: String,
}

/// A round with the outcomes of its agents.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Round")]
struct RoundDocument {
    #[schemars(with = "value_schemas::Region")]
    region: &'static str,
    #[schemars(with = "value_schemas::RoundReason")]
    why: &'static str,
    /// Round number in the schedule; null for an unscheduled round.
    round: Option<u64>,
    /// Start of the round.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    started_at: String,
    #[schemars(with = "value_schemas::RoundResult")]
    result: &'static str,
    first: OutcomeDocument,
    second: Option<OutcomeDocument>,
}

/// A day. For heartbeat and component monitors, `uptime` is the share of time not down.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UptimeDay")]
pub(in crate::http) struct UptimeDayDocument {
    /// Day in the page's time zone.
    date: String,
    /// Share of rounds that passed, or of time not down, in percent; null if nothing counted or is known.
    uptime: Option<f64>,
    passed: u32,
    failed: u32,
    disputed: u32,
    slow: u32,
    excluded: u32,
    unknown: u32,
}

/// Result of a check on demand in one region; `seen` is null if no agent could check in time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sighting")]
pub(in crate::http) struct CheckNowDocument {
    #[schemars(with = "value_schemas::Region")]
    region: &'static str,
    /// Start of the check.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    at: Option<String>,
    seen: Option<OutcomeDocument>,
    /// Reason there is no result.
    error: Option<&'static str>,
}

pub(super) fn check(check: &CheckRecord, agents: &AgentsByNumber) -> CheckDocument {
    let (reading, report) = (&check.reading, check.report.as_ref());
    CheckDocument {
        at: reading.due.to_string(),
        region: reading.region.name(),
        round: reading.round,
        result: reading.outcome.name(),
        latency_ms: reading.latency_ms,
        place: vantage_document(reading.vantage, agents),
        first: report.map(|report| outcome_document(report.first_vantage, &report.first_outcome, agents)),
        second: report.and_then(|report| second_outcome(report, agents)),
        third: report.and_then(|report| report.third.as_deref()).map(|(no, seen)| outcome_document(*no, seen, agents)),
    }
}

/// Builds the document of an event; none for a kind that is not listed.
pub(super) fn event(entry: &JournalEvent, agents: &AgentsByNumber) -> Option<EventDocument> {
    let common = EventDocument {
        id: entry.seq.to_string(),
        monitor_id: entry.event.monitor?.to_string(),
        at: entry.event.at.to_string(),
        kind: "regions-changed",
        from: None,
        to: None,
        since: None,
        down_since: None,
        down_from: None,
        reason: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        flapping: false,
        evidence: Vec::new(),
        away: None,
        deadline: None,
        deadline_before: None,
        by: None,
        note: None,
    };
    match &entry.event.kind {
        EventKind::StatusChanged(change) => Some(status_changed(change, common, agents)),
        EventKind::ScopeChanged(down_from) => Some(EventDocument { down_from: down_from.map(names), ..common }),
        EventKind::DeadlineExtended(moved) => Some(EventDocument {
            kind: "deadline-extended",
            away: Some(AbsenceDocument { from: moved.away_from.to_string(), until: moved.away_until.to_string() }),
            deadline: Some(moved.deadline.to_string()),
            deadline_before: Some(moved.before.to_string()),
            ..common
        }),
        EventKind::OutageAcknowledged(acknowledgement) => Some(EventDocument {
            kind: "acknowledged",
            down_since: Some(acknowledgement.outage.to_string()),
            by: Some(acknowledgement.by.to_string()),
            note: acknowledgement.note.clone(),
            ..common
        }),
        EventKind::AcknowledgementWithdrawn(withdrawal) => Some(EventDocument {
            kind: "acknowledgement-withdrawn",
            down_since: Some(withdrawal.outage.to_string()),
            by: Some(withdrawal.by.to_string()),
            ..common
        }),
        _ => None,
    }
}

fn status_changed(change: &StatusChange, common: EventDocument, agents: &AgentsByNumber) -> EventDocument {
    EventDocument {
        kind: "status-changed",
        from: Some(change.from.name()),
        to: Some(change.to.name()),
        since: Some(change.since.to_string()),
        down_since: change.down_since.map(|at| at.to_string()),
        down_from: change.down_from.map(names),
        reason: change.reason.as_ref().map(ToString::to_string),
        latency_ms: change.latency_ms,
        threshold_ms: change.threshold_ms,
        duration_ms: change.duration_ms,
        flapping: change.flapping.is_some(),
        evidence: change.evidence.iter().map(|report| round(report, agents)).collect(),
        ..common
    }
}

pub(super) fn day(day: &MonitorDay) -> UptimeDayDocument {
    let counts = day.counts;
    UptimeDayDocument {
        date: day.date.to_string(),
        uptime: day.uptime,
        passed: counts.passed,
        failed: counts.failed,
        disputed: counts.disputed,
        slow: counts.slow,
        excluded: counts.excluded,
        unknown: counts.unknown,
    }
}

pub(super) fn check_now_result(result: &CheckNowResult, agents: &AgentsByNumber) -> CheckNowDocument {
    let observation = result.observation.as_ref();
    CheckNowDocument {
        region: result.region.name(),
        at: observation.map(|observation| observation.started.to_string()),
        error: match (result.vantage, observation) {
            (None, _) if result.unsupported => Some("no agent in this region can run checks of this type"),
            (None, _) => Some("no agent in this region is in service"),
            (Some(_), None) => Some("the agent did not answer in time"),
            (Some(_), Some(_)) => None,
        },
        seen: observation.map(|observation| outcome_document(observation.vantage, &observation.outcome, agents)),
    }
}

fn round(report: &RoundReport, agents: &AgentsByNumber) -> RoundDocument {
    RoundDocument {
        region: report.region.name(),
        why: report.reason.name(),
        round: report.round,
        started_at: report.started.to_string(),
        result: report.round_outcome.name(),
        first: outcome_document(report.first_vantage, &report.first_outcome, agents),
        second: second_outcome(report, agents),
    }
}

fn second_outcome(report: &RoundReport, agents: &AgentsByNumber) -> Option<OutcomeDocument> {
    report.second.as_ref().map(|(no, outcome)| outcome_document(*no, outcome, agents))
}

fn outcome_document(no: VantageNo, outcome: &ProbeOutcome, agents: &AgentsByNumber) -> OutcomeDocument {
    let (ok, measurements, error) = match outcome {
        ProbeOutcome::Passed(measurements) => (Some(true), Some(measurements), None),
        ProbeOutcome::Failed(measurements, failure) => (Some(false), Some(measurements), Some(failure.to_string())),
        ProbeOutcome::Inconclusive(fault) => (None, None, Some(fault.to_string())),
        ProbeOutcome::Pending => (None, None, None),
    };
    OutcomeDocument {
        place: vantage_document(no, agents),
        ok,
        status_code: measurements.and_then(|measurements| measurements.status_code),
        latency_ms: measurements.and_then(|measurements| measurements.latency_ms),
        address: measurements.and_then(|measurements| measurements.address).map(|address| address.to_string()),
        phases: measurements.and_then(phases),
        error,
    }
}

/// Returns none if no phase was measured.
fn phases(measurements: &Measurements) -> Option<PhasesDocument> {
    let PhaseDurations { dns_us, connect_us, tls_us, first_byte_us, transfer_us } = measurements.phases;
    (measurements.phases != PhaseDurations::default()).then_some(PhasesDocument {
        dns_us,
        connect_us,
        tls_us,
        first_byte_us,
        transfer_us,
    })
}

fn vantage_document(no: VantageNo, agents: &AgentsByNumber) -> VantageDocument {
    let agent = agents.get(&no);
    VantageDocument {
        number: no.0,
        region: agent.map(|agent| agent.region.name()),
        network: agent.map(|agent| agent.network.clone()),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}
