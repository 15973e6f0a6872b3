//! Test stage for one machine: its mesh, restarts through its stored state, and its outputs.

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

/// A machine and its mesh.
pub(crate) struct Stage {
    pub(crate) places: Vec<Place>,
    pub(crate) machine: Machine,
    /// Set to use the fast path for plain passes, as the engine does.
    pub(crate) fast: bool,
    stopped: Option<Timestamp>,
    /// Current settings, if they were edited while the coordinator was away.
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

    /// Next deadline of the machine, while it runs.
    pub(crate) fn next_timeout(&self) -> Option<Timestamp> {
        self.machine.poll_timeout().filter(|_| self.stopped.is_none())
    }

    /// Stops the coordinator: only the stored state survives.
    pub(crate) fn stop(&mut self, now: Timestamp) {
        self.stopped = Some(now);
    }

    /// Starts the coordinator as in production: with the stored state and an empty mesh first, then with the enrolled
    /// vantages.
    pub(crate) fn start(&mut self, now: Timestamp) -> Vec<Output> {
        let away_since = self.stopped.take().unwrap_or(now);
        let written = postcard::to_allocvec(self.machine.state()).unwrap();
        let state: State = postcard::from_bytes(&written).unwrap();
        assert_eq!(&state, self.machine.state(), "the state survives a round trip");
        let (empty, mut out) = (Mesh::default(), Vec::new());
        let watch = self.edited.take().unwrap_or_else(|| self.machine.watch().clone());
        self.machine =
            Machine::restore(watch, state, away_since, &mut Step { now, mesh: &empty, out: &mut out });
        out.extend(self.mesh_changed(now));
        out
    }
}

/// Settings of a monitor of that type and interval, with defaults for the rest.
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
