//! Notifications in the store: destinations, subscribers, bulletins and deliveries with their lists, and announced
//! outages.

use std::ops::Range;

use parallax_core::delivery::{Delivery, Lane, Stage};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::telling::{Outages, Telling};
use parallax_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failed;
use super::layout::{self, Key};
use super::load::{load, versioned};
use super::pending::Pending;
use super::read::Reader;
use super::stage::{document, put_document};
use crate::storage::batch::TRIM_AT_ONCE;
use crate::storage::{Outgoing, Result, Versioned, Waiting};

/// Entry in the list of waiting deliveries.
type Queued = (Lane, u64, Timestamp);

/// Stores a destination, if its page exists.
pub(super) fn put_destination(pending: &mut Pending<'_>, destination: &Destination) -> Result<()> {
    if !pending.contains(&layout::page(destination.page))? {
        return Ok(());
    }
    delete_destination(pending, destination.id)?;
    let id = destination.id.to_u128();
    pending.put(layout::listed(layout::DESTINATIONS_OF, destination.page, id), &())?;
    put_document(pending, layout::destination(destination.id), destination)
}

/// Deletes a destination.
pub(super) fn delete_destination(pending: &mut Pending<'_>, id: DestinationId) -> Result<()> {
    let key = layout::destination(id);
    let Some((_, old)) = document::<Destination>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::listed(layout::DESTINATIONS_OF, old.page, id.to_u128()))?;
    pending.delete(key)
}

/// Stores a subscriber, if its page exists.
pub(super) fn put_subscriber(pending: &mut Pending<'_>, subscriber: &Subscriber) -> Result<()> {
    if !pending.contains(&layout::page(subscriber.page))? {
        return Ok(());
    }
    delete_subscriber(pending, subscriber.id)?;
    let id = subscriber.id.to_u128();
    pending.put(layout::listed(layout::SUBSCRIBERS_OF, subscriber.page, id), &())?;
    pending.put(layout::contact(subscriber.page, subscriber.fingerprint), &subscriber.id)?;
    put_document(pending, layout::subscriber(subscriber.id), subscriber)
}

/// Deletes a subscriber.
pub(super) fn delete_subscriber(pending: &mut Pending<'_>, id: SubscriberId) -> Result<()> {
    let key = layout::subscriber(id);
    let Some((_, old)) = document::<Subscriber>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::listed(layout::SUBSCRIBERS_OF, old.page, id.to_u128()))?;
    let contact = layout::contact(old.page, old.fingerprint);
    if pending.get::<SubscriberId>(&contact)? == Some(id) {
        pending.delete(contact)?;
    }
    pending.delete(key)
}

/// Stores a bulletin, if its page exists.
pub(super) fn put_bulletin(pending: &mut Pending<'_>, bulletin: &Bulletin) -> Result<()> {
    if !pending.contains(&layout::page(bulletin.page))? {
        return Ok(());
    }
    delete_bulletin(pending, bulletin.id)?;
    let id = bulletin.id.to_u128();
    pending.put(layout::listed(layout::BULLETINS_OF, bulletin.page, id), &())?;
    if !bulletin.done {
        pending.put(layout::open_bulletin(bulletin.id), &())?;
    }
    put_document(pending, layout::bulletin(bulletin.id), bulletin)
}

fn delete_bulletin(pending: &mut Pending<'_>, id: BulletinId) -> Result<()> {
    let key = layout::bulletin(id);
    let Some((_, old)) = document::<Bulletin>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::listed(layout::BULLETINS_OF, old.page, id.to_u128()))?;
    pending.delete(layout::open_bulletin(id))?;
    pending.delete(key)
}

/// Stores a delivery, if its page exists or it has none.
pub(super) fn put_delivery(pending: &mut Pending<'_>, delivery: &Delivery) -> Result<()> {
    if let Some(page) = delivery.page
        && !pending.contains(&layout::page(page))?
    {
        return Ok(());
    }
    delete_delivery(pending, delivery.id)?;
    pending.put(layout::delivery_of(delivery.page, delivery.id.to_u128()), &())?;
    if let Stage::Waiting(due) = delivery.stage {
        let queued: Queued = (delivery.lane(), delivery.seq, due);
        pending.put(layout::queued(delivery.id), &queued)?;
    }
    put_document(pending, layout::delivery(delivery.id), delivery)
}

fn delete_delivery(pending: &mut Pending<'_>, id: DeliveryId) -> Result<()> {
    let key = layout::delivery(id);
    let Some((_, old)) = document::<Delivery>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::delivery_of(old.page, id.to_u128()))?;
    pending.delete(layout::queued(id))?;
    pending.delete(key)
}

/// Deletes old deliveries that wait no more, and old bulletins that are finished.
pub(super) fn drop_old(pending: &mut Pending<'_>, before: Timestamp) -> Result<()> {
    let end = layout::delivery(DeliveryId::new(before, [0; 10]));
    for (key, _) in pending.scan(layout::DELIVERIES.to_vec()..end, TRIM_AT_ONCE)? {
        let id = DeliveryId::from_u128(layout::last_id(&key).unwrap_or_default());
        if !pending.contains(&layout::queued(id))? {
            delete_delivery(pending, id)?;
        }
    }
    let end = layout::bulletin(BulletinId::new(before, [0; 10]));
    for (key, _) in pending.scan(layout::BULLETINS.to_vec()..end, TRIM_AT_ONCE)? {
        let id = BulletinId::from_u128(layout::last_id(&key).unwrap_or_default());
        if !pending.contains(&layout::open_bulletin(id))? {
            delete_bulletin(pending, id)?;
        }
    }
    Ok(())
}

