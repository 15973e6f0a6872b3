//! Automatic incidents: announced outages open them and recoveries resolve them, by the rules in
//! [`automatic`](parallax_core::incident::automatic).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use parallax_core::alert_settings::AnnouncedOutages;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{Event, EventKind};
use parallax_core::id::{IncidentId, PageId};
use parallax_core::incident::automatic::{AutomaticIncidents, IncidentTrigger, MonitorInfo};
use parallax_core::incident::{Incident, IncidentKind, MAX_UNFINISHED};
use parallax_core::monitor::Monitor;
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, JournalEvent, Op, Presence, Result, StoreRead};
use sha2::{Digest, Sha256};

use super::JournalConsumer;

/// Journal consumer that opens and resolves automatic incidents.
#[derive(Debug, Clone, Copy, Default)]
pub struct IncidentConsumer;

impl JournalConsumer for IncidentConsumer {
    const NAME: &'static str = "incidents";

    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        let mut pages: BTreeMap<PageId, Option<PageIncidents>> = BTreeMap::new();
        for journal_event in events {
            let (Some(trigger), Some(id)) = (IncidentTrigger::of(&journal_event.event), journal_event.event.page)
            else {
                continue;
            };
            let page = match pages.entry(id) {
                Entry::Occupied(entry) => entry.into_mut(),
                // Edits are frequent and outages rare: without an outage, only a new one can affect an
                // incident.
                Entry::Vacant(_) if !matches!(trigger, IncidentTrigger::WentDown(..)) && has_no_outage(read, id)? => {
                    continue;
                }
                Entry::Vacant(entry) => entry.insert(PageIncidents::load(read, id)?),
            };
            let Some(page) = page else { continue };
            let mut id_count = 0_u32;
            let mut random = || {
                id_count = id_count.wrapping_add(1);
                id_bytes(journal_event.seq, id_count)
            };
            for incident_event in page.automatic.apply(trigger, journal_event.event.at, &mut random) {
                batch.event(Event {
                    at: now,
                    page: Some(id),
                    monitor: None,
                    kind: EventKind::Incident(incident_event),
                });
            }
        }
        pages.into_values().flatten().for_each(|page| page.write_changes(&mut batch));
        Ok(batch)
    }
}

/// A page's state as read and after the events.
struct PageIncidents {
    automatic: AutomaticIncidents,
    /// Incidents as read, with their revisions.
    before: BTreeMap<IncidentId, (u64, Incident)>,
    outages: (Presence, AnnouncedOutages),
}

impl PageIncidents {
    /// Loads a page; `None` if it no longer exists or is being deleted.
    fn load(read: &dyn StoreRead, id: PageId) -> Result<Option<Self>> {
        let Some(page) = read.page(id)?.map(|page| page.value).filter(|page| page.account != NO_ACCOUNT) else {
            return Ok(None);
        };
        let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let monitors = read.monitors_of(id)?.into_iter().map(|monitor| monitor.value);
        let open = read.incidents_of(id, true, None, MAX_UNFINISHED)?;
        let count = open.len();
        let before: BTreeMap<IncidentId, (u64, Incident)> = open
            .into_iter()
            .filter(|incident| incident.value.kind == IncidentKind::Incident)
            .map(|incident| (incident.value.id, (incident.revision, incident.value)))
            .collect();
        let outages = match read.announced_outages(id)? {
            Some(outages) => (Presence::At(outages.revision), outages.value),
            None => (Presence::Absent, AnnouncedOutages::default()),
        };
        let automatic = AutomaticIncidents {
            page: id,
            opens_incidents: read
                .alert_settings(id)?
                .map(|settings| settings.value)
                .unwrap_or_default()
                .automatic_incidents,
            language: page.language,
            zone: page.timezone,
            monitors: monitors.map(|monitor| (monitor.id, monitor_info(&monitor, &page, plan))).collect(),
            outages: outages.1.clone(),
            incidents: before.iter().map(|(id, (_, incident))| (*id, incident.clone())).collect(),
            open: count,
        };
        Ok(Some(Self { automatic, before, outages }))
    }

    /// Writes the changes, expecting that nothing was modified in the meantime.
    fn write_changes(self, batch: &mut Batch) {
        let page = self.automatic.page;
        if self.automatic.outages != self.outages.1 {
            batch.expect(Expect::Page(page, Presence::Present)).expect(Expect::AnnouncedOutages(page, self.outages.0));
            batch.write(Op::PutAnnouncedOutages(page, Box::new(self.automatic.outages)));
        }
        for (id, incident) in self.automatic.incidents {
            let presence = match self.before.get(&id) {
                Some((_, before)) if *before == incident => continue,
                Some((revision, _)) => Presence::At(*revision),
                None => Presence::Absent,
            };
            batch.expect(Expect::Incident(id, presence)).write(incident);
        }
    }
}

/// Returns true if the page has no announced outage and no flapping monitor.
fn has_no_outage(read: &dyn StoreRead, page: PageId) -> Result<bool> {
    Ok(read.announced_outages(page)?.is_none_or(|outages| outages.value.is_empty()))
}

fn monitor_info(monitor: &Monitor, page: &Page, plan: Plan) -> MonitorInfo {
    // Interval and confirmation settings don't affect whether it is checked.
    let settings = EffectiveSettings::new(monitor, page, plan, &PlanLimits::default(), ConfirmationPolicy::default());
    MonitorInfo { name: monitor.name.clone(), is_regional: settings.kind.is_regional(), paused: settings.paused }
}

/// Derives ids from the event's number and a counter, so that the same event never creates two.
fn id_bytes(seq: u64, id_count: u32) -> [u8; 10] {
    let hash = Sha256::new().chain_update(b"automatic incident").chain_update(seq.to_be_bytes());
    let hash = hash.chain_update(id_count.to_be_bytes()).finalize();
    let mut bytes = [0; 10];
    bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
    bytes
}

#[cfg(test)]
mod tests;
