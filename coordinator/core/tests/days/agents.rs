//! Agents: the checks they run and the results they send, whether or not the coordinator is available.

use std::sync::Arc;

use parallax_core::assign::{self, Scheduled};
use parallax_core::check::{CertificateCheck, Check, CheckKind, ComponentCheck, DomainCheck, TcpCheck};
use parallax_core::event::Answer;
use parallax_core::machine::Output;
use parallax_core::observation::{Facts, Failure, Observation, Outcome, OwnFault, Phase};
use parallax_core::time::{SECOND, Timestamp};

use super::{Agent, Next, World};
use crate::plan::{Mood, Seen};

impl World {
    /// Sends their shares to the agents that can be reached.
    pub(super) fn assign(&mut self) {
        if !self.is_up() {
            return;
        }
        let mesh = self.mesh();
        let watch = &self.plan.watch;
        let host = "example.com".to_owned();
        let check = match watch.kind {
            CheckKind::Domain => Check::Domain(DomainCheck { host, warn_days: 30 }),
            CheckKind::Certificate => Check::Certificate(CertificateCheck { host, port: 443, warn_days: 14 }),
            CheckKind::Component => Check::Component(ComponentCheck { url: host, component: None }),
            _ => Check::Tcp(TcpCheck { host, port: 443 }),
        };
        let scheduled = Scheduled::new(watch, 1, &Arc::new(check));
        for index in 0..self.agents.len() {
            let agent = &mut self.agents[index];
            if !agent.place.connected {
                continue;
            }
            agent.share =
                scheduled.as_ref().and_then(|scheduled| assign::share(scheduled, &mesh, agent.place.no));
            agent.revision = self.plan.watch.revision;
            agent.plan += 1;
            self.line_up(index);
        }
    }

    /// Schedules the agent's next round after now.
    pub(super) fn line_up(&mut self, index: usize) {
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
        self.put(at, Next::Due(index, plan, round.unsigned_abs()));
    }

    pub(super) fn due(&mut self, index: usize, plan: u64, round: u64) {
        if self.agents[index].plan != plan || !self.agents[index].enrolled {
            return;
        }
        self.line_up(index);
        for seen in self.check(index, Some(round)) {
            let number = self.count;
            let agent = &mut self.agents[index];
            if seen.outcome != Outcome::Pending {
                agent.unsent.insert(number, seen.clone());
            }
            let (connection, at) = (agent.connection, seen.ended.as_millis());
            let hop = self.chance.span(10, 600);
            if !self.chance.one_in(self.plan.lost) || seen.outcome != Outcome::Pending {
                self.put(at + hop, Next::Result(index, connection, number, seen));
            }
        }
    }

    /// Results of a vantage that runs the check now, in real time.
    pub(super) fn check(&self, index: usize, round: Option<u64>) -> Vec<Observation> {
        let Agent { place, revision, .. } = &self.agents[index];
        let started = Timestamp::from_millis(self.now);
        let seen = |outcome, after| Observation {
            revision: *revision,
            region: place.region,
            place: place.no,
            network: place.network,
            round,
            started,
            ended: started + after,
            outcome,
        };
        let sees = |seen: &Seen| match seen {
            Seen::Everywhere => true,
            Seen::Region(region) => place.region == *region,
            Seen::Network(network) => place.network == *network,
            Seen::Place(no) => place.no == *no,
        };
        let mood = self.moods.iter().rev().find(|(_, who, _)| sees(who)).map_or(Mood::Well(80), |it| it.2);
        match mood {
            Mood::Well(latency) => {
                let facts = Facts { latency_ms: Some(latency), ..Facts::default() };
                vec![seen(Outcome::Passed(facts), i64::from(latency))]
            }
            Mood::Refuses => vec![seen(Outcome::Failed(Facts::default(), Failure::Refused), 40)],
            Mood::Hangs => {
                let timeout = Failure::Timeout(Phase::Connect);
                vec![
                    seen(Outcome::Pending, 3 * SECOND),
                    seen(Outcome::Failed(Facts::default(), timeout), 10 * SECOND),
                ]
            }
            Mood::Blind => vec![seen(Outcome::Inconclusive(OwnFault::NoRoute), 5)],
        }
    }

    pub(super) fn result(&mut self, index: usize, connection: u64, number: u64, seen: Observation) {
        if self.agents[index].connection != connection || self.process.is_none() {
            return;
        }
        if !self.agents[index].place.connected {
            return;
        }
        if !self.is_up() {
            self.put(self.now + SECOND, Next::Result(index, connection, number, seen));
            return;
        }
        let finished = seen.outcome != Outcome::Pending;
        let quarantined = self.agents[index].place.quarantined;
        let pinned = self.plan.watch.pinned;
        let left_out = quarantined || self.plan.watch.paused || pinned.is_some_and(|it| it != seen.region);
        if let (true, Some(round)) = (left_out, seen.round) {
            self.excused.insert((self.held.lane(seen.region), round));
        }
        let here = self.as_here(seen);
        let now = self.wall();
        let Some(process) = &mut self.process else { return };
        if finished {
            process.heard.push((index, number));
        }
        match process.machine.note_steady(&here, now).filter(|_| !quarantined) {
            Some(finished) => self.bring(vec![Output::Reading(finished)]),
            None => self.step(|machine, step| machine.handle_observation(here, step)),
        }
    }

    pub(super) fn question(&mut self, index: usize, connection: u64, life: u64, number: u32) {
        if self.agents[index].connection != connection || self.chance.one_in(self.plan.lost) {
            return;
        }
        for seen in self.check(index, None) {
            let at = seen.ended.as_millis() + self.chance.span(10, 600);
            self.put(at, Next::Answer(life, number, Answer::Seen(seen)));
        }
    }
}
