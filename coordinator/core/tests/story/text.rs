//! Language of stories: parses times, regions, settings and outcomes, and formats outputs.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{EventKind, ProbeReason, StatusChange};
use parallax_core::machine::MachineOutput;
use parallax_core::observation::{CheckPhase, Failure, InconclusiveReason, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::time::{DAY, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, RegionSet, Vantage, VantageNo};

use super::stage;

/// Start of every story: 00:00.
const BEGIN: i64 = 20_000 * DAY;

/// Result of parsing or playing a story, with an error text.
pub(crate) type StoryResult<T> = Result<T, String>;

/// Parses `MM:SS` or `MM:SS.mmm`.
pub(crate) fn time(word: &str) -> StoryResult<Timestamp> {
    let bad = || format!("'{word}' is not a time");
    let (minutes, seconds) = word.split_once(':').ok_or_else(bad)?;
    let minutes: i64 = minutes.parse().map_err(|_| bad())?;
    let seconds: f64 = seconds.parse().map_err(|_| bad())?;
    Ok(Timestamp::from_millis(BEGIN + minutes * MINUTE + (seconds * 1000.0).round() as i64))
}

/// Formats a time in the notation of stories.
pub(crate) fn clock(at: Timestamp) -> String {
    let millis = at.as_millis() - BEGIN;
    let text = format!("{:02}:{:02}.{:03}", millis / MINUTE, millis % MINUTE / SECOND, millis % SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Number of the round that is due at about that time.
pub(crate) fn round(at: Timestamp, interval_ms: u32) -> u64 {
    at.as_millis().unsigned_abs() / u64::from(interval_ms.max(1))
}

/// Parses `60s`, `5m`, `200ms`, `1h` to milliseconds.
pub(crate) fn span(word: &str) -> StoryResult<i64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let count: i64 = digits.parse().map_err(|_| format!("'{word}' is not a duration"))?;
    match &word[digits.len()..] {
        "ms" => Ok(count),
        "s" => Ok(count * SECOND),
        "m" => Ok(count * MINUTE),
        "h" => Ok(count * 60 * MINUTE),
        _ => Err(format!("'{word}' is not a duration")),
    }
}

/// Parses a region.
pub(crate) fn region(word: &str) -> StoryResult<Region> {
    word.parse().map_err(|_| format!("'{word}' is not a region"))
}

/// Parses `asia+europe`.
pub(crate) fn regions(word: &str) -> StoryResult<RegionSet> {
    word.split('+').map(region).collect()
}

fn describe_regions(set: RegionSet) -> String {
    set.iter().map(Region::name).collect::<Vec<_>>().join("+")
}

/// Parses the settings of a monitor line.
pub(crate) fn monitor(words: &[&str]) -> StoryResult<EffectiveSettings> {
    let kind = words.first().copied().unwrap_or_default();
    let kind = CheckKind::ALL
        .into_iter()
        .find(|known| known.name() == kind)
        .ok_or_else(|| format!("'{kind}' is not a monitor type"))?;
    let mut settings = stage::effective_settings(kind, 60_000);
    let mut rest = words.get(1..).unwrap_or_default();
    while let [setting, value, after @ ..] = rest {
        set(&mut settings, setting, value)?;
        rest = after;
    }
    if rest.is_empty() { Ok(settings) } else { Err(format!("'{}' has no value", rest.join(" "))) }
}

/// Sets one setting of a monitor.
pub(crate) fn set(settings: &mut EffectiveSettings, setting: &str, value: &str) -> StoryResult<()> {
    let number = |value: &str| value.parse::<u32>().map_err(|_| format!("'{value}' is not a number"));
    match setting {
        "every" if settings.kind == CheckKind::Heartbeat => {
            settings.interval_ms = 0;
            settings.heartbeat = Some((span(value)?, settings.heartbeat.map_or(0, |(_, grace)| grace)));
        }
        "grace" => {
            settings.heartbeat =
                settings.heartbeat.map(|(period, _)| (period, 0)).zip(Some(span(value)?)).map(|((p, _), g)| (p, g))
        }
        "every" => settings.interval_ms = u32::try_from(span(value)?).unwrap_or(0),
        "threshold" if value == "none" => settings.slow_threshold_ms = None,
        "threshold" => match value.split_once('=') {
            Some((name, value)) => {
                settings.slow_thresholds.insert(region(name)?, number(value)?);
            }
            None => settings.slow_threshold_ms = Some(number(value)?),
        },
        "uptime" => settings.uptime_regions = if value == "all" { None } else { Some(regions(value)?) },
        "latency" => settings.latency_regions = regions(value)?,
        "pinned" => settings.pinned = if value == "nowhere" { None } else { Some(region(value)?) },
        "repeat" if value == "off" => settings.repeat_minutes = None,
        "repeat" => settings.repeat_minutes = u16::try_from(span(value)? / MINUTE).ok(),
        "acknowledged" if value == "none" => settings.acknowledged_outage = None,
        "acknowledged" => settings.acknowledged_outage = Some(time(value)?),
        "confirmation" if value == "repeat" => settings.confirmation = ConfirmationPolicy::Repeat,
        _ => return Err(format!("unknown setting '{setting} {value}'")),
    }
    Ok(())
}

/// Vantages by name.
#[derive(Default)]
pub(crate) struct VantageNames {
    pub(crate) names: Vec<String>,
    networks: BTreeMap<String, NetworkNo>,
}

impl VantageNames {
    /// Parses `fra1 europe A`.
    pub(crate) fn vantage(&mut self, words: &[&str]) -> StoryResult<Vantage> {
        let [name, of, network] = words else { return Err("expected: place NAME REGION NETWORK".to_owned()) };
        self.names.push((*name).to_owned());
        let next = NetworkNo(self.networks.len() as u16 + 1);
        Ok(Vantage {
            no: VantageNo(self.names.len() as u16),
            region: region(of)?,
            network: *self.networks.entry((*network).to_owned()).or_insert(next),
            connected: true,
            quarantined: false,
            unfit: false,
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<VantageNo> {
        let index = self.names.iter().position(|known| known == name)?;
        Some(VantageNo(index as u16 + 1))
    }

    pub(crate) fn network(&self, label: &str) -> Option<NetworkNo> {
        self.networks.get(label).copied()
    }

    pub(crate) fn name(&self, vantage: VantageNo) -> &str {
        self.names.get(usize::from(vantage.0) - 1).map_or("nobody", String::as_str)
    }
}

/// Parses the outcome of a check: `passes 80ms`, `passes degraded`, `passes expiring`, `fails refused`, `cannot
/// look`.
pub(crate) fn outcome(words: &[&str]) -> StoryResult<ProbeOutcome> {
    match words {
        ["passes"] => Ok(ProbeOutcome::Passed(Measurements::default())),
        ["passes", "degraded"] => Ok(ProbeOutcome::Passed(Measurements { degraded: true, ..Measurements::default() })),
        ["passes", "expiring", at] => {
            Ok(ProbeOutcome::Passed(Measurements { expires_at: Some(time(at)?), ..Measurements::default() }))
        }
        ["passes", latency] => {
            let latency_ms = u32::try_from(span(latency)?).ok();
            Ok(ProbeOutcome::Passed(Measurements { latency_ms, ..Measurements::default() }))
        }
        ["fails", reason @ ..] => Ok(ProbeOutcome::Failed(Measurements::default(), failure(reason)?)),
        ["cannot", "look"] => Ok(ProbeOutcome::Inconclusive(InconclusiveReason::NoRoute)),
        // Reported by older agents, without a reason.
        ["cannot", "read", "the", "page"] => Ok(ProbeOutcome::Inconclusive(InconclusiveReason::VendorUnreadable)),
        ["cannot", "judge", reason @ ..] => {
            Ok(ProbeOutcome::Inconclusive(InconclusiveReason::External(reason.join(" "))))
        }
        _ => Err(format!("unknown outcome '{}'", words.join(" "))),
    }
}

fn failure(words: &[&str]) -> StoryResult<Failure> {
    match words {
        ["refused"] => Ok(Failure::Refused),
        ["timeout"] => Ok(Failure::Timeout(CheckPhase::Connect)),
        ["reset"] => Ok(Failure::Reset),
        ["status", code] => Ok(Failure::UnexpectedStatus(code.parse().map_err(|_| "not a status code".to_owned())?)),
        ["expired"] => Ok(Failure::TlsExpired),
        ["expiring", days] => Ok(Failure::DomainExpiring(days.parse().map_err(|_| "not a number of days".to_owned())?)),
        ["vendor", rest @ ..] => Ok(Failure::VendorOutage(rest.join(" "))),
        _ => Err(format!("unknown failure '{}'", words.join(" "))),
    }
}

/// Text of an output: the part that an expectation must give, and optional parts.
pub(crate) struct OutputText {
    pub(crate) kind: OutputKind,
    pub(crate) required: String,
    pub(crate) optional: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Ask,
    Round,
    Change,
}

/// Formats an output. Scheduled rounds that were also emitted as an event are listed once.
pub(crate) fn describe(output: &MachineOutput, cast: &VantageNames) -> Option<OutputText> {
    let text = |kind, must: String| Some(OutputText { kind, required: must, optional: Vec::new() });
    match output {
        MachineOutput::Probe(ask) => {
            let what = match ask.reason {
                ProbeReason::Confirm => "to confirm",
                ProbeReason::Second => "for a second round",
                ProbeReason::Sweep => "to sweep",
                ProbeReason::First => "for a first round",
                ProbeReason::FollowUp => "to follow up",
                ProbeReason::Scheduled | ProbeReason::Manual => "out of turn",
            };
            text(OutputKind::Ask, format!("asks {} {what}", cast.name(ask.vantage)))
        }
        MachineOutput::Reading(finished) => {
            text(OutputKind::Round, format!("round {} {}", finished.region.name(), outcome_name(finished.outcome)))
        }
        MachineOutput::Event(what) => match what.as_ref() {
            EventKind::StatusChanged(change) => Some(describe_change(change)),
            EventKind::ScopeChanged(None) => text(OutputKind::Change, "scope everywhere".to_owned()),
            EventKind::ScopeChanged(Some(from)) => {
                text(OutputKind::Change, format!("scope {}", describe_regions(*from)))
            }
            EventKind::DeadlineExtended(moved) => {
                text(OutputKind::Change, format!("deadline moved to {}", clock(moved.deadline)))
            }
            EventKind::Round(report) => {
                let kind = match report.reason {
                    ProbeReason::Second => "second",
                    ProbeReason::Sweep => "sweep",
                    ProbeReason::First => "first",
                    ProbeReason::FollowUp => "follow-up",
                    ProbeReason::Scheduled | ProbeReason::Confirm | ProbeReason::Manual => return None,
                };
                let (region, word) = (report.region.name(), outcome_name(report.round_outcome));
                text(OutputKind::Round, format!("{kind} round {region} {word}"))
            }
            EventKind::FlappingEnded(steady) => {
                let state = if steady.is_bad { "down" } else { "up" };
                let (last, since) = (clock(steady.last_change), clock(steady.flapping.since));
                let changes = steady.flapping.changes;
                text(OutputKind::Change, format!("steady {state} since {last} after {changes} changes since {since}"))
            }
            EventKind::Unjudged(unjudged) => {
                let since = clock(unjudged.since);
                text(OutputKind::Change, format!("unjudged since {since}: {}", unjudged.reason))
            }
            other => text(OutputKind::Change, format!("{other:?}")),
        },
    }
}

fn describe_change(change: &StatusChange) -> OutputText {
    let mut must = change.to.name().to_uppercase();
    if let Some(alert) = change.alert {
        must.push_str(&format!(" {}", alert.name()));
    }
    must.push_str(&format!(" since {}", clock(change.since)));
    if let Some(from) = change.down_from {
        must.push_str(&format!(" from {}", describe_regions(from)));
    }
    let mut may = vec![format!("was {}", change.from.name())];
    may.extend(change.reason.as_ref().map(|reason| format!("because {reason}")));
    may.extend(change.latency_ms.map(|latency| format!("latency {latency}ms")));
    may.extend(change.threshold_ms.map(|threshold| format!("threshold {threshold}ms")));
    may.extend(change.duration_ms.map(|ms| format!("after {}.{:03}s", ms / 1000, ms % 1000)));
    may.extend(change.down_since.map(|since| format!("down since {}", clock(since))));
    may.push(format!("{} rounds as evidence", change.evidence.len()));
    may.extend(change.flapping.map(|it| format!("flapping {} times since {}", it.changes, clock(it.since))));
    OutputText { kind: OutputKind::Change, required: must, optional: may }
}

const fn outcome_name(word: RoundOutcome) -> &'static str {
    match word {
        RoundOutcome::Passed => "passed",
        RoundOutcome::Failed => "failed",
        RoundOutcome::Disputed => "disputed",
        RoundOutcome::Unconfirmed => "unconfirmed",
        RoundOutcome::Inconclusive => "inconclusive",
    }
}
