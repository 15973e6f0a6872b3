//! Checks, events and days as the API shows them.

use parallax_core::event::{Change, RoundReport, What};
use parallax_core::observation::{Facts, Outcome, Phases};
use parallax_core::place::{PlaceNo, Region, RegionSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::words;
use crate::service::history::{Check, Day, Places, Recorded, Sighting};

/// A part of the list of checks, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct CheckList {
    pub(super) checks: Vec<CheckDocument>,
    /// What to send as `cursor` for older ones; null where there are none.
    pub(super) next_cursor: Option<String>,
}

/// A part of the list of events, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EventList {
    pub(super) events: Vec<EventDocument>,
    /// What to send as `cursor` for older ones; null where there are none.
    pub(super) next_cursor: Option<String>,
}

/// A finished round. `first`, `second` and `third` are what the journal keeps: of rounds that were no plain pass.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CheckRecord")]
pub(in crate::http) struct CheckDocument {
    /// When it was due, or happened.
    #[schemars(with = "words::Moment")]
    at: String,
    #[schemars(with = "words::Region")]
    region: &'static str,
    /// Number of the round in the schedule.
    round: u64,
    #[schemars(with = "words::RoundResult")]
    result: &'static str,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    place: PlaceDocument,
    first: Option<WordDocument>,
    second: Option<WordDocument>,
    /// A third network, where the others contradict each other: two of three decide.
    third: Option<WordDocument>,
}

/// Who looked; the network is null for a place that is known no more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Place")]
struct PlaceDocument {
    /// Its number.
    number: u16,
    /// Where it stands.
    #[schemars(with = "Option<words::Region>")]
    region: Option<&'static str>,
    /// Its network.
    network: Option<String>,
}

/// What one place saw. `ok` is null where it could not look.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sight")]
struct WordDocument {
    place: PlaceDocument,
    /// Whether it passed.
    ok: Option<bool>,
    /// http: the status received.
    status_code: Option<u16>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// The address that was checked.
    address: Option<String>,
    phases: Option<PhasesDocument>,
    /// Why it did not pass.
    error: Option<String>,
}

/// Where the time went, in microseconds.
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

/// A change of status, or of the regions that see the monitor down, with the rounds that led to it; or a heartbeat that got
/// more time, since the service was away when its ping may have come.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorEvent")]
pub(in crate::http) struct EventDocument {
    /// Event id; a later one is greater.
    id: String,
    /// When it was due, or happened.
    #[schemars(with = "words::Moment")]
    at: String,
    #[schemars(with = "words::EventKind")]
    kind: &'static str,
    /// The status before.
    #[schemars(with = "Option<words::MonitorStatus>")]
    from: Option<&'static str>,
    /// The status after.
    #[schemars(with = "Option<words::MonitorStatus>")]
    to: Option<&'static str>,
    /// Since when the new status holds.
    #[schemars(with = "Option<words::Moment>")]
    since: Option<String>,
    /// When the outage began.
    #[schemars(with = "Option<words::Moment>")]
    down_since: Option<String>,
    /// The regions that it is down from, while others see it up.
    #[schemars(with = "Option<Vec<words::Region>>")]
    down_from: Option<Vec<&'static str>>,
    /// Why it is, or was, down.
    reason: Option<String>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// The threshold that was crossed, in milliseconds.
    threshold_ms: Option<u32>,
    /// Length of what ended, in milliseconds.
    duration_ms: Option<u64>,
    /// The monitor changed to and fro by then: it was at least the third change within 30 minutes.
    flapping: bool,
    /// The rounds that led to it.
    evidence: Vec<RoundDocument>,
    /// deadline-extended: when the service was away. A ping of that time may be lost.
    away: Option<AwayDocument>,
    /// deadline-extended: until when the ping is awaited now.
    #[schemars(with = "Option<words::Moment>")]
    deadline: Option<String>,
    /// deadline-extended: until when it was awaited before.
    #[schemars(with = "Option<words::Moment>")]
    deadline_before: Option<String>,
}

/// A time in which the service was away.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Away")]
struct AwayDocument {
    /// When it was last known to run.
    #[schemars(with = "words::Moment")]
    from: String,
    /// When it was back.
    #[schemars(with = "words::Moment")]
    until: String,
}

/// A round with both places' words.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Round")]
struct RoundDocument {
    #[schemars(with = "words::Region")]
    region: &'static str,
    #[schemars(with = "words::RoundReason")]
    why: &'static str,
    /// Number of the round in the schedule; null for one out of turn.
    round: Option<u64>,
    /// When it began.
    #[schemars(with = "words::Moment")]
    started_at: String,
    #[schemars(with = "words::RoundResult")]
    result: &'static str,
    first: WordDocument,
    second: Option<WordDocument>,
}

