//! Monitors: creation, edits, deletion, and reading with their current state and statistics.

mod acknowledgement;
pub mod bulk;
pub mod check_filter;
mod check_now;
mod first_site_test;
pub mod history;
mod incident_effects;
pub mod inspection;
pub mod order;
pub mod pings;
mod undo;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use parallax_core::check::{Check, CheckKind};
use parallax_core::event::EditKind;
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::machine::MachineView;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, NewMonitor};
use parallax_core::page::Page;
use parallax_core::patch::PatchField;
use parallax_core::plan::{Plan, PlanLimitError};
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::role::Permission;
use parallax_engine::PingIntake;
use parallax_store::{Batch, Expect, Op, Presence, StoreError};

pub use self::check_now::{CHECKS_PER_MINUTE, CheckNowProgress, CheckNowReport, TESTS_PER_MINUTE};
pub use self::first_site_test::FirstSiteReport;
use self::incident_effects::MonitorChange;
use super::context::ServiceContext;
use super::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use super::secret_text::ping_token;
use super::statistics::MonitorStatistics;
use super::{ActorId, Caller, ServiceError, ServiceResult};

/// A monitor with its current state and statistics.
#[derive(Debug, Clone)]
pub struct MonitorWithState {
    /// The monitor.
    pub monitor: Monitor,
    /// Its current state.
    pub view: MachineView,
    /// Its statistics of the last 24 hours.
    pub statistics: MonitorStatistics,
    /// True if the account's plan excludes its type, and its owner has not paused it.
    pub paused_by_plan: bool,
}

impl Rereadable for MonitorWithState {}

/// Owns monitors, and reads them with their current states from the driver. Slots are handed out one at a time; a
/// change is answered with the state that it leads to.
#[derive(Debug)]
pub struct MonitorService {
    context: Arc<ServiceContext>,
    pings: PingIntake,
    /// Checks on request, by monitor.
    check_now_limit: Mutex<FixedWindowLimit<MonitorId>>,
    /// Checks on request of all monitors, by person.
    person_check_limit: Mutex<FixedWindowLimit<ActorId>>,
    /// Tests of unsaved monitors, by account.
    test_limit: Mutex<FixedWindowLimit<AccountId>>,
}

impl MonitorService {
    pub(crate) fn new(context: &Arc<ServiceContext>, pings: PingIntake) -> Self {
        Self {
            context: Arc::clone(context),
            pings,
            check_now_limit: Mutex::new(FixedWindowLimit::new(check_now::MIN_INTERVAL)),
            person_check_limit: Mutex::new(FixedWindowLimit::new(check_now::TEST_WINDOW)),
            test_limit: Mutex::new(FixedWindowLimit::new(check_now::TEST_WINDOW)),
        }
    }

