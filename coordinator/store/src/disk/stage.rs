//! Staging: checks a batch's conditions against a pending group, and adds its changes to it.

use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::check::CheckKind;
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::id::{AccountId, MonitorId, PageId, PersonId, SubscriberId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::login_session::LoginSession;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::one_time_link::OneTimeLink;
use parallax_core::page::Page;
use parallax_core::person::{AccountMember, Person};
use parallax_core::subscriber::Subscriber;
use parallax_core::vantage::VantageNo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::compaction::{self, HistoryKind};
use super::idempotency::{self, ResponseRecord};
use super::incidents;
use super::layout::{self, TreeKey};
use super::notifications;
use super::pages;
use super::pending::PendingChanges;
use super::{audit, people, people_layout};
use crate::batch::MAX_TRIMMED_PER_OP;
use crate::{Batch, CommitReceipt, Expect, Op, Presence, Result, StoreError};

/// Stages a batch. Afterwards `pending` has its changes; after an error, some of them.
pub(super) fn stage(pending: &mut PendingChanges<'_>, batch: &Batch) -> Result<CommitReceipt> {
    batch.check_size()?;
    for expect in &batch.expect {
        require(pending, expect)?;
    }
    for expect in batch.ops.iter().flat_map(Op::implied) {
        require(pending, &expect)?;
    }
    pending.meta.revision += 1;
    batch.ops.iter().try_for_each(|op| apply(pending, op))?;
    batch.events.iter().try_for_each(|event| append_event(pending, event))?;
    let readings = if batch.readings.is_empty() {
        None
    } else {
        pending.meta.last_reading += 1;
        let seq = pending.meta.last_reading;
        pending.append(layout::readings(seq), &batch.readings)?;
        Some(seq)
    };
    Ok(CommitReceipt { revision: pending.meta.revision, last_event: pending.meta.last_event, readings })
}

/// Deletes up to `limit` records of a deleted monitor. Returns true if none is left.
pub(super) fn delete_history(pending: &mut PendingChanges<'_>, id: MonitorId, limit: usize) -> Result<bool> {
    let kinds = [
        layout::blocks_of(id),
        layout::hours_of(id),
        layout::days_of(id),
        layout::compacted_of(layout::COMPACTED_BLOCKS, id),
        layout::compacted_of(layout::COMPACTED_HOURS, id),
        layout::compacted_of(layout::COMPACTED_DAYS, id),
        layout::events_of(id),
        layout::pings_of(id),
    ];
    let mut remaining = limit;
    for kind in kinds {
        let entries = pending.scan(layout::prefix_range(&kind), remaining)?;
        remaining -= entries.len();
        for (key, head) in entries {
            pending.remove(key, &head)?;
        }
    }
    if remaining > 0 {
        pending.delete(layout::deleted_monitor(id))?;
    }
    Ok(remaining > 0)
}

fn require(pending: &PendingChanges<'_>, expect: &Expect) -> Result<()> {
    if holds(pending, expect)? { Ok(()) } else { Err(StoreError::Conflict(expect.clone())) }
}

fn holds(pending: &PendingChanges<'_>, expect: &Expect) -> Result<bool> {
    fn has_presence<T: DeserializeOwned>(pending: &PendingChanges<'_>, key: &[u8], presence: Presence) -> Result<bool> {
        Ok(presence.holds(pending.document::<T>(key)?.map(|(revision, _)| revision)))
    }
    Ok(match expect {
        Expect::Account(id, presence) => {
            has_presence::<parallax_core::account::Account>(pending, &layout::account(*id), *presence)?
        }
        Expect::Page(id, presence) => has_presence::<Page>(pending, &layout::page(*id), *presence)?,
        Expect::Monitor(id, presence) => has_presence::<Monitor>(pending, &layout::monitor(*id), *presence)?,
        Expect::Key(id, presence) => has_presence::<ApiKey>(pending, &layout::key(*id), *presence)?,
        Expect::Agent(id, presence) => has_presence::<AgentRecord>(pending, &layout::agent(*id), *presence)?,
        Expect::Invitation(id, presence) => has_presence::<Invitation>(pending, &layout::invitation(*id), *presence)?,
        Expect::Incident(id, presence) => has_presence::<Incident>(pending, &layout::incident(*id), *presence)?,
        Expect::Series(id, presence) => has_presence::<Series>(pending, &layout::series(*id), *presence)?,
        Expect::Deploy(id, presence) => has_presence::<Deploy>(pending, &layout::deploy(*id), *presence)?,
        Expect::Destination(id, presence) => {
            has_presence::<Destination>(pending, &layout::destination(*id), *presence)?
        }
        Expect::Subscriber(id, presence) => has_presence::<Subscriber>(pending, &layout::subscriber(*id), *presence)?,
        Expect::Delivery(id, presence) => has_presence::<Delivery>(pending, &layout::delivery(*id), *presence)?,
        Expect::AlertSettings(page, presence) => {
            has_presence::<AlertSettings>(pending, &layout::alert_settings(*page), *presence)?
        }
        Expect::AnnouncedOutages(page, presence) => {
            has_presence::<AnnouncedOutages>(pending, &layout::announced_outages(*page), *presence)?
        }
        Expect::Person(id, presence) => has_presence::<Person>(pending, &people_layout::person(*id), *presence)?,
        Expect::AccountMember(account, person, presence) => {
            has_presence::<AccountMember>(pending, &people_layout::member(*account, *person), *presence)?
        }
        Expect::CompanySignIn(account, presence) => {
            has_presence::<CompanySignIn>(pending, &people_layout::company_sign_in(*account), *presence)?
        }
        Expect::CompanyDomainFree(domain, account) => {
            pending.get::<AccountId>(&people_layout::company_domain(domain))?.is_none_or(|owner| owner == *account)
        }
        Expect::LoginSession(id, presence) => {
            has_presence::<LoginSession>(pending, &people_layout::session(*id), *presence)?
        }
        Expect::OneTimeLink(id, presence) => {
            has_presence::<OneTimeLink>(pending, &people_layout::link(*id), *presence)?
        }
        Expect::EmailFree(email, person) => {
            pending.get::<PersonId>(&people_layout::email(email))?.is_none_or(|owner| owner == *person)
        }
        Expect::ContactFree(page, fingerprint, id) => {
            pending.get::<SubscriberId>(&layout::contact(*page, *fingerprint))?.is_none_or(|owner| owner == *id)
        }
        Expect::DestinationsBelow(page, limit) => list_len(pending, layout::DESTINATIONS_OF, *page, *limit)? < *limit,
        Expect::SubscribersBelow(page, limit) => list_len(pending, layout::SUBSCRIBERS_OF, *page, *limit)? < *limit,
        Expect::StoredResponse(name, presence) => {
            has_presence::<ResponseRecord>(pending, &layout::stored_response(name), *presence)?
        }
        Expect::SlugFree(slug, page) => pending.get::<PageId>(&layout::slug(slug))?.is_none_or(|owner| owner == *page),
        Expect::HostnameFree(host, page) => {
            pending.get::<PageId>(&layout::custom_host(host))?.is_none_or(|owner| owner == *page)
        }
        Expect::InvitationUnused(id) => pending
            .document::<Invitation>(&layout::invitation(*id))?
            .is_some_and(|(_, invitation)| invitation.used_by.is_none()),
        Expect::MonitorsBelow(account, limit) => monitors(pending, *account, true)? < *limit as usize,
        Expect::ComponentsBelow(account, limit) => monitors(pending, *account, false)? < *limit as usize,
        Expect::NoMonitors(page) => pending.scan(layout::prefix_range(&layout::monitors_of(*page)), 1)?.is_empty(),
        Expect::NextSlot(slot) => pending.get::<u32>(layout::NEXT_SLOT)?.unwrap_or(0) == *slot,
        Expect::NextVantage(vantage) => {
            pending.get::<VantageNo>(layout::NEXT_VANTAGE)?.unwrap_or(VantageNo(0)) == *vantage
        }
        Expect::Networks(count) => pending.scan(layout::prefix_range(layout::NETWORKS), usize::MAX)?.len() == *count,
        Expect::Cursor(reader, seq) => pending.get::<u64>(&layout::cursor(reader))?.unwrap_or(0) == *seq,
    })
}

/// Counts a page's list, up to a limit.
fn list_len(pending: &PendingChanges<'_>, prefix: &[u8], page: PageId, limit: usize) -> Result<usize> {
    Ok(pending.scan(layout::prefix_range(&layout::page_list(prefix, page)), limit)?.len())
}

/// Counts an account's monitors: those that its plan counts, or those of type component.
fn monitors(pending: &PendingChanges<'_>, account: AccountId, counted: bool) -> Result<usize> {
    let mut count = 0;
    for (key, _) in pending.scan(layout::prefix_range(&layout::pages_of(account)), usize::MAX)? {
        let page = PageId::from_u128(layout::last_id(&key).unwrap_or_default());
        for (key, _) in pending.scan(layout::prefix_range(&layout::monitors_of(page)), usize::MAX)? {
            count += usize::from(pending.get::<bool>(&key)? == Some(counted));
        }
    }
    Ok(count)
}

fn apply(pending: &mut PendingChanges<'_>, op: &Op) -> Result<()> {
    match op {
        Op::PutAccount(account) => pending.put_document(layout::account(account.id), account),
        Op::DeleteAccount(id) => pending.delete(layout::account(*id)),
        Op::PutPage(page) => pages::put(pending, page),
        Op::DeletePage(id) => {
            incidents::delete_all(pending, *id)?;
            notifications::delete_all(pending, *id)?;
            pages::delete(pending, *id)
        }
        Op::PutPicture(page, usage, bytes) => pages::put_picture(pending, *page, *usage, bytes),
        Op::DeletePicture(page, usage) => pending.delete(layout::picture(*page, *usage)),
        Op::PutReservedHostname(host, reservation) => pending.put(layout::reserved_hostname(host), reservation),
        Op::DeleteExpiredReservations(now) => pages::delete_expired_reservations(pending, *now),
        Op::PutMonitor(monitor) => put_monitor(pending, monitor),
        Op::DeleteMonitor(id) => delete_monitor(pending, *id),
        Op::PutKey(key) => {
            delete_key_entry(pending, key.id)?;
            pending.put(layout::key_of(key.account, key.id), &())?;
            pending.put_document(layout::key(key.id), key)
        }
        Op::DeleteKey(id) => {
            delete_key_entry(pending, *id)?;
            pending.delete(layout::key(*id))
        }
        Op::AppendAuditEntry(entry) => audit::append(pending, entry),
        Op::PutPerson(person) => people::put_person(pending, person),
        Op::PutAccountMember(member) => people::put_member(pending, member),
        Op::DeleteAccountMember(account, person) => people::delete_member(pending, *account, *person),
        Op::PutCompanySignIn(company) => people::put_company(pending, company),
        Op::DeleteCompanySignIn(account) => people::delete_company(pending, *account),
        Op::PutLoginSession(session) => people::put_session(pending, session),
        Op::DeleteLoginSession(id) => people::delete_session(pending, *id),
        Op::PutOneTimeLink(link) => people::put_link(pending, link),
        Op::DeleteOneTimeLink(id) => people::delete_link(pending, *id),
        Op::PutAgent(agent) => pending.put_document(layout::agent(agent.id), agent),
        Op::DeleteAgent(id) => pending.delete(layout::agent(*id)),
        Op::PutInvitation(invitation) => pending.put_document(layout::invitation(invitation.id), invitation),
        Op::DeleteInvitation(id) => pending.delete(layout::invitation(*id)),
        Op::PutIncident(incident) => incidents::put_incident(pending, incident),
        Op::DeleteIncident(id) => incidents::delete_incident(pending, *id),
        Op::PutSeries(series) => incidents::put_series(pending, series),
        Op::DeleteStoppedSeries(page, keep_count) => incidents::delete_stopped_series(pending, *page, *keep_count),
        Op::PutDeploy(deploy) => incidents::put_deploy(pending, deploy),
        Op::DeleteDeploy(id) => incidents::delete_deploy(pending, *id),
        Op::PutDestination(destination) => notifications::put_destination(pending, destination),
        Op::DeleteDestination(id) => notifications::delete_destination(pending, *id),
        Op::PutSubscriber(subscriber) => notifications::put_subscriber(pending, subscriber),
        Op::DeleteSubscriber(id) => notifications::delete_subscriber(pending, *id),
        Op::PutBulletin(bulletin) => notifications::put_bulletin(pending, bulletin),
        Op::PutDelivery(delivery) => notifications::put_delivery(pending, delivery),
        Op::DeleteOldDeliveries(before) => notifications::delete_old(pending, *before),
        Op::ClearNotifications(page) => notifications::delete_some(pending, *page, MAX_TRIMMED_PER_OP),
        Op::PutAlertSettings(page, it) => {
            notifications::put_page_document(pending, *page, layout::alert_settings(*page), it)
        }
        Op::PutAnnouncedOutages(page, it) => {
            notifications::put_page_document(pending, *page, layout::announced_outages(*page), it)
        }
        Op::PutMachine(id, state) => put_monitor_record(pending, *id, layout::machine(*id), state),
        Op::PutPing(id, ping) => put_monitor_record(pending, *id, layout::ping(*id, ping.number), ping),
        Op::SetCursor(reader, seq) => pending.put(layout::cursor(reader), seq),
        Op::PutBlock(it) => {
            let key = layout::block(it.monitor, it.region as u8, it.hour);
            put_monitor_record(pending, it.monitor, key, &(it.slot, &it.bytes))
        }
        Op::DeleteBlocks(id, before) => compaction::delete_days(pending, HistoryKind::Blocks, *id, *before),
        Op::PutHour(it) => put_monitor_record(pending, it.monitor, layout::hour(it.monitor, it.at), &it.bytes),
        Op::DeleteHours(id, before) => compaction::delete_days(pending, HistoryKind::Hours, *id, *before),
        Op::PutDay(it) => put_monitor_record(pending, it.monitor, layout::day(it.monitor, it.at), &it.bytes),
        Op::CompactHistory(id, before) => compaction::compact(pending, *id, *before),
        Op::PutCheckpoint(it) => pending.put(layout::checkpoint(it.part), &(it.through, &it.bytes)),
        Op::DeleteCheckpoint(part) => pending.delete(layout::checkpoint(*part)),
        Op::TrimReadings(through) => trim_readings(pending, *through),
        Op::TrimEvents(through) => trim_events(pending, *through),
        Op::SetNextSlot(slot) => pending.put(layout::NEXT_SLOT.to_vec(), slot),
        Op::SetNextVantage(vantage) => pending.put(layout::NEXT_VANTAGE.to_vec(), vantage),
        Op::PutNetwork(label, number) => pending.put(layout::network(label), number),
        Op::PutStoredResponse(name, response) => idempotency::store_response(pending, name, response),
        Op::DeleteExpiredResponses(now) => idempotency::delete_expired(pending, *now),
    }
}

/// Writes a record that belongs to a monitor, if the monitor exists.
fn put_monitor_record<T: Serialize>(
    pending: &mut PendingChanges<'_>,
    monitor: MonitorId,
    key: TreeKey,
    value: &T,
) -> Result<()> {
    if pending.contains(&layout::monitor(monitor))? { pending.put(key, value) } else { Ok(()) }
}

fn delete_key_entry(pending: &mut PendingChanges<'_>, id: parallax_core::id::KeyId) -> Result<()> {
    match pending.document::<ApiKey>(&layout::key(id))? {
        Some((_, old)) => pending.delete(layout::key_of(old.account, id)),
        None => Ok(()),
    }
}

fn put_monitor(pending: &mut PendingChanges<'_>, monitor: &Monitor) -> Result<()> {
    let id = monitor.id;
    match pending.document::<Monitor>(&layout::monitor(id))? {
        Some((_, old)) if old.page != monitor.page => pending.delete(layout::monitor_of(old.page, id))?,
        Some(_) => {}
        // Recreated under a deleted id: it must not inherit history that is not deleted yet.
        None if pending.contains(&layout::deleted_monitor(id))? => {
            delete_history(pending, id, usize::MAX)?;
        }
        None => {}
    }
    let counted = monitor.check.kind() != CheckKind::Component;
    pending.put(layout::monitor_of(monitor.page, id), &counted)?;
    pending.put_document(layout::monitor(id), monitor)
}

fn delete_monitor(pending: &mut PendingChanges<'_>, id: MonitorId) -> Result<()> {
    let key = layout::monitor(id);
    let Some((_, old)) = pending.document::<Monitor>(&key)? else { return Ok(()) };
    pending.delete(key)?;
    pending.delete(layout::monitor_of(old.page, id))?;
    pending.delete(layout::machine(id))?;
    pending.put(layout::deleted_monitor(id), &())
}

fn append_event(pending: &mut PendingChanges<'_>, event: &Event) -> Result<()> {
    pending.meta.last_event += 1;
    let seq = pending.meta.last_event;
    pending.append(layout::event(seq), event)?;
    match event.monitor {
        Some(id) if pending.contains(&layout::monitor(id))? => pending.append(layout::event_of(id, seq), &()),
        Some(_) | None => Ok(()),
    }
}

fn trim_readings(pending: &mut PendingChanges<'_>, through: u64) -> Result<()> {
    let first = pending.meta.first_reading;
    let end = through.min(pending.meta.last_reading).saturating_add(1).min(first + MAX_TRIMMED_PER_OP as u64);
    if first < end {
        pending.trim(first..end)?;
        pending.meta.first_reading = end;
    }
    Ok(())
}

fn trim_events(pending: &mut PendingChanges<'_>, through: u64) -> Result<()> {
    let mut through = through.min(pending.meta.last_event);
    for (key, _) in pending.scan(layout::prefix_range(layout::CURSORS), usize::MAX)? {
        through = through.min(pending.get::<u64>(&key)?.unwrap_or(0));
    }
    let first = pending.meta.first_event;
    let end = through.saturating_add(1).min(first + MAX_TRIMMED_PER_OP as u64);
    for seq in first..end {
        let key = layout::event(seq);
        if let Some(id) = pending.get::<Event>(&key)?.and_then(|event| event.monitor) {
            pending.delete(layout::event_of(id, seq))?;
        }
        pending.delete(key)?;
    }
    pending.meta.first_event = first.max(end);
    Ok(())
}
