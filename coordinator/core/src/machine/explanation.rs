//! Reasons for a machine's status, for operators and developers: a plain English sentence for each fact.

use crate::event::MonitorStatus;
use crate::observation::RoundOutcome;
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet, Vantage};
use crate::verdict::{RegionState, RegionStatus, Verdict, judge};

use super::MonitorMachine;
use super::status::RECONNECT_GRACE;

impl MonitorMachine {
    /// Reasons why the status is as it is, the status itself first.
    pub(super) fn reasons(&self, mesh: &Mesh, now: Timestamp) -> Vec<String> {
        if self.settings.paused {
            return vec!["It is paused: no checks are run.".to_owned()];
        }
        let mut reasons = Vec::new();
        if self.settings.heartbeat.is_some() {
            reasons.push(self.ping_reason());
        } else {
            reasons.push(self.verdict_reason(mesh, now));
            reasons.extend(self.settings.counted_regions(mesh).iter().map(|region| self.region_reason(region)));
            reasons.extend(self.waiting_reasons());
            reasons.extend(self.mesh_reasons(mesh, now));
        }
        reasons.extend(self.outage_reason());
        reasons.extend(self.announcement_reasons());
        reasons
    }

    fn ping_reason(&self) -> String {
        let state = &self.state.heartbeat;
        match (self.state.status, state.last_ping, self.heartbeat_deadline()) {
            (MonitorStatus::Down, Some(last), _) => {
                format!("The last ping arrived at {last}; the next one that reports success ends the outage.")
            }
            (MonitorStatus::Down, None, _) => "It is down until a ping reports success.".to_owned(),
            (_, Some(last), Some(by)) if state.extended => {
                format!("The last ping arrived at {last}; the coordinator was away, so the next is due only by {by}.")
            }
            (_, Some(last), Some(by)) => format!("The last ping arrived at {last}; the next is due by {by}."),
            (_, _, _) => "It is unknown until the first ping arrives.".to_owned(),
        }
    }

    /// Compares the status with the verdict of the counted regions.
    fn verdict_reason(&self, mesh: &Mesh, now: Timestamp) -> String {
        let says = self.summarize_regions(mesh, |_| self.state.outage.as_ref().map(|outage| outage.adjusted_start()));
        let counted = names(says.counted);
        match (judge(&says), self.state.status) {
            _ if says.counted.is_empty() => "No agent is enrolled where it could be checked.".to_owned(),
            (Verdict::Unknown, MonitorStatus::Up | MonitorStatus::Slow | MonitorStatus::Down)
            | (Verdict::Up, MonitorStatus::Unknown | MonitorStatus::Down) => {
                format!("Its regions ({counted}) are judged again once agents have connected.")
            }
            (Verdict::Unknown, MonitorStatus::Unknown) => {
                format!("It is unknown: no region that counts ({counted}) is up or down.")
            }
            (Verdict::Up, MonitorStatus::Slow) => match self.slow_from(mesh, now) {
                Some(slow) => format!("It is slow from {}: the newest readings are above the threshold.", names(slow)),
                None if self.state.degraded_since.is_some() => {
                    "It is slow: the vendor reports degraded performance.".to_owned()
                }
                None => "It is slow: the newest readings are above the threshold.".to_owned(),
            },
            (Verdict::Up, MonitorStatus::Up) => {
                format!("It is up: no region that counts ({counted}) is down, and at least one is up.")
            }
            (Verdict::Down { .. }, MonitorStatus::Down) => match self.state.down_from {
                Some(from) => format!("It is down from {}, while other regions that count see it up.", names(from)),
                None => format!("It is down: no region that counts ({counted}) has seen it up since the outage began."),
            },
            (Verdict::Down { .. }, _) => match self.state.scope_deadline {
                Some(by) => format!("A region is down; the monitor waits for other regions until {by}."),
                None => "A region is down; the monitor is judged in the next step.".to_owned(),
            },
        }
    }

    fn region_reason(&self, region: Region) -> String {
        let name = if self.settings.kind.is_regional() { region.title() } else { "The target" };
        let Some(lane) = self.state.regions.get(region.index()) else { return String::new() };
        let failure = lane.failure().map_or_else(String::new, |failure| format!(" ({failure})"));
        let newest = self.newest_reason(region, lane);
        match (lane.status, lane.down_since(), lane.first_failure()) {
            (RegionStatus::Down, Some(since), _) => {
                format!("{name} is down since {since}: two failed and confirmed rounds in a row{failure}.")
            }
            (RegionStatus::Down, None, _) => format!("{name} is down{failure}."),
            (RegionStatus::Up | RegionStatus::Unknown, _, Some(first)) => format!(
                "{name} had a failed and confirmed round at {}{failure}; a second one in a row makes it down.",
                first.started
            ),
            (RegionStatus::Up, ..) => format!("{name} is up{newest}."),
            (RegionStatus::Unknown, ..) if lane.newest_arrived.is_some() => format!(
                "{name} is unknown: no conclusive round for {} minutes{newest}.",
                self.settings.stale_after() / MINUTE
            ),
            (RegionStatus::Unknown, ..) => format!("{name} is unknown: no conclusive round yet{newest}."),
        }
    }

