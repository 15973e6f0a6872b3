//! Automatic incidents: announced outages open them and recoveries resolve them, by the rules in
//! [`automatic`](parallax_core::incident::automatic).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use parallax_core::event::{Event, What};
use parallax_core::id::{IncidentId, PageId};
use parallax_core::incident::automatic::{Desk, Happened, Watched};
use parallax_core::incident::{Incident, Kind, MAX_UNFINISHED};
use parallax_core::monitor::Monitor;
use parallax_core::page::{NOBODY, Page};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::telling::Outages;
use parallax_core::time::Timestamp;
use parallax_core::watch::{Confirmation, Watch};
use sha2::{Digest, Sha256};

use super::Reaction;
use crate::storage::{Batch, Expect, Is, Op, Read, Recorded, Result};

/// Journal consumer that opens and resolves automatic incidents.
#[derive(Debug, Clone, Copy, Default)]
pub struct Incidents;

impl Reaction for Incidents {
    const NAME: &'static str = "incidents";

    fn react(&self, read: &dyn Read, events: &[Recorded], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        let mut pages: BTreeMap<PageId, Option<Loaded>> = BTreeMap::new();
        for recorded in events {
            let (Some(happened), Some(id)) = (Happened::of(&recorded.event), recorded.event.page) else {
                continue;
            };
            let page = match pages.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                // Edits are frequent and outages rare: without an outage, only a new one can affect an
                // incident.
                Entry::Vacant(_) if !matches!(happened, Happened::WentDown(..)) && calm(read, id)? => {
                    continue;
                }
                Entry::Vacant(unknown) => unknown.insert(Loaded::of(read, id)?),
            };
            let Some(page) = page else { continue };
            let mut made = 0_u32;
            let mut random = || {
                made = made.wrapping_add(1);
                digest(recorded.seq, made)
            };
            for told in page.desk.take(happened, recorded.event.at, &mut random) {
                batch.event(Event { at: now, page: Some(id), monitor: None, what: What::Incident(told) });
            }
        }
        pages.into_values().flatten().for_each(|page| page.write(&mut batch));
        Ok(batch)
    }
}

/// A page's state as read and after the events.
struct Loaded {
    desk: Desk,
    /// Incidents as read, with their revisions.
    before: BTreeMap<IncidentId, (u64, Incident)>,
    outages: (Is, Outages),
}

impl Loaded {
    /// Loads a page; `None` if it is gone or being deleted.
    fn of(read: &dyn Read, id: PageId) -> Result<Option<Self>> {
        let Some(page) = read.page(id)?.map(|page| page.value).filter(|page| page.account != NOBODY) else {
            return Ok(None);
        };
        let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let monitors = read.monitors_of(id)?.into_iter().map(|monitor| monitor.value);
        let open = read.incidents_of(id, true, None, MAX_UNFINISHED)?;
        let count = open.len();
        let before: BTreeMap<IncidentId, (u64, Incident)> = open
            .into_iter()
            .filter(|incident| incident.value.kind == Kind::Incident)
            .map(|incident| (incident.value.id, (incident.revision, incident.value)))
            .collect();
        let outages = match read.outages(id)? {
            Some(outages) => (Is::At(outages.revision), outages.value),
            None => (Is::Absent, Outages::default()),
        };
        let desk = Desk {
            page: id,
            opens: read.telling(id)?.map(|telling| telling.value).unwrap_or_default().automatic_incidents,
            language: page.language,
            zone: page.timezone,
            monitors: monitors.map(|monitor| (monitor.id, watched(&monitor, &page, plan))).collect(),
            outages: outages.1.clone(),
            incidents: before.iter().map(|(id, (_, incident))| (*id, incident.clone())).collect(),
            open: count,
        };
        Ok(Some(Self { desk, before, outages }))
    }

    /// Writes the changes, expecting that nothing was modified in the meantime.
    fn write(self, batch: &mut Batch) {
        let page = self.desk.page;
        if self.desk.outages != self.outages.1 {
            batch.expect(Expect::Page(page, Is::Present)).expect(Expect::Outages(page, self.outages.0));
            batch.write(Op::PutOutages(page, Box::new(self.desk.outages)));
        }
        for (id, incident) in self.desk.incidents {
            let is = match self.before.get(&id) {
                Some((_, before)) if *before == incident => continue,
                Some((revision, _)) => Is::At(*revision),
                None => Is::Absent,
            };
            batch.expect(Expect::Incident(id, is)).write(incident);
        }
    }
}

/// Returns true if the page has no announced outage and no flapping monitor.
fn calm(read: &dyn Read, page: PageId) -> Result<bool> {
    Ok(read.outages(page)?.is_none_or(|outages| outages.value.are_over()))
}

fn watched(monitor: &Monitor, page: &Page, plan: Plan) -> Watched {
    // Interval and confirmation settings don't affect whether it is checked.
    let watch = Watch::new(monitor, page, plan, &PlanLimits::default(), Confirmation::default());
    Watched { name: monitor.name.clone(), regional: watch.kind.is_regional(), paused: watch.paused }
}

/// Derives ids from the event's number and a counter, so that the same event never creates two.
fn digest(seq: u64, made: u32) -> [u8; 10] {
    let hash = Sha256::new().chain_update(b"automatic incident").chain_update(seq.to_be_bytes());
    let hash = hash.chain_update(made.to_be_bytes()).finalize();
    let mut bytes = [0; 10];
    bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
    bytes
}

#[cfg(test)]
mod tests;
