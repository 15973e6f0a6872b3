//! External actions on the world, and the judgement at the end of a calm period.

use parallax_core::event::Status;
use parallax_core::machine::Machine;
use parallax_core::observation::Observation;

use super::World;
use crate::plan::{Act, Mood, Seen};
use crate::world::Next;

impl World {
    pub(super) fn end_process(&mut self) {
        self.process = None;
        self.life += 1;
        for agent in &mut self.agents {
            agent.connection += 1;
        }
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Mood(name, seen, mood) => self.moods.push((name, seen, mood)),
            Act::Over(name) => self.moods.retain(|(other, ..)| *other != name),
            Act::Connect(index, on) => self.connect(index, on),
            Act::Quarantine(index, on) => {
                self.agents[index].place.quarantined = on;
                self.mesh_changed();
            }
            Act::Revoke(index) => {
                let agent = &mut self.agents[index];
                agent.enrolled = false;
                agent.place.connected = false;
                agent.connection += 1;
                agent.plan += 1;
                agent.unsent.clear();
                self.mesh_changed();
            }
            Act::Crash => self.end_process(),
            Act::Start => {
                if self.process.is_none() {
                    self.begin();
                }
            }
            Act::Freeze => {
                let now = self.wall();
                if let Some(process) = &mut self.process {
                    process.frozen = Some(now);
                }
            }
            Act::Thaw => {
                let frozen = self.process.as_mut().and_then(|process| process.frozen.take());
                if let Some(since) = frozen {
                    // Edits made meanwhile are read before anything is judged.
                    let (covered, watch) = (self.windows > 0, self.plan.watch.clone());
                    self.step(|machine, step| machine.handle_window(covered, step));
                    self.step(|machine, step| machine.handle_absence(since, step));
                    let edited =
                        self.process.as_ref().is_some_and(|process| *process.machine.watch() != watch);
                    if edited {
                        self.take_edit();
                    }
                    self.assign();
                }
            }
            Act::Window(begins) => {
                self.windows = if begins { self.windows + 1 } else { self.windows.saturating_sub(1) };
                let covered = self.windows > 0;
                self.step(|machine, step| machine.handle_window(covered, step));
            }
            Act::Threshold(threshold) => self.edit(|watch| watch.slow_threshold_ms = threshold),
            Act::Uptime(regions) => self.edit(|watch| watch.uptime_regions = regions),
            Act::Retarget => self.edit(|watch| watch.revision += 1),
            Act::Interval(interval) => self.edit(|watch| watch.interval_ms = interval),
            Act::Pause(paused) => self.edit(|watch| watch.paused = paused),
            Act::Skew(skew) => {
                let jump = skew - self.skew;
                self.skew = skew;
                self.step(|machine, step| machine.handle_step(jump, None, step));
                self.assign();
            }
            Act::Calm(mood) => {
                self.moods = vec![(0, Seen::Everywhere, mood)];
                self.act(Act::Thaw);
                self.act(Act::Start);
                for index in 0..self.agents.len() {
                    self.act(Act::Quarantine(index, false));
                    self.connect(index, true);
                }
                self.calm = Some((self.now, mood));
            }
            Act::Judge(mood) => {
                self.judge(mood);
                self.calm = None;
                self.moods.clear();
            }
        }
    }

    /// Checks that after half an hour without changes the state is known, and announced unless a window covers it.
    pub(super) fn judge(&mut self, mood: Mood) {
        let Some(process) = &self.process else { panic!("it runs") };
        let (mesh, watch) = (self.mesh(), &self.plan.watch);
        let confirmed = parallax_core::confirm::can_confirm(watch, &mesh);
        let seen = watch.pinned.is_none_or(|pinned| mesh.enrolled_regions().contains(pinned));
        let wanted = match mood {
            _ if watch.paused || !seen => Status::Unknown,
            Mood::Refuses | Mood::Hangs | Mood::Blind if !confirmed => return,
            Mood::Refuses | Mood::Hangs | Mood::Blind => Status::Down,
            Mood::Well(latency) => {
                let slow = watch.slow_threshold_ms.is_some_and(|threshold| latency > threshold);
                if slow && watch.kind.has_latency() { Status::Slow } else { Status::Up }
            }
        };
        assert_eq!(process.machine.status(), wanted, "the state must be known: {mood:?}");
        let whole = process.machine.view(&mesh, self.wall()).down_from.is_none();
        assert!(whole, "it is down everywhere");
        if self.windows == 0 && wanted != Status::Unknown {
            assert_eq!(self.held.told, wanted, "the status must be announced");
        }
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut parallax_core::watch::Watch)) {
        change(&mut self.plan.watch);
        self.take_edit();
        self.assign();
    }

    /// Passes the current settings to the machine. What was announced before a pause is over without an alert.
    pub(super) fn take_edit(&mut self) {
        if self.is_up() {
            let watch = self.plan.watch.clone();
            self.commit();
            self.step(|machine, step| machine.handle_edit(watch, step));
            self.forget_while_paused();
        }
    }

    pub(super) fn forget_while_paused(&mut self) {
        if self.process.as_ref().is_some_and(|process| process.machine.watch().paused) {
            self.held.told = Status::Up;
        }
    }

    pub(super) fn connect(&mut self, index: usize, on: bool) {
        let agent = &mut self.agents[index];
        if !agent.enrolled || agent.place.connected == on || (on && self.process.is_none()) {
            return;
        }
        agent.place.connected = on;
        agent.connection += 1;
        let unsent: Vec<(u64, Observation)> =
            agent.unsent.iter().map(|(number, seen)| (*number, seen.clone())).collect();
        self.mesh_changed();
        if on {
            let mut at = self.now;
            for (number, seen) in unsent {
                at += self.chance.within(1, 20);
                self.put(at, Next::Result(index, self.agents[index].connection, number, seen));
            }
        }
    }

    pub(super) fn mesh_changed(&mut self) {
        self.step(Machine::handle_mesh);
        self.assign();
    }
}
