//! Batches: writes that are committed together, and the expectations that must hold for them.

use std::fmt;

use parallax_core::account::Account;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::heartbeat::Ping;
use parallax_core::id::{
    AccountId, AgentId, DeliveryId, DeployId, DestinationId, IncidentId, InvitationId, KeyId, MonitorId,
    PageId, SeriesId, SubscriberId,
};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::Key;
use parallax_core::machine::State;
use parallax_core::member::{Agent, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::domain::Freed;
use parallax_core::page::look::PictureUse;
use parallax_core::place::{NetworkNo, PlaceNo};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::telling::{Outages, Telling};
use parallax_core::time::Timestamp;

use super::packed::{Block, Checkpoint, Remembered, Rollup};
use super::{Result, StoreError};

/// Longest name (slug, cursor name, network label, idempotency name), in bytes.
pub const MAX_NAME: usize = 256;
/// Readings per batch, at most.
pub const MAX_READINGS: usize = 65_536;
/// Operations, expectations and events per batch, at most of each.
pub const MAX_PARTS: usize = 65_536;
/// Longest opaque value (block, roll-up, checkpoint, stored response), in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Entries that one [`Op::ForgetExpired`] or [`Op::ForgetFreed`] removes, at most.
pub const FORGET_AT_ONCE: usize = 256;
/// Entries that one [`Op::TrimReadings`] or [`Op::TrimEvents`] removes, at most.
pub const TRIM_AT_ONCE: usize = 1024;
/// Days that one [`Op::DropBlocks`] or [`Op::DropHours`] removes, at most.
pub const DAYS_AT_ONCE: usize = 4;
/// Blocks, hours and days that one [`Op::Fold`] compacts, at most of each.
pub const FOLD_AT_ONCE: usize = 1024;

/// Writes that become durable together, or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Conditions that must hold just before, checked against the store without this batch.
    pub expect: Vec<Expect>,
    /// Writes, in order.
    pub ops: Vec<Op>,
    /// Events: each gets the next sequence number, in order, after the writes.
    pub events: Vec<Event>,
    /// Readings: one entry of the readings journal, if there are any.
    pub readings: Vec<Reading>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    pub fn expect(&mut self, expect: Expect) -> &mut Self {
        self.expect.push(expect);
        self
    }

    /// Adds a write: an [`Op`], or a record to store.
    pub fn write(&mut self, op: impl Into<Op>) -> &mut Self {
        self.ops.push(op.into());
        self
    }

    /// Adds an event.
    pub fn event(&mut self, event: Event) -> &mut Self {
        self.events.push(event);
        self
    }

    /// Returns true if it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.events.is_empty() && self.readings.is_empty()
    }

    /// Checks the size limits: [`StoreError::TooLarge`] names the part that exceeds one.
    pub(super) fn check_size(&self) -> Result<()> {
        let within = |fits: bool, what| if fits { Ok(()) } else { Err(StoreError::TooLarge(what)) };
        within(self.readings.len() <= MAX_READINGS, "a batch's readings")?;
        within(self.ops.len().max(self.expect.len()).max(self.events.len()) <= MAX_PARTS, "a batch")?;
        for op in &self.ops {
            let (name, bytes) = op.sizes();
            within(name <= MAX_NAME, "a name")?;
            within(bytes <= MAX_BYTES, "a value")?;
        }
        self.expect.iter().try_for_each(|expect| within(expect.name_len() <= MAX_NAME, "a name"))
    }
}

/// Result of a committed batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// Number of the commit, which is the revision of every record that it wrote.
    pub revision: u64,
    /// Sequence number of the newest event after the commit: its own last event, if it has any.
    pub last_event: u64,
    /// Sequence number of its readings journal entry, if it has readings.
    pub readings: Option<u64>,
}

/// Required state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// Not in the store.
    Absent,
    /// In the store, at any revision.
    Present,
    /// In the store, at that revision.
    At(u64),
}

impl Is {
    /// Returns true if a record of that revision (`None`: absent) is in the required state.
    pub(super) fn holds(self, revision: Option<u64>) -> bool {
        match self {
            Self::Absent => revision.is_none(),
            Self::Present => revision.is_some(),
            Self::At(wanted) => revision == Some(wanted),
        }
    }
}

