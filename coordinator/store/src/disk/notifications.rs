//! Notifications in the store: destinations, subscribers, bulletins and deliveries with their lists, and announced
//! outages.

use std::ops::Range;

use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::delivery::{Delivery, DeliveryState, OrderingKey};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::engine_error;
use super::layout::{self, TreeKey};
use super::pending::PendingChanges;
use super::reader::DiskReader;
use super::record_read::{read_record, versioned};
use crate::batch::MAX_TRIMMED_PER_OP;
use crate::{NotificationRead, Result, VersionedValue, WaitingDelivery};

/// Entry in the list of waiting deliveries.
type QueueEntry = (OrderingKey, u64, Timestamp);

/// Stores a destination, if its page exists.
pub(super) fn put_destination(pending: &mut PendingChanges<'_>, destination: &Destination) -> Result<()> {
    if !pending.contains(&layout::page(destination.page))? {
        return Ok(());
    }
    delete_destination(pending, destination.id)?;
    let id = destination.id.to_u128();
    pending.put(layout::list_entry(layout::DESTINATIONS_OF, destination.page, id), &())?;
    pending.put_document(layout::destination(destination.id), destination)
}

/// Deletes a destination.
pub(super) fn delete_destination(pending: &mut PendingChanges<'_>, id: DestinationId) -> Result<()> {
    let key = layout::destination(id);
    let Some((_, old)) = pending.document::<Destination>(&key)? else { return Ok(()) };
    pending.delete(layout::list_entry(layout::DESTINATIONS_OF, old.page, id.to_u128()))?;
    pending.delete(key)
}

/// Stores a subscriber, if its page exists.
pub(super) fn put_subscriber(pending: &mut PendingChanges<'_>, subscriber: &Subscriber) -> Result<()> {
    if !pending.contains(&layout::page(subscriber.page))? {
        return Ok(());
    }
    delete_subscriber(pending, subscriber.id)?;
    let id = subscriber.id.to_u128();
    pending.put(layout::list_entry(layout::SUBSCRIBERS_OF, subscriber.page, id), &())?;
    pending.put(layout::contact(subscriber.page, subscriber.fingerprint), &subscriber.id)?;
    pending.put_document(layout::subscriber(subscriber.id), subscriber)
}

/// Deletes a subscriber.
pub(super) fn delete_subscriber(pending: &mut PendingChanges<'_>, id: SubscriberId) -> Result<()> {
    let key = layout::subscriber(id);
    let Some((_, old)) = pending.document::<Subscriber>(&key)? else { return Ok(()) };
    pending.delete(layout::list_entry(layout::SUBSCRIBERS_OF, old.page, id.to_u128()))?;
    let contact = layout::contact(old.page, old.fingerprint);
    if pending.get::<SubscriberId>(&contact)? == Some(id) {
        pending.delete(contact)?;
    }
    pending.delete(key)
}

/// Stores a bulletin, if its page exists.
pub(super) fn put_bulletin(pending: &mut PendingChanges<'_>, bulletin: &Bulletin) -> Result<()> {
    if !pending.contains(&layout::page(bulletin.page))? {
        return Ok(());
    }
    delete_bulletin(pending, bulletin.id)?;
    let id = bulletin.id.to_u128();
    pending.put(layout::list_entry(layout::BULLETINS_OF, bulletin.page, id), &())?;
    if !bulletin.is_complete {
        pending.put(layout::open_bulletin(bulletin.id), &())?;
    }
    pending.put_document(layout::bulletin(bulletin.id), bulletin)
}

fn delete_bulletin(pending: &mut PendingChanges<'_>, id: BulletinId) -> Result<()> {
    let key = layout::bulletin(id);
    let Some((_, old)) = pending.document::<Bulletin>(&key)? else { return Ok(()) };
    pending.delete(layout::list_entry(layout::BULLETINS_OF, old.page, id.to_u128()))?;
    pending.delete(layout::open_bulletin(id))?;
    pending.delete(key)
}

