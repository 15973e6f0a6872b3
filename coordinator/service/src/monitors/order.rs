//! Order of a page's monitors.

use std::collections::BTreeMap;

use parallax_core::event::EditKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::monitor::order_edit::MonitorOrderEdit;
use parallax_core::undo::{EarlierOrder, InverseChange};
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::MonitorService;
use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use crate::{Caller, ServiceResult};

/// A page's monitors in page order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorOrder {
    page: PageId,
    /// Ids of the monitors, first to last.
    pub ids: Vec<MonitorId>,
}

impl Rereadable for MonitorOrder {
    fn id(&self) -> Option<u128> {
        Some(self.page.to_u128())
    }

    async fn reread(context: &ServiceContext, page: PageId, _id: u128) -> ServiceResult<Self> {
        let monitors = context.store().read(move |store| store.monitors_of(page)).await?;
        Ok(Self { page, ids: ids_of(&monitors) })
    }
}

impl MonitorService {
    /// Returns the name of the person or key that changed the order of a page's monitors within the last ten minutes, or
    /// "you".
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access.
    pub fn order_editor(&self, caller: &Caller, page: PageId) -> ServiceResult<Option<String>> {
        let page = self.context.page(caller, page)?;
        self.context.last_order_editor(caller, page.id)
    }

    /// Puts a page's monitors into another order, in one batch. The page counts as edited, its monitors do not: nothing
    /// that is checked changes.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`](crate::ServiceError::ReadOnly),
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for the page, and
    /// [`ServiceError::Invalid`](crate::ServiceError::Invalid) for an order that does not name every monitor once.
    pub async fn reorder(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &MonitorOrderEdit,
        once: &IdempotentRequest<'_, MonitorOrder>,
    ) -> ServiceResult<RequestOutcome<MonitorOrder>> {
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let id = page.id;
                let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
                let present = ids_of(&monitors);
                let ids = edit.validate(&present)?;
                let mut batch = Batch::new();
                if ids != present {
                    write_order(&ids, &monitors, &mut batch);
                    self.context.note_order_editor(caller, id, &mut batch);
                    batch.expect(Expect::Page(id, Presence::Present));
                    batch.event(self.context.page_event(id, EditKind::Changed));
                }
                let inverse = || InverseChange::MonitorOrder(id, EarlierOrder::new(present, ids.clone()));
                self.context.record_undo(caller, once, inverse, &mut batch);
                Ok((MonitorOrder { page: id, ids }, batch))
            })
            .await
    }
}

/// Returns the ids of monitors, in their order.
pub(super) fn ids_of(monitors: &[VersionedValue<Monitor>]) -> Vec<MonitorId> {
    monitors.iter().map(|monitor| monitor.value.id).collect()
}

/// Adds the monitors whose position changes to the batch. Positions become 0, 1, 2 and so on: one that is created
/// meanwhile has a greater one.
pub(super) fn write_order(ids: &[MonitorId], monitors: &[VersionedValue<Monitor>], batch: &mut Batch) {
    let monitors: BTreeMap<MonitorId, _> = monitors.iter().map(|monitor| (monitor.value.id, monitor)).collect();
    for (position, id) in (0..).zip(ids) {
        let Some(VersionedValue { revision, value: monitor }) = monitors.get(id) else { continue };
        if monitor.position != position {
            batch.expect(Expect::Monitor(*id, Presence::At(*revision))).write(Monitor { position, ..monitor.clone() });
        }
    }
}
