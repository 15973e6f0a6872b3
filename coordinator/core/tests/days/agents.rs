//! Agents: the checks they run and the results they send, whether or not the coordinator is available.

use std::sync::Arc;

use parallax_core::assign::{self, ScheduledMonitor};
use parallax_core::check::{CertificateCheck, Check, CheckKind, ComponentCheck, DomainCheck, TcpCheck};
use parallax_core::event::ProbeResponse;
use parallax_core::machine::MachineOutput;
use parallax_core::observation::{CheckPhase, Failure, InconclusiveReason, Measurements, Observation, ProbeOutcome};
use parallax_core::time::{SECOND, Timestamp};

use super::{Agent, Next, SimulatedDay};
use crate::plan::{DayTargetState, FaultScope};

impl SimulatedDay {
    /// Sends their shares to the agents that can be reached.
    pub(super) fn assign(&mut self) {
        if !self.is_up() {
            return;
        }
        let mesh = self.mesh();
        let settings = &self.plan.settings;
        let host = "example.com".to_owned();
        let check = match settings.kind {
            CheckKind::Domain => Check::Domain(DomainCheck { host, warn_days: 30 }),
            CheckKind::Certificate => Check::Certificate(CertificateCheck { host, port: 443, warn_days: 14 }),
            CheckKind::Component => Check::Component(ComponentCheck { url: host, component: None }),
            _ => Check::Tcp(TcpCheck { host, port: 443 }),
        };
        let scheduled = ScheduledMonitor::new(settings, 1, &Arc::new(check));
        for index in 0..self.agents.len() {
            let agent = &mut self.agents[index];
            if !agent.vantage.connected {
                continue;
            }
            agent.share = scheduled.as_ref().and_then(|scheduled| assign::share(scheduled, &mesh, agent.vantage.no));
            agent.revision = self.plan.settings.revision;
            agent.plan += 1;
            self.schedule_next_round(index);
        }
    }

    /// Schedules the agent's next round after now.
    pub(super) fn schedule_next_round(&mut self, index: usize) {
        let agent = &self.agents[index];
        let Some(share) = agent.share else { return };
        let (interval, every) = (i64::from(share.interval_ms), i64::from(share.every));
        let wall = self.now + self.skew;
        let mut round = (wall - i64::from(share.offset_ms)).div_euclid(interval) + 1;
        while round.rem_euclid(every) != i64::from(share.from) {
            round += 1;
        }
        let at = round * interval + i64::from(share.offset_ms) - self.skew;
        let plan = agent.plan;
        self.schedule(at, Next::Due(index, plan, round.unsigned_abs()));
    }

    pub(super) fn due(&mut self, index: usize, plan: u64, round: u64) {
        if self.agents[index].plan != plan || !self.agents[index].enrolled {
            return;
        }
        self.schedule_next_round(index);
        for seen in self.check(index, Some(round)) {
            let number = self.count;
            let agent = &mut self.agents[index];
            if seen.outcome != ProbeOutcome::Pending {
                agent.unsent.insert(number, seen.clone());
            }
            let (connection, at) = (agent.connection, seen.ended.as_millis());
            let hop = self.chance.span(10, 600);
            if !self.chance.one_in(self.plan.lost) || seen.outcome != ProbeOutcome::Pending {
                self.schedule(at + hop, Next::Result(index, connection, number, seen));
            }
        }
    }

    /// Results of a vantage that runs the check now, in real time.
    pub(super) fn check(&self, index: usize, round: Option<u64>) -> Vec<Observation> {
        let Agent { vantage, revision, .. } = &self.agents[index];
        let started = Timestamp::from_millis(self.now);
        let seen = |outcome, after| Observation {
            revision: *revision,
            region: vantage.region,
            vantage: vantage.no,
            network: vantage.network,
            round,
            started,
            ended: started + after,
            outcome,
        };
        let sees = |seen: &FaultScope| match seen {
            FaultScope::Everywhere => true,
            FaultScope::Region(region) => vantage.region == *region,
            FaultScope::Network(network) => vantage.network == *network,
            FaultScope::Vantage(no) => vantage.no == *no,
        };
        let mood =
            self.target_states.iter().rev().find(|(_, who, _)| sees(who)).map_or(DayTargetState::Up(80), |it| it.2);
        match mood {
            DayTargetState::Up(latency) => {
                let facts = Measurements { latency_ms: Some(latency), ..Measurements::default() };
                vec![seen(ProbeOutcome::Passed(facts), i64::from(latency))]
            }
            DayTargetState::Refuses => {
                vec![seen(ProbeOutcome::Failed(Measurements::default(), Failure::Refused), 40)]
            }
            DayTargetState::Hangs => {
                let timeout = Failure::Timeout(CheckPhase::Connect);
                vec![
                    seen(ProbeOutcome::Pending, 3 * SECOND),
                    seen(ProbeOutcome::Failed(Measurements::default(), timeout), 10 * SECOND),
                ]
            }
            DayTargetState::OwnFault => {
                vec![seen(ProbeOutcome::Inconclusive(InconclusiveReason::NoRoute), 5)]
            }
        }
    }

    pub(super) fn result(&mut self, index: usize, connection: u64, number: u64, seen: Observation) {
        if self.agents[index].connection != connection || self.process.is_none() {
            return;
        }
        if !self.agents[index].vantage.connected {
            return;
        }
        if !self.is_up() {
            self.schedule(self.now + SECOND, Next::Result(index, connection, number, seen));
            return;
        }
        let finished = seen.outcome != ProbeOutcome::Pending;
        let quarantined = self.agents[index].vantage.quarantined;
        let pinned = self.plan.settings.pinned;
        let left_out = quarantined || self.plan.settings.paused || pinned.is_some_and(|it| it != seen.region);
        if let (true, Some(round)) = (left_out, seen.round) {
            self.excused.insert((self.invariants.lane(seen.region), round));
        }
        let here = self.in_coordinator_time(seen);
        let now = self.wall();
        let Some(process) = &mut self.process else { return };
        if finished {
            process.unacknowledged.push((index, number));
        }
        match process.machine.handle_plain_pass(&here, now).filter(|_| !quarantined) {
            Some(finished) => self.handle_outputs(vec![MachineOutput::Reading(finished)]),
            None => self.step(|machine, step| machine.handle_observation(here, step)),
        }
    }

    pub(super) fn question(&mut self, index: usize, connection: u64, life: u64, number: u32) {
        if self.agents[index].connection != connection || self.chance.one_in(self.plan.lost) {
            return;
        }
        for seen in self.check(index, None) {
            let at = seen.ended.as_millis() + self.chance.span(10, 600);
            self.schedule(at, Next::Answer(life, number, ProbeResponse::Observed(seen)));
        }
    }
}
