//! Notifications in memory: destinations, subscribers, bulletins and deliveries in maps.

use std::collections::BTreeMap;

use parallax_core::delivery::{Delivery, Stage};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::telling::{Outages, Telling};

use super::{Memory, Records};
use crate::storage::batch::TRIM_AT_ONCE;
use crate::storage::{Op, Outgoing, Result, Versioned, Waiting};

#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) destinations: Records<DestinationId, Destination>,
    pub(super) subscribers: Records<SubscriberId, Subscriber>,
    contacts: BTreeMap<(PageId, [u8; 16]), SubscriberId>,
    bulletins: Records<BulletinId, Bulletin>,
    pub(super) deliveries: Records<DeliveryId, Delivery>,
    pub(super) telling: Records<PageId, Telling>,
    pub(super) outages: Records<PageId, Outages>,
}

impl Kept {
    pub(super) fn by_contact(&self, page: PageId, fingerprint: [u8; 16]) -> Option<&Versioned<Subscriber>> {
        self.contacts.get(&(page, fingerprint)).and_then(|id| self.subscribers.get(id))
    }

    pub(super) fn destinations_of(&self, page: PageId) -> impl Iterator<Item = &Versioned<Destination>> {
        self.destinations.values().filter(move |it| it.value.page == page)
    }

    pub(super) fn subscribers_of(&self, page: PageId) -> impl Iterator<Item = &Versioned<Subscriber>> {
        self.subscribers.values().filter(move |it| it.value.page == page)
    }

    fn delete_subscriber(&mut self, id: SubscriberId) {
        let Some(old) = self.subscribers.remove(&id) else { return };
        let contact = (old.value.page, old.value.fingerprint);
        if self.contacts.get(&contact) == Some(&id) {
            self.contacts.remove(&contact);
        }
    }

    pub(super) fn clear(&mut self, page: PageId) {
        self.destinations.retain(|_, it| it.value.page != page);
        self.subscribers.retain(|_, it| it.value.page != page);
        self.contacts.retain(|(its, _), _| *its != page);
        self.bulletins.retain(|_, it| it.value.page != page);
        self.deliveries.retain(|_, it| it.value.page != Some(page));
        self.telling.remove(&page);
        self.outages.remove(&page);
    }

    /// Applies an operation if it concerns notifications; ignores all others.
    pub(super) fn apply(&mut self, op: &Op, revision: u64, is_page: impl Fn(PageId) -> bool) {
        fn put<K: Ord, T: Clone>(records: &mut Records<K, T>, revision: u64, key: K, value: &T) {
            records.insert(key, Versioned { revision, value: value.clone() });
        }
        match op {
            Op::PutDestination(it) if is_page(it.page) => put(&mut self.destinations, revision, it.id, it),
            Op::DeleteDestination(id) => drop(self.destinations.remove(id)),
            Op::PutSubscriber(it) if is_page(it.page) => {
                self.delete_subscriber(it.id);
                self.contacts.insert((it.page, it.fingerprint), it.id);
                put(&mut self.subscribers, revision, it.id, it);
            }
            Op::DeleteSubscriber(id) => self.delete_subscriber(*id),
            Op::PutBulletin(it) if is_page(it.page) => put(&mut self.bulletins, revision, it.id, it),
            Op::PutDelivery(it) if it.page.is_none_or(&is_page) => {
                put(&mut self.deliveries, revision, it.id, it)
            }
            Op::DropDeliveries(before) => {
                let oldest = |id: u128| id < DeliveryId::new(*before, [0; 10]).to_u128();
                let old: Vec<_> = self.deliveries.range(..).take(TRIM_AT_ONCE).map(|(id, _)| *id).collect();
                for id in old.into_iter().filter(|id| oldest(id.to_u128())) {
                    if !self.deliveries.get(&id).is_some_and(|it| matches!(it.value.stage, Stage::Waiting(_)))
                    {
                        self.deliveries.remove(&id);
                    }
                }
                let old: Vec<_> = self.bulletins.range(..).take(TRIM_AT_ONCE).map(|(id, _)| *id).collect();
                for id in old.into_iter().filter(|id| oldest(id.to_u128())) {
                    if self.bulletins.get(&id).is_some_and(|it| it.value.done) {
                        self.bulletins.remove(&id);
                    }
                }
            }
            Op::ClearOutgoing(page) => {
                drop_some(&mut self.deliveries, |it| it.page == Some(*page));
                let some: Vec<_> =
                    self.subscribers_of(*page).take(TRIM_AT_ONCE).map(|it| it.value.id).collect();
                some.into_iter().for_each(|id| self.delete_subscriber(id));
                drop_some(&mut self.bulletins, |it| it.page == *page);
            }
            Op::PutTelling(page, it) if is_page(*page) => put(&mut self.telling, revision, *page, it),
            Op::PutOutages(page, it) if is_page(*page) => put(&mut self.outages, revision, *page, it),
            _ => {}
        }
    }
}

