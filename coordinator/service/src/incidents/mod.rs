//! Incidents and maintenance windows: opening, editing, updates, deletion, and reading with their monitors.

mod cancelled_windows;
mod incident_limit;
pub(crate) mod lists;
mod notification_limits;
mod updates;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use parallax_core::id::{AccountId, IncidentId, MonitorId, PageId, SeriesId, UpdateId};
use parallax_core::incident::edit::{CreatedIncident, IncidentEdit, NewIncident};
use parallax_core::incident::series::{MAX_ACTIVE_SERIES, MAX_STOPPED, Series, WindowIds};
use parallax_core::incident::{Impact, Incident, IncidentChange, IncidentEvent, IncidentKind, MAX_OPEN_INCIDENTS};
use parallax_core::locale::Locale;
use parallax_core::page::Page;
use parallax_core::page_view::IncidentView;
use parallax_core::plan::PlanLimitError;
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::time::HOUR;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, StoreRead};

use self::lists::{OPEN_UPDATES, TruncatedIncident, UpdateLimits, list_truncated};
use super::context::ServiceContext;
use super::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use super::{Caller, ServiceError, ServiceResult};

/// An incident or a window with its series and monitors.
#[derive(Debug, Clone)]
pub struct IncidentDetail {
    /// The incident.
    pub incident: Incident,
    /// The repeating entry that it was planned from, if it still exists.
    pub series: Option<Series>,
    /// Its monitors that still exist: id, name, and impact if one was set for it.
    pub monitors: Vec<(MonitorId, String, Option<Impact>)>,
    /// Number of older updates omitted in a list.
    pub omitted_updates: usize,
}

impl From<IncidentDetail> for IncidentView {
    fn from(detail: IncidentDetail) -> Self {
        let current_series = detail.series.filter(|series| series.stopped_at.is_none());
        let repeats = current_series.map(|series| series.recurrence.frequency);
        let IncidentDetail { incident, monitors, omitted_updates, .. } = detail;
        Self { incident, monitors, repeats, omitted_updates }
    }
}

/// Part of a list of incidents and windows, with a cursor.
#[derive(Debug, Clone)]
pub struct IncidentSlice {
    /// Newest first.
    pub incidents: Vec<IncidentDetail>,
    /// Cursor for [`IncidentFilter::before`]; `None` at the end.
    pub next: Option<IncidentId>,
}

impl Rereadable for IncidentDetail {
    fn id(&self) -> Option<u128> {
        Some(self.incident.id.to_u128())
    }

    async fn reread(context: &ServiceContext, page: PageId, id: u128) -> ServiceResult<Self> {
        let incident = context.store().reader().incident(IncidentId::from_u128(id))?;
        let incident = incident.filter(|incident| incident.value.page == page).ok_or(ServiceError::NotFound)?;
        let incident = incident.value;
        let detail = context.store().read(move |store| {
            let names = monitor_names(store, incident.page)?;
            incident_detail(store, incident, &names)
        });
        Ok(detail.await?)
    }
}

/// Filter and paging of a list of incidents.
#[derive(Debug, Clone, Copy, Default)]
pub struct IncidentFilter {
    /// Open incidents and unfinished maintenance only.
    pub open: bool,
    /// Those of that kind only.
    pub kind: Option<IncidentKind>,
    /// Those that affect that monitor only. A window without monitors affects all.
    pub monitor: Option<MonitorId>,
    /// Cursor: only items after this one in the list.
    pub before: Option<IncidentId>,
    /// Maximum number.
    pub limit: usize,
}

/// Owns incidents and maintenance windows, with their limits per page and account. A change under the page's lock
/// counts every open one, so that the last slot is taken once.
#[derive(Debug)]
pub struct IncidentService {
    context: Arc<ServiceContext>,
    /// Accounts with more incidents than twice the largest plan's number, with their counts; `None` before the first
    /// sweep.
    excess_incidents: Mutex<Option<BTreeMap<AccountId, usize>>>,
    /// Notifications of subscribers, by page.
    page_notify_limit: Mutex<FixedWindowLimit<PageId>>,
    /// Notifications of subscribers, by account.
    account_notify_limit: Mutex<FixedWindowLimit<AccountId>>,
}

