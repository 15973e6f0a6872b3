//! Restoring machines from storage at start, and following the journal of edits afterwards.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use parallax_core::alert_settings::AlertSettings;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{EditKind, EventKind};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::MAX_UNFINISHED;
use parallax_core::machine::MachineState;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::Timestamp;
use parallax_store::{StoreError, StoreRead};

use super::machines::{Cx, Machines};
use super::shard::Shard;

/// Cursor name under which the driver records that it runs; the cursor is the time in milliseconds.
pub(crate) const ALIVE_CURSOR: &str = "driver-alive";
/// Journal entries per read.
const EVENTS_PER_READ: usize = 512;
/// Monitors per read at the start. Reading all at once would take as much memory as the machines, and the allocator
/// would keep it.
const MONITORS_PER_READ: usize = 64;

/// The operator's settings for verdicts.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerdictSettings {
    /// Limits of the plans.
    pub plan_limits: PlanLimits,
    /// Confirmation mode for failures.
    pub confirmation: ConfirmationPolicy,
}

/// State that is read before the monitors at a start.
#[derive(Debug)]
pub struct RestoreContext {
    /// Sequence number of the newest event before anything was read.
    pub cursor: u64,
    verdict_settings: VerdictSettings,
    shard: Shard,
    /// Time at which the coordinator last recorded that it ran.
    last_alive: Timestamp,
    /// Maintenance windows that have begun and not ended.
    running: BTreeMap<PageId, Vec<MaintenanceWindow>>,
}

/// Some monitors, with their stored state.
#[derive(Debug)]
pub struct StoredMonitors {
    /// The last monitor that was read.
    pub last: MonitorId,
    last_alive: Timestamp,
    /// The shard's monitors, each with whether a maintenance window covers it.
    monitors: Vec<(Monitor, EffectiveSettings, MachineState, bool)>,
}

/// Begins reading the shard's monitors. Blocking: call outside the async runtime.
pub(crate) fn begin_restore(
    store: &dyn StoreRead,
    verdict_settings: VerdictSettings,
    shard: Shard,
) -> Result<RestoreContext, StoreError> {
    let cursor = store.last_event()?;
    let last_alive =
        Timestamp::from_millis(i64::try_from(store.cursor(&shard.cursor_name(ALIVE_CURSOR))?).unwrap_or(0));
    let mut running: BTreeMap<PageId, Vec<MaintenanceWindow>> = BTreeMap::new();
    for incident in store.open_incidents()? {
        let window = MaintenanceWindow::of(&incident.value).filter(|window| window.running);
        running.entry(incident.value.page).or_default().extend(window);
    }
    Ok(RestoreContext { cursor, verdict_settings, shard, last_alive, running })
}

impl RestoreContext {
    /// Returns the next monitors after that id; `None` at the end. Blocking: call outside the async runtime.
    pub fn next(&self, store: &dyn StoreRead, after: Option<MonitorId>) -> Result<Option<StoredMonitors>, StoreError> {
        let stored = store.monitors_after(after, MONITORS_PER_READ)?;
        let Some(last) = stored.last().map(|monitor| monitor.value.id) else { return Ok(None) };
        let mut contexts: BTreeMap<PageId, Option<PageContext>> = BTreeMap::new();
        let mut monitors = Vec::new();
        for monitor in stored.into_iter().map(|monitor| monitor.value) {
            if !self.shard.contains(monitor.slot) {
                continue;
            }
            let context = match contexts.entry(monitor.page) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(page_context(store, monitor.page)?),
            };
            let Some(context) = context else { continue };
            let (settings, page) = (context.effective_settings(&monitor, &self.verdict_settings), context.page.id);
            let state = store.machine(monitor.id)?.unwrap_or_default();
            let windows = self.running.get(&page);
            let covered = windows.is_some_and(|windows| windows.iter().any(|it| it.covers(monitor.id)));
            monitors.push((monitor, settings, state, covered));
        }
        Ok(Some(StoredMonitors { last, last_alive: self.last_alive, monitors }))
    }
}

