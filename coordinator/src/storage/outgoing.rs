//! Queries for notifications: destinations, subscribers, bulletins and deliveries.

use parallax_core::delivery::{Delivery, Lane};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::telling::{Outages, Telling};
use parallax_core::time::Timestamp;

use super::{Result, Versioned};

/// A waiting delivery, with the data that decides when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub id: DeliveryId,
    /// Key within which deliveries are sent in order.
    pub lane: Lane,
    /// Its position among those with the same key.
    pub seq: u64,
    /// Its due time.
    pub due: Timestamp,
}

/// Queries for notifications; see [`Read`](super::Read) for what holds for all queries.
pub trait Outgoing {
    /// The destination.
    fn destination(&self, id: DestinationId) -> Result<Option<Versioned<Destination>>>;
    /// The page's destinations, by id.
    fn destinations_of(&self, page: PageId) -> Result<Vec<Versioned<Destination>>>;
    /// The subscriber.
    fn subscriber(&self, id: SubscriberId) -> Result<Option<Versioned<Subscriber>>>;
    /// The page's subscriber with that fingerprint.
    fn subscriber_by(&self, page: PageId, fingerprint: [u8; 16]) -> Result<Option<Versioned<Subscriber>>>;
    /// Up to `limit` of the page's subscribers with an id above `after` (none: from the first), by id.
    fn subscribers_of(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Subscriber>>>;
    /// Number of subscribers of the page, confirmed or not.
    fn subscribers_count(&self, page: PageId) -> Result<usize>;
    /// The bulletin.
    fn bulletin(&self, id: BulletinId) -> Result<Option<Versioned<Bulletin>>>;
    /// All bulletins that have not reached every subscriber yet, by id.
    fn open_bulletins(&self) -> Result<Vec<Versioned<Bulletin>>>;
    /// The page's alert settings; `None` if never set.
    fn telling(&self, page: PageId) -> Result<Option<Versioned<Telling>>>;
    /// The page's announced outages; `None` if none was ever announced.
    fn outages(&self, page: PageId) -> Result<Option<Versioned<Outages>>>;
    /// The delivery.
    fn delivery(&self, id: DeliveryId) -> Result<Option<Versioned<Delivery>>>;
    /// Up to `limit` of a page's deliveries (`None`: the operator's) with an id below `before`, newest first, by
    /// id.
    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Delivery>>>;
    /// Every waiting delivery, by id.
    fn waiting(&self) -> Result<Vec<Waiting>>;
}
