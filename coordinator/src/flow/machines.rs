//! All machines of this shard by slot, with their deadlines and outputs.

mod accounts;
mod harvest;
mod reading;
mod target;

use accounts::Accounts;
pub use harvest::Harvest;
use reading::reading;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::assign::{self, Scheduled};
use parallax_core::check::Check;
use parallax_core::event::{Answer, Event, Status};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::machine::{Machine, Output, State, Step, View};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Observation, Reading};
use parallax_core::place::Mesh;
use parallax_core::time::Timestamp;
use parallax_core::watch::Watch;

use super::{Ping, Question, Schedules, ingest};
use crate::storage::Op;

/// Changed machines per commit from which on due deadlines wait for the next.
const FIRED_AT_ONCE: usize = 8192;

/// A monitor's machine, with the data needed to run it.
#[derive(Debug)]
struct Kept {
    machine: Machine,
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
    kept: Vec<Option<Box<Kept>>>,
    numbers: BTreeMap<MonitorId, u32>,
    timetable: BTreeSet<(Timestamp, u32)>,
    schedules: Schedules,
    /// Accounts whose monitors are in the schedule.
    accounts: Accounts,
    outputs: Vec<Output>,
    /// Number of machines in each status, by the status's index.
    by_status: [u64; 4],
}

impl Machines {
    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the number of machines in each status: unknown, up, slow, down.
    pub fn by_status(&self) -> [u64; 4] {
        self.by_status
    }