fn drop_some<K: Ord + Copy, T>(records: &mut Records<K, T>, is_one: impl Fn(&T) -> bool) {
    let found: Vec<K> =
        records.iter().filter(|(_, it)| is_one(&it.value)).take(TRIM_AT_ONCE).map(|(id, _)| *id).collect();
    found.iter().for_each(|id| drop(records.remove(id)));
}

impl Outgoing for Memory {
    fn destination(&self, id: DestinationId) -> Result<Option<Versioned<Destination>>> {
        Ok(self.read().outgoing.destinations.get(&id).cloned())
    }

    fn destinations_of(&self, page: PageId) -> Result<Vec<Versioned<Destination>>> {
        Ok(self.read().outgoing.destinations_of(page).cloned().collect())
    }

    fn subscriber(&self, id: SubscriberId) -> Result<Option<Versioned<Subscriber>>> {
        Ok(self.read().outgoing.subscribers.get(&id).cloned())
    }

    fn subscriber_by(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<Versioned<Subscriber>>> {
        Ok(self.read().outgoing.by_contact(page, fingerprint).cloned())
    }

    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Subscriber>>> {
        let kept = self.read();
        let found =
            kept.outgoing.subscribers_of(page).filter(|it| after.is_none_or(|after| it.value.id > after));
        Ok(found.take(limit).cloned().collect())
    }

    fn subscribers_count(&self, page: PageId) -> Result<usize> {
        Ok(self.read().outgoing.subscribers_of(page).count())
    }

    fn bulletin(&self, id: BulletinId) -> Result<Option<Versioned<Bulletin>>> {
        Ok(self.read().outgoing.bulletins.get(&id).cloned())
    }

    fn open_bulletins(&self) -> Result<Vec<Versioned<Bulletin>>> {
        Ok(self.read().outgoing.bulletins.values().filter(|it| !it.value.done).cloned().collect())
    }

    fn telling(&self, page: PageId) -> Result<Option<Versioned<Telling>>> {
        Ok(self.read().outgoing.telling.get(&page).cloned())
    }

    fn outages(&self, page: PageId) -> Result<Option<Versioned<Outages>>> {
        Ok(self.read().outgoing.outages.get(&page).cloned())
    }

    fn delivery(&self, id: DeliveryId) -> Result<Option<Versioned<Delivery>>> {
        Ok(self.read().outgoing.deliveries.get(&id).cloned())
    }

    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Delivery>>> {
        let kept = self.read();
        let found = kept.outgoing.deliveries.values().rev();
        let found =
            found.filter(|it| it.value.page == page && before.is_none_or(|before| it.value.id < before));
        Ok(found.take(limit).cloned().collect())
    }

    fn waiting(&self) -> Result<Vec<Waiting>> {
        let kept = self.read();
        let waiting = kept.outgoing.deliveries.values().filter_map(|it| match it.value.stage {
            Stage::Waiting(due) => {
                Some(Waiting { id: it.value.id, lane: it.value.lane(), seq: it.value.seq, due })
            }
            Stage::Delivered(_) | Stage::Failed(_) | Stage::Dropped(_) => None,
        });
        Ok(waiting.collect())
    }
}
