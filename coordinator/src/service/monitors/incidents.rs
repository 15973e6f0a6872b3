//! Effects on automatic incidents when a person renames, pauses or deletes a monitor: titles lose the old name, and
//! no incident stays open for an unmonitored one.

use std::collections::BTreeMap;

use parallax_core::id::{MonitorId, UpdateId};
use parallax_core::incident::{Incident, Kind, MAX_UNFINISHED, News, Told};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::telling::Outages;

use crate::service::{Result, Service};
use crate::storage::{Batch, Expect, Is, Read, Versioned};

/// A person's change of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act<'a> {
    /// It gets this name.
    Rename(&'a str),
    /// It is paused, and gets this name.
    Pause(&'a str),
    /// It is deleted.
    Delete,
}

/// A page's open automatic incidents, its announced outages, and its monitors before the change.
struct Found {
    incidents: Vec<Versioned<Incident>>,
    outages: Outages,
    monitors: BTreeMap<MonitorId, Monitor>,
}

impl Service {
    /// Adds the effects on incidents to the batch. When the last monitor that is down leaves an incident, it is
    /// resolved; subscribers are notified of that if `notify` is true.
    pub(super) async fn act_on_incidents(
        &self,
        page: &Page,
        monitor: &Monitor,
        act: Act<'_>,
        notify: bool,
        batch: &mut Batch,
    ) -> Result<()> {
        let id = page.id;
        let found = self.store().read(move |store| found(store, id)).await?;
        for Versioned { revision, value: incident } in &found.incidents {
            let update = UpdateId::new(self.now(), rand::random());
            let Some((changed, news)) = found.after(incident, page, (monitor, act), update, self.now())
            else {
                continue;
            };
            let is_over = news == News::Resolved;
            let is_said = changed.updates.len() > incident.updates.len();
            batch.expect(Expect::Incident(incident.id, Is::At(*revision))).write(changed);
            let update = is_said.then_some(update);
            let told = Told { incident: incident.id, news, update, notify: notify && is_over };
            batch.event(self.incident_event(id, told));
        }
        Ok(())
    }
}

fn found(store: &dyn Read, page: parallax_core::id::PageId) -> crate::storage::Result<Found> {
    let outages = store.outages(page)?.map(|outages| outages.value).unwrap_or_default();
    // Automatic incidents are open only for announced outages or flapping monitors.
    if outages.are_over() {
        return Ok(Found { incidents: Vec::new(), outages, monitors: BTreeMap::new() });
    }
    let mut incidents = store.incidents_of(page, true, None, MAX_UNFINISHED)?;
    incidents.retain(|incident| incident.value.automatic && incident.value.kind == Kind::Incident);
    let monitors = store.monitors_of(page)?.into_iter().map(|it| (it.value.id, it.value)).collect();
    Ok(Found { incidents, outages, monitors })
}

impl Found {
    /// Returns the incident after the change, and the kind of change; `None` if it stays the same.
    fn after(
        &self,
        incident: &Incident,
        page: &Page,
        (monitor, act): (&Monitor, Act<'_>),
        update: UpdateId,
        now: parallax_core::time::Timestamp,
    ) -> Option<(Incident, News)> {
        let name = |id: MonitorId| self.monitors.get(&id).map(|monitor| monitor.name.as_str());
        let first = incident.affected.first().map(|first| first.monitor);
        incident.affected.iter().find(|one| one.monitor == monitor.id)?;
        let is_ours = incident.has_title_of_ours(first.and_then(name));
        let name_after = match act {
            Act::Rename(name) | Act::Pause(name) => name,
            Act::Delete => monitor.name.as_str(),
        };
        let is_first = first == Some(monitor.id);
        let mut after = incident.clone();
        if is_first && is_ours && name_after != monitor.name {
            after.retitle(Some(&monitor.name), name_after, page.language);
        }
        let renamed = after.title != incident.title;
        if matches!(act, Act::Rename(_)) {
            return renamed.then_some((after, News::Changed));
        }
        let of_this = |outage: &parallax_core::telling::ToldOutage| outage.incident == Some(incident.id);
        let is_checked = |id: &MonitorId| self.monitors.get(id).is_some_and(|monitor| !monitor.paused);
        let is_another = |id: &MonitorId| *id != monitor.id && is_checked(id);
        let is_down = self.outages.down.iter().any(|(id, outage)| of_this(outage) && is_another(id));
        let flapping = &self.outages.flapping;
        let flaps = flapping.iter().any(|(id, notice)| notice.incident == incident.id && is_another(id));
        if !is_down && !flaps {
            let names = (name_after, if is_first { Some(name_after) } else { first.and_then(name) });
            return Some((after.ended_unmonitored(names, update, page.language, now), News::Resolved));
        }
        if act != Act::Delete {
            return renamed.then_some((after, News::Changed));
        }
        after.affected.retain(|one| one.monitor != monitor.id);
        let left = after.affected.first().and_then(|first| name(first.monitor));
        if let Some(first) = left.filter(|_| is_ours) {
            after.retitle(None, first, page.language);
        }
        Some((after, News::Changed))
    }
}
