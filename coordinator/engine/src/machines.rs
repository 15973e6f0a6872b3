//! All machines of this shard by slot, with their deadlines and outputs.

mod accounts;
mod check_now;
mod pending_commit;
mod reading;
pub(crate) use pending_commit::PendingCommit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::assign::{self, ScheduledMonitor};
use parallax_core::check::Check;
use parallax_core::effective::EffectiveSettings;
use parallax_core::event::{Event, MonitorStatus, ProbeResponse};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::machine::{MachineOutput, MachineState, MachineStep, MachineView, MonitorMachine};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Observation, Reading};
use parallax_core::time::Timestamp;
use parallax_core::vantage::Mesh;
use parallax_store::Op;

use super::{IncomingPing, MachineCopy, MonitorSchedule, ProbeDispatch, ingest};
use accounts::ScheduledAccounts;
use reading::reading;

/// Changed machines per commit from which on due deadlines wait for the next.
const MAX_CHANGED_PER_COMMIT: usize = 8192;

/// A monitor's machine, with the data needed to run it.
#[derive(Debug)]
struct MachineEntry {
    machine: MonitorMachine,
    page: PageId,
    check: Arc<Check>,
    /// Hash of the checked host.
    host: u64,
    /// Hash that decides when the check is due.
    spread: u64,
    /// The deadline entered in the timetable; never later than the machine's own.
    timer: Option<Timestamp>,
}

/// Machines by slot. Memory is one pointer for every slot ever assigned.
#[derive(Debug, Default)]
pub struct Machines {
    entries: Vec<Option<Box<MachineEntry>>>,
    slots: BTreeMap<MonitorId, u32>,
    timetable: BTreeSet<(Timestamp, u32)>,
    schedule: MonitorSchedule,
    /// Accounts whose monitors are in the schedule.
    accounts: ScheduledAccounts,
    outputs: Vec<MachineOutput>,
    /// Number of machines in each status, by the status's index.
    by_status: [u64; 4],
}

impl Machines {
    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of machines in each status: unknown, up, slow, down.
    pub(crate) fn by_status(&self) -> [u64; 4] {
        self.by_status
    }

