//! Restoring machines from storage at start, and following the journal of edits afterwards.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use parallax_core::event::{Edited, What};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::MAX_UNFINISHED;
use parallax_core::machine::State;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::telling::Telling;
use parallax_core::time::Timestamp;
use parallax_core::watch::{Confirmation, Watch};
use parallax_core::window::Window;

use crate::storage::{Read, StoreError};

use super::machines::{Cx, Machines};
use super::shard::Shard;

/// Cursor name under which the driver records that it runs; the cursor is the time in milliseconds.
pub const ALIVE: &str = "driver-alive";
/// Journal entries per read.
const AT_ONCE: usize = 512;
/// Monitors per read at the start. Reading all at once would take as much memory as the machines, and the allocator
/// would keep it.
const MONITORS_AT_ONCE: usize = 64;

/// The operator's settings for verdicts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judging {
    /// Limits of the plans.
    pub limits: PlanLimits,
    /// Confirmation mode for failures.
    pub confirmation: Confirmation,
}

/// State that is read before the monitors at a start.
#[derive(Debug)]
pub struct Start {
    /// Sequence number of the newest event before anything was read.
    pub cursor: u64,
    judging: Judging,
    shard: Shard,
    /// Time at which the coordinator last recorded that it ran.
    alive: Timestamp,
    /// Maintenance windows that have begun and not ended.
    running: BTreeMap<PageId, Vec<Window>>,
}

/// Some monitors, with their stored state.
#[derive(Debug)]
pub struct Stored {
    /// The last monitor that was read.
    pub last: MonitorId,
    alive: Timestamp,
    /// The shard's monitors, each with whether a maintenance window covers it.
    monitors: Vec<(Monitor, Watch, State, bool)>,
}

/// Begins reading the shard's monitors. Blocking: call outside the async runtime.
pub fn begin(store: &dyn Read, judging: Judging, shard: Shard) -> Result<Start, StoreError> {
    let cursor = store.last_event()?;
    let alive = Timestamp::from_millis(i64::try_from(store.cursor(&shard.cursor(ALIVE))?).unwrap_or(0));
    let mut running: BTreeMap<PageId, Vec<Window>> = BTreeMap::new();
    for incident in store.open_incidents()? {
        let window = Window::of(&incident.value).filter(|window| window.running);
        running.entry(incident.value.page).or_default().extend(window);
    }
    Ok(Start { cursor, judging, shard, alive, running })
}

impl Start {
    /// Returns the next monitors after that id; `None` at the end. Blocking: call outside the async runtime.
    pub fn next(&self, store: &dyn Read, after: Option<MonitorId>) -> Result<Option<Stored>, StoreError> {
        let found = store.monitors_after(after, MONITORS_AT_ONCE)?;
        let Some(last) = found.last().map(|monitor| monitor.value.id) else { return Ok(None) };
        let mut owners: BTreeMap<PageId, Option<Owner>> = BTreeMap::new();
        let mut monitors = Vec::new();
        for monitor in found.into_iter().map(|monitor| monitor.value) {
            if !self.shard.holds(monitor.slot) {
                continue;
            }
            let owner = match owners.entry(monitor.page) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(owner(store, monitor.page)?),
            };
            let Some(owner) = owner else { continue };
            let (watch, page) = (owner.watch(&monitor, &self.judging), owner.page.id);
            let state = store.machine(monitor.id)?.unwrap_or_default();
            let windows = self.running.get(&page);
            let covered = windows.is_some_and(|windows| windows.iter().any(|it| it.covers(monitor.id)));
            monitors.push((monitor, watch, state, covered));
        }
        Ok(Some(Stored { last, alive: self.alive, monitors }))
    }
}

impl Stored {
    /// Returns the monitors.
    pub fn monitors(&self) -> impl Iterator<Item = &Monitor> {
        self.monitors.iter().map(|(monitor, ..)| monitor)
    }

    /// Restores the machines.
    pub fn wake(self, machines: &mut Machines, cx: &mut Cx<'_>) {
        for (monitor, watch, mut state, covered) in self.monitors {
            if state == State::default() {
                machines.put(&monitor, watch, cx);
            } else {
                if covered {
                    state.begin_window();
                }
                machines.restore(&monitor, watch, state, self.alive, cx);
            }
            machines.cover(monitor.id, covered, cx);
        }
    }
}

/// Edits in the journal after a cursor, each thing once.
#[derive(Debug, Default)]
pub struct Edits {
    /// Cursor after the last entry read.
    pub cursor: u64,
    /// New and changed monitors, and those whose page or plan changed, in their current state.
    pub put: Vec<(Monitor, Watch)>,
    /// Deleted monitors.
    pub gone: Vec<MonitorId>,
    /// Coverage by maintenance windows: of the monitors in `put`, and of those on pages where a window changed.
    pub covered: BTreeMap<MonitorId, bool>,
    /// True if the journal was trimmed before it was read: `put` has every monitor, and any other is deleted.
    pub whole: bool,
}

