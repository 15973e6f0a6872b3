//! Incidents and maintenance windows: opening, editing, updates, deletion, and reading with their monitors.

pub mod listed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use parallax_core::event::{Event, What};
use parallax_core::id::{IncidentId, MonitorId, PageId, SeriesId, UpdateId};
use parallax_core::incident::edit::{IncidentEdit, Opened, Seat};
use parallax_core::incident::series::{MAX_REPEATING, MAX_STOPPED, Names, Series};
use parallax_core::incident::{Impact, Incident, MAX_OPEN, News, Told, UpdatePost};
use parallax_core::page::Page;
use parallax_core::plan::PlanRefusal;
use parallax_core::refusal::Refusals;
use parallax_core::tongue::Tongue;

use self::listed::{Cut, Newest, OPEN_UPDATES, cut};
use super::once::{Done, Once, Redrawn};
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Read, Versioned};

/// An incident or a window with its series and monitors.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The incident.
    pub incident: Incident,
    /// The repeating entry that it was planned from, if it still exists.
    pub series: Option<Series>,
    /// Its monitors that still exist: id, name, and impact if one was set for it.
    pub monitors: Vec<(MonitorId, String, Option<Impact>)>,
    /// Number of older updates omitted in a list.
    pub more: usize,
}

/// Part of a list of incidents and windows, with a cursor.
#[derive(Debug, Clone)]
pub struct Part {
    /// Newest first.
    pub incidents: Vec<Shown>,
    /// Cursor for [`Wanted::before`]; `None` at the end.
    pub next: Option<IncidentId>,
}

impl Redrawn for Shown {
    fn id(&self) -> Option<u128> {
        Some(self.incident.id.to_u128())
    }

    async fn redraw(service: &Service, page: PageId, id: u128) -> Result<Self> {
        let incident = service.store().reader().incident(IncidentId::from_u128(id))?;
        let incident = incident.filter(|incident| incident.value.page == page).ok_or(Error::NotFound)?;
        service.shown_incident(incident.value).await
    }
}

/// Filter and paging of a list of incidents.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Open incidents and unfinished maintenance only.
    pub open: bool,
    /// Cursor: only items after this one in the list.
    pub before: Option<IncidentId>,
    /// Maximum number.
    pub limit: usize,
}

impl Service {
    /// Lists a page's incidents and windows, newest first; fewer than requested if they are long.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access, [`Error::Invalid`] if `before` is not on it.
    pub async fn incidents(&self, caller: &Caller, page: PageId, wanted: Wanted) -> Result<Part> {
        let page = self.page(caller, page)?;
        let before = match wanted.before {
            None => None,
            Some(id) => {
                let unknown = || Refusals::one("before", "must be the id of an incident of this page");
                let incident = self.incident_on(&page, id).map_err(|error| match error {
                    Error::NotFound => unknown().into(),
                    other => other,
                })?;
                Some((incident.value.started_at, id))
            }
        };
        let id = page.id;
        let shown = self.store().read(move |store| {
            let (found, has_more) = listed::whole(store, (id, wanted.open), before, wanted.limit)?;
            let names = names(store, id)?;
            let next = found.last().filter(|_| has_more).map(|last| last.id);
            let incidents = found.into_iter().map(|incident| shown(store, incident, &names));
            Ok(Part { incidents: incidents.collect::<crate::storage::Result<_>>()?, next })
        });
        Ok(shown.await?)
    }

    /// Returns one incident or window of a page.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that the key can't access, or that is on another page.
    pub async fn incident(&self, caller: &Caller, page: PageId, id: IncidentId) -> Result<Shown> {
        let page = self.page(caller, page)?;
        let incident = self.incident_on(&page, id)?;
        self.shown_incident(incident.value).await
    }

    /// Checks that the key can access that incident on that page.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it can't.
    pub fn reaches_incident(&self, caller: &Caller, page: PageId, id: IncidentId) -> Result<()> {
        let page = self.page(caller, page)?;
        self.incident_on(&page, id).map(|_| ())
    }

