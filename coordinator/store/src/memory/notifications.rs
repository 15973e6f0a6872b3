//! Notifications in memory: destinations, subscribers, bulletins and deliveries in maps.

use std::collections::BTreeMap;

use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::delivery::{Delivery, DeliveryState};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};

use super::{MemoryStore, Records};
use crate::batch::MAX_TRIMMED_PER_OP;
use crate::{NotificationRead, Op, Result, VersionedValue, WaitingDelivery};

#[derive(Debug, Default)]
pub(super) struct MemoryNotifications {
    pub(super) destinations: Records<DestinationId, Destination>,
    pub(super) subscribers: Records<SubscriberId, Subscriber>,
    contacts: BTreeMap<(PageId, [u8; 16]), SubscriberId>,
    bulletins: Records<BulletinId, Bulletin>,
    pub(super) deliveries: Records<DeliveryId, Delivery>,
    pub(super) alert_settings: Records<PageId, AlertSettings>,
    pub(super) announced_outages: Records<PageId, AnnouncedOutages>,
}

impl MemoryNotifications {
    pub(super) fn by_contact(&self, page: PageId, fingerprint: [u8; 16]) -> Option<&VersionedValue<Subscriber>> {
        self.contacts.get(&(page, fingerprint)).and_then(|id| self.subscribers.get(id))
    }

    pub(super) fn destinations_of(&self, page: PageId) -> impl Iterator<Item = &VersionedValue<Destination>> {
        self.destinations.values().filter(move |it| it.value.page == page)
    }

    pub(super) fn subscribers_of(&self, page: PageId) -> impl Iterator<Item = &VersionedValue<Subscriber>> {
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
        self.contacts.retain(|(contact_page, _), _| *contact_page != page);
        self.bulletins.retain(|_, it| it.value.page != page);
        self.deliveries.retain(|_, it| it.value.page != Some(page));
        self.alert_settings.remove(&page);
        self.announced_outages.remove(&page);
    }

    /// Applies an operation if it concerns notifications; ignores all others.
    pub(super) fn apply(&mut self, op: &Op, revision: u64, is_page: impl Fn(PageId) -> bool) {
        fn put<K: Ord, T: Clone>(records: &mut Records<K, T>, revision: u64, key: K, value: &T) {
            records.insert(key, VersionedValue { revision, value: value.clone() });
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
            Op::PutDelivery(it) if it.page.is_none_or(&is_page) => put(&mut self.deliveries, revision, it.id, it),
            Op::DeleteOldDeliveries(before) => {
                let oldest = |id: u128| id < DeliveryId::new(*before, [0; 10]).to_u128();
                let old: Vec<_> = self.deliveries.range(..).take(MAX_TRIMMED_PER_OP).map(|(id, _)| *id).collect();
                for id in old.into_iter().filter(|id| oldest(id.to_u128())) {
                    if !self.deliveries.get(&id).is_some_and(|it| matches!(it.value.state, DeliveryState::Waiting(_))) {
                        self.deliveries.remove(&id);
                    }
                }
                let old: Vec<_> = self.bulletins.range(..).take(MAX_TRIMMED_PER_OP).map(|(id, _)| *id).collect();
                for id in old.into_iter().filter(|id| oldest(id.to_u128())) {
                    if self.bulletins.get(&id).is_some_and(|it| it.value.is_complete) {
                        self.bulletins.remove(&id);
                    }
                }
            }
            Op::ClearNotifications(page) => {
                drop_some(&mut self.deliveries, |it| it.page == Some(*page));
                let ids: Vec<_> = self.subscribers_of(*page).take(MAX_TRIMMED_PER_OP).map(|it| it.value.id).collect();
                ids.into_iter().for_each(|id| self.delete_subscriber(id));
                drop_some(&mut self.bulletins, |it| it.page == *page);
            }
            Op::PutAlertSettings(page, it) if is_page(*page) => put(&mut self.alert_settings, revision, *page, it),
            Op::PutAnnouncedOutages(page, it) if is_page(*page) => {
                put(&mut self.announced_outages, revision, *page, it)
            }
            _ => {}
        }
    }
}

fn drop_some<K: Ord + Copy, T>(records: &mut Records<K, T>, is_selected: impl Fn(&T) -> bool) {
    let ids: Vec<K> =
        records.iter().filter(|(_, it)| is_selected(&it.value)).take(MAX_TRIMMED_PER_OP).map(|(id, _)| *id).collect();
    ids.iter().for_each(|id| drop(records.remove(id)));
}

impl NotificationRead for MemoryStore {
    fn destination(&self, id: DestinationId) -> Result<Option<VersionedValue<Destination>>> {
        Ok(self.read().notifications.destinations.get(&id).cloned())
    }

    fn destinations_of(&self, page: PageId) -> Result<Vec<VersionedValue<Destination>>> {
        Ok(self.read().notifications.destinations_of(page).cloned().collect())
    }

    fn subscriber(&self, id: SubscriberId) -> Result<Option<VersionedValue<Subscriber>>> {
        Ok(self.read().notifications.subscribers.get(&id).cloned())
    }

    fn subscriber_by_contact(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<VersionedValue<Subscriber>>> {
        Ok(self.read().notifications.by_contact(page, fingerprint).cloned())
    }

    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Subscriber>>> {
        let state = self.read();
        let records =
            state.notifications.subscribers_of(page).filter(|it| after.is_none_or(|after| it.value.id > after));
        Ok(records.take(limit).cloned().collect())
    }

    fn subscribers_count(&self, page: PageId) -> Result<usize> {
        Ok(self.read().notifications.subscribers_of(page).count())
    }

    fn bulletin(&self, id: BulletinId) -> Result<Option<VersionedValue<Bulletin>>> {
        Ok(self.read().notifications.bulletins.get(&id).cloned())
    }

    fn open_bulletins(&self) -> Result<Vec<VersionedValue<Bulletin>>> {
        Ok(self.read().notifications.bulletins.values().filter(|it| !it.value.is_complete).cloned().collect())
    }

    fn alert_settings(&self, page: PageId) -> Result<Option<VersionedValue<AlertSettings>>> {
        Ok(self.read().notifications.alert_settings.get(&page).cloned())
    }

    fn announced_outages(&self, page: PageId) -> Result<Option<VersionedValue<AnnouncedOutages>>> {
        Ok(self.read().notifications.announced_outages.get(&page).cloned())
    }

    fn delivery(&self, id: DeliveryId) -> Result<Option<VersionedValue<Delivery>>> {
        Ok(self.read().notifications.deliveries.get(&id).cloned())
    }

    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Delivery>>> {
        let state = self.read();
        let records = state.notifications.deliveries.values().rev();
        let records = records.filter(|it| it.value.page == page && before.is_none_or(|before| it.value.id < before));
        Ok(records.take(limit).cloned().collect())
    }

    fn waiting_deliveries(&self) -> Result<Vec<WaitingDelivery>> {
        let state = self.read();
        let waiting = state.notifications.deliveries.values().filter_map(|it| match it.value.state {
            DeliveryState::Waiting(due) => {
                Some(WaitingDelivery { id: it.value.id, ordering_key: it.value.ordering_key(), seq: it.value.seq, due })
            }
            DeliveryState::Delivered(_) | DeliveryState::Failed(_) | DeliveryState::Dropped(_) => None,
        });
        Ok(waiting.collect())
    }
}