impl IncidentService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            excess_incidents: Mutex::default(),
            page_notify_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            account_notify_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
        }
    }

    /// Lists a page's incidents and windows, newest first; fewer than requested if they are long, or if few of many
    /// pass the filter.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access, [`ServiceError::Invalid`] if `before` is not on
    /// it.
    pub async fn list(&self, caller: &Caller, page: PageId, filter: IncidentFilter) -> ServiceResult<IncidentSlice> {
        let page = self.context.page(caller, page)?;
        let before = match filter.before {
            None => None,
            Some(id) => {
                let unknown = || ValidationErrors::single("before", "must be the id of an incident of this page");
                let incident = self.context.incident_on(&page, id).map_err(|error| match error {
                    ServiceError::NotFound => unknown().into(),
                    other => other,
                })?;
                Some((incident.value.started_at, id))
            }
        };
        let id = page.id;
        let details = self.context.store().read(move |store| {
            let (slice, next) = lists::list_full(store, (id, filter), before)?;
            let names = monitor_names(store, id)?;
            let incidents = slice.into_iter().map(|incident| incident_detail(store, incident, &names));
            Ok(IncidentSlice { incidents: incidents.collect::<parallax_store::Result<_>>()?, next })
        });
        Ok(details.await?)
    }

    /// Returns one incident or window of a page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for one that the key can't access, or that is on another page.
    pub async fn get(&self, caller: &Caller, page: PageId, id: IncidentId) -> ServiceResult<IncidentDetail> {
        let page = self.context.page(caller, page)?;
        let incident = self.context.incident_on(&page, id)?;
        self.incident_detail(incident.value).await
    }

    /// Checks that the key can access that incident on that page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if it can't.
    pub fn check_access(&self, caller: &Caller, page: PageId, id: IncidentId) -> ServiceResult<()> {
        let page = self.context.page(caller, page)?;
        self.context.incident_on(&page, id).map(|_| ())
    }

    /// Opens an incident, or schedules a window.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`], and
    /// [`ServiceError::PlanLimit`] if the page has the maximum of open or repeating ones, or the account has the
    /// maximum of incidents.
    pub async fn open(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &IncidentEdit,
        once: &IdempotentRequest<'_, IncidentDetail>,
    ) -> ServiceResult<RequestOutcome<IncidentDetail>> {
        let names = WindowIds {
            incident: IncidentId::new(self.context.now(), rand::random()),
            update: UpdateId::new(self.context.now(), rand::random()),
        };
        let series = SeriesId::new(self.context.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last slot is taken once.
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let monitors = self.context.monitor_ids(&page).await?;
                let locale = Locale::of(page.language);
                let new_incident = NewIncident {
                    page: page.id,
                    monitors: &monitors,
                    locale,
                    ids: names,
                    series,
                    now: self.context.now(),
                };
                let opened = edit.validate_new(new_incident)?;
                self.check_open_limits(&opened)?;
                self.check_text_size(&page, None, &opened.incident).await?;
                let oldest = self.incident_to_replace(&self.context.account_of(&page)?).await?;
                self.admit_notification(&page, opened.notify, is_counted).await?;
                let detail =
                    IncidentDetail { series: opened.series.clone(), ..self.incident_detail(opened.incident).await? };
                let mut batch = Batch::new();
                batch.expect(Expect::Page(page.id, Presence::Present));
                batch.write(detail.incident.clone());
                if let Some(oldest) = oldest {
                    self.add_deletion(&mut batch, &oldest);
                }
                if let Some(series) = opened.series {
                    batch.write(Op::DeleteStoppedSeries(page.id, MAX_STOPPED)).write(series);
                }
                let event = IncidentEvent {
                    incident: names.incident,
                    change: opened.change,
                    update: Some(names.update),
                    notify: opened.notify,
                };
                batch.event(self.context.incident_event(page.id, event));
                Ok((detail, batch))
            })
            .await
    }

    /// Edits an incident or a window. Subscribers are not notified, except that a window whose end is moved into the
    /// past completes, and its completion is announced.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`].
    pub async fn edit(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        edit: &IncidentEdit,
        once: &IdempotentRequest<'_, IncidentDetail>,
    ) -> ServiceResult<RequestOutcome<IncidentDetail>> {
        // Under the page's lock, so that the last free bytes for texts are taken once.
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let before = self.context.incident_on(&page, id)?;
                let monitors = self.context.monitor_ids(&page).await?;
                let series = match before.value.series {
                    Some(series) => self.context.store().reader().series(series)?,
                    None => None,
                };
                let repeats = series.as_ref().map(|series| series.value.recurrence.frequency);
                let amended = edit.validate_edit(&before.value, repeats, &monitors, self.context.now())?;
                self.check_text_size(&page, Some(&before.value), &amended.incident).await?;
                let mut detail = self.incident_detail(amended.incident).await?;
                let mut batch = Batch::new();
                if detail.incident != before.value {
                    batch.expect(Expect::Incident(id, Presence::At(before.revision))).write(detail.incident.clone());
                }
                if let Some(series) = series.filter(|series| amended.stops_series && series.value.stopped_at.is_none())
                {
                    let stopped = Series { stopped_at: Some(self.context.now()), ..series.value };
                    batch.expect(Expect::Series(stopped.id, Presence::At(series.revision))).write(stopped.clone());
                    detail.series = Some(stopped);
                }
                if !batch.is_empty() {
                    // The end of a running window is announced as if it had ended on schedule; nothing else is.
                    let notify = amended.change == IncidentChange::Completed && detail.incident.notify;
                    let event = IncidentEvent { incident: id, change: amended.change, update: None, notify };
                    batch.event(self.context.incident_event(page.id, event));
                }
                Ok((detail, batch))
            })
            .await
    }

    /// Deletes an incident or a window with its updates.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`].
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        // Under the page's lock, since a page's deleted windows are one record.
        self.context
            .change_page_once(
                caller,
                page,
                page.to_u128(),
                once,
                |page| async move { Ok(((), self.deletion(&page, id)?)) },
            )
            .await
    }

    /// Builds the batch that deletes an incident in its current version: calendars need a sequence number above its
    /// last one.
    pub(crate) fn deletion(&self, page: &Page, id: IncidentId) -> ServiceResult<Batch> {
        let before = self.context.incident_on(page, id)?;
        let mut batch = Batch::new();
        batch.expect(Expect::Incident(id, Presence::At(before.revision))).write(Op::DeleteIncident(id));
        self.record_cancelled(&before, &mut batch)?;
        let event = IncidentEvent { incident: id, change: IncidentChange::Deleted, update: None, notify: false };
        batch.event(self.context.incident_event(page.id, event));
        Ok(batch)
    }

    /// Checks that the page may have this one too.
    fn check_open_limits(&self, opened: &CreatedIncident) -> ServiceResult<()> {
        let standing = self.context.store().reader().page_counts(opened.incident.page)?;
        if opened.incident.is_open() && standing.open_incidents >= MAX_OPEN_INCIDENTS {
            return Err(PlanLimitError::OpenIncidentsFull.into());
        }
        if opened.series.is_some() && standing.running_series >= MAX_ACTIVE_SERIES {
            return Err(PlanLimitError::SeriesFull.into());
        }
        Ok(())
    }

    /// Lists every open incident and unfinished window of a page, newest first, with their monitors and newest
    /// updates.
    pub(crate) async fn open_incidents(&self, page: PageId, limit: usize) -> ServiceResult<Vec<IncidentDetail>> {
        let details = self.context.store().read(move |store| {
            let newest = UpdateLimits { updates: OPEN_UPDATES, bytes: usize::MAX };
            let incidents = list_truncated(store, (page, true), None, limit, newest)?;
            let names = monitor_names(store, page)?;
            incidents.into_iter().map(|incident| truncated_detail(store, incident, &names)).collect()
        });
        Ok(details.await?)
    }

    pub(crate) async fn incident_detail(&self, incident: Incident) -> ServiceResult<IncidentDetail> {
        let detail = self.context.store().read(move |store| {
            let names = monitor_names(store, incident.page)?;
            incident_detail(store, incident, &names)
        });
        Ok(detail.await?)
    }
}

pub(super) fn monitor_names(
    store: &dyn StoreRead,
    page: PageId,
) -> parallax_store::Result<BTreeMap<MonitorId, String>> {
    let monitors = store.monitors_of(page)?.into_iter();
    Ok(monitors.map(|monitor| (monitor.value.id, monitor.value.name)).collect())
}

pub(super) fn incident_detail(
    store: &dyn StoreRead,
    incident: Incident,
    names: &BTreeMap<MonitorId, String>,
) -> parallax_store::Result<IncidentDetail> {
    let series = match incident.series {
        Some(id) => store.series(id)?.map(|series| series.value),
        None => None,
    };
    let monitors = incident
        .affected
        .iter()
        .filter_map(|affected| Some((affected.monitor, names.get(&affected.monitor)?.clone(), affected.impact)));
    Ok(IncidentDetail { monitors: monitors.collect(), series, incident, omitted_updates: 0 })
}

/// The same for one in a list.
pub(super) fn truncated_detail(
    store: &dyn StoreRead,
    (incident, more): TruncatedIncident,
    names: &BTreeMap<MonitorId, String>,
) -> parallax_store::Result<IncidentDetail> {
    Ok(IncidentDetail { omitted_updates: more, ..incident_detail(store, incident.value, names)? })
}