/// Condition for a batch to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// State of the account.
    Account(AccountId, Is),
    /// State of the page.
    Page(PageId, Is),
    /// State of the monitor.
    Monitor(MonitorId, Is),
    /// State of the API key.
    Key(KeyId, Is),
    /// State of the agent.
    Agent(AgentId, Is),
    /// State of the invitation.
    Invitation(InvitationId, Is),
    /// State of the incident or window.
    Incident(IncidentId, Is),
    /// State of the series.
    Series(SeriesId, Is),
    /// State of the deploy marker.
    Deploy(DeployId, Is),
    /// State of the destination.
    Destination(DestinationId, Is),
    /// State of the subscriber.
    Subscriber(SubscriberId, Is),
    /// State of the delivery.
    Delivery(DeliveryId, Is),
    /// State of the page's alert settings; absent if never set.
    Telling(PageId, Is),
    /// State of the page's announced outages; absent if none was ever announced.
    Outages(PageId, Is),
    /// No other subscriber of the page has that contact fingerprint. Implied by every write of a subscriber.
    ContactFree(PageId, [u8; 16], SubscriberId),
    /// The page has fewer destinations than this.
    DestinationsBelow(PageId, usize),
    /// The page has fewer subscribers than this.
    SubscribersBelow(PageId, usize),
    /// State of the stored response of that idempotency name.
    Remembered(String, Is),
    /// No other page has the slug. Implied by every write of a page.
    SlugFree(String, PageId),
    /// No other page has the hostname. Implied by every write of a page that has one.
    HostFree(String, PageId),
    /// The invitation exists and has not been used.
    InvitationUnused(InvitationId),
    /// The account's pages have fewer monitors than this, not counting those of type component.
    MonitorsBelow(AccountId, u32),
    /// The account's pages have fewer monitors of type component than this.
    ComponentsBelow(AccountId, u32),
    /// The page has no monitor.
    NoMonitors(PageId),
    /// The next monitor's slot is this one.
    NextSlot(u32),
    /// The next agent's vantage number is this one.
    NextPlace(PlaceNo),
    /// This many networks have a number.
    Networks(usize),
    /// The cursor has this value.
    Cursor(String, u64),
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Expect {
    fn name_len(&self) -> usize {
        match self {
            Self::Remembered(name, _)
            | Self::SlugFree(name, _)
            | Self::HostFree(name, _)
            | Self::Cursor(name, _) => name.len(),
            _ => 0,
        }
    }
}

/// A write. Deleting an absent record does nothing.
///
/// Machine states, blocks and roll-ups belong to their monitor. If that is not in the store, they are silently
/// dropped, so that results in flight when a monitor is deleted leave nothing behind.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Stores an account.
    PutAccount(Box<Account>),
    /// Deletes an account; its pages and keys stay.
    DeleteAccount(AccountId),
    /// Stores a page, with its slug and custom hostname.
    PutPage(Box<Page>),
    /// Deletes a page, with its slug, hostname, pictures, incidents, windows, series, deploy markers, destinations,
    /// subscribers, bulletins, deliveries and alert settings; its monitors stay (see [`Expect::NoMonitors`]).
    DeletePage(PageId),
    /// Stores a page's picture; silently dropped if the page is not in the store.
    PutPicture(PageId, PictureUse, Vec<u8>),
    /// Deletes a page's picture.
    DeletePicture(PageId, PictureUse),
    /// Stores a reserved hostname.
    PutFreed(String, Freed),
    /// Deletes hostname reservations that ended by then, at most [`FORGET_AT_ONCE`] of them.
    ForgetFreed(Timestamp),
    /// Stores a monitor.
    PutMonitor(Box<Monitor>),
    /// Deletes a monitor, with its machine state and history. Its events stay in the journal.
    DeleteMonitor(MonitorId),
    /// Stores an API key.
    PutKey(Box<Key>),
    /// Deletes an API key.
    DeleteKey(KeyId),
    /// Stores an agent.
    PutAgent(Box<Agent>),
    /// Deletes an agent.
    DeleteAgent(AgentId),
    /// Stores an invitation.
    PutInvitation(Box<Invitation>),
    /// Deletes an invitation.
    DeleteInvitation(InvitationId),
    /// Stores an incident or window. Incidents, series and deploy markers belong to their page: if that is not in the
    /// store, they are silently dropped.
    PutIncident(Box<Incident>),
    /// Deletes an incident or window, with its updates.
    DeleteIncident(IncidentId),
    /// Stores a series.
    PutSeries(Box<Series>),
    /// Deletes a page's stopped series, except that many with the highest ids.
    DropStoppedSeries(PageId, usize),
    /// Stores a deploy marker.
    PutDeploy(Box<Deploy>),
    /// Deletes a deploy marker.
    DeleteDeploy(DeployId),
    /// Stores a destination. Destinations, subscribers, bulletins, alert settings, announced outages and a page's
    /// deliveries belong to their page: if that is not in the store, they are silently dropped.
    PutDestination(Box<Destination>),
    /// Deletes a destination; its deliveries stay.
    DeleteDestination(DestinationId),
    /// Stores a subscriber.
    PutSubscriber(Box<Subscriber>),
    /// Deletes a subscriber; its deliveries stay.
    DeleteSubscriber(SubscriberId),
    /// Stores a bulletin for a page's subscribers.
    PutBulletin(Box<Bulletin>),
    /// Stores a delivery.
    PutDelivery(Box<Delivery>),
    /// Deletes deliveries that wait no more and bulletins that are finished, of those created before then, oldest
    /// first, at most [`TRIM_AT_ONCE`] of each.
    DropDeliveries(Timestamp),
    /// Deletes a page's deliveries, subscribers and bulletins, at most [`TRIM_AT_ONCE`] of each.
    ClearOutgoing(PageId),
    /// Stores a page's alert settings.
    PutTelling(PageId, Telling),
    /// Stores a page's announced outages.
    PutOutages(PageId, Box<Outages>),
    /// Stores a monitor's machine state.
    PutMachine(MonitorId, Box<State>),
    /// Stores a heartbeat's ping, replacing the one [`PINGS_KEPT`](parallax_core::heartbeat::PINGS_KEPT) pings before
    /// it.
    PutPing(MonitorId, Box<Ping>),
    /// Moves a cursor.
    SetCursor(String, u64),
    /// Stores a block.
    PutBlock(Block),
    /// Deletes a monitor's blocks of days before that one (24 hours each, counted from the epoch): those of the oldest
    /// [`DAYS_AT_ONCE`] days that have any.
    DropBlocks(MonitorId, i64),
    /// Stores an hour roll-up; `at` is the hour since the epoch.
    PutHour(Rollup),
    /// Deletes hour roll-ups, as [`Op::DropBlocks`] does blocks.
    DropHours(MonitorId, i64),
    /// Stores a day roll-up; `at` is the day as its writer counts it.
    PutDay(Rollup),
    /// Compacts a monitor's blocks and hour roll-ups before that hour, and its older day roll-ups, into fewer records;
    /// at most [`FOLD_AT_ONCE`] of each kind. Reads return the same as before, and an implementation may do nothing.
    Fold(MonitorId, i64),
    /// Stores a checkpoint, replacing the one of the same part.
    PutCheckpoint(Checkpoint),
    /// Deletes a checkpoint.
    DeleteCheckpoint(u32),
    /// Deletes entries of the readings journal up to and including that sequence number, oldest first, at most
    /// [`TRIM_AT_ONCE`] of them.
    TrimReadings(u64),
    /// Deletes events up to and including that sequence number, oldest first, at most [`TRIM_AT_ONCE`] of them. Events
    /// that any cursor has not passed yet stay. (A cursor that counts something else has a higher value than any
    /// event.)
    TrimEvents(u64),
    /// Sets the next monitor's slot.
    SetNextSlot(u32),
    /// Sets the next agent's vantage number.
    SetNextPlace(PlaceNo),
    /// Assigns a number to a network label.
    PutNetwork(String, NetworkNo),
    /// Stores a response under an idempotency name.
    Remember(String, Remembered),
    /// Deletes stored responses that expired at or before then, at most [`FORGET_AT_ONCE`] of them, oldest first.
    ForgetExpired(Timestamp),
}

