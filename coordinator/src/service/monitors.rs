//! Monitors: creation, edits, deletion, and reading with their current state and statistics.

mod incidents;

use parallax_core::check::{Check, CheckKind};
use parallax_core::event::{Edited, Event, What};
use parallax_core::given::Given;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::machine::View;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, Seat};
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanRefusal};

use self::incidents::Act;
use super::figures::Figure;
use super::once::{Done, Once};
use super::token::ping_token;
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, StoreError, Versioned};

/// A monitor with its current state and statistics.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The monitor.
    pub monitor: Monitor,
    /// Its current state.
    pub view: View,
    /// Its statistics of the last 24 hours.
    pub figure: Figure,
    /// True if the account's plan excludes its type, and its owner has not paused it.
    pub paused_by_plan: bool,
}

impl Service {
    /// Lists the monitors of a page in page order.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn monitors(&self, caller: &Caller, page: PageId) -> Result<Vec<Shown>> {
        let page = self.page(caller, page)?;
        self.shown_on(&page).await
    }

    /// Returns one monitor of a page.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that the key can't access, or that is on another page.
    pub async fn monitor(&self, caller: &Caller, page: PageId, id: MonitorId) -> Result<Shown> {
        let page = self.page(caller, page)?;
        let monitor = self.monitor_on(&page, id)?.value;
        self.shown(&page, monitor).await
    }

    /// Checks that the key can access that monitor on that page, without reading its state.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it can't.
    pub fn reaches_monitor(&self, caller: &Caller, page: PageId, id: MonitorId) -> Result<()> {
        let page = self.page(caller, page)?;
        self.monitor_on(&page, id).map(|_| ())
    }

    /// Creates a monitor on a page.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`], then [`Error::PlanLimit`].
    pub async fn create_monitor(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &MonitorEdit,
        once: &Once<'_, Shown>,
    ) -> Result<Done<Shown>> {
        caller.writes()?;
        self.reached(caller, page)?;
        if let Some(answer) = self.answered(once)? {
            return Ok(Done::Before(answer));
        }
        let settings = edit.settle(None, &ping_token(rand::random()))?;
        let kind = settings.check.kind();
        let _making = self.0.making.lock().await;
        for _ in 0..super::TRIES {
            let page = self.reached(caller, page)?.value;
            if let Some(answer) = self.answered(once)? {
                return Ok(Done::Before(answer));
            }
            let account = self.store().reader().account(page.account)?.ok_or(Error::NotFound)?;
            let room = self.settings().limits.room_for(account.value.plan, kind)?;
            let others = self.store().read(move |store| store.monitors_of(page.id)).await?;
            let seat = Seat {
                id: MonitorId::new(self.now(), rand::random()),
                page: page.id,
                slot: self.store().reader().next_slot()?,
                position: others.last().map_or(0, |last| last.value.position.saturating_add(1)),
                now: self.now(),
            };
            let monitor = Monitor::new(seat, settings.clone());
            let unconfirmable = !self.0.figures.can_confirm(&page, account.value.plan, &monitor);
            let view = View { unconfirmable, ..View::default() };
            let shown = Shown { monitor, view, figure: Figure::default(), paused_by_plan: false };
            let mut batch = Batch::new();
            batch
                .expect(Expect::Account(account.value.id, Is::At(account.revision)))
                .expect(Expect::Page(page.id, Is::Present))
                .expect(Expect::NextSlot(seat.slot))
                .write(Op::SetNextSlot(seat.slot.wrapping_add(1)))
                .write(shown.monitor.clone())
                .event(self.monitor_event(page.id, seat.id, Edited::Created));
            batch.expect(match kind {
                CheckKind::Component => Expect::ComponentsBelow(account.value.id, room),
                _ => Expect::MonitorsBelow(account.value.id, room),
            });
            self.remember(once, &shown, &mut batch)?;
            match self.commit(Some(batch)).await {
                Ok(()) => {
                    // Its job may send a ping before the driver has read the event.
                    self.0.beats.tokens.put(&shown.monitor);
                    return Ok(Done::Now(shown));
                }
                Err(StoreError::Conflict(Expect::MonitorsBelow(_, limit))) => {
                    return Err(PlanRefusal::MonitorsFull { plan: account.value.plan, limit }.into());
                }
                Err(StoreError::Conflict(Expect::ComponentsBelow(_, limit))) => {
                    return Err(PlanRefusal::ComponentsFull { limit }.into());
                }
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Internal("a new monitor conflicted with too many other changes".to_owned()))
    }

    /// Edits a monitor, and returns it with the status after the change.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`].
    pub async fn edit_monitor(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        edit: &MonitorEdit,
        once: &Once<'_, Shown>,
    ) -> Result<Done<Shown>> {
        let done = self
            .change_on(caller, page, id.to_u128(), once, |page| async move {
                let monitor = self.monitor_on(&page, id)?;
                let settings = edit.settle(Some(&monitor.value.settings()), "")?;
                let changed = monitor.value.with(settings);
                let mut batch = Batch::new();
                if changed != monitor.value {
                    batch.expect(Expect::Monitor(id, Is::At(monitor.revision))).write(changed.clone());
                    batch.event(self.monitor_event(page.id, id, Edited::Changed));
                    let (before, notify) = (&monitor.value, matches!(edit.notify, Given::Value(true)));
                    if changed.paused && !before.paused {
                        // One act, since a batch writes an incident once: the pause carries a new name too.
                        let act = Act::Pause(&changed.name);
                        self.act_on_incidents(&page, before, act, notify, &mut batch).await?;
                    } else if changed.name != before.name {
                        let act = Act::Rename(&changed.name);
                        self.act_on_incidents(&page, before, act, false, &mut batch).await?;
                    }
                }
                let account = self.store().reader().account(page.account)?.ok_or(Error::NotFound)?;
                let mut shown = self.shown(&page, changed).await?;
                // The driver has not processed the change yet.
                shown.view.unconfirmable =
                    !self.0.figures.can_confirm(&page, account.value.plan, &shown.monitor);
                Ok((shown, batch))
            })
            .await?;
        let Done::Now(before) = done else { return Ok(done) };
        let page = self.page(caller, page)?;
        let after = self.shown(&page, self.monitor_on(&page, id)?.value).await?;
        let shown = Shown { view: View { unconfirmable: before.view.unconfirmable, ..after.view }, ..after };
        if shown.view != before.view {
            self.remember_after(once, &shown).await;
        }
        Ok(Done::Now(shown))
    }

    /// Deletes a monitor and its history. If it is down and that resolves its automatic incident, subscribers are
    /// notified if `notify` is true.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`].
    pub async fn delete_monitor(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        notify: bool,
        once: &Once<'_, ()>,
    ) -> Result<Done<()>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let monitor = self.monitor_on(&page, id)?.value;
            let mut batch = Batch::new();
            self.act_on_incidents(&page, &monitor, Act::Delete, notify, &mut batch).await?;
            batch.expect(Expect::Monitor(id, Is::Present)).write(Op::DeleteMonitor(id));
            batch.event(self.monitor_event(page.id, id, Edited::Deleted));
            Ok(((), batch))
        })
        .await
    }

    /// Returns the ping URL of a heartbeat, for callers with write access.
    pub fn ping_url(&self, caller: &Caller, monitor: &Monitor) -> Option<String> {
        let Check::Heartbeat(heartbeat) = &monitor.check else { return None };
        let base = &self.settings().base_url;
        caller.key.access.writes().then(|| format!("{base}/ping/{}", heartbeat.token))
    }

    pub(super) async fn shown_on(&self, page: &Page) -> Result<Vec<Shown>> {
        let id = page.id;
        let monitors = self.store().read(move |store| store.monitors_of(id)).await?;
        let monitors: Vec<Monitor> = monitors.into_iter().map(|monitor| monitor.value).collect();
        self.with_state(page, monitors).await
    }

    async fn shown(&self, page: &Page, monitor: Monitor) -> Result<Shown> {
        let shown = self.with_state(page, vec![monitor]).await?;
        shown.into_iter().next().ok_or(Error::NotFound)
    }

    pub(super) async fn with_state(&self, page: &Page, monitors: Vec<Monitor>) -> Result<Vec<Shown>> {
        let views = self.views(monitors.iter().map(|monitor| monitor.id).collect());
        let figures = self.0.figures.last_day(page, &monitors, self.now());
        let (views, figures) = futures_util::future::join(views, figures).await;
        let plan =
            self.store().reader().account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let (mut figures, now) = (figures.into_iter(), self.now());
        let shown = monitors.into_iter().zip(views).map(|(monitor, view)| {
            let mut figure = figures.next().unwrap_or_default();
            if let Some(downtime) = &view.downtime {
                figure.uptime = downtime.uptime(now, figure.excluded.as_slice());
            }
            let is_excluded = monitor.check.kind() == CheckKind::Component && !plan.has_components();
            let paused_by_plan = is_excluded && !monitor.paused;
            let is_paused = monitor.paused || is_excluded;
            if is_paused {
                // Its current state is unknown, whatever it was before.
                (figure.uptime, figure.latency_ms) = (None, None);
            }
            Shown { monitor: Monitor { paused: is_paused, ..monitor }, view, figure, paused_by_plan }
        });
        Ok(shown.collect())
    }

    pub(super) fn monitor_on(&self, page: &Page, id: MonitorId) -> Result<Versioned<Monitor>> {
        let monitor = self.store().reader().monitor(id)?;
        monitor.filter(|monitor| monitor.value.page == page.id).ok_or(Error::NotFound)
    }

    pub(super) fn monitor_event(&self, page: PageId, monitor: MonitorId, edited: Edited) -> Event {
        Event { at: self.now(), page: Some(page), monitor: Some(monitor), what: What::MonitorEdited(edited) }
    }
}