/// Stores a delivery, if its page exists or it has none.
pub(super) fn put_delivery(pending: &mut PendingChanges<'_>, delivery: &Delivery) -> Result<()> {
    if let Some(page) = delivery.page
        && !pending.contains(&layout::page(page))?
    {
        return Ok(());
    }
    delete_delivery(pending, delivery.id)?;
    pending.put(layout::delivery_of(delivery.page, delivery.id.to_u128()), &())?;
    if let DeliveryState::Waiting(due) = delivery.state {
        let queued: QueueEntry = (delivery.ordering_key(), delivery.seq, due);
        pending.put(layout::queued(delivery.id), &queued)?;
    }
    pending.put_document(layout::delivery(delivery.id), delivery)
}

fn delete_delivery(pending: &mut PendingChanges<'_>, id: DeliveryId) -> Result<()> {
    let key = layout::delivery(id);
    let Some((_, old)) = pending.document::<Delivery>(&key)? else { return Ok(()) };
    pending.delete(layout::delivery_of(old.page, id.to_u128()))?;
    pending.delete(layout::queued(id))?;
    pending.delete(key)
}

/// Deletes old deliveries that wait no more, and old bulletins that are finished.
pub(super) fn delete_old(pending: &mut PendingChanges<'_>, before: Timestamp) -> Result<()> {
    let end = layout::delivery(DeliveryId::new(before, [0; 10]));
    for (key, _) in pending.scan(layout::DELIVERIES.to_vec()..end, MAX_TRIMMED_PER_OP)? {
        let id = DeliveryId::from_u128(layout::last_id(&key).unwrap_or_default());
        if !pending.contains(&layout::queued(id))? {
            delete_delivery(pending, id)?;
        }
    }
    let end = layout::bulletin(BulletinId::new(before, [0; 10]));
    for (key, _) in pending.scan(layout::BULLETINS.to_vec()..end, MAX_TRIMMED_PER_OP)? {
        let id = BulletinId::from_u128(layout::last_id(&key).unwrap_or_default());
        if !pending.contains(&layout::open_bulletin(id))? {
            delete_bulletin(pending, id)?;
        }
    }
    Ok(())
}

/// Deletes some of a page's deliveries, subscribers and bulletins, at most `limit` of each.
pub(super) fn delete_some(pending: &mut PendingChanges<'_>, page: PageId, limit: usize) -> Result<()> {
    for id in ids(pending, &layout::deliveries_of(Some(page)), limit)? {
        delete_delivery(pending, DeliveryId::from_u128(id))?;
    }
    for id in ids(pending, &layout::page_list(layout::SUBSCRIBERS_OF, page), limit)? {
        delete_subscriber(pending, SubscriberId::from_u128(id))?;
    }
    for id in ids(pending, &layout::page_list(layout::BULLETINS_OF, page), limit)? {
        delete_bulletin(pending, BulletinId::from_u128(id))?;
    }
    Ok(())
}

/// Deletes a page's notifications, destinations, alert settings and announced outages.
pub(super) fn delete_all(pending: &mut PendingChanges<'_>, page: PageId) -> Result<()> {
    delete_some(pending, page, usize::MAX)?;
    for id in ids(pending, &layout::page_list(layout::DESTINATIONS_OF, page), usize::MAX)? {
        delete_destination(pending, DestinationId::from_u128(id))?;
    }
    pending.delete(layout::alert_settings(page))?;
    pending.delete(layout::announced_outages(page))
}

/// Stores a document that a page has one of, if the page exists.
pub(super) fn put_page_document<T: Serialize>(
    pending: &mut PendingChanges<'_>,
    page: PageId,
    key: TreeKey,
    value: &T,
) -> Result<()> {
    if pending.contains(&layout::page(page))? { pending.put_document(key, value) } else { Ok(()) }
}

fn ids(pending: &PendingChanges<'_>, prefix: &[u8], limit: usize) -> Result<Vec<u128>> {
    let entries = pending.scan(layout::prefix_range(prefix), limit)?;
    Ok(entries.iter().filter_map(|(key, _)| layout::last_id(key)).collect())
}

impl NotificationRead for DiskReader {
    fn destination(&self, id: DestinationId) -> Result<Option<VersionedValue<Destination>>> {
        self.document(&layout::destination(id))
    }