    /// Returns the earliest deadline of any machine.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.timetable.first().map(|(at, _)| *at)
    }

    /// Returns a view of the monitor's machine.
    pub fn view(&self, monitor: MonitorId, mesh: &Mesh, now: Timestamp) -> Option<MachineView> {
        let slot = self.slots.get(&monitor)?;
        Some(self.get(*slot)?.machine.view(mesh, now))
    }

    /// Returns a copy of the monitor's machine, with what its rules depend on.
    pub fn copy(&self, monitor: MonitorId, mesh: &Mesh, now: Timestamp) -> Option<MachineCopy> {
        let slot = *self.slots.get(&monitor)?;
        let machine = self.get(slot)?.machine.clone();
        Some(MachineCopy { at: now, machine, mesh: mesh.clone(), scheduled: self.schedule.get(slot).cloned() })
    }

    /// Returns a machine's persistent state, with its monitor.
    pub fn state(&self, slot: u32) -> Option<(MonitorId, &MachineState)> {
        let machine = &self.get(slot)?.machine;
        Some((machine.settings().monitor, machine.state()))
    }

    /// Returns the schedule that agents are to run.
    pub fn schedule(&self) -> &MonitorSchedule {
        &self.schedule
    }

    /// Restores a machine from storage.
    pub fn restore(
        &mut self,
        monitor: &Monitor,
        settings: EffectiveSettings,
        state: MachineState,
        away_since: Timestamp,
        cx: &mut Cx<'_>,
    ) {
        let check = Arc::new(monitor.check.clone());
        let machine = self.create(monitor.slot, monitor.page, &check, cx, |step| {
            MonitorMachine::restore(settings, state, away_since, step)
        });
        self.insert(monitor, check, machine, cx);
    }

    /// Replays a finished round from the journal.
    pub fn replay(&mut self, reading: &Reading) {
        if let Some(entry) = self.get_mut(reading.slot) {
            entry.machine.replay(reading);
        }
    }

    /// Adds a monitor or applies an edit. An edit of a page names all of its monitors; most of them are unchanged.
    pub fn upsert(&mut self, monitor: &Monitor, settings: EffectiveSettings, cx: &mut Cx<'_>) {
        if let Some(entry) = self.get_mut(monitor.slot) {
            let is_other_check = entry.check.as_ref() != &monitor.check;
            if !is_other_check && entry.machine.settings() == &settings {
                return;
            }
            if is_other_check {
                entry.check = Arc::new(monitor.check.clone());
                entry.host = host_hash(&monitor.check);
                entry.spread = assign::phase_hash(monitor.id, &monitor.check);
            }
            self.advance(monitor.slot, cx, |machine, step| machine.handle_edit(settings, step));
            self.reschedule(monitor.slot);
            return;
        }
        let check = Arc::new(monitor.check.clone());
        let machine = self.create(monitor.slot, monitor.page, &check, cx, |step| MonitorMachine::new(settings, step));
        self.insert(monitor, check, machine, cx);
    }

    /// Sets whether a maintenance window covers the monitor now.
    pub(crate) fn set_covered(&mut self, monitor: MonitorId, covered: bool, cx: &mut Cx<'_>) {
        let Some(slot) = self.slots.get(&monitor).copied() else { return };
        if self.get(slot).is_some_and(|entry| entry.machine.is_covered() != covered) {
            self.advance(slot, cx, |machine, step| machine.handle_window(covered, step));
        }
    }

    /// Removes a monitor and returns its slot.
    pub fn remove(&mut self, monitor: MonitorId) -> Option<u32> {
        let slot = self.slots.remove(&monitor)?;
        let entry = usize::try_from(slot).ok().and_then(|index| self.entries.get_mut(index)).and_then(Option::take);
        self.recount(entry.as_ref().map(|entry| entry.machine.status()), None);
        self.accounts.recount(self.schedule.get(slot).map(|it| it.account), None);
        self.schedule.remove(slot);
        if let Some(at) = entry.and_then(|entry| entry.timer) {
            self.timetable.remove(&(at, slot));
        }
        Some(slot)
    }

    /// Returns all monitors except these.
    pub fn except(&self, excluded: &BTreeSet<MonitorId>) -> Vec<MonitorId> {
        self.slots.keys().filter(|monitor| !excluded.contains(monitor)).copied().collect()
    }

    /// Handles an observation of a scheduled round.
    pub fn observe(&mut self, slot: u32, observation: Observation, cx: &mut Cx<'_>) -> Result<(), ingest::DropReason> {
        let observation = ingest::admit(observation, cx.now)?;
        let entry = self.get_mut(slot).ok_or(ingest::DropReason::UnknownMonitor)?;
        if let Some(finished) = entry.machine.handle_plain_pass(&observation, cx.now) {
            cx.pending.readings.push(reading(slot, &finished, entry.spread, entry.machine.settings(), cx.mesh));
            if entry.machine.take_changed() {
                cx.pending.changed.insert(slot);
            }
            return Ok(());
        }
        self.advance(slot, cx, |machine, step| machine.handle_observation(observation, step));
        Ok(())
    }

    /// Compares an observation of a quarantined vantage with the results of the others; see [`MachineView::agrees`].
    pub fn agrees(&self, slot: u32, observation: &Observation, (mesh, now): (&Mesh, Timestamp)) -> Option<bool> {
        self.get(slot)?.machine.view(mesh, now).agrees(observation, mesh)
    }

    /// Handles a response to a probe request.
    pub(crate) fn probe_response(&mut self, slot: u32, number: u32, response: ProbeResponse, cx: &mut Cx<'_>) {
        self.advance(slot, cx, |machine, step| machine.handle_response(number, response, step));
    }

    /// Handles a heartbeat's ping. Returns the operation that stores it; `None` if the monitor is not known (yet).
    pub fn ping(&mut self, ping: &mut IncomingPing, cx: &mut Cx<'_>) -> Option<Op> {
        let (monitor, slot) = (ping.heartbeat.monitor, ping.heartbeat.slot);
        self.get(slot).filter(|entry| entry.machine.settings().monitor == monitor)?;
        let mut recorded = None;
        self.advance(slot, cx, |machine, step| {
            recorded = machine.handle_ping(ping.ping.kind, ping.ping.run, step);
            recorded =
                recorded.map(|recorded| machine.apply_reported_duration(ping.ping.kind, ping.ping.run_ms, recorded));
        });
        let recorded = recorded?;
        (ping.ping.number, ping.ping.at, ping.ping.run_ms) = (recorded.number, cx.now, recorded.run_ms);
        Some(Op::PutPing(monitor, Box::new(ping.ping.clone())))
    }

    /// Handles a change of the mesh that affects verdicts.
    pub(crate) fn handle_mesh_change(&mut self, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.slots.values().copied().collect();
        for slot in slots {
            self.advance(slot, cx, MonitorMachine::handle_mesh);
        }
    }

    /// Handles a step of the wall clock by `jump` milliseconds: open rounds and deadlines shift along. If the
    /// coordinator was also stalled since `away_since`, that time is excused before any machine judges.
    pub fn handle_clock_step(&mut self, jump: i64, away_since: Option<Timestamp>, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.slots.values().copied().collect();
        for slot in slots {
            self.advance(slot, cx, |machine, step| machine.handle_clock_step(jump, away_since, step));
        }
    }

    /// Handles a stall of the coordinator from `since` until now, as after a restart.
    pub(crate) fn handle_stall(&mut self, since: Timestamp, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.slots.values().copied().collect();
        for slot in slots {
            self.advance(slot, cx, |machine, step| machine.handle_absence(since, step));
        }
    }

    /// Fires passed deadlines, up to the limit of changed machines per commit; the rest fire after that commit.
    pub(crate) fn fire_deadlines(&mut self, cx: &mut Cx<'_>) {
        let due = |first: Option<&(Timestamp, u32)>, now| first.copied().filter(|(at, _)| *at <= now);
        while cx.pending.changed.len() < MAX_CHANGED_PER_COMMIT
            && let Some((at, slot)) = due(self.timetable.first(), cx.now)
        {
            self.timetable.remove(&(at, slot));
            if let Some(entry) = self.get_mut(slot) {
                entry.timer = None;
                self.advance(slot, cx, MonitorMachine::handle_timeout);
            }
        }
    }

    fn advance(
        &mut self,
        slot: u32,
        cx: &mut Cx<'_>,
        transition: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>),
    ) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let Some(entry) = self.get_mut(slot) else { return };
        let previous_status = entry.machine.status();
        transition(&mut entry.machine, &mut MachineStep { now: cx.now, mesh: cx.mesh, out: &mut outputs });
        let new_status = entry.machine.status();
        collect_outputs(&mut outputs, slot, entry.page, &entry.check, entry.machine.settings(), cx);
        self.outputs = outputs;
        if previous_status != new_status {
            self.recount(Some(previous_status), Some(new_status));
        }
        self.update_deadline(slot, cx);
    }

    /// Counts a machine that left a status, or reached one, or both.
    fn recount(&mut self, from: Option<MonitorStatus>, to: Option<MonitorStatus>) {
        for (status, change) in from.map(|from| (from, -1)).into_iter().chain(to.map(|it| (it, 1))) {
            if let Some(count) = self.by_status.get_mut(status as usize) {
                *count = count.saturating_add_signed(change);
            }
        }
    }

    fn create(
        &mut self,
        slot: u32,
        page: PageId,
        check: &Arc<Check>,
        cx: &mut Cx<'_>,
        create_machine: impl FnOnce(&mut MachineStep<'_>) -> MonitorMachine,
    ) -> MonitorMachine {
        let mut outputs = std::mem::take(&mut self.outputs);
        let machine = create_machine(&mut MachineStep { now: cx.now, mesh: cx.mesh, out: &mut outputs });
        collect_outputs(&mut outputs, slot, page, check, machine.settings(), cx);
        self.outputs = outputs;
        machine
    }

    fn insert(&mut self, monitor: &Monitor, check: Arc<Check>, machine: MonitorMachine, cx: &mut Cx<'_>) {
        let Ok(index) = usize::try_from(monitor.slot) else { return };
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(index) {
            let host = host_hash(&monitor.check);
            let spread = assign::phase_hash(monitor.id, &monitor.check);
            let status = machine.status();
            *entry = Some(Box::new(MachineEntry { machine, page: monitor.page, check, host, spread, timer: None }));
            self.slots.insert(monitor.id, monitor.slot);
            self.recount(None, Some(status));
            self.reschedule(monitor.slot);
            self.update_deadline(monitor.slot, cx);
        }
    }

    fn reschedule(&mut self, slot: u32) {
        let entry = self.get(slot);
        let previous_account = self.schedule.get(slot).map(|it| it.account);
        match entry.and_then(|entry| ScheduledMonitor::new(entry.machine.settings(), slot, &entry.check)) {
            Some(scheduled) => self.schedule.put(scheduled),
            None => self.schedule.remove(slot),
        };
        self.accounts.recount(previous_account, self.schedule.get(slot).map(|it| it.account));
    }

    /// Records that the machine changed, and its next deadline. If that moved later, the earlier timetable entry stays
    /// and fires early.
    fn update_deadline(&mut self, slot: u32, cx: &mut Cx<'_>) {
        let index = slot as usize;
        let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut) else { return };
        if entry.machine.take_changed() {
            cx.pending.changed.insert(slot);
        }
        let deadline = entry.machine.poll_timeout();
        let fires_in_time = entry.timer.is_some_and(|timer| deadline.is_some_and(|deadline| timer <= deadline));
        if fires_in_time || entry.timer == deadline {
            return;
        }
        if let Some(timer) = std::mem::replace(&mut entry.timer, deadline) {
            self.timetable.remove(&(timer, slot));
        }
        if let Some(deadline) = deadline {
            self.timetable.insert((deadline, slot));
        }
    }

    fn get(&self, slot: u32) -> Option<&MachineEntry> {
        self.entries.get(slot as usize)?.as_deref()
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut MachineEntry> {
        self.entries.get_mut(slot as usize)?.as_deref_mut()
    }
}

