//! A batch: what is written together, and what must still be true for it to be written at all.

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

/// The longest name (slug, reader, network label, idempotency name) in bytes.
pub const MAX_NAME: usize = 256;
/// The most readings in one batch.
pub const MAX_READINGS: usize = 65_536;
/// The most operations, expectations or events in one batch.
pub const MAX_PARTS: usize = 65_536;
/// The longest opaque value (block, roll-up, checkpoint, remembered answer) in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// How many one [`Op::ForgetExpired`] or [`Op::ForgetFreed`] drops at most.
pub const FORGET_AT_ONCE: usize = 256;
/// How many entries one [`Op::TrimReadings`] or [`Op::TrimEvents`] drops at most.
pub const TRIM_AT_ONCE: usize = 1024;
/// How many days one [`Op::DropBlocks`] or [`Op::DropHours`] takes out at most.
pub const DAYS_AT_ONCE: usize = 4;
/// How many blocks, hours and days one [`Op::Fold`] gathers at most, of each.
pub const FOLD_AT_ONCE: usize = 1024;

/// Writes that become durable together, or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// What must be true just before, judged on the store as it is without this batch.
    pub expect: Vec<Expect>,
    /// Writes, in their order.
    pub ops: Vec<Op>,
    /// Events: each gets the next sequence number, in their order, after the writes.
    pub events: Vec<Event>,
    /// Readings: one entry of the readings journal, where there are any.
    pub readings: Vec<Reading>,
}

impl Batch {
    /// A batch of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what must still be true.
    pub fn expect(&mut self, expect: Expect) -> &mut Self {
        self.expect.push(expect);
        self
    }

    /// Adds a write: an [`Op`], or an account, page, monitor, key, agent or invitation to be put.
    pub fn write(&mut self, op: impl Into<Op>) -> &mut Self {
        self.ops.push(op.into());
        self
    }

    /// Adds an event.
    pub fn event(&mut self, event: Event) -> &mut Self {
        self.events.push(event);
        self
    }

    /// Whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.events.is_empty() && self.readings.is_empty()
    }

    /// Refuses what no engine would take: [`StoreError::TooLarge`] names the part.
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

/// What came of a committed batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// Number of the commit: the revision of every record that it wrote.
    pub revision: u64,
    /// Sequence number of the newest event after it: that of its own last event, where it has any.
    pub last_event: u64,
    /// Sequence number of its entry of the readings journal, where it has readings.
    pub readings: Option<u64>,
}

/// What a record must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// Not there.
    Absent,
    /// There, at whatever revision.
    Present,
    /// There, at that revision.
    At(u64),
}

impl Is {
    /// Whether a record of that revision (none: not there) is so.
    pub(super) fn holds(self, revision: Option<u64>) -> bool {
        match self {
            Self::Absent => revision.is_none(),
            Self::Present => revision.is_some(),
            Self::At(wanted) => revision == Some(wanted),
        }
    }
}

/// What must still be true for a batch to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The account is so.
    Account(AccountId, Is),
    /// The page is so.
    Page(PageId, Is),
    /// The monitor is so.
    Monitor(MonitorId, Is),
    /// The API key is so.
    Key(KeyId, Is),
    /// The agent is so.
    Agent(AgentId, Is),
    /// The invitation is so.
    Invitation(InvitationId, Is),
    /// The incident or window is so.
    Incident(IncidentId, Is),
    /// The repeating entry is so.
    Series(SeriesId, Is),
    /// The deploy marker is so.
    Deploy(DeployId, Is),
    /// The destination is so.
    Destination(DestinationId, Is),
    /// The subscriber is so.
    Subscriber(SubscriberId, Is),
    /// The delivery is so.
    Delivery(DeliveryId, Is),
    /// The page's alert settings are so; absent are those that were never set.
    Telling(PageId, Is),
    /// The page's told outages are so; absent where none was ever told.
    Outages(PageId, Is),
    /// No subscriber of the page but this one has that fingerprint. Every put of a subscriber expects this.
    ContactFree(PageId, [u8; 16], SubscriberId),
    /// The page has fewer destinations than so many.
    DestinationsBelow(PageId, usize),
    /// The page has fewer subscribers than so many.
    SubscribersBelow(PageId, usize),
    /// What is remembered under the idempotency name is so.
    Remembered(String, Is),
    /// No page but this one has the slug. Every put of a page expects this without being told.
    SlugFree(String, PageId),
    /// No page but this one has the hostname. Every put of a page that has one expects this without being told.
    HostFree(String, PageId),
    /// The invitation is there and has made no agent.
    InvitationUnused(InvitationId),
    /// The account's pages have fewer monitors than so many, those of type component not counted.
    MonitorsBelow(AccountId, u32),
    /// The account's pages have fewer monitors of type component than so many.
    ComponentsBelow(AccountId, u32),
    /// The page has no monitor.
    NoMonitors(PageId),
    /// The next monitor's dense number is this one.
    NextSlot(u32),
    /// The next agent's dense number is this one.
    NextPlace(PlaceNo),
    /// So many networks have a number.
    Networks(usize),
    /// The reader's cursor stands there.
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

