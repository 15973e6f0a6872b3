//! Machines back from storage at start; then the journal of edits, followed as it grows.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use parallax_core::account::Account;
use parallax_core::event::{Edited, What};
use parallax_core::id::{AccountId, MonitorId, PageId};
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

/// Reader name under which the driver notes that it runs: the cursor is the moment, in milliseconds.
pub const ALIVE: &str = "driver-alive";
/// Journal entries read at once.
const AT_ONCE: usize = 512;

/// How monitors are judged, as the operator has set it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judging {
    /// Numbers of the plans.
    pub limits: PlanLimits,
    /// How failures are confirmed.
    pub confirmation: Confirmation,
}

/// Everything that storage knows of the monitors, read at start.
#[derive(Debug)]
pub struct Stored {
    /// Sequence number of the newest event before anything was read.
    pub cursor: u64,
    /// When the coordinator last noted that it ran.
    pub alive: Timestamp,
    monitors: Vec<(Monitor, Watch, State)>,
    /// Monitors that a maintenance window covers.
    covered: BTreeSet<MonitorId>,
}

/// Reads every monitor of the shard with its state. Call off the runtime: the lists may be long.
pub fn read(store: &dyn Read, judging: &Judging, shard: Shard) -> Result<Stored, StoreError> {
    let cursor = store.last_event()?;
    let alive = Timestamp::from_millis(i64::try_from(store.cursor(&shard.cursor(ALIVE))?).unwrap_or(0));
    let accounts: BTreeMap<AccountId, Account> =
        store.accounts()?.into_iter().map(|account| (account.value.id, account.value)).collect();
    let pages: BTreeMap<PageId, Page> =
        store.pages()?.into_iter().map(|page| (page.value.id, page.value)).collect();
    // Both lists are by id. A map of the states would be as large as they are, and its pieces stay with the allocator.
    let mut states = store.machines()?.into_iter().peekable();
    let found = store.monitors()?;
    let mut running: BTreeMap<PageId, Vec<Window>> = BTreeMap::new();
    for incident in store.open_incidents()? {
        let window = Window::of(&incident.value).filter(|window| window.running);
        running.entry(incident.value.page).or_default().extend(window);
    }
    let mut covered = BTreeSet::new();
    let mut tellings: BTreeMap<PageId, Telling> = BTreeMap::new();
    let mut monitors = Vec::with_capacity(found.len());
    for monitor in found.into_iter().filter(|monitor| shard.holds(monitor.value.slot)) {
        let monitor = monitor.value;
        let Some(page) = pages.get(&monitor.page) else { continue };
        if running.get(&page.id).is_some_and(|windows| windows.iter().any(|it| it.covers(monitor.id))) {
            covered.insert(monitor.id);
        }
        let plan = accounts.get(&page.account).map_or(Plan::Free, |account| account.plan);
        let watch = Watch::new(&monitor, page, plan, &judging.limits, judging.confirmation);
        let telling = match tellings.entry(page.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(telling(store, page.id)?),
        };
        let watch = watch.told_by(telling);
        while states.next_if(|(id, _)| *id < monitor.id).is_some() {}
        let state = states.next_if(|(id, _)| *id == monitor.id).map(|(_, state)| state).unwrap_or_default();
        monitors.push((monitor, watch, state));
    }
    Ok(Stored { cursor, alive, monitors, covered })
}

impl Stored {
    /// The monitors.
    pub fn monitors(&self) -> impl Iterator<Item = &Monitor> {
        self.monitors.iter().map(|(monitor, ..)| monitor)
    }

    /// Makes the machines.
    pub fn wake(self, machines: &mut Machines, cx: &mut Cx<'_>) {
        for (monitor, watch, mut state) in self.monitors {
            if state == State::default() {
                machines.put(&monitor, watch, cx);
            } else {
                if self.covered.contains(&monitor.id) {
                    state.begin_window();
                }
                machines.restore(&monitor, watch, state, self.alive, cx);
            }
            machines.cover(monitor.id, self.covered.contains(&monitor.id), cx);
        }
    }
}

/// What edits the journal holds after a cursor, each thing once.
#[derive(Debug, Default)]
pub struct Edits {
    /// Where the journal was read to.
    pub cursor: u64,
    /// Monitors that are new or changed, or whose page or plan changed, as they are now.
    pub put: Vec<(Monitor, Watch)>,
    /// Monitors that are gone.
    pub gone: Vec<MonitorId>,
    /// Whether a maintenance window covers a monitor: of those that were put, and of pages where a window changed.
    pub covered: BTreeMap<MonitorId, bool>,
    /// The journal was trimmed before it was read: every monitor was put, and any other is gone.
    pub whole: bool,
}

/// Reads the shard's edits after `cursor`. Call off the runtime.
pub fn edits(store: &dyn Read, cursor: u64, judging: &Judging, shard: Shard) -> Result<Edits, StoreError> {
    let mut found = Edits { cursor, ..Edits::default() };
    let mut monitors: BTreeSet<MonitorId> = BTreeSet::new();
    let mut pages: BTreeSet<PageId> = BTreeSet::new();
    loop {
        let newest = store.last_event()?;
        let entries = store.events_after(found.cursor, AT_ONCE)?;
        let next = entries.first().map_or(newest.saturating_add(1), |entry| entry.seq);
        if next > found.cursor.saturating_add(1) {
            tracing::warn!("the journal was trimmed before the driver read it: every monitor is looked at");
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
                    | What::Incident(_),
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

/// The shard's monitors that a window covers at that moment, whether or not its start was noted yet.
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

/// The page's windows that have begun and are not over.
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
    let Some(page) = store.page(monitor.page)? else { return Ok(None) };
    let plan = store.account(page.value.account)?.map_or(Plan::Free, |account| account.value.plan);
    let watch = Watch::new(&monitor, &page.value, plan, &judging.limits, judging.confirmation);
    let watch = watch.told_by(&telling(store, page.value.id)?);
    Ok(Some((monitor, watch)))
}

/// How the page tells of its monitors.
fn telling(store: &dyn Read, page: PageId) -> Result<Telling, StoreError> {
    Ok(store.telling(page)?.map_or_else(Telling::default, |telling| telling.value))
}