/// Context of a machine transition: the time, the mesh, and the collected outputs.
#[derive(Debug)]
pub struct Cx<'a> {
    /// Current time.
    pub now: Timestamp,
    /// The mesh, with quarantine applied.
    pub mesh: &'a Mesh,
    /// Outputs to commit and to send.
    pub pending: &'a mut PendingCommit,
}

fn collect_outputs(
    outputs: &mut Vec<MachineOutput>,
    slot: u32,
    page: PageId,
    check: &Arc<Check>,
    settings: &EffectiveSettings,
    cx: &mut Cx<'_>,
) {
    for output in outputs.drain(..) {
        match output {
            MachineOutput::Probe(request) => cx.pending.probes.push(ProbeDispatch {
                slot,
                monitor: settings.monitor,
                account: settings.account,
                revision: settings.revision,
                check: Arc::clone(check),
                request,
            }),
            MachineOutput::Reading(finished) => {
                let spread = assign::phase_hash(settings.monitor, check);
                cx.pending.readings.push(reading(slot, &finished, spread, settings, cx.mesh));
            }
            MachineOutput::Event(kind) => {
                let event = Event { at: cx.now, page: Some(page), monitor: Some(settings.monitor), kind: *kind };
                cx.pending.events.push(event);
            }
        }
    }
}

fn host_hash(check: &Check) -> u64 {
    assign::stable_hash(check.host().as_bytes())
}
