//! Effects on automatic incidents when a person renames, pauses or deletes a monitor: titles lose the old name, and
//! no incident stays open for an unmonitored one.

use std::collections::BTreeMap;

use parallax_core::alert_settings::AnnouncedOutages;
use parallax_core::id::{MonitorId, PageId, UpdateId};
use parallax_core::incident::{Incident, IncidentChange, IncidentEvent, IncidentKind, MAX_UNFINISHED};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Presence, StoreRead, VersionedValue};

use super::MonitorService;
use crate::{Caller, ServiceResult};

/// A person's change of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MonitorChange<'a> {
    /// It gets this name.
    Rename(&'a str),
    /// It is paused, and gets this name.
    Pause(&'a str),
    /// It is deleted.
    Delete,
}

/// A page's open automatic incidents, its announced outages, and its monitors, to which the changes of one batch are
/// applied in turn.
pub(super) struct IncidentEffects {
    page: Page,
    incidents: Vec<IncidentEffect>,
    outages: AnnouncedOutages,
    monitors: BTreeMap<MonitorId, Monitor>,
}

/// An incident with the effect of the changes so far.
struct IncidentEffect {
    revision: u64,
    /// Title before the changes.
    title: String,
    incident: Incident,
    /// The last change; `None` if there was none.
    change: Option<IncidentChange>,
    /// Update that it got.
    update: Option<UpdateId>,
}

impl MonitorService {
    /// Returns the titles of the automatic incidents that end if these monitors are paused or deleted together.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access.
    pub async fn ending_incidents(
        &self,
        caller: &Caller,
        page: PageId,
        monitors: &[MonitorId],
    ) -> ServiceResult<Vec<String>> {
        let page = self.context.page(caller, page)?;
        let mut effects = self.incident_effects(&page).await?;
        for id in monitors {
            let Some(monitor) = effects.monitors.get(id).filter(|monitor| !monitor.paused).cloned() else { continue };
            effects.apply(&monitor, MonitorChange::Pause(&monitor.name), self.context.now());
        }
        Ok(effects.resolved_titles().map(str::to_owned).collect())
    }

    /// Adds the effects of one change on incidents to the batch. When the last monitor that is down leaves an incident,
    /// it is resolved; subscribers are notified of that if `notify` is true.
    pub(super) async fn apply_to_incidents(
        &self,
        page: &Page,
        monitor: &Monitor,
        change_kind: MonitorChange<'_>,
        notify: bool,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let mut effects = self.incident_effects(page).await?;
        effects.apply(monitor, change_kind, self.context.now());
        self.write_effects(effects, notify, batch);
        Ok(())
    }

    /// Reads what changes of a page's monitors may affect.
    pub(super) async fn incident_effects(&self, page: &Page) -> ServiceResult<IncidentEffects> {
        let page = page.clone();
        Ok(self.context.store().read(move |store| read_effects(store, page)).await?)
    }

    /// Adds each changed incident and its event to the batch, once.
    pub(super) fn write_effects(&self, effects: IncidentEffects, notify: bool, batch: &mut Batch) {
        let page = effects.page.id;
        for IncidentEffect { revision, incident, change, update, .. } in effects.incidents {
            let Some(change) = change else { continue };
            let notify = notify && change == IncidentChange::Resolved;
            let event = IncidentEvent { incident: incident.id, change, update, notify };
            batch.expect(Expect::Incident(incident.id, Presence::At(revision))).write(incident);
            batch.event(self.context.incident_event(page, event));
        }
    }
}

fn read_effects(store: &dyn StoreRead, page: Page) -> parallax_store::Result<IncidentEffects> {
    let outages = store.announced_outages(page.id)?.map(|outages| outages.value).unwrap_or_default();
    // Automatic incidents are open only for announced outages or flapping monitors.
    if outages.is_empty() {
        return Ok(IncidentEffects { page, incidents: Vec::new(), outages, monitors: BTreeMap::new() });
    }
    let mut incidents = store.incidents_of(page.id, true, None, MAX_UNFINISHED)?;
    incidents.retain(|incident| incident.value.automatic && incident.value.kind == IncidentKind::Incident);
    let incidents = incidents.into_iter().map(|VersionedValue { revision, value: incident }| IncidentEffect {
        revision,
        title: incident.title.clone(),
        incident,
        change: None,
        update: None,
    });
    let incidents = incidents.collect();
    let monitors = store.monitors_of(page.id)?.into_iter().map(|it| (it.value.id, it.value)).collect();
    Ok(IncidentEffects { page, incidents, outages, monitors })
}

impl IncidentEffects {
    /// The titles, as they were before, of the incidents that the changes so far resolve.
    pub(super) fn resolved_titles(&self) -> impl Iterator<Item = &str> {
        let resolved = self.incidents.iter().filter(|effect| effect.change == Some(IncidentChange::Resolved));
        resolved.map(|effect| effect.title.as_str())
    }

    /// Applies one change of a monitor, which is given as it was before.
    pub(super) fn apply(&mut self, monitor: &Monitor, change_kind: MonitorChange<'_>, now: Timestamp) {
        let mut incidents = std::mem::take(&mut self.incidents);
        // A resolved incident is over: later changes leave it as it is.
        for effect in incidents.iter_mut().filter(|effect| effect.change != Some(IncidentChange::Resolved)) {
            let update = UpdateId::new(now, rand::random());
            let Some((after, change)) = self.after(&effect.incident, (monitor, change_kind), update, now) else {
                continue;
            };
            effect.update = (after.updates.len() > effect.incident.updates.len()).then_some(update);
            (effect.incident, effect.change) = (after, Some(change));
        }
        self.incidents = incidents;
        self.apply_to_monitors(monitor.id, change_kind);
    }

    /// Records the change for those that follow.
    fn apply_to_monitors(&mut self, id: MonitorId, change_kind: MonitorChange<'_>) {
        match (change_kind, self.monitors.get_mut(&id)) {
            (MonitorChange::Rename(name), Some(monitor)) => monitor.name = name.to_owned(),
            (MonitorChange::Pause(name), Some(monitor)) => (monitor.name, monitor.paused) = (name.to_owned(), true),
            (MonitorChange::Delete, _) => {
                self.monitors.remove(&id);
            }
            (MonitorChange::Rename(_) | MonitorChange::Pause(_), None) => {}
        }
    }

    /// Returns the incident after the change, and the kind of change; `None` if it stays the same.
    fn after(
        &self,
        incident: &Incident,
        (monitor, change_kind): (&Monitor, MonitorChange<'_>),
        update: UpdateId,
        now: Timestamp,
    ) -> Option<(Incident, IncidentChange)> {
        let name = |id: MonitorId| self.monitors.get(&id).map(|monitor| monitor.name.as_str());
        let first = incident.affected.first().map(|first| first.monitor);
        incident.affected.iter().find(|one| one.monitor == monitor.id)?;
        let is_ours = incident.has_generated_title(first.and_then(name));
        let name_after = match change_kind {
            MonitorChange::Rename(name) | MonitorChange::Pause(name) => name,
            MonitorChange::Delete => monitor.name.as_str(),
        };
        let is_first = first == Some(monitor.id);
        let mut after = incident.clone();
        if is_first && is_ours && name_after != monitor.name {
            after.set_generated_title(Some(&monitor.name), name_after, self.page.language);
        }
        let renamed = after.title != incident.title;
        if matches!(change_kind, MonitorChange::Rename(_)) {
            return renamed.then_some((after, IncidentChange::Changed));
        }
        let of_this = |outage: &parallax_core::alert_settings::AnnouncedOutage| outage.incident == Some(incident.id);
        let is_checked = |id: &MonitorId| self.monitors.get(id).is_some_and(|monitor| !monitor.paused);
        let is_another = |id: &MonitorId| *id != monitor.id && is_checked(id);
        let is_down = self.outages.down.iter().any(|(id, outage)| of_this(outage) && is_another(id));
        let flapping = &self.outages.flapping;
        let flaps = flapping.iter().any(|(id, notice)| notice.incident == incident.id && is_another(id));
        if !is_down && !flaps {
            let names = (name_after, if is_first { Some(name_after) } else { first.and_then(name) });
            return Some((after.ended_unmonitored(names, update, self.page.language, now), IncidentChange::Resolved));
        }
        if change_kind != MonitorChange::Delete {
            return renamed.then_some((after, IncidentChange::Changed));
        }
        after.affected.retain(|one| one.monitor != monitor.id);
        let remaining = after.affected.first().and_then(|first| name(first.monitor));
        if let Some(first) = remaining.filter(|_| is_ours) {
            after.set_generated_title(None, first, self.page.language);
        }
        Some((after, IncidentChange::Changed))
    }
}