/// One write. A delete of what is not there does nothing.
///
/// Machine states, blocks and roll-ups belong to their monitor: where it is not in the store they are let go without
/// a word, so that what was under way when it was deleted leaves nothing behind.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Keeps an account.
    PutAccount(Box<Account>),
    /// Takes an account out; its pages and keys stay.
    DeleteAccount(AccountId),
    /// Keeps a page, and its slug and own hostname with it.
    PutPage(Box<Page>),
    /// Takes a page out, with its slug, hostname, pictures, incidents, windows, repeating entries, deploy markers, destinations, subscribers,
    /// bulletins, deliveries and alert settings; its monitors stay (see [`Expect::NoMonitors`]).
    DeletePage(PageId),
    /// Keeps the bytes of a page's picture; where the page is not in the store they are let go without a word.
    PutPicture(PageId, PictureUse, Vec<u8>),
    /// Takes a page's picture out.
    DeletePicture(PageId, PictureUse),
    /// Keeps a hostname that was freed from others.
    PutFreed(String, Freed),
    /// Forgets freed hostnames that were kept until then or before, at most [`FORGET_AT_ONCE`] of them.
    ForgetFreed(Timestamp),
    /// Keeps a monitor.
    PutMonitor(Box<Monitor>),
    /// Takes a monitor out, with its machine state and history. Its events stay in the journal.
    DeleteMonitor(MonitorId),
    /// Keeps an API key.
    PutKey(Box<Key>),
    /// Takes an API key out.
    DeleteKey(KeyId),
    /// Keeps an agent.
    PutAgent(Box<Agent>),
    /// Takes an agent out.
    DeleteAgent(AgentId),
    /// Keeps an invitation.
    PutInvitation(Box<Invitation>),
    /// Takes an invitation out.
    DeleteInvitation(InvitationId),
    /// Keeps an incident or a window. Incidents, repeating entries and deploy markers belong to their page: where it is
    /// not in the store they are let go without a word.
    PutIncident(Box<Incident>),
    /// Takes an incident or a window out, with its updates.
    DeleteIncident(IncidentId),
    /// Keeps a repeating entry.
    PutSeries(Box<Series>),
    /// Takes out a page's stopped repeating entries but the newest so many, by id.
    DropStoppedSeries(PageId, usize),
    /// Keeps a deploy marker.
    PutDeploy(Box<Deploy>),
    /// Takes a deploy marker out.
    DeleteDeploy(DeployId),
    /// Keeps a destination. Destinations, subscribers, bulletins, alert settings and told outages belong to their page:
    /// where it is not in the store they are let go without a word, and so are deliveries of a page.
    PutDestination(Box<Destination>),
    /// Takes a destination out; its deliveries stay.
    DeleteDestination(DestinationId),
    /// Keeps a subscriber.
    PutSubscriber(Box<Subscriber>),
    /// Takes a subscriber out; its deliveries stay.
    DeleteSubscriber(SubscriberId),
    /// Keeps news for a page's subscribers.
    PutBulletin(Box<Bulletin>),
    /// Keeps a delivery.
    PutDelivery(Box<Delivery>),
    /// Takes out deliveries that were made before then and wait no more, and bulletins that are done, oldest first, at
    /// most [`TRIM_AT_ONCE`] of each.
    DropDeliveries(Timestamp),
    /// Takes out a page's deliveries, subscribers and bulletins, at most [`TRIM_AT_ONCE`] of each.
    ClearOutgoing(PageId),
    /// Keeps a page's alert settings.
    PutTelling(PageId, Telling),
    /// Keeps which outages a page told of.
    PutOutages(PageId, Box<Outages>),
    /// Keeps what a monitor's machine must remember.
    PutMachine(MonitorId, Box<State>),
    /// Keeps a heartbeat's ping, in place of the one that came [`PINGS_KEPT`](parallax_core::heartbeat::PINGS_KEPT)
    /// before it.
    PutPing(MonitorId, Box<Ping>),
    /// Moves a reader's cursor.
    SetCursor(String, u64),
    /// Keeps a block.
    PutBlock(Block),
    /// Takes out a monitor's blocks of days before that one (24 hours each, counted from the epoch): those of the oldest
    /// [`DAYS_AT_ONCE`] that have any.
    DropBlocks(MonitorId, i64),
    /// Keeps an hour roll-up; `at` is the hour since the epoch.
    PutHour(Rollup),
    /// Takes out hour roll-ups, as [`Op::DropBlocks`] does blocks.
    DropHours(MonitorId, i64),
    /// Keeps a day roll-up; `at` is the day as its writer counts it.
    PutDay(Rollup),
    /// Gathers a monitor's blocks and roll-ups of hours before that one, and its older days, into fewer records; at most
    /// [`FOLD_AT_ONCE`] of each kind. No answer changes by it, and an engine may do nothing.
    Fold(MonitorId, i64),
    /// Keeps a checkpoint in place of the one of the same part.
    PutCheckpoint(Checkpoint),
    /// Takes a checkpoint out.
    DeleteCheckpoint(u32),
    /// Drops entries of the readings journal up to and with that sequence number, oldest first, at most
    /// [`TRIM_AT_ONCE`] of them.
    TrimReadings(u64),
    /// Drops events up to and with that sequence number, oldest first, at most [`TRIM_AT_ONCE`] of them, and none
    /// behind any cursor: what its reader has not seen stays. (A cursor that counts something else stands beyond.)
    TrimEvents(u64),
    /// Sets the next monitor's dense number.
    SetNextSlot(u32),
    /// Sets the next agent's dense number.
    SetNextPlace(PlaceNo),
    /// Gives a network label its number.
    PutNetwork(String, NetworkNo),
    /// Remembers an answer under an idempotency name.
    Remember(String, Remembered),
    /// Forgets answers that expired at or before then, at most [`FORGET_AT_ONCE`] of them, oldest first.
    ForgetExpired(Timestamp),
}

impl Op {
    /// What it expects without being told.
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

    /// Bytes of its name and of its opaque value.
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
