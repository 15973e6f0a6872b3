//! Batches: writes that are committed together, and the expectations that must hold for them.

mod from_records;
mod presence;

use std::fmt;

use parallax_core::account::Account;
use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::audit::AuditEntry;
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::heartbeat::StoredPing;
use parallax_core::id::{
    AccountId, AgentId, DeliveryId, DeployId, DestinationId, IncidentId, InvitationId, KeyId, MonitorId, PageId,
    PersonId, SeriesId, SubscriberId,
};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::machine::MachineState;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::one_time_link::{LinkId, OneTimeLink};
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::person::{AccountMember, Person};
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{NetworkNo, VantageNo};

pub use self::presence::Presence;
use super::blobs::{Block, Checkpoint, Rollup, StoredResponse};
use super::{Result, StoreError};

/// Longest name (slug, cursor name, network label, idempotency name), in bytes.
pub const MAX_NAME: usize = 256;
/// Readings per batch, at most.
pub const MAX_READINGS: usize = 65_536;
/// Operations, expectations and events per batch, at most of each.
pub const MAX_PARTS: usize = 65_536;
/// Longest opaque value (block, roll-up, checkpoint, stored response), in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Entries that one [`Op::DeleteExpiredResponses`] or [`Op::DeleteExpiredReservations`] removes, at most.
pub const MAX_EXPIRED_PER_OP: usize = 256;
/// Entries that one [`Op::TrimReadings`] or [`Op::TrimEvents`] removes, at most.
pub const MAX_TRIMMED_PER_OP: usize = 1024;
/// Days that one [`Op::DeleteBlocks`] or [`Op::DeleteHours`] removes, at most.
pub const MAX_DAYS_PER_OP: usize = 4;
/// Blocks, hours and days that one [`Op::CompactHistory`] compacts, at most of each.
pub const MAX_COMPACTED_PER_OP: usize = 1024;

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
        let within =
            |is_within_limit: bool, part| if is_within_limit { Ok(()) } else { Err(StoreError::TooLarge(part)) };
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
pub struct CommitReceipt {
    /// Number of the commit, which is the revision of every record that it wrote.
    pub revision: u64,
    /// Sequence number of the newest event after the commit: its own last event, if it has any.
    pub last_event: u64,
    /// Sequence number of its readings journal entry, if it has readings.
    pub readings: Option<u64>,
}

