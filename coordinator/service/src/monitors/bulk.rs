//! One change to many monitors of a page, in one batch: each is changed, left as it is, or refused.

use std::collections::BTreeMap;

use parallax_core::event::EditKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::monitor::bulk_edit::{BulkAction, MonitorBulk, MonitorBulkEdit};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::MonitorService;
use super::incident_effects::{IncidentEffects, MonitorChange};
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use crate::{Caller, ServiceError, ServiceResult};

/// Result of one change to many monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkReport {
    /// Results, in the order of the ids sent.
    pub results: Vec<BulkResult>,
}

/// Result for one monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkResult {
    /// Its id as sent.
    pub id: String,
    /// True if it was changed, false if it was so before.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`], and [`ServiceError::Invalid`] if its settings are not valid any more.
    pub outcome: ServiceResult<bool>,
}

impl Rereadable for BulkReport {}

impl MonitorService {
    /// Changes or deletes many monitors of a page. One that is refused does not stop the others; the changes are
    /// committed together, with the answer.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`] for the page, and [`ServiceError::Invalid`] for what
    /// would be wrong for every monitor.
    pub async fn change_many(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &MonitorBulkEdit,
        once: &IdempotentRequest<'_, BulkReport>,
    ) -> ServiceResult<RequestOutcome<BulkReport>> {
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let change = edit.validate()?;
                let id = page.id;
                let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
                let monitors = monitors.into_iter().map(|monitor| (monitor.value.id, monitor)).collect();
                let effects = self.incident_effects(&page).await?;
                Ok(self.apply_bulk(&page, &change, &monitors, effects))
            })
            .await
    }

    fn apply_bulk(
        &self,
        page: &Page,
        change: &MonitorBulk,
        monitors: &BTreeMap<MonitorId, VersionedValue<Monitor>>,
        effects: IncidentEffects,
    ) -> (BulkReport, Batch) {
        let mut writer = BulkWriter { batch: Batch::new(), effects, now: self.context.now() };
        let mut results = Vec::with_capacity(change.ids.len());
        for sent in &change.ids {
            let monitor = sent.id.and_then(|id| monitors.get(&id)).ok_or(ServiceError::NotFound);
            let outcome = monitor.and_then(|monitor| writer.apply(monitor, &change.action));
            if let (Ok(Some(edited)), Some(id)) = (&outcome, sent.id) {
                writer.batch.event(self.context.monitor_event(page.id, id, *edited));
            }
            results.push(BulkResult { id: sent.text.clone(), outcome: outcome.map(|edited| edited.is_some()) });
        }
        let BulkWriter { mut batch, effects, .. } = writer;
        self.write_effects(effects, change.notify, &mut batch);
        (BulkReport { results }, batch)
    }
}

/// Gathers the changes of many monitors.
struct BulkWriter {
    batch: Batch,
    effects: IncidentEffects,
    now: Timestamp,
}

impl BulkWriter {
    /// Applies the action to one monitor. Returns the kind of its edit; `None` if nothing changes.
    fn apply(&mut self, monitor: &VersionedValue<Monitor>, action: &BulkAction) -> ServiceResult<Option<EditKind>> {
        let before = &monitor.value;
        let edit = match action {
            BulkAction::Set(edit) => edit,
            BulkAction::Delete => {
                self.effects.apply(before, MonitorChange::Delete, self.now);
                let expected = Expect::Monitor(before.id, Presence::Present);
                self.batch.expect(expected).write(Op::DeleteMonitor(before.id));
                return Ok(Some(EditKind::Deleted));
            }
        };
        let changed = before.with_settings(edit.validate(Some(&before.settings()), "")?);
        if changed == *before {
            return Ok(None);
        }
        if changed.paused && !before.paused {
            self.effects.apply(before, MonitorChange::Pause(&changed.name), self.now);
        }
        self.batch.expect(Expect::Monitor(before.id, Presence::At(monitor.revision))).write(changed);
        Ok(Some(EditKind::Changed))
    }
}