/// Reads the shard's edits after `cursor`. Blocking: call outside the async runtime.
pub fn edits(store: &dyn Read, cursor: u64, judging: &Judging, shard: Shard) -> Result<Edits, StoreError> {
    let mut found = Edits { cursor, ..Edits::default() };
    let mut monitors: BTreeSet<MonitorId> = BTreeSet::new();
    let mut pages: BTreeSet<PageId> = BTreeSet::new();
    loop {
        let newest = store.last_event()?;
        let entries = store.events_after(found.cursor, AT_ONCE)?;
        let next = entries.first().map_or(newest.saturating_add(1), |entry| entry.seq);
        if next > found.cursor.saturating_add(1) {
            tracing::warn!("the journal was trimmed before the driver read it; reloading every monitor");
            found.cursor = newest;
            found.whole = true;
            monitors.extend(store.monitors()?.into_iter().map(|monitor| monitor.value.id));
            continue;
        }
        let Some(last) = entries.last() else { break };
        found.cursor = last.seq;
        for entry in &entries {
            match (&entry.event.what, entry.event.monitor, entry.event.page) {
                (What::MonitorEdited(_), Some(monitor), _) => {
                    monitors.insert(monitor);
                }
                (What::Incident(_), _, Some(page)) => {
                    pages.insert(page);
                }
                (What::PageEdited(Edited::Changed), _, Some(page)) => {
                    monitors.extend(store.monitors_of(page)?.into_iter().map(|monitor| monitor.value.id));
                }
                (
                    What::Changed(_)
                    | What::Round(_)
                    | What::MonitorEdited(_)
                    | What::PageEdited(_)
                    | What::AgentJoined(_)
                    | What::AgentRevoked(_)
                    | What::Quarantine(..)
                    | What::ScopeChanged(_)
                    | What::Incident(_)
                    | What::Notice(_)
                    | What::DeadlineExtended(_)
                    | What::Steady(_)
                    | What::Unjudged(_),
                    ..,
                ) => {}
            }
        }
    }
    let mut running: BTreeMap<PageId, Vec<Window>> = BTreeMap::new();
    for id in monitors {
        match watched(store, id, judging)? {
            Some(put) if shard.holds(put.0.slot) => {
                let windows = running.entry(put.0.page);
                let windows = match windows {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(running_on(store, put.0.page)?),
                };
                found.covered.insert(id, windows.iter().any(|window| window.covers(id)));
                found.put.push(put);
            }
            Some(_) => {}
            None => found.gone.push(id),
        }
    }
    for page in pages {
        let windows = running_on(store, page)?;
        for monitor in store.monitors_of(page)?.into_iter().filter(|it| shard.holds(it.value.slot)) {
            let id = monitor.value.id;
            found.covered.insert(id, windows.iter().any(|window| window.covers(id)));
        }
    }
    Ok(found)
}

/// Returns the shard's monitors that a window covers at `now`, even if its start is not recorded yet.
pub fn covered_at(store: &dyn Read, now: Timestamp, shard: Shard) -> Result<Vec<MonitorId>, StoreError> {
    let mut covered = Vec::new();
    for incident in store.open_incidents()? {
        let window = Window::of(&incident.value);
        let Some(window) = window.filter(|window| window.running || window.span.contains(now)) else {
            continue;
        };
        let monitors = store.monitors_of(incident.value.page)?.into_iter().map(|monitor| monitor.value);
        let of_it = monitors.filter(|monitor| shard.holds(monitor.slot) && window.covers(monitor.id));
        covered.extend(of_it.map(|monitor| monitor.id));
    }
    Ok(covered)
}

/// Returns the page's windows that have begun and not ended.
fn running_on(store: &dyn Read, page: PageId) -> Result<Vec<Window>, StoreError> {
    let open = store.incidents_of(page, true, None, MAX_UNFINISHED)?;
    let windows = open.iter().filter_map(|incident| Window::of(&incident.value));
    Ok(windows.filter(|window| window.running).collect())
}

fn watched(
    store: &dyn Read,
    id: MonitorId,
    judging: &Judging,
) -> Result<Option<(Monitor, Watch)>, StoreError> {
    let Some(monitor) = store.monitor(id)? else { return Ok(None) };
    let monitor = monitor.value;
    let Some(owner) = owner(store, monitor.page)? else { return Ok(None) };
    let watch = owner.watch(&monitor, judging);
    Ok(Some((monitor, watch)))
}

/// The page, plan and alert settings that apply to a monitor.
struct Owner {
    page: Page,
    plan: Plan,
    telling: Telling,
}

impl Owner {
    fn watch(&self, monitor: &Monitor, judging: &Judging) -> Watch {
        let watch = Watch::new(monitor, &self.page, self.plan, &judging.limits, judging.confirmation);
        watch.told_by(&self.telling)
    }
}

fn owner(store: &dyn Read, page: PageId) -> Result<Option<Owner>, StoreError> {
    let Some(page) = store.page(page)?.map(|page| page.value) else { return Ok(None) };
    let plan = store.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
    let telling = store.telling(page.id)?.map(|telling| telling.value).unwrap_or_default();
    Ok(Some(Owner { page, plan, telling }))
}