    /// Opens an incident, or schedules a window.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`], and [`Error::PlanLimit`] if the page has the
    /// maximum of open or repeating ones, or the account has the maximum of incidents.
    pub async fn open_incident(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &IncidentEdit,
        once: &Once<'_, Shown>,
    ) -> Result<Done<Shown>> {
        let names = Names {
            incident: IncidentId::new(self.now(), rand::random()),
            update: UpdateId::new(self.now(), rand::random()),
        };
        let series = SeriesId::new(self.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last slot is taken once.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            let monitors = self.ids_on(&page).await?;
            let tongue = Tongue::of(page.language);
            let seat = Seat { page: page.id, monitors: &monitors, tongue, names, series, now: self.now() };
            let opened = edit.open(seat)?;
            self.has_room(&opened)?;
            self.has_text_room(&page, None, &opened.incident).await?;
            let oldest = self.room_for_incident(&self.account_of(&page)?).await?;
            self.admit_notifying(&page, opened.notify, is_counted).await?;
            let shown =
                Shown { series: opened.series.clone(), ..self.shown_incident(opened.incident).await? };
            let mut batch = Batch::new();
            batch.expect(Expect::Page(page.id, Is::Present));
            batch.write(shown.incident.clone());
            if let Some(oldest) = oldest {
                self.drop_in(&mut batch, &oldest);
            }
            if let Some(series) = opened.series {
                batch.write(Op::DropStoppedSeries(page.id, MAX_STOPPED)).write(series);
            }
            let told = Told {
                incident: names.incident,
                news: opened.news,
                update: Some(names.update),
                notify: opened.notify,
            };
            batch.event(self.incident_event(page.id, told));
            Ok((shown, batch))
        })
        .await
    }

    /// Edits an incident or a window. Subscribers are not notified, except that a window whose end is moved into the
    /// past completes, and its completion is announced.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`].
    pub async fn edit_incident(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        edit: &IncidentEdit,
        once: &Once<'_, Shown>,
    ) -> Result<Done<Shown>> {
        // Under the page's lock, so that the last free bytes for texts are taken once.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            let before = self.incident_on(&page, id)?;
            let monitors = self.ids_on(&page).await?;
            let series = match before.value.series {
                Some(series) => self.store().reader().series(series)?,
                None => None,
            };
            let repeats = series.as_ref().map(|series| series.value.recurrence.every);
            let amended = edit.amend(&before.value, repeats, &monitors, self.now())?;
            self.has_text_room(&page, Some(&before.value), &amended.incident).await?;
            let mut shown = self.shown_incident(amended.incident).await?;
            let mut batch = Batch::new();
            if shown.incident != before.value {
                batch.expect(Expect::Incident(id, Is::At(before.revision))).write(shown.incident.clone());
            }
            if let Some(series) =
                series.filter(|series| amended.stops_series && series.value.stopped_at.is_none())
            {
                let stopped = Series { stopped_at: Some(self.now()), ..series.value };
                batch.expect(Expect::Series(stopped.id, Is::At(series.revision))).write(stopped.clone());
                shown.series = Some(stopped);
            }
            if !batch.is_empty() {
                // The end of a running window is announced as if it had ended on schedule; nothing else is.
                let notify = amended.news == News::Completed && shown.incident.notify;
                let told = Told { incident: id, news: amended.news, update: None, notify };
                batch.event(self.incident_event(page.id, told));
            }
            Ok((shown, batch))
        })
        .await
    }

    /// Posts an update.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`].
    pub async fn post_update(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        post: &UpdatePost,
        once: &Once<'_, Shown>,
    ) -> Result<Done<Shown>> {
        let update = UpdateId::new(self.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last free bytes for texts are taken once.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            let before = self.incident_on(&page, id)?;
            let (after, news, notify) =
                post.settle(&before.value, update, Tongue::of(page.language), self.now())?;
            self.has_text_room(&page, Some(&before.value), &after).await?;
            self.admit_notifying(&page, notify, is_counted).await?;
            let mut shown = self.shown_incident(after).await?;
            // A person who resolves an automatic incident leaves its title to the service.
            let first = before.value.first_of(&shown.monitors);
            let past = before.value.title_in_past(first, page.language);
            if let Some(title) = past.filter(|_| !shown.incident.is_open()) {
                shown.incident.title = title;
            }
            let mut batch = Batch::new();
            batch.expect(Expect::Incident(id, Is::At(before.revision))).write(shown.incident.clone());
            let told = Told { incident: id, news, update: Some(update), notify };
            batch.event(self.incident_event(page.id, told));
            Ok((shown, batch))
        })
        .await
    }

    /// Deletes an incident or a window with its updates.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`].
    pub async fn delete_incident(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        once: &Once<'_, ()>,
    ) -> Result<Done<()>> {
        // Under the page's lock, since a page's deleted windows are one record.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            Ok(((), self.deletion(&page, id)?))
        })
        .await
    }

    /// Builds the batch that deletes an incident in its current version: calendars need a sequence number above its
    /// last one.
    pub(super) fn deletion(&self, page: &Page, id: IncidentId) -> Result<Batch> {
        let before = self.incident_on(page, id)?;
        let mut batch = Batch::new();
        batch.expect(Expect::Incident(id, Is::At(before.revision))).write(Op::DeleteIncident(id));
        self.note_cancelled(&before, &mut batch)?;
        let told = Told { incident: id, news: News::Deleted, update: None, notify: false };
        batch.event(self.incident_event(page.id, told));
        Ok(batch)
    }

    /// Checks that the page may have this one too.
    fn has_room(&self, opened: &Opened) -> Result<()> {
        let standing = self.store().reader().standing(opened.incident.page)?;
        if opened.incident.is_open() && standing.open >= MAX_OPEN {
            return Err(PlanRefusal::OpenFull.into());
        }
        if opened.series.is_some() && standing.repeating >= MAX_REPEATING {
            return Err(PlanRefusal::RepeatingFull.into());
        }
        Ok(())
    }

    /// Lists every open incident and unfinished window of a page, newest first, with their monitors and newest
    /// updates.
    pub(super) async fn open_on(&self, page: PageId, limit: usize) -> Result<Vec<Shown>> {
        let shown = self.store().read(move |store| {
            let newest = Newest { updates: OPEN_UPDATES, bytes: usize::MAX };
            let found = cut(store, (page, true), None, limit, newest)?;
            let names = names(store, page)?;
            found.into_iter().map(|found| shown_cut(store, found, &names)).collect()
        });
        Ok(shown.await?)
    }

    /// Returns the ids of a page's monitors.
    pub(super) async fn ids_on(&self, page: &Page) -> Result<BTreeSet<MonitorId>> {
        let id = page.id;
        let monitors = self.store().read(move |store| store.monitors_of(id)).await?;
        Ok(monitors.into_iter().map(|monitor| monitor.value.id).collect())
    }

    pub(super) async fn shown_incident(&self, incident: Incident) -> Result<Shown> {
        let shown = self.store().read(move |store| {
            let names = names(store, incident.page)?;
            shown(store, incident, &names)
        });
        Ok(shown.await?)
    }

    pub(super) fn incident_on(&self, page: &Page, id: IncidentId) -> Result<Versioned<Incident>> {
        let incident = self.store().reader().incident(id)?;
        incident.filter(|incident| incident.value.page == page.id).ok_or(Error::NotFound)
    }

    pub(super) fn incident_event(&self, page: PageId, told: Told) -> Event {
        Event { at: self.now(), page: Some(page), monitor: None, what: What::Incident(told) }
    }
}

pub(super) fn names(store: &dyn Read, page: PageId) -> crate::storage::Result<BTreeMap<MonitorId, String>> {
    let monitors = store.monitors_of(page)?.into_iter();
    Ok(monitors.map(|monitor| (monitor.value.id, monitor.value.name)).collect())
}

pub(super) fn shown(
    store: &dyn Read,
    incident: Incident,
    names: &BTreeMap<MonitorId, String>,
) -> crate::storage::Result<Shown> {
    let series = match incident.series {
        Some(id) => store.series(id)?.map(|series| series.value),
        None => None,
    };
    let named = incident.affected.iter().filter_map(|affected| {
        Some((affected.monitor, names.get(&affected.monitor)?.clone(), affected.impact))
    });
    Ok(Shown { monitors: named.collect(), series, incident, more: 0 })
}

/// The same for one in a list.
pub(super) fn shown_cut(
    store: &dyn Read,
    (incident, more): Cut,
    names: &BTreeMap<MonitorId, String>,
) -> crate::storage::Result<Shown> {
    Ok(Shown { more, ..shown(store, incident.value, names)? })
}