/// Condition for a batch to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// State of the account.
    Account(AccountId, Presence),
    /// State of the page.
    Page(PageId, Presence),
    /// State of the monitor.
    Monitor(MonitorId, Presence),
    /// State of the API key.
    Key(KeyId, Presence),
    /// State of the agent.
    Agent(AgentId, Presence),
    /// State of the invitation.
    Invitation(InvitationId, Presence),
    /// State of the incident or window.
    Incident(IncidentId, Presence),
    /// State of the series.
    Series(SeriesId, Presence),
    /// State of the deploy marker.
    Deploy(DeployId, Presence),
    /// State of the destination.
    Destination(DestinationId, Presence),
    /// State of the subscriber.
    Subscriber(SubscriberId, Presence),
    /// State of the delivery.
    Delivery(DeliveryId, Presence),
    /// State of the page's alert settings; absent if never set.
    AlertSettings(PageId, Presence),
    /// State of the page's announced outages; absent if none was ever announced.
    AnnouncedOutages(PageId, Presence),
    /// No other subscriber of the page has that contact fingerprint. Implied by every write of a subscriber.
    ContactFree(PageId, [u8; 16], SubscriberId),
    /// State of the person.
    Person(PersonId, Presence),
    /// State of the person's membership of the account.
    AccountMember(AccountId, PersonId, Presence),
    /// State of the account's company sign-in.
    CompanySignIn(AccountId, Presence),
    /// No other account has proved the email domain. Implied by every write of a company sign-in.
    CompanyDomainFree(String, AccountId),
    /// State of the signed-in browser.
    LoginSession(LoginSessionId, Presence),
    /// State of the one-time link.
    OneTimeLink(LinkId, Presence),
    /// No other person has the email address. Implied by every write of a person.
    EmailFree(String, PersonId),
    /// The page has fewer destinations than this.
    DestinationsBelow(PageId, usize),
    /// The page has fewer subscribers than this.
    SubscribersBelow(PageId, usize),
    /// State of the stored response of that idempotency name.
    StoredResponse(String, Presence),
    /// No other page has the slug. Implied by every write of a page.
    SlugFree(String, PageId),
    /// No other page has the hostname. Implied by every write of a page that has one.
    HostnameFree(String, PageId),
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
    NextVantage(VantageNo),
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
            Self::StoredResponse(name, _)
            | Self::SlugFree(name, _)
            | Self::HostnameFree(name, _)
            | Self::EmailFree(name, _)
            | Self::CompanyDomainFree(name, _)
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
    PutReservedHostname(String, ReservedHostname),
    /// Deletes hostname reservations that ended by then, at most [`MAX_EXPIRED_PER_OP`] of them.
    DeleteExpiredReservations(Timestamp),
    /// Stores a monitor.
    PutMonitor(Box<Monitor>),
    /// Deletes a monitor, with its machine state and history. Its events stay in the journal.
    DeleteMonitor(MonitorId),
    /// Stores an API key.
    PutKey(Box<ApiKey>),
    /// Deletes an API key.
    DeleteKey(KeyId),
    /// Appends an entry to its account's audit log, and evicts the oldest that are too many or no longer kept.
    AppendAuditEntry(Box<AuditEntry>),
    /// Stores a person, with their email address.
    PutPerson(Box<Person>),
    /// Stores a person's membership of an account.
    PutAccountMember(Box<AccountMember>),
    /// Deletes a person's membership of an account; their sessions stay and are no longer valid.
    DeleteAccountMember(AccountId, PersonId),
    /// Stores an account's company sign-in, with its proved domains.
    PutCompanySignIn(Box<CompanySignIn>),
    /// Deletes an account's company sign-in.
    DeleteCompanySignIn(AccountId),
    /// Stores a signed-in browser.
    PutLoginSession(Box<LoginSession>),
    /// Deletes a signed-in browser.
    DeleteLoginSession(LoginSessionId),
    /// Stores a one-time link.
    PutOneTimeLink(Box<OneTimeLink>),
    /// Deletes a one-time link.
    DeleteOneTimeLink(LinkId),
    /// Stores an agent.
    PutAgent(Box<AgentRecord>),
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
    DeleteStoppedSeries(PageId, usize),
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
    /// first, at most [`MAX_TRIMMED_PER_OP`] of each.
    DeleteOldDeliveries(Timestamp),
    /// Deletes a page's deliveries, subscribers and bulletins, at most [`MAX_TRIMMED_PER_OP`] of each.
    ClearNotifications(PageId),
    /// Stores a page's alert settings.
    PutAlertSettings(PageId, AlertSettings),
    /// Stores a page's announced outages.
    PutAnnouncedOutages(PageId, Box<AnnouncedOutages>),
    /// Stores a monitor's machine state.
    PutMachine(MonitorId, Box<MachineState>),
    /// Stores a heartbeat's ping, replacing the one [`MAX_STORED_PINGS`](parallax_core::heartbeat::MAX_STORED_PINGS) pings before
    /// it.
    PutPing(MonitorId, Box<StoredPing>),
    /// Moves a cursor.
    SetCursor(String, u64),
    /// Stores a block.
    PutBlock(Block),
    /// Deletes a monitor's blocks of days before that one (24 hours each, counted from the epoch): those of the oldest
    /// [`MAX_DAYS_PER_OP`] days that have any.
    DeleteBlocks(MonitorId, i64),
    /// Stores an hour roll-up; `at` is the hour since the epoch.
    PutHour(Rollup),
    /// Deletes hour roll-ups, as [`Op::DeleteBlocks`] does blocks.
    DeleteHours(MonitorId, i64),
    /// Stores a day roll-up; `at` is the day as its writer counts it.
    PutDay(Rollup),
    /// Compacts a monitor's blocks and hour roll-ups before that hour, and its older day roll-ups, into fewer records;
    /// at most [`MAX_COMPACTED_PER_OP`] of each kind. Reads return the same as before, and an implementation may do nothing.
    CompactHistory(MonitorId, i64),
    /// Stores a checkpoint, replacing the one of the same part.
    PutCheckpoint(Checkpoint),
    /// Deletes a checkpoint.
    DeleteCheckpoint(u32),
    /// Deletes entries of the readings journal up to and including that sequence number, oldest first, at most
    /// [`MAX_TRIMMED_PER_OP`] of them.
    TrimReadings(u64),
    /// Deletes events up to and including that sequence number, oldest first, at most [`MAX_TRIMMED_PER_OP`] of them. Events
    /// that any cursor has not passed yet stay. (A cursor that counts something else has a higher value than any
    /// event.)
    TrimEvents(u64),
    /// Sets the next monitor's slot.
    SetNextSlot(u32),
    /// Sets the next agent's vantage number.
    SetNextVantage(VantageNo),
    /// Assigns a number to a network label.
    PutNetwork(String, NetworkNo),
    /// Stores a response under an idempotency name.
    PutStoredResponse(String, StoredResponse),
    /// Deletes stored responses that expired at or before then, at most [`MAX_EXPIRED_PER_OP`] of them, oldest first.
    DeleteExpiredResponses(Timestamp),
}

impl Op {
    /// Returns the conditions that the write implies.
    pub(super) fn implied(&self) -> impl Iterator<Item = Expect> {
        let (first, second) = match self {
            Self::PutPage(page) => (
                Some(Expect::SlugFree(page.slug.clone(), page.id)),
                page.custom_domain.as_ref().map(|host| Expect::HostnameFree(host.clone(), page.id)),
            ),
            Self::PutPerson(person) => (Some(Expect::EmailFree(person.email.clone(), person.id)), None),
            Self::PutSubscriber(it) => (Some(Expect::ContactFree(it.page, it.fingerprint, it.id)), None),
            _ => (None, None),
        };
        let domains = match self {
            Self::PutCompanySignIn(it) => it.proved_domains().map(|domain| (domain.to_owned(), it.account)).collect(),
            _ => Vec::new(),
        };
        let free = |(domain, account)| Expect::CompanyDomainFree(domain, account);
        first.into_iter().chain(second).chain(domains.into_iter().map(free))
    }

    /// Returns the bytes of its name and of its opaque value.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::PutPage(page) => (page.slug.len().max(page.custom_domain.as_ref().map_or(0, String::len)), 0),
            Self::PutPerson(person) => (person.email.len(), 0),
            Self::PutPicture(_, _, bytes) => (0, bytes.len()),
            Self::SetCursor(name, _) | Self::PutNetwork(name, _) | Self::PutReservedHostname(name, _) => {
                (name.len(), 0)
            }
            Self::PutStoredResponse(name, response) => (name.len(), response.response.len()),
            Self::PutBlock(block) => (0, block.bytes.len()),
            Self::PutPing(_, ping) => (0, ping.body.len().saturating_add(ping.user_agent.len())),
            Self::PutHour(rollup) | Self::PutDay(rollup) => (0, rollup.bytes.len()),
            Self::PutCheckpoint(checkpoint) => (0, checkpoint.bytes.len()),
            _ => (0, 0),
        }
    }
}
