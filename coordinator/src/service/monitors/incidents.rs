//! Automatic incidents of a page where a person renames, pauses or deletes a monitor: they keep no name that is gone, and
//! none stays open for what is no longer monitored.

use std::collections::BTreeMap;

use parallax_core::id::{MonitorId, UpdateId};
use parallax_core::incident::{Incident, Kind, MAX_UNFINISHED, News, Told};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::telling::Outages;

use crate::service::{Result, Service};
use crate::storage::{Batch, Expect, Is, Read, Versioned};

/// Act of a person on a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act<'a> {
    /// It has another name from now on.
    Rename(&'a str),
    /// It is not checked any longer.
    Pause,
    /// It is gone.
    Delete,
}

/// A page's open automatic incidents, its outages, and its monitors as they were before the act.
struct Found {
    incidents: Vec<Versioned<Incident>>,
    outages: Outages,
    monitors: BTreeMap<MonitorId, Monitor>,
}

impl Service {
    /// Adds to the batch what the act makes of incidents. Where the last monitor that was down leaves, its incident is over;
    /// subscribers hear of that where `notify` says so.
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
    // Without an outage that was told, and where nothing flaps, no automatic incident is open.
    if outages.are_over() {
        return Ok(Found { incidents: Vec::new(), outages, monitors: BTreeMap::new() });
    }
    let mut incidents = store.incidents_of(page, true, None, MAX_UNFINISHED)?;
    incidents.retain(|incident| incident.value.automatic && incident.value.kind == Kind::Incident);
    let monitors = store.monitors_of(page)?.into_iter().map(|it| (it.value.id, it.value)).collect();
    Ok(Found { incidents, outages, monitors })
}

impl Found {
    /// The incident after the act, and its news; none where it stays as it is.
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
        let mut after = incident.clone();
        if let Act::Rename(other) = act {
            if first != Some(monitor.id) || !is_ours {
                return None;
            }
            let flaps = incident.says_flapping(first.and_then(name));
            after.retitle(other, flaps, page.language);
            return Some((after, News::Changed));
        }
        let of_this = |outage: &parallax_core::telling::ToldOutage| outage.incident == Some(incident.id);
        let is_checked = |id: &MonitorId| self.monitors.get(id).is_some_and(|monitor| !monitor.paused);
        let is_another = |id: &MonitorId| *id != monitor.id && is_checked(id);
        let is_down = self.outages.down.iter().any(|(id, outage)| of_this(outage) && is_another(id));
        let flapping = &self.outages.flapping;
        let flaps = flapping.iter().any(|(id, notice)| notice.incident == incident.id && is_another(id));
        if !is_down && !flaps {
            let names = (monitor.name.as_str(), first.and_then(name));
            return Some((incident.ended_unmonitored(names, update, page.language, now), News::Resolved));
        }
        if act != Act::Delete {
            return None;
        }
        after.affected.retain(|one| one.monitor != monitor.id);
        let left = after.affected.first().and_then(|first| name(first.monitor));
        if let Some(first) = left.filter(|_| is_ours) {
            after.retitle(first, flaps, page.language);
        }
        Some((after, News::Changed))
    }
}
