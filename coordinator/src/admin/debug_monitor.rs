//! View of one monitor's state in the engine, for `parallax debug monitor`.

use parallax_core::assign::NextRound;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::machine::{DeadlineKind, RegionInspection, RoundInspection};
use parallax_core::observation::ProbeOutcome;
use parallax_core::text;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_core::verdict::RegionStatus;
use parallax_service::monitors::inspection::{MonitorInspection, RecentRound};
use parallax_service::{ServiceError, Services};
use serde_json::{Value, json};

use super::command::CommandError;

/// Agents listed, at most; those with the next rounds come first.
const MAX_AGENTS: usize = 60;
/// Open rounds and deadlines listed, at most.
const MAX_ENTRIES: usize = 40;
/// Characters of a text from outside, at most.
const MAX_TEXT: usize = 300;

/// Inspects the monitor with that id.
pub(super) async fn inspect(service: &Services, monitor: &str) -> Result<Value, CommandError> {
    let unknown = |rule: &str| {
        CommandError::new(
            "not_found",
            format!(
                "{rule} {monitor:?}; monitor ids start with mon_ and are listed by GET /api/v1/pages/PAGE/monitors \
                 (`parallax page list` shows the pages)"
            ),
        )
    };
    let id = monitor.parse().map_err(|_| unknown("not the id of a monitor:"))?;
    match service.monitors.inspect(id).await {
        Ok(Some(inspection)) => Ok(view(&inspection)),
        Ok(None) => Err(CommandError::new(
            "unavailable",
            format!(
                "the engine did not report the state of {id}: it is being created or deleted, or the engine is busy; \
                 try again in a few seconds"
            ),
        )),
        Err(ServiceError::NotFound) => Err(unknown("no monitor has the id")),
        Err(error) => Err(error.into()),
    }
}

/// Builds the view of an inspection. Its size is bounded.
pub(super) fn view(inspection: &MonitorInspection) -> Value {
    let (machine, view) = (&inspection.machine, &inspection.machine.view);
    let regions: Vec<Value> = machine.regions.iter().map(|region| region_view(inspection, region)).collect();
    let open_rounds: Vec<Value> =
        machine.open_rounds.iter().take(MAX_ENTRIES).map(|round| open_round_view(inspection, round)).collect();
    let deadlines = machine
        .deadlines
        .iter()
        .take(MAX_ENTRIES)
        .map(|due| json!({"at": time(due.at), "kind": due.kind.name(), "region": due.region.map(Region::name)}));
    let agents = inspection.next_rounds.iter().take(MAX_AGENTS).map(|next| agent_view(inspection, next));
    json!({
        "id": inspection.monitor.id.to_string(),
        "name": inspection.monitor.name,
        "type": machine.settings.kind.name(),
        "host": inspection.monitor.check.host(),
        "page": inspection.page.id.to_string(),
        "pageName": inspection.page.name,
        "account": inspection.page.account.to_string(),
        "at": time(machine.at),
        "status": view.status.name(),
        "since": view.since.map(time),
        "downFrom": view.down_from.map(names),
        "outageSince": view.outage_since.map(time),
        "why": machine.reasons.iter().map(|reason| bounded(reason)).collect::<Vec<_>>(),
        "inMaintenance": machine.in_maintenance,
        "confirmable": machine.confirmable,
        "flapping": view.flapping.map(|it| json!({"since": time(it.since), "changes": it.changes})),
        "suspicion": machine.suspicion.map(|it| json!({
            "since": time(it.began), "failing": names(it.failing), "secondRoundsDue": names(it.second_due),
        })),
        "heartbeat": machine.heartbeat.as_ref().map(|it| json!({
            "lastPingAt": it.last_ping.map(time),
            "deadline": it.deadline.map(time),
            "extended": it.extended,
            "pings": it.ping_count,
            "openRuns": it.open_runs.len(),
            "lastRunMs": it.last_run_ms,
        })),
        "regions": regions,
        "openRounds": open_rounds,
        "recentRounds": inspection.rounds.iter().map(|round| round_view(inspection, round)).collect::<Vec<_>>(),
        "deadlines": deadlines.collect::<Vec<_>>(),
        "agents": agents.collect::<Vec<_>>(),
        "moreAgents": inspection.next_rounds.len().saturating_sub(MAX_AGENTS),
        "settings": settings_view(&machine.settings, machine.counted),
    })
}

