//! Undo of changes to monitors: their earlier settings, and their earlier order.

use std::collections::BTreeMap;

use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::IncidentChange;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::undo::{EarlierMonitor, EarlierOrder, InverseChange, UndoObstacle};
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::MonitorService;
use super::incident_effects::MonitorChange;
use super::order::{ids_of, write_order};
use crate::idempotency::IdempotentRequest;
use crate::{Caller, ServiceResult};

impl MonitorService {
    /// Records how the changes of a batch to monitors are undone, if the request offers that. `before` has the monitors
    /// as they were.
    pub(super) fn record_undo_of_monitors<T>(
        &self,
        caller: &Caller,
        once: &IdempotentRequest<'_, T>,
        before: &BTreeMap<MonitorId, VersionedValue<Monitor>>,
        (page, batch): (PageId, &mut Batch),
    ) {
        if once.undo().is_none() {
            return;
        }
        let earlier = earlier_monitors(before, batch).unwrap_or_default();
        self.context.record_undo(caller, once, || InverseChange::Monitors(page, earlier), batch);
    }

    /// Adds to the batch that monitors get their earlier values again, each if it still is as that revision left it.
    /// Returns what is in the way: also an automatic incident that a pause would resolve, since no undo does that.
    pub(crate) async fn restore_earlier(
        &self,
        caller: &Caller,
        page: &Page,
        (earlier, revision): (&[EarlierMonitor], u64),
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        let monitors: BTreeMap<MonitorId, _> = monitors.into_iter().map(|it| (it.value.id, it)).collect();
        let mut effects = self.incident_effects(page).await?;
        let mut obstacles = Vec::new();
        for it in earlier {
            let monitor = match monitors.get(&it.id) {
                Some(monitor) if monitor.revision == revision => &monitor.value,
                other => {
                    let event = if other.is_some() { "was changed" } else { "was deleted" };
                    let name = other.map_or(&it.name, |monitor| &monitor.value.name);
                    let by = self.context.last_editor(caller, it.id)?;
                    obstacles.push(UndoObstacle { by, ..UndoObstacle::new(name, event) });
                    continue;
                }
            };
            let restored = it.applied_to(monitor);
            if restored.paused && !monitor.paused {
                effects.apply(monitor, MonitorChange::Pause(&restored.name), self.context.now());
            }
            batch.event(self.context.monitor_event(id, it.id, EditKind::Changed));
            batch.expect(Expect::Monitor(it.id, Presence::At(revision))).write(restored);
        }
        let opened = effects.resolved_titles().map(|title| UndoObstacle::new(format!("“{title}”"), "was opened"));
        obstacles.extend(opened);
        self.write_effects(effects, false, batch);
        Ok(obstacles)
    }

    /// Adds to the batch that a page's monitors get their earlier order again, unless it was changed since. Returns
    /// what is in the way. What else was changed about them stays.
    pub(crate) async fn restore_order(
        &self,
        caller: &Caller,
        page: &Page,
        order: &EarlierOrder,
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        let present = ids_of(&monitors);
        let Some(ids) = order.restored(&present) else {
            let by = self.context.last_order_editor(caller, id)?;
            return Ok(vec![UndoObstacle { by, ..UndoObstacle::new("The order of the monitors", "was changed") }]);
        };
        if ids != present {
            write_order(&ids, &monitors, batch);
            self.context.note_order_editor(caller, id, batch);
            batch.event(self.context.page_event(id, EditKind::Changed));
        }
        Ok(Vec::new())
    }
}

/// Returns the earlier settings of the monitors that a batch changes; `None` if the change can't be undone.
fn earlier_monitors(
    before: &BTreeMap<MonitorId, VersionedValue<Monitor>>,
    batch: &Batch,
) -> Option<Vec<EarlierMonitor>> {
    // An incident that was resolved stays so: its mails have left.
    if batch.events.iter().any(resolves_incident) {
        return None;
    }
    // Deleted monitors take their history along, so a deletion has no inverse.
    let changes = batch.ops.iter().filter_map(|op| match op {
        Op::PutMonitor(after) => before.get(&after.id).map(|before| (&before.value, after)),
        _ => None,
    });
    changes.map(|(before, after)| EarlierMonitor::of(before, after)).collect()
}

fn resolves_incident(event: &Event) -> bool {
    matches!(&event.kind, EventKind::Incident(incident) if incident.change == IncidentChange::Resolved)
}
