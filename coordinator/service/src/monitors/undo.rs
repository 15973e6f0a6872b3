//! Undo of changes to monitors: their earlier settings and positions.

use std::collections::BTreeMap;

use parallax_core::event::EditKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::undo::{EarlierMonitor, InverseChange, UndoObstacle};
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::MonitorService;
use super::incident_effects::MonitorChange;
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
        let earlier = |op: &Op| match op {
            Op::PutMonitor(after) => before.get(&after.id).map(|before| EarlierMonitor::of(&before.value, after)),
            _ => None,
        };
        // Deleted monitors take their history along, so a deletion has no inverse.
        let inverse = InverseChange::Monitors(page, batch.ops.iter().filter_map(earlier).collect());
        self.context.record_undo(caller, once, || inverse, batch);
    }

    /// Adds to the batch that monitors get their earlier values again, each if it still is as that revision left it.
    /// Returns what is in the way. An automatic incident that ends because of it ends quietly.
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
        let (mut obstacles, mut is_order) = (Vec::new(), false);
        for it in earlier {
            let monitor = match monitors.get(&it.id) {
                Some(monitor) if monitor.revision == revision => &monitor.value,
                other => {
                    let event = if other.is_some() { "was changed" } else { "was deleted" };
                    let name = other.map_or(&it.shown_name, |monitor| &monitor.value.name);
                    let by = self.context.last_editor(caller, it.id)?;
                    obstacles.push(UndoObstacle { by, ..UndoObstacle::new(name, event) });
                    continue;
                }
            };
            let restored = it.applied_to(monitor);
            if restored.paused && !monitor.paused {
                effects.apply(monitor, MonitorChange::Pause(&restored.name), self.context.now());
            } else if restored.name != monitor.name {
                effects.apply(monitor, MonitorChange::Rename(&restored.name), self.context.now());
            }
            if restored.settings() == monitor.settings() {
                is_order = true;
            } else {
                batch.event(self.context.monitor_event(id, it.id, EditKind::Changed));
            }
            batch.expect(Expect::Monitor(it.id, Presence::At(revision))).write(restored);
        }
        if is_order {
            batch.expect(Expect::Page(id, Presence::Present));
            batch.event(self.context.page_event(id, EditKind::Changed));
        }
        self.write_effects(effects, false, batch);
        Ok(obstacles)
    }
}
