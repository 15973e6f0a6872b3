//! One change to many monitors of a page, in one batch: each is changed, left as it is, or refused.

use std::collections::BTreeMap;

use parallax_core::event::EditKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::monitor::bulk_edit::{BulkAction, MonitorBulk, MonitorBulkEdit};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::MonitorService;
use super::incident_effects::{IncidentEffects, MonitorChange};
use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable, unreadable_record};
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

/// Codes of the results in the record of a long answer. Codes from [`FIRST_FAULT`] on number the record's faults.
const UNCHANGED: usize = 0;
const CHANGED: usize = 1;
const NOT_FOUND: usize = 2;
const FIRST_FAULT: usize = 3;

/// Record of a long answer: a code for each monitor, in the order of the request, and the faults that the codes number
/// (pairs of field and rule). The ids are those of the repeated request.
type BulkRecord = (Vec<usize>, Vec<Vec<(String, String)>>);

impl Rereadable for BulkReport {
    fn record(&self) -> Option<Vec<u8>> {
        let (mut codes, mut faults): BulkRecord = (Vec::with_capacity(self.results.len()), Vec::new());
        for result in &self.results {
            codes.push(match &result.outcome {
                Ok(true) => CHANGED,
                Ok(false) => UNCHANGED,
                Err(ServiceError::Invalid(errors)) => {
                    let own: Vec<_> = errors.iter().map(|it| (it.field.clone(), it.rule.clone())).collect();
                    FIRST_FAULT
                        + faults.iter().position(|known| *known == own).unwrap_or_else(|| {
                            faults.push(own);
                            faults.len() - 1
                        })
                }
                Err(_) => NOT_FOUND,
            });
        }
        serde_json::to_vec(&(codes, faults)).ok()
    }

    async fn restore(_context: &ServiceContext, _page: PageId, record: &[u8]) -> ServiceResult<Self> {
        let (codes, faults): BulkRecord = serde_json::from_slice(record).map_err(|_| unreadable_record())?;
        let outcome = |code: usize| match code {
            CHANGED => Ok(true),
            UNCHANGED => Ok(false),
            code => Err(match code.checked_sub(FIRST_FAULT).and_then(|at| faults.get(at)) {
                Some(fault) => {
                    let mut errors = ValidationErrors::new();
                    fault.iter().for_each(|(field, rule)| errors.add(field, rule));
                    ServiceError::Invalid(errors)
                }
                None => ServiceError::NotFound,
            }),
        };
        let results = codes.into_iter().map(|code| BulkResult { id: String::new(), outcome: outcome(code) });
        Ok(Self { results: results.collect() })
    }
}

impl BulkReport {
    /// Names the monitors of a restored report by those of the request, which is the same.
    fn with_ids(self, change: &MonitorBulk) -> Self {
        let named = self.results.into_iter().zip(&change.ids);
        Self { results: named.map(|(result, sent)| BulkResult { id: sent.text.clone(), ..result }).collect() }
    }
}

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
        let outcome = self
            .context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let change = edit.validate()?;
                let id = page.id;
                let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
                let monitors = monitors.into_iter().map(|monitor| (monitor.value.id, monitor)).collect();
                let effects = self.incident_effects(&page).await?;
                let (report, mut batch) = self.apply_bulk(&page, &change, &monitors, effects);
                self.record_undo_of_monitors(caller, once, &monitors, (page.id, &mut batch));
                Ok((report, batch))
            })
            .await?;
        Ok(match outcome {
            RequestOutcome::Reread(report) => {
                RequestOutcome::Replayed(once.answer(&report.with_ids(&edit.validate()?)))
            }
            outcome => outcome,
        })
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

#[cfg(test)]
mod tests {
    use parallax_core::patch::PatchField;

    use super::*;
    use crate::idempotency::MAX_ANSWER;
    use crate::test_world::world;

    #[tokio::test]
    async fn a_record_has_a_code_for_each_monitor() {
        let texts: Vec<String> = (0..500_u128).map(|n| MonitorId::from_u128(n).to_string()).collect();
        let edit = MonitorBulkEdit {
            monitor_ids: PatchField::Value(texts.clone()),
            delete: PatchField::Value(true),
            ..MonitorBulkEdit::default()
        };
        let fault = |rule: &str| ServiceError::Invalid(ValidationErrors::single("slowThresholds", rule));
        let outcome = |at: usize| match at % 5 {
            0 => Ok(true),
            1 => Ok(false),
            2 => Err(ServiceError::NotFound),
            3 => Err(fault("must be a region that the monitor is checked from")),
            _ => Err(fault("must not be empty")),
        };
        let results = (0..).zip(texts).map(|(at, id)| BulkResult { id, outcome: outcome(at) });
        let report = BulkReport { results: results.collect() };
        let record = report.record().unwrap();
        assert!(record.len() < MAX_ANSWER / 4, "{} bytes", record.len());
        let world = world().await;
        let restored = BulkReport::restore(&world.service.context, world.shop.id, &record).await.unwrap();
        assert_eq!(restored.with_ids(&edit.validate().unwrap()), report);
        assert!(BulkReport::restore(&world.service.context, world.shop.id, b"old").await.is_err());
    }
}