fn region_view(inspection: &MonitorInspection, region: &RegionInspection) -> Value {
    let is_regional = inspection.machine.settings.kind.is_regional();
    let is_here = |other: Region| !is_regional || other == region.region;
    let stale = inspection
        .machine
        .deadlines
        .iter()
        .find(|due| due.kind == DeadlineKind::Stale && due.region.is_none_or(is_here));
    let next = inspection.next_rounds.iter().find(|next| !next.is_shadow && is_here(next.region));
    let last = inspection.rounds.iter().find(|round| is_here(round.region));
    json!({
        // Types that are not judged by region have one state for all.
        "region": if is_regional { region.region.name() } else { "all" },
        "status": status_name(region.status),
        "counts": region.counts,
        "firstFailureAt": region.first_failure.map(time),
        "downSince": region.down_since.map(time),
        "failure": region.failure.as_ref().map(|failure| bounded(&failure.to_string())),
        "notPassed": region.not_passed.map(|outcome| outcome.name()),
        "disputedSince": region.disputed_since.map(time),
        "newestStartedAt": region.newest_started.map(time),
        "newestArrivedAt": region.newest_arrived.map(time),
        "staleAt": stale.map(|due| time(due.at)),
        "nextCheckAt": next.map(|next| time(next.due)),
        "nextCheckBy": next.map(|next| agent_name(inspection, next.vantage)),
        "lastRound": last.map(|round| round_view(inspection, round)),
    })
}

fn open_round_view(inspection: &MonitorInspection, round: &RoundInspection) -> Value {
    json!({
        "region": round.region.name(),
        "reason": round.reason.name(),
        "number": round.number,
        "startedAt": time(round.started),
        "first": outcome_view(inspection, round.vantage, round.first.as_ref()),
        "second": confirmation_view(inspection, round.second.as_ref()),
        "third": confirmation_view(inspection, round.third.as_ref()),
        "confirmingAgent": round.confirming.map(|(vantage, _)| agent_name(inspection, vantage)),
        "confirmingUntil": round.confirming.map(|(_, until)| time(until)),
        "provisionalFor": round.provisional_for.map(Region::name),
    })
}

fn round_view(inspection: &MonitorInspection, round: &RecentRound) -> Value {
    json!({
        "region": round.region.name(),
        "reason": round.reason.name(),
        "number": round.number,
        "startedAt": time(round.started),
        "outcome": round.outcome.name(),
        "latencyMs": round.latency_ms,
        "first": outcome_view(inspection, round.first_vantage, round.first.as_ref()),
        "second": confirmation_view(inspection, round.second.as_ref()),
        "third": confirmation_view(inspection, round.third.as_ref()),
    })
}

/// Builds the view of another network's outcome in a round, if it was asked.
fn confirmation_view(inspection: &MonitorInspection, outcome: Option<&(VantageNo, ProbeOutcome)>) -> Option<Value> {
    outcome.map(|(vantage, outcome)| outcome_view(inspection, *vantage, Some(outcome)))
}

/// Builds the view of one vantage's outcome. That of a plain pass is not stored, and neither is that of a running
/// check.
fn outcome_view(inspection: &MonitorInspection, vantage: VantageNo, outcome: Option<&ProbeOutcome>) -> Value {
    let (outcome, detail) = match outcome {
        None => (None, None),
        Some(ProbeOutcome::Passed(_)) => (Some("passed"), None),
        Some(ProbeOutcome::Failed(_, failure)) => (Some("failed"), Some(bounded(&failure.to_string()))),
        Some(ProbeOutcome::Inconclusive(reason)) => (Some("inconclusive"), Some(bounded(&reason.to_string()))),
        Some(ProbeOutcome::Pending) => (Some("pending"), None),
    };
    json!({
        "agent": agent_name(inspection, vantage),
        "network": inspection.agents.get(&vantage).map(|agent| &agent.network),
        "outcome": outcome,
        "detail": detail,
    })
}

fn agent_view(inspection: &MonitorInspection, next: &NextRound) -> Value {
    let vantage = inspection.mesh.vantage(next.vantage);
    json!({
        "name": agent_name(inspection, next.vantage),
        "region": next.region.name(),
        "network": inspection.agents.get(&next.vantage).map(|agent| &agent.network),
        "quarantined": vantage.is_some_and(|vantage| vantage.quarantined),
        "unfit": vantage.is_some_and(|vantage| vantage.unfit),
        "nextRound": next.round,
        "nextRoundAt": time(next.due),
        "shadow": next.is_shadow,
    })
}

fn settings_view(settings: &EffectiveSettings, counted: RegionSet) -> Value {
    let thresholds: serde_json::Map<String, Value> =
        settings.slow_thresholds.iter().map(|(region, ms)| (region.name().to_owned(), json!(ms))).collect();
    json!({
        "revision": settings.revision,
        "intervalMs": settings.interval_ms,
        "pinnedRegion": settings.pinned.map(Region::name),
        "uptimeRegions": settings.uptime_regions.map(names),
        "countedRegions": names(counted),
        "latencyRegions": names(settings.latency_regions),
        "slowThresholdMs": settings.slow_threshold_ms,
        "slowThresholds": thresholds,
        "periodMs": settings.heartbeat.map(|(period, _)| period),
        "graceMs": settings.heartbeat.map(|(_, grace)| grace),
        "confirmation": match settings.confirmation {
            ConfirmationPolicy::OtherNetwork => "other-network",
            ConfirmationPolicy::Repeat => "repeat",
        },
        "repeatMinutes": settings.repeat_minutes,
        "staleAfterMs": settings.stale_after(),
        "paused": settings.paused,
    })
}