/// Deletes some of a page's deliveries, subscribers and bulletins, at most `limit` of each.
pub(super) fn clear_some(pending: &mut Pending<'_>, page: PageId, limit: usize) -> Result<()> {
    for id in ids(pending, &layout::deliveries_of(Some(page)), limit)? {
        delete_delivery(pending, DeliveryId::from_u128(id))?;
    }
    for id in ids(pending, &layout::on_page(layout::SUBSCRIBERS_OF, page), limit)? {
        delete_subscriber(pending, SubscriberId::from_u128(id))?;
    }
    for id in ids(pending, &layout::on_page(layout::BULLETINS_OF, page), limit)? {
        delete_bulletin(pending, BulletinId::from_u128(id))?;
    }
    Ok(())
}

/// Deletes a page's notifications, destinations, alert settings and announced outages.
pub(super) fn clear(pending: &mut Pending<'_>, page: PageId) -> Result<()> {
    clear_some(pending, page, usize::MAX)?;
    for id in ids(pending, &layout::on_page(layout::DESTINATIONS_OF, page), usize::MAX)? {
        delete_destination(pending, DestinationId::from_u128(id))?;
    }
    pending.delete(layout::telling(page))?;
    pending.delete(layout::outages(page))
}

/// Stores a document that a page has one of, if the page exists.
pub(super) fn put_of_page<T: Serialize>(
    pending: &mut Pending<'_>,
    page: PageId,
    key: Key,
    value: &T,
) -> Result<()> {
    if pending.contains(&layout::page(page))? { put_document(pending, key, value) } else { Ok(()) }
}

fn ids(pending: &Pending<'_>, prefix: &[u8], limit: usize) -> Result<Vec<u128>> {
    let found = pending.scan(layout::beginning(prefix), limit)?;
    Ok(found.iter().filter_map(|(key, _)| layout::last_id(key)).collect())
}

impl Outgoing for Reader {
    fn destination(&self, id: DestinationId) -> Result<Option<Versioned<Destination>>> {
        self.document(&layout::destination(id))
    }

    fn destinations_of(&self, page: PageId) -> Result<Vec<Versioned<Destination>>> {
        let list = layout::on_page(layout::DESTINATIONS_OF, page);
        self.indexed(&list, |id| layout::destination(DestinationId::from_u128(id)))
    }

    fn subscriber(&self, id: SubscriberId) -> Result<Option<Versioned<Subscriber>>> {
        self.document(&layout::subscriber(id))
    }

    fn subscriber_by(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<Versioned<Subscriber>>> {
        match self.one::<SubscriberId>(&layout::contact(page, fingerprint))? {
            Some(id) => self.subscriber(id),
            None => Ok(None),
        }
    }

    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Subscriber>>> {
        let prefix = layout::on_page(layout::SUBSCRIBERS_OF, page);
        let Range { mut start, end } = layout::beginning(&prefix);
        if let Some(after) = after {
            start = layout::listed(layout::SUBSCRIBERS_OF, page, after.to_u128().saturating_add(1));
        }
        self.listed(start..end, false, limit, |id| layout::subscriber(SubscriberId::from_u128(id)))
    }

    fn subscribers_count(&self, page: PageId) -> Result<usize> {
        self.ask(|tree| {
            let keys = tree.scan_prefix(layout::on_page(layout::SUBSCRIBERS_OF, page)).keys();
            keys.map(|key| key.map_err(failed)).try_fold(0, |count, key| key.map(|_| count + 1))
        })
    }

    fn bulletin(&self, id: BulletinId) -> Result<Option<Versioned<Bulletin>>> {
        self.document(&layout::bulletin(id))
    }

    fn open_bulletins(&self) -> Result<Vec<Versioned<Bulletin>>> {
        self.indexed(layout::OPEN_BULLETINS, |id| layout::bulletin(BulletinId::from_u128(id)))
    }

    fn telling(&self, page: PageId) -> Result<Option<Versioned<Telling>>> {
        self.document(&layout::telling(page))
    }

    fn outages(&self, page: PageId) -> Result<Option<Versioned<Outages>>> {
        self.document(&layout::outages(page))
    }

    fn delivery(&self, id: DeliveryId) -> Result<Option<Versioned<Delivery>>> {
        self.document(&layout::delivery(id))
    }

    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Delivery>>> {
        let Range { start, mut end } = layout::beginning(&layout::deliveries_of(page));
        if let Some(before) = before {
            end = layout::delivery_of(page, before.to_u128());
        }
        self.listed(start..end, true, limit, |id| layout::delivery(DeliveryId::from_u128(id)))
    }

    fn waiting(&self) -> Result<Vec<Waiting>> {
        let id = |key: &[u8]| DeliveryId::from_u128(layout::last_id(key).unwrap_or_default());
        let found = self.all::<Queued>(layout::QUEUED)?.into_iter();
        Ok(found.map(|(key, (lane, seq, due))| Waiting { id: id(&key), lane, seq, due }).collect())
    }
}

impl Reader {
    /// Returns up to `limit` records listed by id, from the front or the back of a list.
    fn listed<T: DeserializeOwned>(
        &self,
        keys: Range<Key>,
        from_back: bool,
        limit: usize,
        key: impl Fn(u128) -> Key,
    ) -> Result<Vec<Versioned<T>>> {
        self.ask(|tree| {
            let mut found = Vec::new();
            if keys.start >= keys.end {
                return Ok(found);
            }
            let mut listed = tree.range(keys).keys();
            let mut next = || if from_back { listed.next_back() } else { listed.next() };
            while found.len() < limit
                && let Some(item) = next()
            {
                let id = layout::last_id(&item.map_err(failed)?).unwrap_or_default();
                found.extend(load(tree, &key(id))?.map(versioned));
            }
            Ok(found)
        })
    }
}
