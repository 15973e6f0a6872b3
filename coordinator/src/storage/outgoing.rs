//! The questions about what leaves the house: destinations, subscribers, news and deliveries.

use parallax_core::delivery::{Delivery, Lane};
use parallax_core::destination::Destination;
use parallax_core::id::{BulletinId, DeliveryId, DestinationId, PageId, SubscriberId};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::telling::{Outages, Telling};
use parallax_core::time::Timestamp;

use super::{Result, Versioned};

/// A delivery that is to be sent, as far as it decides whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub id: DeliveryId,
    /// What keeps its order.
    pub lane: Lane,
    /// Its place among those of its lane.
    pub seq: u64,
    /// When it is due.
    pub due: Timestamp,
}

/// The questions about what leaves the house; see [`Read`](super::Read) for what holds of all questions.
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
    /// How many subscribers the page has, confirmed or not.
    fn subscribers_count(&self, page: PageId) -> Result<usize>;
    /// The news.
    fn bulletin(&self, id: BulletinId) -> Result<Option<Versioned<Bulletin>>>;
    /// All news that has not reached every subscriber yet, by id.
    fn open_bulletins(&self) -> Result<Vec<Versioned<Bulletin>>>;
    /// The page's alert settings; none where they were never set.
    fn telling(&self, page: PageId) -> Result<Option<Versioned<Telling>>>;
    /// The page's told outages; none where none was ever told.
    fn outages(&self, page: PageId) -> Result<Option<Versioned<Outages>>>;
    /// The delivery.
    fn delivery(&self, id: DeliveryId) -> Result<Option<Versioned<Delivery>>>;
    /// Up to `limit` of a page's deliveries (none: the operator's) with an id below `before`, newest first, by id.
    fn deliveries_of(
        &self,
        page: Option<PageId>,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<Versioned<Delivery>>>;
    /// Every delivery that waits, by id.
    fn waiting(&self) -> Result<Vec<Waiting>>;
}
