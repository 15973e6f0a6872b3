//! Queries for notifications: destinations, subscribers, bulletins and deliveries.

use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::delivery::{Delivery, OrderingKey};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::Timestamp;

use super::{Result, VersionedValue};

/// A waiting delivery, with the data that decides when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// Key within which deliveries are sent in order.
    pub ordering_key: OrderingKey,
    /// Its position among those with the same key.
    pub seq: u64,
    /// Its due time.
    pub due: Timestamp,
}

/// Queries for notifications; see [`StoreRead`](super::StoreRead) for what holds for all queries.
pub trait NotificationRead {
    /// The destination.
    fn destination(&self, id: DestinationId) -> Result<Option<VersionedValue<Destination>>>;
    /// The page's destinations, by id.
    fn destinations_of(&self, page: PageId) -> Result<Vec<VersionedValue<Destination>>>;
    /// The subscriber.
    fn subscriber(&self, id: SubscriberId) -> Result<Option<VersionedValue<Subscriber>>>;
    /// The page's subscriber with that fingerprint.
    fn subscriber_by_contact(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<VersionedValue<Subscriber>>>;
    /// Up to `limit` of the page's subscribers with an id above `after` (none: from the first), by id.
    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Subscriber>>>;
    /// Number of subscribers of the page, confirmed or not.
    fn subscribers_count(&self, page: PageId) -> Result<usize>;
    /// The bulletin.
    fn bulletin(&self, id: BulletinId) -> Result<Option<VersionedValue<Bulletin>>>;
    /// All bulletins that have not reached every subscriber yet, by id.
    fn open_bulletins(&self) -> Result<Vec<VersionedValue<Bulletin>>>;
    /// The page's alert settings; `None` if never set.
    fn alert_settings(&self, page: PageId) -> Result<Option<VersionedValue<AlertSettings>>>;
    /// The page's announced outages; `None` if none was ever announced.
    fn announced_outages(&self, page: PageId) -> Result<Option<VersionedValue<AnnouncedOutages>>>;
    /// The delivery.
    fn delivery(&self, id: DeliveryId) -> Result<Option<VersionedValue<Delivery>>>;
    /// Up to `limit` of a page's deliveries (`None`: the operator's) with an id below `before`, newest first, by
    /// id.
    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Delivery>>>;
    /// Every waiting delivery, by id.
    fn waiting_deliveries(&self) -> Result<Vec<WaitingDelivery>>;
}
