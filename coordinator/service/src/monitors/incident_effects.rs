//! Effects on automatic incidents when a person renames, pauses or deletes a monitor: titles lose the old name, and
//! no incident stays open for an unmonitored one.

use std::collections::BTreeMap;

use parallax_core::alert_settings::AnnouncedOutages;
use parallax_core::id::{MonitorId, UpdateId};
use parallax_core::incident::{Incident, IncidentChange, IncidentEvent, IncidentKind, MAX_UNFINISHED};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_store::{Batch, Expect, Presence, StoreRead, VersionedValue};

use super::MonitorService;
use crate::ServiceResult;

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

/// A page's open automatic incidents, its announced outages, and its monitors before the change.
struct PageIncidents {
    incidents: Vec<VersionedValue<Incident>>,
    outages: AnnouncedOutages,
    monitors: BTreeMap<MonitorId, Monitor>,
}

impl MonitorService {
    /// Adds the effects on incidents to the batch. When the last monitor that is down leaves an incident, it is
    /// resolved; subscribers are notified of that if `notify` is true.
    pub(super) async fn apply_to_incidents(
        &self,
        page: &Page,
        monitor: &Monitor,
        change_kind: MonitorChange<'_>,
        notify: bool,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let id = page.id;
        let incidents = self.context.store().read(move |store| read_incidents(store, id)).await?;
        for VersionedValue { revision, value: incident } in &incidents.incidents {
            let update = UpdateId::new(self.context.now(), rand::random());
            let Some((changed, change)) =
                incidents.after(incident, page, (monitor, change_kind), update, self.context.now())
            else {
                continue;
            };
            let is_over = change == IncidentChange::Resolved;
            let is_said = changed.updates.len() > incident.updates.len();
            batch.expect(Expect::Incident(incident.id, Presence::At(*revision))).write(changed);
            let update = is_said.then_some(update);
            let event = IncidentEvent { incident: incident.id, change, update, notify: notify && is_over };
            batch.event(self.context.incident_event(id, event));
        }
        Ok(())
    }
}

fn read_incidents(store: &dyn StoreRead, page: parallax_core::id::PageId) -> parallax_store::Result<PageIncidents> {
    let outages = store.announced_outages(page)?.map(|outages| outages.value).unwrap_or_default();
    // Automatic incidents are open only for announced outages or flapping monitors.
    if outages.is_empty() {
        return Ok(PageIncidents { incidents: Vec::new(), outages, monitors: BTreeMap::new() });
    }
    let mut incidents = store.incidents_of(page, true, None, MAX_UNFINISHED)?;
    incidents.retain(|incident| incident.value.automatic && incident.value.kind == IncidentKind::Incident);
    let monitors = store.monitors_of(page)?.into_iter().map(|it| (it.value.id, it.value)).collect();
    Ok(PageIncidents { incidents, outages, monitors })
}

impl PageIncidents {
    /// Returns the incident after the change, and the kind of change; `None` if it stays the same.
    fn after(
        &self,
        incident: &Incident,
        page: &Page,
        (monitor, change_kind): (&Monitor, MonitorChange<'_>),
        update: UpdateId,
        now: parallax_core::time::Timestamp,
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
            after.set_generated_title(Some(&monitor.name), name_after, page.language);
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
            return Some((after.ended_unmonitored(names, update, page.language, now), IncidentChange::Resolved));
        }
        if change_kind != MonitorChange::Delete {
            return renamed.then_some((after, IncidentChange::Changed));
        }
        after.affected.retain(|one| one.monitor != monitor.id);
        let remaining = after.affected.first().and_then(|first| name(first.monitor));
        if let Some(first) = remaining.filter(|_| is_ours) {
            after.set_generated_title(None, first, page.language);
        }
        Some((after, IncidentChange::Changed))
    }
}