impl StoredMonitors {
    /// Returns the monitors.
    pub fn monitors(&self) -> impl Iterator<Item = &Monitor> {
        self.monitors.iter().map(|(monitor, ..)| monitor)
    }

    /// Restores the machines.
    pub fn restore(self, machines: &mut Machines, cx: &mut Cx<'_>) {
        for (monitor, settings, mut state, covered) in self.monitors {
            if state == MachineState::default() {
                machines.upsert(&monitor, settings, cx);
            } else {
                if covered {
                    state.begin_window();
                }
                machines.restore(&monitor, settings, state, self.last_alive, cx);
            }
            machines.set_covered(monitor.id, covered, cx);
        }
    }
}

/// Edits in the journal after a cursor; each monitor appears once.
#[derive(Debug, Default)]
pub struct MonitorEdits {
    /// Cursor after the last entry read.
    pub cursor: u64,
    /// New and changed monitors, and those whose page or plan changed, in their current state.
    pub changed: Vec<(Monitor, EffectiveSettings)>,
    /// Deleted monitors.
    pub deleted: Vec<MonitorId>,
    /// Coverage by maintenance windows: of the monitors in `changed`, and of those on pages where a window changed.
    pub covered: BTreeMap<MonitorId, bool>,
    /// True if the journal was trimmed before it was read: `changed` has every monitor, and any other is deleted.
    pub is_full_reload: bool,
}

/// Reads the shard's edits after `cursor`. Blocking: call outside the async runtime.
pub(crate) fn read_edits(
    store: &dyn StoreRead,
    cursor: u64,
    verdict_settings: &VerdictSettings,
    shard: Shard,
) -> Result<MonitorEdits, StoreError> {
    let mut edits = MonitorEdits { cursor, ..MonitorEdits::default() };
    let mut monitors: BTreeSet<MonitorId> = BTreeSet::new();
    let mut pages: BTreeSet<PageId> = BTreeSet::new();
    loop {
        let newest = store.last_event()?;
        let entries = store.events_after(edits.cursor, EVENTS_PER_READ)?;
        let next = entries.first().map_or(newest.saturating_add(1), |entry| entry.seq);
        if next > edits.cursor.saturating_add(1) {
            tracing::warn!("the journal was trimmed before the driver read it; reloading every monitor");
            edits.cursor = newest;
            edits.is_full_reload = true;
            monitors.extend(store.monitors()?.into_iter().map(|monitor| monitor.value.id));
            continue;
        }
        let Some(last) = entries.last() else { break };
        edits.cursor = last.seq;
        for entry in &entries {
            match (&entry.event.kind, entry.event.monitor, entry.event.page) {
                (
                    EventKind::MonitorEdited(_)
                    | EventKind::OutageAcknowledged(_)
                    | EventKind::AcknowledgementWithdrawn(_),
                    Some(monitor),
                    _,
                ) => {
                    monitors.insert(monitor);
                }
                (EventKind::Incident(_), _, Some(page)) => {
                    pages.insert(page);
                }
                (EventKind::PageEdited(EditKind::Changed), _, Some(page)) => {
                    monitors.extend(store.monitors_of(page)?.into_iter().map(|monitor| monitor.value.id));
                }
                (
                    EventKind::StatusChanged(_)
                    | EventKind::Round(_)
                    | EventKind::MonitorEdited(_)
                    | EventKind::PageEdited(_)
                    | EventKind::AgentJoined(_)
                    | EventKind::AgentRevoked(_)
                    | EventKind::QuarantineChanged(..)
                    | EventKind::ScopeChanged(_)
                    | EventKind::Incident(_)
                    | EventKind::OperatorAlert(_)
                    | EventKind::DeadlineExtended(_)
                    | EventKind::FlappingEnded(_)
                    | EventKind::Unjudged(_)
                    | EventKind::OutageAcknowledged(_)
                    | EventKind::AcknowledgementWithdrawn(_),
                    ..,
                ) => {}
            }
        }
    }
    let mut running: BTreeMap<PageId, Vec<MaintenanceWindow>> = BTreeMap::new();
    for id in monitors {
        match monitor_settings(store, id, verdict_settings)? {
            Some(changed) if shard.contains(changed.0.slot) => {
                let windows = running.entry(changed.0.page);
                let windows = match windows {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(running_windows(store, changed.0.page)?),
                };
                edits.covered.insert(id, windows.iter().any(|window| window.covers(id)));
                edits.changed.push(changed);
            }
            Some(_) => {}
            None => edits.deleted.push(id),
        }
    }
    for page in pages {
        let windows = running_windows(store, page)?;
        for monitor in store.monitors_of(page)?.into_iter().filter(|it| shard.contains(it.value.slot)) {
            let id = monitor.value.id;
            edits.covered.insert(id, windows.iter().any(|window| window.covers(id)));
        }
    }
    Ok(edits)
}

