//! Staging: checks a batch's conditions against a pending group, and adds its changes to it.

use parallax_core::check::CheckKind;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::id::{AccountId, MonitorId, PageId, SubscriberId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::Key as ApiKey;
use parallax_core::member::{Agent, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::place::PlaceNo;
use parallax_core::subscriber::Subscriber;
use parallax_core::telling::{Outages, Telling};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::calendar;
use super::fold::{self, Kind};
use super::layout::{self, Key};
use super::outgoing;
use super::pages;
use super::pending::Pending;
use super::remembered::{self, Answer};
use crate::storage::batch::TRIM_AT_ONCE;
use crate::storage::{Batch, Committed, Expect, Is, Op, Result, StoreError};

/// Stages a batch. Afterwards `pending` has its changes; after an error, some of them.
pub(super) fn stage(pending: &mut Pending<'_>, batch: &Batch) -> Result<Committed> {
    batch.check_size()?;
    for expect in &batch.expect {
        demand(pending, expect)?;
    }
    for expect in batch.ops.iter().flat_map(Op::expects) {
        demand(pending, &expect)?;
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
    Ok(Committed { revision: pending.meta.revision, last_event: pending.meta.last_event, readings })
}

/// Deletes up to `limit` records of a deleted monitor. Returns true if none is left.
pub(super) fn drop_history(pending: &mut Pending<'_>, id: MonitorId, limit: usize) -> Result<bool> {
    let kinds = [
        layout::blocks_of(id),
        layout::hours_of(id),
        layout::days_of(id),
        layout::folded_of(layout::FOLDED_BLOCKS, id),
        layout::folded_of(layout::FOLDED_HOURS, id),
        layout::folded_of(layout::FOLDED_DAYS, id),
        layout::events_of(id),
        layout::pings_of(id),
    ];
    let mut left = limit;
    for kind in kinds {
        let found = pending.scan(layout::beginning(&kind), left)?;
        left -= found.len();
        for (key, head) in found {
            pending.remove(key, &head)?;
        }
    }
    if left > 0 {
        pending.delete(layout::gone(id))?;
    }
    Ok(left > 0)
}

fn demand(pending: &Pending<'_>, expect: &Expect) -> Result<()> {
    if holds(pending, expect)? { Ok(()) } else { Err(StoreError::Conflict(expect.clone())) }
}

fn holds(pending: &Pending<'_>, expect: &Expect) -> Result<bool> {
    fn is<T: DeserializeOwned>(pending: &Pending<'_>, key: &[u8], so: Is) -> Result<bool> {
        Ok(so.holds(document::<T>(pending, key)?.map(|(revision, _)| revision)))
    }
    Ok(match expect {
        Expect::Account(id, so) => {
            is::<parallax_core::account::Account>(pending, &layout::account(*id), *so)?
        }
        Expect::Page(id, so) => is::<Page>(pending, &layout::page(*id), *so)?,
        Expect::Monitor(id, so) => is::<Monitor>(pending, &layout::monitor(*id), *so)?,
        Expect::Key(id, so) => is::<ApiKey>(pending, &layout::key(*id), *so)?,
        Expect::Agent(id, so) => is::<Agent>(pending, &layout::agent(*id), *so)?,
        Expect::Invitation(id, so) => is::<Invitation>(pending, &layout::invitation(*id), *so)?,
        Expect::Incident(id, so) => is::<Incident>(pending, &layout::incident(*id), *so)?,
        Expect::Series(id, so) => is::<Series>(pending, &layout::series(*id), *so)?,
        Expect::Deploy(id, so) => is::<Deploy>(pending, &layout::deploy(*id), *so)?,
        Expect::Destination(id, so) => is::<Destination>(pending, &layout::destination(*id), *so)?,
        Expect::Subscriber(id, so) => is::<Subscriber>(pending, &layout::subscriber(*id), *so)?,
        Expect::Delivery(id, so) => is::<Delivery>(pending, &layout::delivery(*id), *so)?,
        Expect::Telling(page, so) => is::<Telling>(pending, &layout::telling(*page), *so)?,
        Expect::Outages(page, so) => is::<Outages>(pending, &layout::outages(*page), *so)?,
        Expect::ContactFree(page, fingerprint, id) => pending
            .get::<SubscriberId>(&layout::contact(*page, *fingerprint))?
            .is_none_or(|owner| owner == *id),
        Expect::DestinationsBelow(page, limit) => {
            listed(pending, layout::DESTINATIONS_OF, *page, *limit)? < *limit
        }
        Expect::SubscribersBelow(page, limit) => {
            listed(pending, layout::SUBSCRIBERS_OF, *page, *limit)? < *limit
        }
        Expect::Remembered(name, so) => is::<Answer>(pending, &layout::remembered(name), *so)?,
        Expect::SlugFree(slug, page) => {
            pending.get::<PageId>(&layout::slug(slug))?.is_none_or(|owner| owner == *page)
        }
        Expect::HostFree(host, page) => {
            pending.get::<PageId>(&layout::own_host(host))?.is_none_or(|owner| owner == *page)
        }
        Expect::InvitationUnused(id) => document::<Invitation>(pending, &layout::invitation(*id))?
            .is_some_and(|(_, invitation)| invitation.used_by.is_none()),
        Expect::MonitorsBelow(account, limit) => monitors(pending, *account, true)? < *limit as usize,
        Expect::ComponentsBelow(account, limit) => monitors(pending, *account, false)? < *limit as usize,
        Expect::NoMonitors(page) => {
            pending.scan(layout::beginning(&layout::monitors_of(*page)), 1)?.is_empty()
        }
        Expect::NextSlot(slot) => pending.get::<u32>(layout::NEXT_SLOT)?.unwrap_or(0) == *slot,
        Expect::NextPlace(place) => {
            pending.get::<PlaceNo>(layout::NEXT_PLACE)?.unwrap_or(PlaceNo(0)) == *place
        }
        Expect::Networks(count) => {
            pending.scan(layout::beginning(layout::NETWORKS), usize::MAX)?.len() == *count
        }
        Expect::Cursor(reader, seq) => pending.get::<u64>(&layout::cursor(reader))?.unwrap_or(0) == *seq,
    })
}

/// Counts a page's list, up to a limit.
fn listed(pending: &Pending<'_>, prefix: &[u8], page: PageId, limit: usize) -> Result<usize> {
    Ok(pending.scan(layout::beginning(&layout::on_page(prefix, page)), limit)?.len())
}

/// Counts an account's monitors: those that its plan counts, or those of type component.
fn monitors(pending: &Pending<'_>, account: AccountId, counted: bool) -> Result<usize> {
    let mut count = 0;
    for (key, _) in pending.scan(layout::beginning(&layout::pages_of(account)), usize::MAX)? {
        let page = PageId::from_u128(layout::last_id(&key).unwrap_or_default());
        for (key, _) in pending.scan(layout::beginning(&layout::monitors_of(page)), usize::MAX)? {
            count += usize::from(pending.get::<bool>(&key)? == Some(counted));
        }
    }
    Ok(count)
}

pub(super) fn document<T: DeserializeOwned>(pending: &Pending<'_>, key: &[u8]) -> Result<Option<(u64, T)>> {
    pending.get(key)
}

pub(super) fn put_document<T: Serialize>(pending: &mut Pending<'_>, key: Key, value: &T) -> Result<()> {
    let revision = pending.meta.revision;
    pending.put(key, &(revision, value))
}

fn apply(pending: &mut Pending<'_>, op: &Op) -> Result<()> {
    match op {
        Op::PutAccount(account) => put_document(pending, layout::account(account.id), account),
        Op::DeleteAccount(id) => pending.delete(layout::account(*id)),
        Op::PutPage(page) => pages::put(pending, page),
        Op::DeletePage(id) => {
            calendar::clear(pending, *id)?;
            outgoing::clear(pending, *id)?;
            pages::delete(pending, *id)
        }
        Op::PutPicture(page, usage, bytes) => pages::put_picture(pending, *page, *usage, bytes),
        Op::DeletePicture(page, usage) => pending.delete(layout::picture(*page, *usage)),
        Op::PutFreed(host, freed) => pending.put(layout::freed(host), freed),
        Op::ForgetFreed(now) => pages::forget_freed(pending, *now),
        Op::PutMonitor(monitor) => put_monitor(pending, monitor),
        Op::DeleteMonitor(id) => delete_monitor(pending, *id),
        Op::PutKey(key) => {
            unlist_key(pending, key.id)?;
            pending.put(layout::key_of(key.account, key.id), &())?;
            put_document(pending, layout::key(key.id), key)
        }
        Op::DeleteKey(id) => {
            unlist_key(pending, *id)?;
            pending.delete(layout::key(*id))
        }
        Op::PutAgent(agent) => put_document(pending, layout::agent(agent.id), agent),
        Op::DeleteAgent(id) => pending.delete(layout::agent(*id)),
        Op::PutInvitation(invitation) => put_document(pending, layout::invitation(invitation.id), invitation),
        Op::DeleteInvitation(id) => pending.delete(layout::invitation(*id)),
        Op::PutIncident(incident) => calendar::put_incident(pending, incident),
        Op::DeleteIncident(id) => calendar::delete_incident(pending, *id),
        Op::PutSeries(series) => calendar::put_series(pending, series),
        Op::DropStoppedSeries(page, kept) => calendar::drop_stopped(pending, *page, *kept),
        Op::PutDeploy(deploy) => calendar::put_deploy(pending, deploy),
        Op::DeleteDeploy(id) => calendar::delete_deploy(pending, *id),
        Op::PutDestination(destination) => outgoing::put_destination(pending, destination),
        Op::DeleteDestination(id) => outgoing::delete_destination(pending, *id),
        Op::PutSubscriber(subscriber) => outgoing::put_subscriber(pending, subscriber),
        Op::DeleteSubscriber(id) => outgoing::delete_subscriber(pending, *id),
        Op::PutBulletin(bulletin) => outgoing::put_bulletin(pending, bulletin),
        Op::PutDelivery(delivery) => outgoing::put_delivery(pending, delivery),
        Op::DropDeliveries(before) => outgoing::drop_old(pending, *before),
        Op::ClearOutgoing(page) => outgoing::clear_some(pending, *page, TRIM_AT_ONCE),
        Op::PutTelling(page, it) => outgoing::put_of_page(pending, *page, layout::telling(*page), it),
        Op::PutOutages(page, it) => outgoing::put_of_page(pending, *page, layout::outages(*page), it),
        Op::PutMachine(id, state) => put_of(pending, *id, layout::machine(*id), state),
        Op::PutPing(id, ping) => put_of(pending, *id, layout::ping(*id, ping.number), ping),
        Op::SetCursor(reader, seq) => pending.put(layout::cursor(reader), seq),
        Op::PutBlock(it) => {
            let key = layout::block(it.monitor, it.region as u8, it.hour);
            put_of(pending, it.monitor, key, &(it.slot, &it.bytes))
        }
        Op::DropBlocks(id, before) => fold::drop_days(pending, Kind::Blocks, *id, *before),
        Op::PutHour(it) => put_of(pending, it.monitor, layout::hour(it.monitor, it.at), &it.bytes),
        Op::DropHours(id, before) => fold::drop_days(pending, Kind::Hours, *id, *before),
        Op::PutDay(it) => put_of(pending, it.monitor, layout::day(it.monitor, it.at), &it.bytes),
        Op::Fold(id, before) => fold::fold(pending, *id, *before),
        Op::PutCheckpoint(it) => pending.put(layout::checkpoint(it.part), &(it.through, &it.bytes)),
        Op::DeleteCheckpoint(part) => pending.delete(layout::checkpoint(*part)),
        Op::TrimReadings(through) => trim_readings(pending, *through),
        Op::TrimEvents(through) => trim_events(pending, *through),
        Op::SetNextSlot(slot) => pending.put(layout::NEXT_SLOT.to_vec(), slot),
        Op::SetNextPlace(place) => pending.put(layout::NEXT_PLACE.to_vec(), place),
        Op::PutNetwork(label, number) => pending.put(layout::network(label), number),
        Op::Remember(name, answer) => remembered::remember(pending, name, answer),
        Op::ForgetExpired(now) => remembered::forget_expired(pending, *now),
    }
}

/// Writes a record that belongs to a monitor, if the monitor exists.
fn put_of<T: Serialize>(pending: &mut Pending<'_>, monitor: MonitorId, key: Key, value: &T) -> Result<()> {
    if pending.contains(&layout::monitor(monitor))? { pending.put(key, value) } else { Ok(()) }
}

fn unlist_key(pending: &mut Pending<'_>, id: parallax_core::id::KeyId) -> Result<()> {
    match document::<ApiKey>(pending, &layout::key(id))? {
        Some((_, old)) => pending.delete(layout::key_of(old.account, id)),
        None => Ok(()),
    }
}

fn put_monitor(pending: &mut Pending<'_>, monitor: &Monitor) -> Result<()> {
    let id = monitor.id;
    match document::<Monitor>(pending, &layout::monitor(id))? {
        Some((_, old)) if old.page != monitor.page => pending.delete(layout::monitor_of(old.page, id))?,
        Some(_) => {}
        // Recreated under a deleted id: it must not inherit history that is not deleted yet.
        None if pending.contains(&layout::gone(id))? => {
            drop_history(pending, id, usize::MAX)?;
        }
        None => {}
    }
    let counted = monitor.check.kind() != CheckKind::Component;
    pending.put(layout::monitor_of(monitor.page, id), &counted)?;
    put_document(pending, layout::monitor(id), monitor)
}

fn delete_monitor(pending: &mut Pending<'_>, id: MonitorId) -> Result<()> {
    let key = layout::monitor(id);
    let Some((_, old)) = document::<Monitor>(pending, &key)? else { return Ok(()) };
    pending.delete(key)?;
    pending.delete(layout::monitor_of(old.page, id))?;
    pending.delete(layout::machine(id))?;
    pending.put(layout::gone(id), &())
}

fn append_event(pending: &mut Pending<'_>, event: &Event) -> Result<()> {
    pending.meta.last_event += 1;
    let seq = pending.meta.last_event;
    pending.append(layout::event(seq), event)?;
    match event.monitor {
        Some(id) if pending.contains(&layout::monitor(id))? => pending.append(layout::event_of(id, seq), &()),
        Some(_) | None => Ok(()),
    }
}

fn trim_readings(pending: &mut Pending<'_>, through: u64) -> Result<()> {
    let first = pending.meta.first_reading;
    let end = through.min(pending.meta.last_reading).saturating_add(1).min(first + TRIM_AT_ONCE as u64);
    if first < end {
        pending.trim(first..end)?;
        pending.meta.first_reading = end;
    }
    Ok(())
}

fn trim_events(pending: &mut Pending<'_>, through: u64) -> Result<()> {
    let mut through = through.min(pending.meta.last_event);
    for (key, _) in pending.scan(layout::beginning(layout::CURSORS), usize::MAX)? {
        through = through.min(pending.get::<u64>(&key)?.unwrap_or(0));
    }
    let first = pending.meta.first_event;
    let end = through.saturating_add(1).min(first + TRIM_AT_ONCE as u64);
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