    fn destinations_of(&self, page: PageId) -> Result<Vec<VersionedValue<Destination>>> {
        let list = layout::page_list(layout::DESTINATIONS_OF, page);
        self.indexed(&list, |id| layout::destination(DestinationId::from_u128(id)))
    }

    fn subscriber(&self, id: SubscriberId) -> Result<Option<VersionedValue<Subscriber>>> {
        self.document(&layout::subscriber(id))
    }

    fn subscriber_by_contact(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<VersionedValue<Subscriber>>> {
        match self.record::<SubscriberId>(&layout::contact(page, fingerprint))? {
            Some(id) => self.subscriber(id),
            None => Ok(None),
        }
    }

    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Subscriber>>> {
        let prefix = layout::page_list(layout::SUBSCRIBERS_OF, page);
        let Range { mut start, end } = layout::prefix_range(&prefix);
        if let Some(after) = after {
            start = layout::list_entry(layout::SUBSCRIBERS_OF, page, after.to_u128().saturating_add(1));
        }
        self.listed(start..end, false, limit, |id| layout::subscriber(SubscriberId::from_u128(id)))
    }

    fn subscribers_count(&self, page: PageId) -> Result<usize> {
        self.query(|tree| {
            let keys = tree.scan_prefix(layout::page_list(layout::SUBSCRIBERS_OF, page)).keys();
            keys.map(|key| key.map_err(engine_error)).try_fold(0, |count, key| key.map(|_| count + 1))
        })
    }

    fn bulletin(&self, id: BulletinId) -> Result<Option<VersionedValue<Bulletin>>> {
        self.document(&layout::bulletin(id))
    }

    fn open_bulletins(&self) -> Result<Vec<VersionedValue<Bulletin>>> {
        self.indexed(layout::OPEN_BULLETINS, |id| layout::bulletin(BulletinId::from_u128(id)))
    }

    fn alert_settings(&self, page: PageId) -> Result<Option<VersionedValue<AlertSettings>>> {
        self.document(&layout::alert_settings(page))
    }

    fn announced_outages(&self, page: PageId) -> Result<Option<VersionedValue<AnnouncedOutages>>> {
        self.document(&layout::announced_outages(page))
    }

    fn delivery(&self, id: DeliveryId) -> Result<Option<VersionedValue<Delivery>>> {
        self.document(&layout::delivery(id))
    }

    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Delivery>>> {
        let Range { start, mut end } = layout::prefix_range(&layout::deliveries_of(page));
        if let Some(before) = before {
            end = layout::delivery_of(page, before.to_u128());
        }
        self.listed(start..end, true, limit, |id| layout::delivery(DeliveryId::from_u128(id)))
    }

    fn waiting_deliveries(&self) -> Result<Vec<WaitingDelivery>> {
        let id = |key: &[u8]| DeliveryId::from_u128(layout::last_id(key).unwrap_or_default());
        let entries = self.all::<QueueEntry>(layout::QUEUED)?.into_iter();
        Ok(entries
            .map(|(key, (ordering_key, seq, due))| WaitingDelivery { id: id(&key), ordering_key, seq, due })
            .collect())
    }
}

impl DiskReader {
    /// Returns up to `limit` records listed by id, from the front or the back of a list.
    fn listed<T: DeserializeOwned>(
        &self,
        keys: Range<TreeKey>,
        from_back: bool,
        limit: usize,
        key: impl Fn(u128) -> TreeKey,
    ) -> Result<Vec<VersionedValue<T>>> {
        self.query(|tree| {
            let mut records = Vec::new();
            if keys.start >= keys.end {
                return Ok(records);
            }
            let mut listed = tree.range(keys).keys();
            let mut next = || if from_back { listed.next_back() } else { listed.next() };
            while records.len() < limit
                && let Some(item) = next()
            {
                let id = layout::last_id(&item.map_err(engine_error)?).unwrap_or_default();
                records.extend(read_record(tree, &key(id))?.map(versioned));
            }
            Ok(records)
        })
    }
}