/// Name of an agent; its number if it was forgotten.
fn agent_name(inspection: &MonitorInspection, vantage: VantageNo) -> String {
    inspection.agents.get(&vantage).map_or_else(|| format!("agent {}", vantage.0), |agent| agent.name.clone())
}

const fn status_name(status: RegionStatus) -> &'static str {
    match status {
        RegionStatus::Unknown => "unknown",
        RegionStatus::Up => "up",
        RegionStatus::Down => "down",
    }
}

fn names(set: RegionSet) -> Vec<&'static str> {
    set.iter().map(Region::name).collect()
}

fn time(at: Timestamp) -> String {
    at.to_string()
}

/// Limits a text that an agent or a vendor sent, and replaces what a terminal would obey: control characters, line
/// ends and changes of direction.
fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT).map(|character| if text::alters_layout(character) { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use parallax_core::event::ProbeReason;
    use parallax_core::key::KeyAccess;
    use parallax_core::machine::{MachineDeadline, MachineStep, MonitorMachine};
    use parallax_core::observation::{Failure, Measurements, RoundOutcome};
    use parallax_core::plan::{Plan, PlanLimits};
    use parallax_core::vantage::Mesh;
    use parallax_service::test_world::{START, world};

    use super::*;

    #[tokio::test]
    async fn a_fault_names_the_id_and_where_ids_are_listed() {
        let world = world().await;
        for unknown in ["shop", "mon_00000000000000000000000000"] {
            let fault = inspect(&world.service, unknown).await.unwrap_err();
            assert_eq!(fault.code, "not_found");
            assert!(fault.message.contains(unknown) && fault.message.contains("/monitors"), "{fault}");
        }
        let caller = world.caller(KeyAccess::Write).await;
        let id = world.make(&caller, "Cart").await.unwrap().monitor.id;
        let fault = inspect(&world.service, &id.to_string()).await.unwrap_err();
        assert_eq!(fault.code, "unavailable", "this driver answers no such query: {fault}");
    }

    #[tokio::test]
    async fn a_view_is_bounded_and_has_no_control_characters() {
        let world = world().await;
        let caller = world.caller(KeyAccess::Write).await;
        let monitor = world.make(&caller, "Cart").await.unwrap().monitor;
        let mesh = Mesh::default();
        let limits = PlanLimits::default();
        let settings = EffectiveSettings::new(&monitor, &world.shop, Plan::Pro, &limits, ConfirmationPolicy::default());
        let mut out = Vec::new();
        let machine = MonitorMachine::new(settings, &mut MachineStep { now: START, mesh: &mesh, out: &mut out });
        let obeyed = "\u{1b}[31m\u{202e}\u{2066}\u{2028}\u{9b}";
        let failed =
            ProbeOutcome::Failed(Measurements::default(), Failure::Other(format!("{obeyed}{}", "x".repeat(9_000))));
        let round = RecentRound {
            region: Region::Asia,
            reason: ProbeReason::Scheduled,
            number: Some(7),
            started: START,
            outcome: RoundOutcome::Disputed,
            latency_ms: None,
            first_vantage: VantageNo(9),
            first: Some(failed.clone()),
            second: Some((VantageNo(8), ProbeOutcome::Passed(Measurements::default()))),
            third: None,
        };
        let mut machine = machine.inspect(&mesh, START);
        let due = MachineDeadline { at: START, kind: DeadlineKind::Stale, region: None };
        machine.deadlines = vec![due; MAX_ENTRIES + 1];
        let open = RoundInspection {
            region: Region::Asia,
            reason: ProbeReason::First,
            number: None,
            started: START,
            vantage: VantageNo(9),
            first: Some(failed),
            second: None,
            third: None,
            confirming: None,
            provisional_for: None,
        };
        machine.open_rounds = vec![open; MAX_ENTRIES + 1];
        machine.reasons.push(obeyed.repeat(100));
        let next =
            NextRound { vantage: VantageNo(9), region: Region::Asia, round: 8, due: START + 60_000, is_shadow: false };
        let view = view(&MonitorInspection {
            monitor,
            page: world.shop.clone(),
            machine,
            mesh,
            next_rounds: vec![next; MAX_AGENTS + 1],
            rounds: vec![round],
            agents: std::collections::BTreeMap::new(),
        });
        let length = |field: &str| view[field].as_array().map(Vec::len);
        assert_eq!((length("agents"), &view["moreAgents"]), (Some(60), &json!(1)));
        assert_eq!((length("deadlines"), length("openRounds")), (Some(40), Some(40)));
        let first = &view["recentRounds"][0]["first"];
        assert_eq!((&first["agent"], &first["outcome"]), (&json!("agent 9"), &json!("failed")));
        let printed = [&first["detail"], &view["openRounds"][39]["first"]["detail"]];
        let why = view["why"].as_array().unwrap();
        for text in printed.into_iter().chain(why.last()) {
            let text = text.as_str().unwrap();
            assert_eq!(text.chars().count(), MAX_TEXT, "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{9b}']), "{text:?}");
        }
        assert_eq!(view["why"][0], "No agent is enrolled where it could be checked.");
        assert_eq!(view["settings"]["paused"], false);
    }
}
