//! Test stage for one machine: its mesh, restarts through its stored state, and its outputs.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::ProbeResponse;
use parallax_core::heartbeat::PingKind;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{MachineOutput, MachineState, MachineStep, MonitorMachine};
use parallax_core::observation::Observation;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, Region, RegionSet, Vantage};

/// A machine and its mesh.
pub(crate) struct MachineStage {
    pub(crate) vantages: Vec<Vantage>,
    pub(crate) machine: MonitorMachine,
    /// Set to use the fast path for plain passes, as the engine does.
    pub(crate) fast: bool,
    stopped: Option<Timestamp>,
    /// Current settings, if they were edited while the coordinator was away.
    edited: Option<EffectiveSettings>,
}

impl MachineStage {
    pub(crate) fn new(
        settings: EffectiveSettings,
        vantages: Vec<Vantage>,
        now: Timestamp,
    ) -> (Self, Vec<MachineOutput>) {
        let mesh = Mesh::new(vantages.iter().copied());
        let mut out = Vec::new();
        let machine = MonitorMachine::new(settings, &mut MachineStep { now, mesh: &mesh, out: &mut out });
        (Self { vantages, machine, fast: true, stopped: None, edited: None }, out)
    }

    pub(crate) fn mesh(&self) -> Mesh {
        Mesh::new(self.vantages.iter().copied())
    }

    pub(crate) fn step(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>),
    ) -> Vec<MachineOutput> {
        let (mesh, mut out) = (self.mesh(), Vec::new());
        if self.stopped.is_none() {
            act(&mut self.machine, &mut MachineStep { now, mesh: &mesh, out: &mut out });
        }
        out
    }

    pub(crate) fn observe(&mut self, seen: Observation, now: Timestamp) -> Vec<MachineOutput> {
        let quarantined = self.vantages.iter().any(|vantage| vantage.no == seen.vantage && vantage.quarantined);
        if self.stopped.is_none()
            && self.fast
            && !quarantined
            && let Some(finished) = self.machine.handle_plain_pass(&seen, now)
        {
            return vec![MachineOutput::Reading(finished)];
        }
        self.step(now, |machine, step| machine.handle_observation(seen, step))
    }

    pub(crate) fn respond(&mut self, number: u32, answer: ProbeResponse, now: Timestamp) -> Vec<MachineOutput> {
        self.step(now, |machine, step| machine.handle_response(number, answer, step))
    }

    pub(crate) fn ping(&mut self, beat: PingKind, now: Timestamp) -> Vec<MachineOutput> {
        self.step(now, |machine, step| {
            machine.handle_ping(beat, None, step);
        })
    }

    pub(crate) fn edit(&mut self, now: Timestamp, change: impl FnOnce(&mut EffectiveSettings)) -> Vec<MachineOutput> {
        let mut settings = self.edited.take().unwrap_or_else(|| self.machine.settings().clone());
        change(&mut settings);
        if self.stopped.is_some() {
            self.edited = Some(settings);
            return Vec::new();
        }
        self.step(now, |machine, step| machine.handle_edit(settings, step))
    }

    pub(crate) fn mesh_changed(&mut self, now: Timestamp) -> Vec<MachineOutput> {
        self.step(now, MonitorMachine::handle_mesh)
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
    pub(crate) fn start(&mut self, now: Timestamp) -> Vec<MachineOutput> {
        let away_since = self.stopped.take().unwrap_or(now);
        let written = postcard::to_allocvec(self.machine.state()).unwrap();
        let state: MachineState = postcard::from_bytes(&written).unwrap();
        assert_eq!(&state, self.machine.state(), "the state survives a round trip");
        let (empty, mut out) = (Mesh::default(), Vec::new());
        let settings = self.edited.take().unwrap_or_else(|| self.machine.settings().clone());
        self.machine =
            MonitorMachine::restore(settings, state, away_since, &mut MachineStep { now, mesh: &empty, out: &mut out });
        out.extend(self.mesh_changed(now));
        out
    }
}

/// Settings of a monitor of that type and interval, with defaults for the rest.
pub(crate) fn effective_settings(kind: CheckKind, interval_ms: u32) -> EffectiveSettings {
    EffectiveSettings {
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
        heartbeat: None,
        confirmation: ConfirmationPolicy::OtherNetwork,
        repeat_minutes: None,
        paused: false,
        acknowledged_outage: None,
    }
}
