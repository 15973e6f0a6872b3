//! The storage engine for tests: ordered maps of records behind one lock.

mod outgoing;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use parallax_core::account::Account;
use parallax_core::check::CheckKind;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::{PINGS_KEPT, Ping};
use parallax_core::id::{
    AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId,
};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::Key;
use parallax_core::machine::State;
use parallax_core::member::{Agent, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::domain::Freed;
use parallax_core::page::look::PictureUse;
use parallax_core::place::{NetworkNo, Region};

use super::batch::{DAYS_AT_ONCE, FORGET_AT_ONCE, TRIM_AT_ONCE};
use super::packed::{MAX_REMEMBERED, MAX_REMEMBERED_BYTES, owner_of};
use super::{
    Batch, Block, Checkpoint, Committed, Expect, Is, Op, Remembered, Result, Rollup, StoreError, Versioned,
    Write,
};

/// A store that exists as long as its last clone.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<RwLock<Kept>>);

type Records<K, T> = BTreeMap<K, Versioned<T>>;

#[derive(Debug, Default)]
struct Kept {
    revision: u64,
    accounts: Records<AccountId, Account>,
    pages: Records<PageId, Page>,
    slugs: BTreeMap<String, PageId>,
    hosts: BTreeMap<String, PageId>,
    pictures: BTreeMap<(PageId, PictureUse), Vec<u8>>,
    freed: BTreeMap<String, Freed>,
    monitors: Records<MonitorId, Monitor>,
    keys: Records<KeyId, Key>,
    agents: Records<AgentId, Agent>,
    invitations: Records<InvitationId, Invitation>,
    incidents: Records<IncidentId, Incident>,
    series: Records<SeriesId, Series>,
    deploys: Records<DeployId, Deploy>,
    outgoing: outgoing::Kept,
    remembered: Records<String, Remembered>,
    machines: BTreeMap<MonitorId, State>,
    pings: BTreeMap<(MonitorId, u64), Ping>,
    events: BTreeMap<u64, Event>,
    last_event: u64,
    events_of: BTreeMap<MonitorId, BTreeSet<u64>>,
    cursors: BTreeMap<String, u64>,
    readings: BTreeMap<u64, Vec<Reading>>,
    last_reading: u64,
    blocks: BTreeMap<(MonitorId, Region, i64), Block>,
    hours: BTreeMap<(MonitorId, i64), Rollup>,
    days: BTreeMap<(MonitorId, i64), Rollup>,
    checkpoints: BTreeMap<u32, Checkpoint>,
    next_slot: u32,
    next_place: u16,
    networks: BTreeMap<String, NetworkNo>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Memory {
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<Committed>> {
        let mut kept = self.write();
        group.iter().map(|batch| kept.commit(batch)).collect()
    }

    fn tidy(&mut self) -> Result<bool> {
        Ok(false)
    }
}

impl Kept {
    fn commit(&mut self, batch: &Batch) -> Result<Committed> {
        batch.check_size()?;
        let implied = batch.ops.iter().flat_map(Op::expects);
        match batch.expect.iter().cloned().chain(implied).find(|expect| !self.holds(expect)) {
            Some(broken) => return Err(StoreError::Conflict(broken)),
            None => self.revision += 1,
        }
        batch.ops.iter().for_each(|op| self.apply(op));
        for event in &batch.events {
            self.last_event += 1;
            let seq = self.last_event;
            if let Some(monitor) = event.monitor.filter(|id| self.monitors.contains_key(id)) {
                self.events_of.entry(monitor).or_default().insert(seq);
            }
            self.events.insert(seq, event.clone());
        }
        let readings = (!batch.readings.is_empty()).then(|| {
            self.last_reading += 1;
            self.readings.insert(self.last_reading, batch.readings.clone());
            self.last_reading
        });
        Ok(Committed { revision: self.revision, last_event: self.last_event, readings })
    }

    fn holds(&self, expect: &Expect) -> bool {
        fn is<K: Ord, T>(records: &Records<K, T>, key: &K, is: Is) -> bool {
            is.holds(records.get(key).map(|record| record.revision))
        }
        match expect {
            Expect::Account(id, so) => is(&self.accounts, id, *so),
            Expect::Page(id, so) => is(&self.pages, id, *so),
            Expect::Monitor(id, so) => is(&self.monitors, id, *so),
            Expect::Key(id, so) => is(&self.keys, id, *so),
            Expect::Agent(id, so) => is(&self.agents, id, *so),
            Expect::Invitation(id, so) => is(&self.invitations, id, *so),
            Expect::Incident(id, so) => is(&self.incidents, id, *so),
            Expect::Series(id, so) => is(&self.series, id, *so),
            Expect::Deploy(id, so) => is(&self.deploys, id, *so),
            Expect::Destination(id, so) => is(&self.outgoing.destinations, id, *so),
            Expect::Subscriber(id, so) => is(&self.outgoing.subscribers, id, *so),
            Expect::Delivery(id, so) => is(&self.outgoing.deliveries, id, *so),
            Expect::Telling(page, so) => is(&self.outgoing.telling, page, *so),
            Expect::Outages(page, so) => is(&self.outgoing.outages, page, *so),
            Expect::ContactFree(page, fingerprint, id) => {
                self.outgoing.by_contact(*page, *fingerprint).is_none_or(|owner| owner.value.id == *id)
            }
            Expect::DestinationsBelow(page, limit) => self.outgoing.destinations_of(*page).count() < *limit,
            Expect::SubscribersBelow(page, limit) => self.outgoing.subscribers_of(*page).count() < *limit,
            Expect::Remembered(name, so) => is(&self.remembered, name, *so),
            Expect::SlugFree(slug, page) => self.slugs.get(slug).is_none_or(|owner| owner == page),
            Expect::HostFree(host, page) => self.hosts.get(host).is_none_or(|owner| owner == page),
            Expect::InvitationUnused(id) => {
                self.invitations.get(id).is_some_and(|invitation| invitation.value.used_by.is_none())
            }
            Expect::MonitorsBelow(account, limit) => self.monitors_of(*account, true) < *limit as usize,
            Expect::ComponentsBelow(account, limit) => self.monitors_of(*account, false) < *limit as usize,
            Expect::NoMonitors(page) => !self.monitors.values().any(|monitor| monitor.value.page == *page),
            Expect::NextSlot(slot) => self.next_slot == *slot,
            Expect::NextPlace(place) => self.next_place == place.0,
            Expect::Networks(count) => self.networks.len() == *count,
            Expect::Cursor(reader, seq) => self.cursors.get(reader).copied().unwrap_or(0) == *seq,
        }
    }

    /// Counts an account's monitors: those that its plan counts, or those of type component.
    fn monitors_of(&self, account: AccountId, counted: bool) -> usize {
        let owned = |page| self.pages.get(&page).is_some_and(|page| page.value.account == account);
        let is_counted = |monitor: &Monitor| monitor.check.kind() != CheckKind::Component;
        let is = |monitor: &Monitor| is_counted(monitor) == counted && owned(monitor.page);
        self.monitors.values().filter(|monitor| is(&monitor.value)).count()
    }

    fn drop_stopped_series(&mut self, page: PageId, kept: usize) {
        let is_stopped = |it: &Series| it.page == page && it.stopped_at.is_some();
        let mut stopped: Vec<SeriesId> =
            self.series.values().filter(|it| is_stopped(&it.value)).map(|it| it.value.id).collect();
        stopped.truncate(stopped.len().saturating_sub(kept));
        self.series.retain(|id, _| !stopped.contains(id));
    }

    /// Evicts the oldest stored responses of the API key of `name`, which was just stored, if it has too many.
    fn bound_remembered(&mut self, name: &str) {
        let Some((owner, _)) = owner_of(name) else { return };
        let is_of = |other: &str| owner_of(other).is_some_and(|(other, _)| other == owner);
        loop {
            let of_owner = self.remembered.iter().filter(|(other, _)| is_of(other));
            let sizes = of_owner.clone().map(|(name, it)| it.value.bytes(name));
            if of_owner.clone().count() <= MAX_REMEMBERED && sizes.sum::<usize>() <= MAX_REMEMBERED_BYTES {
                return;
            }
            let others = of_owner.filter(|(other, _)| *other != name);
            let oldest = others.min_by_key(|(name, it)| (it.value.expires_at, (*name).clone()));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { return };
            self.remembered.remove(&oldest);
        }
    }

    fn apply(&mut self, op: &Op) {
        let revision = self.revision;
        fn put<K: Ord, T: Clone>(records: &mut Records<K, T>, revision: u64, key: K, value: &T) {
            records.insert(key, Versioned { revision, value: value.clone() });
        }
        match op {
            Op::PutAccount(account) => put(&mut self.accounts, revision, account.id, account),
            Op::DeleteAccount(id) => drop(self.accounts.remove(id)),
            Op::PutPage(page) => {
                self.free_names(page.id);
                self.slugs.insert(page.slug.clone(), page.id);
                self.hosts.extend(page.custom_domain.iter().map(|host| (host.clone(), page.id)));
                put(&mut self.pages, revision, page.id, page);
            }
            Op::DeletePage(id) => {
                self.free_names(*id);
                self.pages.remove(id);
                self.pictures.retain(|(page, _), _| page != id);
                self.incidents.retain(|_, incident| incident.value.page != *id);
                self.series.retain(|_, series| series.value.page != *id);
                self.deploys.retain(|_, deploy| deploy.value.page != *id);
                self.outgoing.clear(*id);
            }
            Op::PutPicture(page, usage, bytes) => {
                if self.pages.contains_key(page) {
                    self.pictures.insert((*page, *usage), bytes.clone());
                }
            }
            Op::DeletePicture(page, usage) => drop(self.pictures.remove(&(*page, *usage))),
            Op::PutFreed(host, freed) => {
                self.freed.insert(host.clone(), *freed);
            }
            Op::ForgetFreed(now) => {
                let over = self.freed.iter().filter(|(_, freed)| freed.until <= *now);
                let over: Vec<_> = over.map(|(host, _)| host.clone()).take(FORGET_AT_ONCE).collect();
                self.freed.retain(|host, _| !over.contains(host));
            }
            Op::PutMonitor(monitor) => put(&mut self.monitors, revision, monitor.id, monitor),
            Op::DeleteMonitor(id) => self.delete_monitor(*id),
            Op::PutKey(key) => put(&mut self.keys, revision, key.id, key),
            Op::DeleteKey(id) => drop(self.keys.remove(id)),
            Op::PutAgent(agent) => put(&mut self.agents, revision, agent.id, agent),
            Op::DeleteAgent(id) => drop(self.agents.remove(id)),
            Op::PutInvitation(invitation) => {
                put(&mut self.invitations, revision, invitation.id, invitation);
            }
            Op::DeleteInvitation(id) => drop(self.invitations.remove(id)),
            Op::Remember(name, answer) => {
                put(&mut self.remembered, revision, name.clone(), answer);
                self.bound_remembered(name);
            }
            Op::ForgetExpired(now) => {
                let expired = |answer: &Remembered| answer.expires_at <= *now;
                let mut names: Vec<_> = self.remembered.iter().filter(|(_, it)| expired(&it.value)).collect();
                names.sort_by_key(|(name, it)| (it.value.expires_at, (*name).clone()));
                let names: Vec<_> =
                    names.into_iter().take(FORGET_AT_ONCE).map(|(name, _)| name.clone()).collect();
                self.remembered.retain(|name, _| !names.contains(name));
            }
            Op::PutIncident(incident) if self.pages.contains_key(&incident.page) => {
                put(&mut self.incidents, revision, incident.id, incident);
            }
            Op::DropStoppedSeries(page, kept) => self.drop_stopped_series(*page, *kept),
            Op::PutSeries(series) if self.pages.contains_key(&series.page) => {
                put(&mut self.series, revision, series.id, series);
            }
            Op::PutDeploy(deploy) if self.pages.contains_key(&deploy.page) => {
                put(&mut self.deploys, revision, deploy.id, deploy);
            }
            Op::PutIncident(_) | Op::PutSeries(_) | Op::PutDeploy(_) => {}
            Op::DeleteIncident(id) => drop(self.incidents.remove(id)),
            Op::DeleteDeploy(id) => drop(self.deploys.remove(id)),
            Op::PutDestination(_)
            | Op::DeleteDestination(_)
            | Op::PutSubscriber(_)
            | Op::DeleteSubscriber(_)
            | Op::PutBulletin(_)
            | Op::PutDelivery(_)
            | Op::DropDeliveries(_)
            | Op::ClearOutgoing(_)
            | Op::PutTelling(..)
            | Op::PutOutages(..) => {
                let pages = &self.pages;
                self.outgoing.apply(op, revision, |page| pages.contains_key(&page));
            }
            Op::PutMachine(id, state) if self.monitors.contains_key(id) => {
                self.machines.insert(*id, (**state).clone());
            }
            Op::PutBlock(block) if self.monitors.contains_key(&block.monitor) => {
                self.blocks.insert((block.monitor, block.region, block.hour), block.clone());
            }
            Op::PutHour(rollup) if self.monitors.contains_key(&rollup.monitor) => {
                self.hours.insert((rollup.monitor, rollup.at), rollup.clone());
            }
            Op::PutDay(rollup) if self.monitors.contains_key(&rollup.monitor) => {
                self.days.insert((rollup.monitor, rollup.at), rollup.clone());
            }
            Op::PutPing(id, ping) if self.monitors.contains_key(id) => {
                self.pings.insert((*id, ping.number % PINGS_KEPT), (**ping).clone());
            }
            Op::PutMachine(..) | Op::PutPing(..) | Op::PutBlock(_) | Op::PutHour(_) | Op::PutDay(_) => {}
            Op::DropBlocks(id, before) => {
                let gone = oldest(self.blocks.keys().filter(|it| it.0 == *id).map(|it| it.2), *before);
                self.blocks.retain(|it, _| it.0 != *id || !gone.contains(&it.2.div_euclid(24)));
            }
            Op::DropHours(id, before) => {
                let gone = oldest(self.hours.keys().filter(|it| it.0 == *id).map(|it| it.1), *before);
                self.hours.retain(|it, _| it.0 != *id || !gone.contains(&it.1.div_euclid(24)));
            }
            Op::Fold(..) => {}
            Op::PutCheckpoint(checkpoint) => {
                self.checkpoints.insert(checkpoint.part, checkpoint.clone());
            }
            Op::DeleteCheckpoint(part) => drop(self.checkpoints.remove(part)),
            Op::SetCursor(reader, seq) => {
                self.cursors.insert(reader.clone(), *seq);
            }
            Op::TrimReadings(through) => {
                let old: Vec<u64> =
                    self.readings.range(..=through).map(|(seq, _)| *seq).take(TRIM_AT_ONCE).collect();
                old.iter().for_each(|seq| drop(self.readings.remove(seq)));
            }
            Op::TrimEvents(through) => {
                let through = self.cursors.values().copied().fold(*through, u64::min).min(self.last_event);
                let old: Vec<u64> =
                    self.events.range(..=through).map(|(seq, _)| *seq).take(TRIM_AT_ONCE).collect();
                old.iter().for_each(|seq| drop(self.events.remove(seq)));
                self.events_of.values_mut().for_each(|of| of.retain(|seq| !old.contains(seq)));
            }
            Op::SetNextSlot(slot) => self.next_slot = *slot,
            Op::SetNextPlace(place) => self.next_place = place.0,
            Op::PutNetwork(label, number) => {
                self.networks.insert(label.clone(), *number);
            }
        }
    }

    fn free_names(&mut self, page: PageId) {
        let Some(old) = self.pages.get(&page) else { return };
        if self.slugs.get(&old.value.slug) == Some(&page) {
            self.slugs.remove(&old.value.slug);
        }
        if let Some(host) = &old.value.custom_domain
            && self.hosts.get(host) == Some(&page)
        {
            self.hosts.remove(host);
        }
    }

    fn delete_monitor(&mut self, id: MonitorId) {
        self.monitors.remove(&id);
        self.machines.remove(&id);
        self.events_of.remove(&id);
        self.pings.retain(|(monitor, _), _| *monitor != id);
        self.blocks.retain(|(monitor, _, _), _| *monitor != id);
        self.hours.retain(|(monitor, _), _| *monitor != id);
        self.days.retain(|(monitor, _), _| *monitor != id);
    }
}

/// Returns the oldest days before that one that have any of the hours.
fn oldest(hours: impl Iterator<Item = i64>, before: i64) -> Vec<i64> {
    let days: BTreeSet<i64> = hours.map(|hour| hour.div_euclid(24)).filter(|day| *day < before).collect();
    days.into_iter().take(DAYS_AT_ONCE).collect()
}