    /// Returns the earliest deadline of any machine.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.timetable.first().map(|(at, _)| *at)
    }

    /// Returns a view of the monitor's machine.
    pub fn view(&self, monitor: MonitorId, mesh: &Mesh, now: Timestamp) -> Option<View> {
        let slot = self.numbers.get(&monitor)?;
        Some(self.get(*slot)?.machine.view(mesh, now))
    }

    /// Returns a machine's persistent state, with its monitor.
    pub fn state(&self, slot: u32) -> Option<(MonitorId, &State)> {
        let machine = &self.get(slot)?.machine;
        Some((machine.watch().monitor, machine.state()))
    }

    /// Returns the schedule that agents are to run.
    pub fn schedule(&self) -> &Schedules {
        &self.schedules
    }

    /// Restores a machine from storage.
    pub fn restore(
        &mut self,
        monitor: &Monitor,
        watch: Watch,
        state: State,
        away_since: Timestamp,
        cx: &mut Cx<'_>,
    ) {
        let check = Arc::new(monitor.check.clone());
        let machine = self.step(monitor.slot, monitor.page, &check, cx, |step| {
            Machine::restore(watch, state, away_since, step)
        });
        self.insert(monitor, check, machine, cx);
    }

    /// Replays a finished round from the journal.
    pub fn replay(&mut self, reading: &Reading) {
        if let Some(kept) = self.get_mut(reading.slot) {
            kept.machine.replay(reading);
        }
    }

    /// Adds a monitor or applies an edit. An edit of a page names all of its monitors; most of them are unchanged.
    pub fn put(&mut self, monitor: &Monitor, watch: Watch, cx: &mut Cx<'_>) {
        if let Some(kept) = self.get_mut(monitor.slot) {
            let is_other_check = kept.check.as_ref() != &monitor.check;
            if !is_other_check && kept.machine.watch() == &watch {
                return;
            }
            if is_other_check {
                kept.check = Arc::new(monitor.check.clone());
                kept.host = host_number(&monitor.check);
                kept.spread = assign::spread_of(monitor.id, &monitor.check);
            }
            self.turn(monitor.slot, cx, |machine, step| machine.handle_edit(watch, step));
            self.reschedule(monitor.slot);
            return;
        }
        let check = Arc::new(monitor.check.clone());
        let machine = self.step(monitor.slot, monitor.page, &check, cx, |step| Machine::new(watch, step));
        self.insert(monitor, check, machine, cx);
    }

    /// Sets whether a maintenance window covers the monitor now.
    pub fn cover(&mut self, monitor: MonitorId, covered: bool, cx: &mut Cx<'_>) {
        let Some(slot) = self.numbers.get(&monitor).copied() else { return };
        if self.get(slot).is_some_and(|kept| kept.machine.is_covered() != covered) {
            self.turn(slot, cx, |machine, step| machine.handle_window(covered, step));
        }
    }

    /// Removes a monitor and returns its slot.
    pub fn remove(&mut self, monitor: MonitorId) -> Option<u32> {
        let slot = self.numbers.remove(&monitor)?;
        let kept =
            usize::try_from(slot).ok().and_then(|index| self.kept.get_mut(index)).and_then(Option::take);
        self.recount(kept.as_ref().map(|kept| kept.machine.status()), None);
        self.accounts.recount(self.schedules.get(slot).map(|it| it.account), None);
        self.schedules.remove(slot);
        if let Some(at) = kept.and_then(|kept| kept.timer) {
            self.timetable.remove(&(at, slot));
        }
        Some(slot)
    }

    /// Returns all monitors except these.
    pub fn others(&self, but: &BTreeSet<MonitorId>) -> Vec<MonitorId> {
        self.numbers.keys().filter(|monitor| !but.contains(monitor)).copied().collect()
    }

    /// Handles an observation of a scheduled round.
    pub fn observe(
        &mut self,
        slot: u32,
        observation: Observation,
        cx: &mut Cx<'_>,
    ) -> Result<(), ingest::Dropped> {
        let observation = ingest::admit(observation, cx.now)?;
        let kept = self.get_mut(slot).ok_or(ingest::Dropped::UnknownMonitor)?;
        if let Some(finished) = kept.machine.note_steady(&observation, cx.now) {
            cx.harvest.readings.push(reading(slot, &finished, kept.spread, kept.machine.watch(), cx.mesh));
            if kept.machine.take_changed() {
                cx.harvest.changed.insert(slot);
            }
            return Ok(());
        }
        self.turn(slot, cx, |machine, step| machine.handle_observation(observation, step));
        Ok(())
    }

    /// Compares an observation of a quarantined vantage with the results of the others; see [`View::agrees`].
    pub fn agrees(&self, slot: u32, seen: &Observation, (mesh, now): (&Mesh, Timestamp)) -> Option<bool> {
        self.get(slot)?.machine.view(mesh, now).agrees(seen, mesh)
    }

    /// Handles a response to a probe request.
    pub fn answer(&mut self, slot: u32, number: u32, answer: Answer, cx: &mut Cx<'_>) {
        self.turn(slot, cx, |machine, step| machine.handle_answer(number, answer, step));
    }

    /// Handles a heartbeat's ping. Returns the operation that stores it; `None` if the monitor is not known (yet).
    pub fn beat(&mut self, ping: &mut Ping, cx: &mut Cx<'_>) -> Option<Op> {
        let (monitor, slot) = (ping.listed.monitor, ping.listed.slot);
        self.get(slot).filter(|kept| kept.machine.watch().monitor == monitor)?;
        let mut heard = None;
        self.turn(slot, cx, |machine, step| {
            heard = machine.handle_beat(ping.said.beat, ping.said.run, step);
            heard = heard.map(|heard| machine.note_stated_run(ping.said.beat, ping.said.run_ms, heard));
        });
        let heard = heard?;
        (ping.said.number, ping.said.at, ping.said.run_ms) = (heard.number, cx.now, heard.run_ms);
        Some(Op::PutPing(monitor, Box::new(ping.said.clone())))
    }

    /// Handles a change of the mesh that affects verdicts.
    pub fn mesh_changed(&mut self, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.numbers.values().copied().collect();
        for slot in slots {
            self.turn(slot, cx, Machine::handle_mesh);
        }
    }

    /// Handles a step of the wall clock by `jump` milliseconds: open rounds and deadlines shift along. If the
    /// coordinator was also stalled since `away_since`, that time is excused before any machine judges.
    pub fn clock_stepped(&mut self, jump: i64, away_since: Option<Timestamp>, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.numbers.values().copied().collect();
        for slot in slots {
            self.turn(slot, cx, |machine, step| machine.handle_step(jump, away_since, step));
        }
    }

    /// Handles a stall of the coordinator from `since` until now, as after a restart.
    pub fn was_away(&mut self, since: Timestamp, cx: &mut Cx<'_>) {
        let slots: Vec<u32> = self.numbers.values().copied().collect();
        for slot in slots {
            self.turn(slot, cx, |machine, step| machine.handle_absence(since, step));
        }
    }

    /// Fires passed deadlines, as many as one commit may hold; the others are next.
    pub fn fire(&mut self, cx: &mut Cx<'_>) {
        let due = |first: Option<&(Timestamp, u32)>, now| first.copied().filter(|(at, _)| *at <= now);
        while cx.harvest.changed.len() < FIRED_AT_ONCE
            && let Some((at, slot)) = due(self.timetable.first(), cx.now)
        {
            self.timetable.remove(&(at, slot));
            if let Some(kept) = self.get_mut(slot) {
                kept.timer = None;
                self.turn(slot, cx, Machine::handle_timeout);
            }
        }
    }

    fn turn(&mut self, slot: u32, cx: &mut Cx<'_>, act: impl FnOnce(&mut Machine, &mut Step<'_>)) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let Some(kept) = self.get_mut(slot) else { return };
        let before = kept.machine.status();
        act(&mut kept.machine, &mut Step { now: cx.now, mesh: cx.mesh, out: &mut outputs });
        let after = kept.machine.status();
        drain(&mut outputs, slot, kept.page, &kept.check, kept.machine.watch(), cx);
        self.outputs = outputs;
        if before != after {
            self.recount(Some(before), Some(after));
        }
        self.after(slot, cx);
    }

    /// Counts a machine that left a status, or reached one, or both.
    fn recount(&mut self, left: Option<Status>, reached: Option<Status>) {
        for (status, change) in left.map(|left| (left, -1)).into_iter().chain(reached.map(|it| (it, 1))) {
            if let Some(count) = self.by_status.get_mut(status as usize) {
                *count = count.saturating_add_signed(change);
            }
        }
    }

    fn step(
        &mut self,
        slot: u32,
        page: PageId,
        check: &Arc<Check>,
        cx: &mut Cx<'_>,
        make: impl FnOnce(&mut Step<'_>) -> Machine,
    ) -> Machine {
        let mut outputs = std::mem::take(&mut self.outputs);
        let machine = make(&mut Step { now: cx.now, mesh: cx.mesh, out: &mut outputs });
        drain(&mut outputs, slot, page, check, machine.watch(), cx);
        self.outputs = outputs;
        machine
    }

    fn insert(&mut self, monitor: &Monitor, check: Arc<Check>, machine: Machine, cx: &mut Cx<'_>) {
        let Ok(index) = usize::try_from(monitor.slot) else { return };
        if self.kept.len() <= index {
            self.kept.resize_with(index + 1, || None);
        }
        if let Some(place) = self.kept.get_mut(index) {
            let host = host_number(&monitor.check);
            let spread = assign::spread_of(monitor.id, &monitor.check);
            let status = machine.status();
            *place = Some(Box::new(Kept { machine, page: monitor.page, check, host, spread, timer: None }));
            self.numbers.insert(monitor.id, monitor.slot);
            self.recount(None, Some(status));
            self.reschedule(monitor.slot);
            self.after(monitor.slot, cx);
        }
    }

    fn reschedule(&mut self, slot: u32) {
        let kept = self.get(slot);
        let before = self.schedules.get(slot).map(|it| it.account);
        match kept.and_then(|kept| Scheduled::new(kept.machine.watch(), slot, &kept.check)) {
            Some(scheduled) => self.schedules.put(scheduled),
            None => self.schedules.remove(slot),
        };
        self.accounts.recount(before, self.schedules.get(slot).map(|it| it.account));
    }

    /// Records that the machine changed, and its next deadline. If that moved later, the earlier timetable entry stays
    /// and fires early.
    fn after(&mut self, slot: u32, cx: &mut Cx<'_>) {
        let index = slot as usize;
        let Some(kept) = self.kept.get_mut(index).and_then(Option::as_mut) else { return };
        if kept.machine.take_changed() {
            cx.harvest.changed.insert(slot);
        }
        let wanted = kept.machine.poll_timeout();
        let stands = kept.timer.is_some_and(|noted| wanted.is_some_and(|wanted| noted <= wanted));
        if stands || kept.timer == wanted {
            return;
        }
        if let Some(noted) = std::mem::replace(&mut kept.timer, wanted) {
            self.timetable.remove(&(noted, slot));
        }
        if let Some(wanted) = wanted {
            self.timetable.insert((wanted, slot));
        }
    }

    fn get(&self, slot: u32) -> Option<&Kept> {
        self.kept.get(slot as usize)?.as_deref()
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut Kept> {
        self.kept.get_mut(slot as usize)?.as_deref_mut()
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
    pub harvest: &'a mut Harvest,
}

fn drain(
    outputs: &mut Vec<Output>,
    slot: u32,
    page: PageId,
    check: &Arc<Check>,
    watch: &Watch,
    cx: &mut Cx<'_>,
) {
    for output in outputs.drain(..) {
        match output {
            Output::Ask(ask) => cx.harvest.questions.push(Question {
                slot,
                monitor: watch.monitor,
                account: watch.account,
                revision: watch.revision,
                check: Arc::clone(check),
                ask,
            }),
            Output::Reading(finished) => {
                let spread = assign::spread_of(watch.monitor, check);
                cx.harvest.readings.push(reading(slot, &finished, spread, watch, cx.mesh));
            }
            Output::Happened(what) => {
                let event = Event { at: cx.now, page: Some(page), monitor: Some(watch.monitor), what: *what };
                cx.harvest.events.push(event);
            }
        }
    }
}

fn host_number(check: &Check) -> u64 {
    assign::steady_hash(check.host().as_bytes())
}
