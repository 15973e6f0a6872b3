//! External actions on the world, and the judgement at the end of a calm period.

use parallax_core::event::MonitorStatus;
use parallax_core::machine::MonitorMachine;
use parallax_core::observation::Observation;

use super::SimulatedDay;
use crate::plan::{DayAction, DayTargetState, FaultScope};
use crate::world::Next;

impl SimulatedDay {
    pub(super) fn end_process(&mut self) {
        self.process = None;
        self.life += 1;
        for agent in &mut self.agents {
            agent.connection += 1;
        }
    }

    pub(super) fn act(&mut self, act: DayAction) {
        match act {
            DayAction::Mood(name, seen, mood) => self.target_states.push((name, seen, mood)),
            DayAction::Over(name) => self.target_states.retain(|(other, ..)| *other != name),
            DayAction::Connect(index, on) => self.connect(index, on),
            DayAction::Quarantine(index, on) => {
                self.agents[index].vantage.quarantined = on;
                self.mesh_changed();
            }
            DayAction::Revoke(index) => {
                let agent = &mut self.agents[index];
                agent.enrolled = false;
                agent.vantage.connected = false;
                agent.connection += 1;
                agent.plan += 1;
                agent.unsent.clear();
                self.mesh_changed();
            }
            DayAction::Crash => self.end_process(),
            DayAction::Start => {
                if self.process.is_none() {
                    self.begin();
                }
            }
            DayAction::Freeze => {
                let now = self.wall();
                if let Some(process) = &mut self.process {
                    process.frozen = Some(now);
                }
            }
            DayAction::Thaw => {
                let frozen = self.process.as_mut().and_then(|process| process.frozen.take());
                if let Some(since) = frozen {
                    // Edits made meanwhile are read before anything is judged.
                    let (covered, settings) = (self.windows > 0, self.plan.settings.clone());
                    self.step(|machine, step| machine.handle_window(covered, step));
                    self.step(|machine, step| machine.handle_absence(since, step));
                    let edited = self.process.as_ref().is_some_and(|process| *process.machine.settings() != settings);
                    if edited {
                        self.take_edit();
                    }
                    self.assign();
                }
            }
            DayAction::Window(begins) => {
                self.windows = if begins { self.windows + 1 } else { self.windows.saturating_sub(1) };
                let covered = self.windows > 0;
                self.step(|machine, step| machine.handle_window(covered, step));
            }
            DayAction::Threshold(threshold) => self.edit(|settings| settings.slow_threshold_ms = threshold),
            DayAction::Uptime(regions) => self.edit(|settings| settings.uptime_regions = regions),
            DayAction::Retarget => self.edit(|settings| settings.revision += 1),
            DayAction::Interval(interval) => self.edit(|settings| settings.interval_ms = interval),
            DayAction::Pause(paused) => self.edit(|settings| settings.paused = paused),
            DayAction::Skew(skew) => {
                let jump = skew - self.skew;
                self.skew = skew;
                self.step(|machine, step| machine.handle_clock_step(jump, None, step));
                self.assign();
            }
            DayAction::Calm(mood) => {
                self.target_states = vec![(0, FaultScope::Everywhere, mood)];
                self.act(DayAction::Thaw);
                self.act(DayAction::Start);
                for index in 0..self.agents.len() {
                    self.act(DayAction::Quarantine(index, false));
                    self.connect(index, true);
                }
                self.calm = Some((self.now, mood));
            }
            DayAction::Judge(mood) => {
                self.judge(mood);
                self.calm = None;
                self.target_states.clear();
            }
        }
    }

    /// Checks that after half an hour without changes the state is known, and announced unless a window covers it.
    pub(super) fn judge(&mut self, mood: DayTargetState) {
        let Some(process) = &self.process else { panic!("it runs") };
        let (mesh, settings) = (self.mesh(), &self.plan.settings);
        let confirmed = parallax_core::confirmation::can_confirm(settings, &mesh);
        let seen = settings.pinned.is_none_or(|pinned| mesh.enrolled_regions().contains(pinned));
        let wanted = match mood {
            _ if settings.paused || !seen => MonitorStatus::Unknown,
            DayTargetState::Refuses | DayTargetState::Hangs | DayTargetState::OwnFault if !confirmed => {
                return;
            }
            DayTargetState::Refuses | DayTargetState::Hangs | DayTargetState::OwnFault => MonitorStatus::Down,
            DayTargetState::Up(latency) => {
                let slow = settings.slow_threshold_ms.is_some_and(|threshold| latency > threshold);
                if slow && settings.kind.has_latency() { MonitorStatus::Slow } else { MonitorStatus::Up }
            }
        };
        assert_eq!(process.machine.status(), wanted, "the state must be known: {mood:?}");
        let whole = process.machine.view(&mesh, self.wall()).down_from.is_none();
        assert!(whole, "it is down everywhere");
        if self.windows == 0 && wanted != MonitorStatus::Unknown {
            assert_eq!(self.invariants.announced, wanted, "the status must be announced");
        }
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut parallax_core::effective::EffectiveSettings)) {
        change(&mut self.plan.settings);
        self.take_edit();
        self.assign();
    }

    /// Passes the current settings to the machine. What was announced before a pause is over without an alert.
    pub(super) fn take_edit(&mut self) {
        if self.is_up() {
            let settings = self.plan.settings.clone();
            self.commit();
            self.step(|machine, step| machine.handle_edit(settings, step));
            self.forget_while_paused();
        }
    }

    pub(super) fn forget_while_paused(&mut self) {
        if self.process.as_ref().is_some_and(|process| process.machine.settings().paused) {
            self.invariants.announced = MonitorStatus::Up;
        }
    }

    pub(super) fn connect(&mut self, index: usize, on: bool) {
        let agent = &mut self.agents[index];
        if !agent.enrolled || agent.vantage.connected == on || (on && self.process.is_none()) {
            return;
        }
        agent.vantage.connected = on;
        agent.connection += 1;
        let unsent: Vec<(u64, Observation)> =
            agent.unsent.iter().map(|(number, seen)| (*number, seen.clone())).collect();
        self.mesh_changed();
        if on {
            let mut at = self.now;
            for (number, seen) in unsent {
                at += self.chance.within(1, 20);
                self.schedule(at, Next::Result(index, self.agents[index].connection, number, seen));
            }
        }
    }

    pub(super) fn mesh_changed(&mut self) {
        self.step(MonitorMachine::handle_mesh);
        self.assign();
    }
}