impl Op {
    /// Returns the conditions that the write implies.
    pub(super) fn expects(&self) -> impl Iterator<Item = Expect> {
        let (first, second) = match self {
            Self::PutPage(page) => (
                Some(Expect::SlugFree(page.slug.clone(), page.id)),
                page.custom_domain.as_ref().map(|host| Expect::HostFree(host.clone(), page.id)),
            ),
            Self::PutSubscriber(it) => (Some(Expect::ContactFree(it.page, it.fingerprint, it.id)), None),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Returns the bytes of its name and of its opaque value.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::PutPage(page) => {
                (page.slug.len().max(page.custom_domain.as_ref().map_or(0, String::len)), 0)
            }
            Self::PutPicture(_, _, bytes) => (0, bytes.len()),
            Self::SetCursor(name, _) | Self::PutNetwork(name, _) | Self::PutFreed(name, _) => (name.len(), 0),
            Self::Remember(name, remembered) => (name.len(), remembered.answer.len()),
            Self::PutBlock(block) => (0, block.bytes.len()),
            Self::PutPing(_, ping) => (0, ping.body.len().saturating_add(ping.agent.len())),
            Self::PutHour(rollup) | Self::PutDay(rollup) => (0, rollup.bytes.len()),
            Self::PutCheckpoint(checkpoint) => (0, checkpoint.bytes.len()),
            _ => (0, 0),
        }
    }
}

macro_rules! puts {
    ($($value:ident => $op:ident),*) => {$(
        impl From<$value> for Op {
            fn from(value: $value) -> Self {
                Self::$op(Box::new(value))
            }
        }
    )*};
}

puts! {
    Account => PutAccount, Page => PutPage, Monitor => PutMonitor, Key => PutKey, Agent => PutAgent,
    Invitation => PutInvitation, Incident => PutIncident, Series => PutSeries, Deploy => PutDeploy, Destination => PutDestination,
    Subscriber => PutSubscriber, Bulletin => PutBulletin, Delivery => PutDelivery
}