/// One day. Of heartbeats and components `uptime` is the share of time not down.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UptimeDay")]
pub(in crate::http) struct DayDocument {
    /// The day in the zone of the page.
    date: String,
    /// Share of rounds that passed, or of time not down, in percent; null where nothing counted or is known.
    uptime: Option<f64>,
    passed: u32,
    failed: u32,
    disputed: u32,
    slow: u32,
    excluded: u32,
    unknown: u32,
}

/// What was seen on request in one region; `seen` is null where nobody could look in time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sighting")]
pub(in crate::http) struct SightingDocument {
    #[schemars(with = "words::Region")]
    region: &'static str,
    /// When the look began.
    #[schemars(with = "Option<words::Moment>")]
    at: Option<String>,
    seen: Option<WordDocument>,
    /// Why nothing was seen.
    error: Option<&'static str>,
}

pub(super) fn check(check: &Check, places: &Places) -> CheckDocument {
    let (reading, report) = (&check.reading, check.report.as_ref());
    CheckDocument {
        at: reading.due.to_string(),
        region: reading.region.name(),
        round: reading.round,
        result: reading.word.name(),
        latency_ms: reading.latency_ms,
        place: place(reading.place, places),
        first: report.map(|report| word(report.first, &report.outcome, places)),
        second: report.and_then(|report| second(report, places)),
        third: report.and_then(|report| report.third.as_deref()).map(|(no, seen)| word(*no, seen, places)),
    }
}

/// The document of an event; none for a kind that is not listed.
pub(super) fn event(recorded: &Recorded, places: &Places) -> Option<EventDocument> {
    let common = EventDocument {
        id: recorded.seq.to_string(),
        at: recorded.event.at.to_string(),
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
    };
    match &recorded.event.what {
        What::Changed(change) => Some(changed(change, common, places)),
        What::ScopeChanged(down_from) => Some(EventDocument { down_from: down_from.map(names), ..common }),
        What::DeadlineExtended(moved) => Some(EventDocument {
            kind: "deadline-extended",
            away: Some(AwayDocument {
                from: moved.away_from.to_string(),
                until: moved.away_until.to_string(),
            }),
            deadline: Some(moved.deadline.to_string()),
            deadline_before: Some(moved.before.to_string()),
            ..common
        }),
        _ => None,
    }
}

fn changed(change: &Change, common: EventDocument, places: &Places) -> EventDocument {
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
        evidence: change.evidence.iter().map(|report| round(report, places)).collect(),
        ..common
    }
}

pub(super) fn day(day: &Day) -> DayDocument {
    let counts = day.counts;
    DayDocument {
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

pub(super) fn sighting(sighting: &Sighting, places: &Places) -> SightingDocument {
    let seen = sighting.seen.as_ref();
    SightingDocument {
        region: sighting.region.name(),
        at: seen.map(|seen| seen.started.to_string()),
        error: match (sighting.place, seen) {
            (None, _) if sighting.unable => Some("no place in this region can run checks of this type"),
            (None, _) => Some("no place in this region is in service"),
            (Some(_), None) => Some("the place gave no answer in time"),
            (Some(_), Some(_)) => None,
        },
        seen: seen.map(|seen| word(seen.place, &seen.outcome, places)),
    }
}

fn round(report: &RoundReport, places: &Places) -> RoundDocument {
    RoundDocument {
        region: report.region.name(),
        why: report.reason.name(),
        round: report.round,
        started_at: report.started.to_string(),
        result: report.word.name(),
        first: word(report.first, &report.outcome, places),
        second: second(report, places),
    }
}

fn second(report: &RoundReport, places: &Places) -> Option<WordDocument> {
    report.second.as_ref().map(|(no, outcome)| word(*no, outcome, places))
}

fn word(no: PlaceNo, outcome: &Outcome, places: &Places) -> WordDocument {
    let (ok, facts, error) = match outcome {
        Outcome::Passed(facts) => (Some(true), Some(facts), None),
        Outcome::Failed(facts, failure) => (Some(false), Some(facts), Some(failure.to_string())),
        Outcome::Inconclusive(fault) => (None, None, Some(fault.to_string())),
        Outcome::Pending => (None, None, None),
    };
    WordDocument {
        place: place(no, places),
        ok,
        status_code: facts.and_then(|facts| facts.status_code),
        latency_ms: facts.and_then(|facts| facts.latency_ms),
        address: facts.and_then(|facts| facts.address).map(|address| address.to_string()),
        phases: facts.and_then(phases),
        error,
    }
}

/// Null where none was measured.
fn phases(facts: &Facts) -> Option<PhasesDocument> {
    let Phases { dns_us, connect_us, tls_us, first_byte_us, transfer_us } = facts.phases;
    (facts.phases != Phases::default()).then_some(PhasesDocument {
        dns_us,
        connect_us,
        tls_us,
        first_byte_us,
        transfer_us,
    })
}

fn place(no: PlaceNo, places: &Places) -> PlaceDocument {
    let agent = places.get(&no);
    PlaceDocument {
        number: no.0,
        region: agent.map(|agent| agent.region.name()),
        network: agent.map(|agent| agent.network.clone()),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}
