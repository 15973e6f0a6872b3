//! A stage for one machine: the mesh around it, restarts through its written state, and its outputs.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::event::Answer;
use parallax_core::heartbeat::Beat;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{Machine, Output, State, Step};
use parallax_core::observation::Observation;
use parallax_core::place::{Mesh, Place, Region, RegionSet};
use parallax_core::time::Timestamp;
use parallax_core::watch::{Confirmation, Watch};

/// A machine with the mesh that it is told of.
pub(crate) struct Stage {
    pub(crate) places: Vec<Place>,
    pub(crate) machine: Machine,
    /// Plain passes go the short way, as the driver sends them.
    pub(crate) fast: bool,
    stopped: Option<Timestamp>,
    /// The monitor as it is by now, where it was edited while the coordinator was away.
    edited: Option<Watch>,
}

impl Stage {
    pub(crate) fn new(watch: Watch, places: Vec<Place>, now: Timestamp) -> (Self, Vec<Output>) {
        let mesh = Mesh::new(places.iter().copied());
        let mut out = Vec::new();
        let machine = Machine::new(watch, &mut Step { now, mesh: &mesh, out: &mut out });
        (Self { places, machine, fast: true, stopped: None, edited: None }, out)
    }

    pub(crate) fn mesh(&self) -> Mesh {
        Mesh::new(self.places.iter().copied())
    }

    pub(crate) fn step(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&mut Machine, &mut Step<'_>),
    ) -> Vec<Output> {
        let (mesh, mut out) = (self.mesh(), Vec::new());
        if self.stopped.is_none() {
            act(&mut self.machine, &mut Step { now, mesh: &mesh, out: &mut out });
        }
        out
    }

    pub(crate) fn observe(&mut self, seen: Observation, now: Timestamp) -> Vec<Output> {
        let quarantined = self.places.iter().any(|place| place.no == seen.place && place.quarantined);
        if self.stopped.is_none()
            && self.fast
            && !quarantined
            && let Some(finished) = self.machine.note_steady(&seen, now)
        {
            return vec![Output::Reading(finished)];
        }
        self.step(now, |machine, step| machine.handle_observation(seen, step))
    }

    pub(crate) fn answer(&mut self, number: u32, answer: Answer, now: Timestamp) -> Vec<Output> {
        self.step(now, |machine, step| machine.handle_answer(number, answer, step))
    }

    pub(crate) fn beat(&mut self, beat: Beat, now: Timestamp) -> Vec<Output> {
        self.step(now, |machine, step| {
            machine.handle_beat(beat, None, step);
        })
    }

    pub(crate) fn edit(&mut self, now: Timestamp, change: impl FnOnce(&mut Watch)) -> Vec<Output> {
        let mut watch = self.edited.take().unwrap_or_else(|| self.machine.watch().clone());
        change(&mut watch);
        if self.stopped.is_some() {
            self.edited = Some(watch);
            return Vec::new();
        }
        self.step(now, |machine, step| machine.handle_edit(watch, step))
    }

    pub(crate) fn mesh_changed(&mut self, now: Timestamp) -> Vec<Output> {
        self.step(now, Machine::handle_mesh)
    }

    /// The machine's next deadline, while it runs.
    pub(crate) fn next_timeout(&self) -> Option<Timestamp> {
        self.machine.poll_timeout().filter(|_| self.stopped.is_none())
    }

    /// The coordinator stops: what the machine must remember is what was written.
    pub(crate) fn stop(&mut self, now: Timestamp) {
        self.stopped = Some(now);
    }

    /// The coordinator starts again, as it really does: with the written state, and a mesh that it does not know yet;
    /// then it learns who is enrolled.
    pub(crate) fn start(&mut self, now: Timestamp) -> Vec<Output> {
        let away_since = self.stopped.take().unwrap_or(now);
        let written = postcard::to_allocvec(self.machine.state()).unwrap();
        let state: State = postcard::from_bytes(&written).unwrap();
        assert_eq!(&state, self.machine.state(), "the state reads back as it was written");
        let (empty, mut out) = (Mesh::default(), Vec::new());
        let watch = self.edited.take().unwrap_or_else(|| self.machine.watch().clone());
        self.machine =
            Machine::restore(watch, state, away_since, &mut Step { now, mesh: &empty, out: &mut out });
        out.extend(self.mesh_changed(now));
        out
    }
}

/// A monitor of that type with that interval, and nothing else set.
pub(crate) fn watch(kind: CheckKind, interval_ms: u32) -> Watch {
    Watch {
        monitor: MonitorId::from_u128(7),
        account: AccountId::from_u128(1),
        revision: 1,
        kind,
        interval_ms,
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        beat: None,
        confirmation: Confirmation::OtherNetwork,
        repeat_minutes: None,
        paused: false,
    }
}