/// Returns the shard's monitors that a window covers at `now`, even if its start is not recorded yet.
pub(crate) fn covered_at(store: &dyn StoreRead, now: Timestamp, shard: Shard) -> Result<Vec<MonitorId>, StoreError> {
    let mut covered = Vec::new();
    for incident in store.open_incidents()? {
        let window = MaintenanceWindow::of(&incident.value);
        let Some(window) = window.filter(|window| window.running || window.span.contains(now)) else {
            continue;
        };
        let monitors = store.monitors_of(incident.value.page)?.into_iter().map(|monitor| monitor.value);
        let covered_monitors = monitors.filter(|monitor| shard.contains(monitor.slot) && window.covers(monitor.id));
        covered.extend(covered_monitors.map(|monitor| monitor.id));
    }
    Ok(covered)
}

/// Returns the page's windows that have begun and not ended.
fn running_windows(store: &dyn StoreRead, page: PageId) -> Result<Vec<MaintenanceWindow>, StoreError> {
    let open = store.incidents_of(page, true, None, MAX_UNFINISHED)?;
    let windows = open.iter().filter_map(|incident| MaintenanceWindow::of(&incident.value));
    Ok(windows.filter(|window| window.running).collect())
}

fn monitor_settings(
    store: &dyn StoreRead,
    id: MonitorId,
    verdict_settings: &VerdictSettings,
) -> Result<Option<(Monitor, EffectiveSettings)>, StoreError> {
    let Some(monitor) = store.monitor(id)? else { return Ok(None) };
    let monitor = monitor.value;
    let Some(context) = page_context(store, monitor.page)? else { return Ok(None) };
    let settings = context.effective_settings(&monitor, verdict_settings);
    Ok(Some((monitor, settings)))
}

/// The page, plan and alert settings that apply to a monitor.
struct PageContext {
    page: Page,
    plan: Plan,
    alert_settings: AlertSettings,
}

impl PageContext {
    fn effective_settings(&self, monitor: &Monitor, verdict_settings: &VerdictSettings) -> EffectiveSettings {
        let settings = EffectiveSettings::new(
            monitor,
            &self.page,
            self.plan,
            &verdict_settings.plan_limits,
            verdict_settings.confirmation,
        );
        settings.with_alert_settings(&self.alert_settings)
    }
}

fn page_context(store: &dyn StoreRead, page: PageId) -> Result<Option<PageContext>, StoreError> {
    let Some(page) = store.page(page)?.map(|page| page.value) else { return Ok(None) };
    let plan = store.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
    let alert_settings = store.alert_settings(page.id)?.map(|alert_settings| alert_settings.value).unwrap_or_default();
    Ok(Some(PageContext { page, plan, alert_settings }))
}
