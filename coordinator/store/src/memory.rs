//! The storage engine for tests: ordered maps of records behind one lock.

mod audit;
mod notifications;
mod people;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use parallax_core::account::Account;
use parallax_core::check::CheckKind;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::{MAX_STORED_PINGS, StoredPing};
use parallax_core::id::{AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::vantage::{NetworkNo, Region};

use super::batch::{MAX_DAYS_PER_OP, MAX_EXPIRED_PER_OP, MAX_TRIMMED_PER_OP};
use super::blobs::{MAX_RESPONSE_BYTES_PER_KEY, max_responses, split_owner};
use super::{
    Batch, Block, Checkpoint, CommitReceipt, Expect, Op, Presence, Result, Rollup, StoreError, StoreWrite,
    StoredResponse, VersionedValue,
};

/// A store that exists as long as its last clone.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<RwLock<MemoryState>>);

type Records<K, T> = BTreeMap<K, VersionedValue<T>>;

#[derive(Debug, Default)]
struct MemoryState {
    revision: u64,
    accounts: Records<AccountId, Account>,
    pages: Records<PageId, Page>,
    slugs: BTreeMap<String, PageId>,
    hosts: BTreeMap<String, PageId>,
    pictures: BTreeMap<(PageId, PictureUse), Vec<u8>>,
    reserved_hostnames: BTreeMap<String, ReservedHostname>,
    monitors: Records<MonitorId, Monitor>,
    keys: Records<KeyId, ApiKey>,
    agents: Records<AgentId, AgentRecord>,
    invitations: Records<InvitationId, Invitation>,
    incidents: Records<IncidentId, Incident>,
    series: Records<SeriesId, Series>,
    deploys: Records<DeployId, Deploy>,
    notifications: notifications::MemoryNotifications,
    people: people::MemoryPeople,
    audit: audit::MemoryAudit,
    stored_responses: Records<String, StoredResponse>,
    machines: BTreeMap<MonitorId, MachineState>,
    pings: BTreeMap<(MonitorId, u64), StoredPing>,
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
    next_vantage: u16,
    networks: BTreeMap<String, NetworkNo>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> RwLockReadGuard<'_, MemoryState> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreWrite for MemoryStore {
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>> {
        let mut state = self.write();
        group.iter().map(|batch| state.commit(batch)).collect()
    }

    fn clean_up(&mut self) -> Result<bool> {
        Ok(false)
    }
}

impl MemoryState {
    fn commit(&mut self, batch: &Batch) -> Result<CommitReceipt> {
        batch.check_size()?;
        let implied = batch.ops.iter().flat_map(Op::implied);
        match batch.expect.iter().cloned().chain(implied).find(|expect| !self.holds(expect)) {
            Some(conflict) => return Err(StoreError::Conflict(conflict)),
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
        Ok(CommitReceipt { revision: self.revision, last_event: self.last_event, readings })
    }

    fn holds(&self, expect: &Expect) -> bool {
        fn has_presence<K: Ord, T>(records: &Records<K, T>, key: &K, presence: Presence) -> bool {
            presence.holds(records.get(key).map(|record| record.revision))
        }
        match expect {
            Expect::Account(id, presence) => has_presence(&self.accounts, id, *presence),
            Expect::Page(id, presence) => has_presence(&self.pages, id, *presence),
            Expect::Monitor(id, presence) => has_presence(&self.monitors, id, *presence),
            Expect::Key(id, presence) => has_presence(&self.keys, id, *presence),
            Expect::Agent(id, presence) => has_presence(&self.agents, id, *presence),
            Expect::Invitation(id, presence) => has_presence(&self.invitations, id, *presence),
            Expect::Incident(id, presence) => has_presence(&self.incidents, id, *presence),
            Expect::Series(id, presence) => has_presence(&self.series, id, *presence),
            Expect::Deploy(id, presence) => has_presence(&self.deploys, id, *presence),
            Expect::Destination(id, presence) => has_presence(&self.notifications.destinations, id, *presence),
            Expect::Subscriber(id, presence) => has_presence(&self.notifications.subscribers, id, *presence),
            Expect::Delivery(id, presence) => has_presence(&self.notifications.deliveries, id, *presence),
            Expect::AlertSettings(page, presence) => has_presence(&self.notifications.alert_settings, page, *presence),
            Expect::AnnouncedOutages(page, presence) => {
                has_presence(&self.notifications.announced_outages, page, *presence)
            }
            Expect::ContactFree(page, fingerprint, id) => {
                self.notifications.by_contact(*page, *fingerprint).is_none_or(|owner| owner.value.id == *id)
            }
            Expect::Person(id, presence) => has_presence(&self.people.persons, id, *presence),
            Expect::AccountMember(account, person, presence) => {
                has_presence(&self.people.members, &(*account, *person), *presence)
            }
            Expect::CompanySignIn(account, presence) => has_presence(&self.people.companies, account, *presence),
            Expect::CompanyDomainFree(domain, account) => {
                self.people.company_of_domain(domain).is_none_or(|owner| owner.value.account == *account)
            }
            Expect::LoginSession(id, presence) => has_presence(&self.people.sessions, id, *presence),
            Expect::OneTimeLink(id, presence) => has_presence(&self.people.links, id, *presence),
            Expect::EmailFree(email, person) => self.people.emails.get(email).is_none_or(|owner| owner == person),
            Expect::DestinationsBelow(page, limit) => self.notifications.destinations_of(*page).count() < *limit,
            Expect::SubscribersBelow(page, limit) => self.notifications.subscribers_of(*page).count() < *limit,
            Expect::StoredResponse(name, presence) => has_presence(&self.stored_responses, name, *presence),
            Expect::SlugFree(slug, page) => self.slugs.get(slug).is_none_or(|owner| owner == page),
            Expect::HostnameFree(host, page) => self.hosts.get(host).is_none_or(|owner| owner == page),
            Expect::InvitationUnused(id) => {
                self.invitations.get(id).is_some_and(|invitation| invitation.value.used_by.is_none())
            }
            Expect::MonitorsBelow(account, limit) => self.monitors_of(*account, true) < *limit as usize,
            Expect::ComponentsBelow(account, limit) => self.monitors_of(*account, false) < *limit as usize,
            Expect::NoMonitors(page) => !self.monitors.values().any(|monitor| monitor.value.page == *page),
            Expect::NextSlot(slot) => self.next_slot == *slot,
            Expect::NextVantage(vantage) => self.next_vantage == vantage.0,
            Expect::Networks(count) => self.networks.len() == *count,
            Expect::Cursor(reader, seq) => self.cursors.get(reader).copied().unwrap_or(0) == *seq,
        }
    }

    /// Counts an account's monitors: those that its plan counts, or those of type component.
    fn monitors_of(&self, account: AccountId, counted: bool) -> usize {
        let is_owned = |page| self.pages.get(&page).is_some_and(|page| page.value.account == account);
        let is_counted = |monitor: &Monitor| monitor.check.kind() != CheckKind::Component;
        let is_match = |monitor: &Monitor| is_counted(monitor) == counted && is_owned(monitor.page);
        self.monitors.values().filter(|monitor| is_match(&monitor.value)).count()
    }

    fn drop_stopped_series(&mut self, page: PageId, keep_count: usize) {
        let is_stopped = |it: &Series| it.page == page && it.stopped_at.is_some();
        let mut stopped: Vec<SeriesId> =
            self.series.values().filter(|it| is_stopped(&it.value)).map(|it| it.value.id).collect();
        stopped.truncate(stopped.len().saturating_sub(keep_count));
        self.series.retain(|id, _| !stopped.contains(id));
    }

    /// Evicts the oldest stored responses of the API key of `name`, which was just stored, if it has too many.
    fn evict_responses(&mut self, name: &str) {
        let Some((owner, _)) = split_owner(name) else { return };
        let is_of = |other: &str| split_owner(other).is_some_and(|(other, _)| other == owner);
        loop {
            let of_owner = self.stored_responses.iter().filter(|(other, _)| is_of(other));
            let sizes = of_owner.clone().map(|(name, it)| it.value.bytes(name));
            if of_owner.clone().count() <= max_responses(owner) && sizes.sum::<usize>() <= MAX_RESPONSE_BYTES_PER_KEY {
                return;
            }
            let others = of_owner.filter(|(other, _)| *other != name);
            let oldest = others.min_by_key(|(name, it)| (it.value.expires_at, (*name).clone()));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { return };
            self.stored_responses.remove(&oldest);
        }
    }

    fn apply(&mut self, op: &Op) {
        let revision = self.revision;
        fn put<K: Ord, T: Clone>(records: &mut Records<K, T>, revision: u64, key: K, value: &T) {
            records.insert(key, VersionedValue { revision, value: value.clone() });
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
                self.notifications.clear(*id);
            }
            Op::PutPicture(page, usage, bytes) => {
                if self.pages.contains_key(page) {
                    self.pictures.insert((*page, *usage), bytes.clone());
                }
            }
            Op::DeletePicture(page, usage) => drop(self.pictures.remove(&(*page, *usage))),
            Op::PutReservedHostname(host, reservation) => {
                self.reserved_hostnames.insert(host.clone(), *reservation);
            }
            Op::DeleteExpiredReservations(now) => {
                let expired = self.reserved_hostnames.iter().filter(|(_, reservation)| reservation.until <= *now);
                let expired: Vec<_> = expired.map(|(host, _)| host.clone()).take(MAX_EXPIRED_PER_OP).collect();
                self.reserved_hostnames.retain(|host, _| !expired.contains(host));
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
            Op::PutStoredResponse(name, response) => {
                put(&mut self.stored_responses, revision, name.clone(), response);
                self.evict_responses(name);
            }
            Op::DeleteExpiredResponses(now) => {
                let expired = |response: &StoredResponse| response.expires_at <= *now;
                let mut names: Vec<_> = self.stored_responses.iter().filter(|(_, it)| expired(&it.value)).collect();
                names.sort_by_key(|(name, it)| (it.value.expires_at, (*name).clone()));
                let names: Vec<_> = names.into_iter().take(MAX_EXPIRED_PER_OP).map(|(name, _)| name.clone()).collect();
                self.stored_responses.retain(|name, _| !names.contains(name));
            }
            Op::PutIncident(incident) if self.pages.contains_key(&incident.page) => {
                put(&mut self.incidents, revision, incident.id, incident);
            }
            Op::DeleteStoppedSeries(page, keep_count) => self.drop_stopped_series(*page, *keep_count),
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
            | Op::DeleteOldDeliveries(_)
            | Op::ClearNotifications(_)
            | Op::PutAlertSettings(..)
            | Op::PutAnnouncedOutages(..) => {
                let pages = &self.pages;
                self.notifications.apply(op, revision, |page| pages.contains_key(&page));
            }
            Op::AppendAuditEntry(entry) => self.audit.append(entry),
            Op::PutPerson(_)
            | Op::PutAccountMember(_)
            | Op::DeleteAccountMember(..)
            | Op::PutCompanySignIn(_)
            | Op::DeleteCompanySignIn(_)
            | Op::PutLoginSession(_)
            | Op::DeleteLoginSession(_)
            | Op::PutOneTimeLink(_)
            | Op::DeleteOneTimeLink(_) => self.people.apply(op, revision),
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
                self.pings.insert((*id, ping.number % MAX_STORED_PINGS), (**ping).clone());
            }
            Op::PutMachine(..) | Op::PutPing(..) | Op::PutBlock(_) | Op::PutHour(_) | Op::PutDay(_) => {}
            Op::DeleteBlocks(id, before) => {
                let days = oldest(self.blocks.keys().filter(|it| it.0 == *id).map(|it| it.2), *before);
                self.blocks.retain(|it, _| it.0 != *id || !days.contains(&it.2.div_euclid(24)));
            }
            Op::DeleteHours(id, before) => {
                let days = oldest(self.hours.keys().filter(|it| it.0 == *id).map(|it| it.1), *before);
                self.hours.retain(|it, _| it.0 != *id || !days.contains(&it.1.div_euclid(24)));
            }
            Op::CompactHistory(..) => {}
            Op::PutCheckpoint(checkpoint) => {
                self.checkpoints.insert(checkpoint.part, checkpoint.clone());
            }
            Op::DeleteCheckpoint(part) => drop(self.checkpoints.remove(part)),
            Op::SetCursor(reader, seq) => {
                self.cursors.insert(reader.clone(), *seq);
            }
            Op::TrimReadings(through) => {
                let old: Vec<u64> =
                    self.readings.range(..=through).map(|(seq, _)| *seq).take(MAX_TRIMMED_PER_OP).collect();
                old.iter().for_each(|seq| drop(self.readings.remove(seq)));
            }
            Op::TrimEvents(through) => {
                let through = self.cursors.values().copied().fold(*through, u64::min).min(self.last_event);
                let old: Vec<u64> =
                    self.events.range(..=through).map(|(seq, _)| *seq).take(MAX_TRIMMED_PER_OP).collect();
                old.iter().for_each(|seq| drop(self.events.remove(seq)));
                self.events_of.values_mut().for_each(|seqs| seqs.retain(|seq| !old.contains(seq)));
            }
            Op::SetNextSlot(slot) => self.next_slot = *slot,
            Op::SetNextVantage(vantage) => self.next_vantage = vantage.0,
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
    days.into_iter().take(MAX_DAYS_PER_OP).collect()
}