    /// Lists the monitors of a page in page order.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn list(&self, caller: &Caller, page: PageId) -> ServiceResult<Vec<MonitorWithState>> {
        let page = self.context.page(caller, page)?;
        self.monitors_with_state(&page).await
    }

    /// Returns one monitor of a page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for one that the key can't access, or that is on another page.
    pub async fn get(&self, caller: &Caller, page: PageId, id: MonitorId) -> ServiceResult<MonitorWithState> {
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        self.monitor_with_state(&page, monitor).await
    }

    /// Checks that the key can access that monitor on that page, without reading its state.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if it can't.
    pub fn check_access(&self, caller: &Caller, page: PageId, id: MonitorId) -> ServiceResult<()> {
        let page = self.context.page(caller, page)?;
        self.context.monitor_on(&page, id).map(|_| ())
    }

    /// Creates a monitor on a page.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`], then
    /// [`ServiceError::PlanLimit`].
    pub async fn create(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &MonitorEdit,
        once: &IdempotentRequest<'_, MonitorWithState>,
    ) -> ServiceResult<RequestOutcome<MonitorWithState>> {
        caller.require(Permission::Edit)?;
        self.context.accessible_page(caller, page)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let settings = edit.validate(None, &ping_token(rand::random()))?;
        let kind = settings.check.kind();
        let _making = self.context.create_lock.lock().await;
        for _ in 0..super::context::TRIES {
            let page = self.context.accessible_page(caller, page)?.value;
            if let Some(answer) = self.context.replayed_answer(once)? {
                return Ok(RequestOutcome::Replayed(answer));
            }
            let account = self.context.store().reader().account(page.account)?.ok_or(ServiceError::NotFound)?;
            let room = self.context.settings().limits.monitor_limit(account.value.plan, kind)?;
            let siblings = self.context.store().read(move |store| store.monitors_of(page.id)).await?;
            let new_monitor = NewMonitor {
                id: MonitorId::new(self.context.now(), rand::random()),
                page: page.id,
                slot: self.context.store().reader().next_slot()?,
                position: siblings.last().map_or(0, |last| last.value.position.saturating_add(1)),
                now: self.context.now(),
            };
            let monitor = Monitor::new(new_monitor, settings.clone());
            let unconfirmable = !self.context.statistics.can_confirm(&page, account.value.plan, &monitor);
            let view = MachineView { unconfirmable, ..MachineView::default() };
            let monitor_view =
                MonitorWithState { monitor, view, statistics: MonitorStatistics::default(), paused_by_plan: false };
            let mut batch = Batch::new();
            batch
                .expect(Expect::Account(account.value.id, Presence::At(account.revision)))
                .expect(Expect::Page(page.id, Presence::Present))
                .expect(Expect::NextSlot(new_monitor.slot))
                .write(Op::SetNextSlot(new_monitor.slot.wrapping_add(1)))
                .write(monitor_view.monitor.clone())
                .event(self.context.monitor_event(page.id, new_monitor.id, EditKind::Created));
            batch.expect(match kind {
                CheckKind::Component => Expect::ComponentsBelow(account.value.id, room),
                _ => Expect::MonitorsBelow(account.value.id, room),
            });
            self.context.log_change(caller, &mut batch)?;
            self.context.store_answer(once, &monitor_view, &mut batch)?;
            match self.context.commit(Some(batch)).await {
                Ok(()) => {
                    // Its job may send a ping before the driver has read the event.
                    self.pings.tokens.put(&monitor_view.monitor);
                    return Ok(RequestOutcome::Fresh(monitor_view));
                }
                Err(StoreError::Conflict(Expect::MonitorsBelow(_, limit))) => {
                    return Err(PlanLimitError::MonitorsFull { plan: account.value.plan, limit }.into());
                }
                Err(StoreError::Conflict(Expect::ComponentsBelow(_, limit))) => {
                    return Err(PlanLimitError::ComponentsFull { limit }.into());
                }
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Internal("a new monitor conflicted with too many other changes".to_owned()))
    }

    /// Edits a monitor, and returns it with the status after the change.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`].
    pub async fn edit(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        edit: &MonitorEdit,
        once: &IdempotentRequest<'_, MonitorWithState>,
    ) -> ServiceResult<RequestOutcome<MonitorWithState>> {
        let outcome = self
            .context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let monitor = self.context.monitor_on(&page, id)?;
                let settings = edit.validate(Some(&monitor.value.settings()), "")?;
                let changed = monitor.value.with_settings(settings);
                let mut batch = Batch::new();
                if changed != monitor.value {
                    batch.expect(Expect::Monitor(id, Presence::At(monitor.revision))).write(changed.clone());
                    batch.event(self.context.monitor_event(page.id, id, EditKind::Changed));
                    let (before, notify) = (&monitor.value, matches!(edit.notify, PatchField::Value(true)));
                    if changed.paused && !before.paused {
                        // One act, since a batch writes an incident once: the pause carries a new name too.
                        let change_kind = MonitorChange::Pause(&changed.name);
                        self.apply_to_incidents(&page, before, change_kind, notify, &mut batch).await?;
                    } else if changed.name != before.name {
                        let change_kind = MonitorChange::Rename(&changed.name);
                        self.apply_to_incidents(&page, before, change_kind, false, &mut batch).await?;
                    }
                }
                let before = BTreeMap::from([(id, monitor)]);
                self.record_undo_of_monitors(caller, once, &before, (page.id, &mut batch));
                let account = self.context.store().reader().account(page.account)?.ok_or(ServiceError::NotFound)?;
                let mut monitor_view = self.monitor_with_state(&page, changed).await?;
                // The driver has not processed the change yet.
                monitor_view.view.unconfirmable =
                    !self.context.statistics.can_confirm(&page, account.value.plan, &monitor_view.monitor);
                Ok((monitor_view, batch))
            })
            .await?;
        let RequestOutcome::Fresh(before) = outcome else { return Ok(outcome) };
        let page = self.context.page(caller, page)?;
        let after = self.monitor_with_state(&page, self.context.monitor_on(&page, id)?.value).await?;
        let monitor_view =
            MonitorWithState { view: MachineView { unconfirmable: before.view.unconfirmable, ..after.view }, ..after };
        if monitor_view.view != before.view {
            self.context.replace_answer(once, &monitor_view).await;
        }
        Ok(RequestOutcome::Fresh(monitor_view))
    }

    /// Deletes a monitor and its history. If it is down and that resolves its automatic incident, subscribers are
    /// notified if `notify` is true.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`].
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        notify: bool,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let monitor = self.context.monitor_on(&page, id)?.value;
                let mut batch = Batch::new();
                self.apply_to_incidents(&page, &monitor, MonitorChange::Delete, notify, &mut batch).await?;
                batch.expect(Expect::Monitor(id, Presence::Present)).write(Op::DeleteMonitor(id));
                batch.event(self.context.monitor_event(page.id, id, EditKind::Deleted));
                Ok(((), batch))
            })
            .await
    }

    /// Returns the ping URL of a heartbeat, for callers with write access.
    pub fn ping_url(&self, caller: &Caller, monitor: &Monitor) -> Option<String> {
        let Check::Heartbeat(heartbeat) = &monitor.check else { return None };
        let base = &self.context.settings().base_url;
        caller.allows(Permission::Edit).then(|| format!("{base}/ping/{}", heartbeat.token))
    }

    pub(crate) async fn monitors_with_state(&self, page: &Page) -> ServiceResult<Vec<MonitorWithState>> {
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        let monitors: Vec<Monitor> = monitors.into_iter().map(|monitor| monitor.value).collect();
        self.with_state(page, monitors).await
    }

    async fn monitor_with_state(&self, page: &Page, monitor: Monitor) -> ServiceResult<MonitorWithState> {
        let monitor_views = self.with_state(page, vec![monitor]).await?;
        monitor_views.into_iter().next().ok_or(ServiceError::NotFound)
    }

    pub(crate) async fn with_state(&self, page: &Page, monitors: Vec<Monitor>) -> ServiceResult<Vec<MonitorWithState>> {
        let views = self.context.monitor_views(monitors.iter().map(|monitor| monitor.id).collect());
        let statistics = self.context.statistics.last_day(page, &monitors, self.context.now());
        let (views, statistics) = futures_util::future::join(views, statistics).await;
        let plan =
            self.context.store().reader().account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let (mut statistics, now) = (statistics.into_iter(), self.context.now());
        let monitor_views = monitors.into_iter().zip(views).map(|(monitor, view)| {
            let mut monitor_statistics = statistics.next().unwrap_or_default();
            if let Some(downtime) = &view.downtime {
                monitor_statistics.uptime = downtime.uptime(now, monitor_statistics.excluded.as_slice());
            }
            let is_excluded = monitor.check.kind() == CheckKind::Component && !plan.has_components();
            let paused_by_plan = is_excluded && !monitor.paused;
            let is_paused = monitor.paused || is_excluded;
            if is_paused {
                // Its current state is unknown, whatever it was before.
                (monitor_statistics.uptime, monitor_statistics.latency_ms) = (None, None);
            }
            MonitorWithState {
                monitor: Monitor { paused: is_paused, ..monitor },
                view,
                statistics: monitor_statistics,
                paused_by_plan,
            }
        });
        Ok(monitor_views.collect())
    }
}