    /// Clause about a region's newest round.
    fn newest_reason(&self, region: Region, lane: &RegionState) -> String {
        let Some(started) = lane.newest_started else { return String::new() };
        let why = match self.unpassed_outcome(region) {
            None => return format!("; its newest round began at {started}"),
            Some(RoundOutcome::Disputed) => "disputed: another network passed, so it changes nothing",
            Some(RoundOutcome::Unconfirmed) => "unconfirmed: no second network answered, so it changes nothing",
            Some(RoundOutcome::Inconclusive) => "inconclusive: the agent could not judge, so it changes nothing",
            Some(RoundOutcome::Failed) => "failed, but belongs to the outage before",
            Some(RoundOutcome::Passed) => "passed",
        };
        format!("; its newest round that did not pass was {why}")
    }

    fn waiting_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if let Some(suspicion) = &self.state.suspicion {
            let second = match self.second_rounds_at() {
                Some(at) => format!("second rounds begin at {at}"),
                None => "second rounds have been requested".to_owned(),
            };
            let failing =
                if suspicion.failing.is_empty() { "no region now".to_owned() } else { names(suspicion.failing) };
            reasons.push(format!("A suspicion is open since {} ({failing}); {second}.", suspicion.began));
        }
        let waiting = self.state.rounds.iter().filter(|round| round.outcome.is_some()).count();
        match waiting {
            0 => {}
            1 => reasons.push("A finished round waits for another network.".to_owned()),
            more => reasons.push(format!("{more} finished rounds wait for another network.")),
        }
        if self.is_unjudged() {
            reasons.push("The newest round could not be judged, for a reason outside of the agents.".to_owned());
        }
        reasons
    }

    fn mesh_reasons(&self, mesh: &Mesh, now: Timestamp) -> Vec<String> {
        let mut reasons = Vec::new();
        let may_check = |vantage: &&Vantage| self.settings.pinned.is_none_or(|pinned| pinned == vantage.region);
        let eligible = mesh.vantages().iter().filter(may_check);
        let (connected, quarantined) = eligible.fold((0, 0), |(connected, quarantined), vantage| {
            (connected + u32::from(vantage.connected), quarantined + u32::from(vantage.quarantined))
        });
        let none_counts = connected > 0 && !mesh.available().any(|vantage| may_check(&vantage));
        if connected == 0 {
            reasons.push("No agent that may check it is connected, so no check is run.".to_owned());
        } else if none_counts {
            reasons.push("Every connected agent that may check it is in quarantine, so no round counts.".to_owned());
        } else if !crate::confirmation::can_confirm(&self.settings, mesh) {
            reasons.push("No second network can confirm its failures, so no failure can make it down.".to_owned());
        }
        if quarantined > 0 && !none_counts {
            reasons.push(format!("Agents in quarantine, whose rounds don't count: {quarantined}."));
        }
        let unconfirmed = self.unconfirmed_from(mesh, now);
        if !unconfirmed.is_empty() {
            reasons.push(format!("Failures from {} are unconfirmed for want of a second network.", names(unconfirmed)));
        }
        if let Some(since) = self.disputed_since(mesh, now) {
            reasons.push(format!("Networks contradict each other since {since}; a disputed round changes nothing."));
        }
        if now.since(self.taken_over_at) < RECONNECT_GRACE {
            reasons.push("The coordinator has just started: missing agents are assumed to be reconnecting.".to_owned());
        }
        reasons
    }

    fn outage_reason(&self) -> Option<String> {
        let outage = self.state.outage.as_ref()?;
        let ends = if self.state.status == MonitorStatus::Unknown { "; an unknown status does not end it" } else { "" };
        Some(format!("An outage is open since {}: {}{ends}.", outage.since, outage.reason))
    }

    fn announcement_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.is_covered() {
            reasons.push("A maintenance window covers it: alerts wait for its end.".to_owned());
        }
        if let Some(flapping) = self.flapping() {
            reasons.push(format!(
                "It is flapping: {} announced changes since {}; single changes are not alerted.",
                flapping.changes, flapping.since
            ));
        }
        reasons
    }
}

/// Names of regions for running text.
fn names(set: RegionSet) -> String {
    set.iter().map(Region::title).collect::<Vec<_>>().join(", ")
}
