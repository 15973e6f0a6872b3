//! Deliveries: one rendered message to one recipient, with its attempts and retries.

mod excerpt;

use std::fmt;

pub use excerpt::{EXCERPT_CHARACTERS, MAX_RESPONSE_BYTES, excerpt};
use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{AccountId, BulletinId, DeliveryId, DestinationId, IncidentId, MonitorId, PageId, SubscriberId};
use crate::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Delays from each failed attempt to the next in milliseconds, before jitter.
pub const RETRY_DELAYS: [i64; 9] =
    [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
/// Share of a delay by which jitter lengthens or shortens it.
pub const JITTER: f64 = 0.2;
/// Upper bound on a receiver's `Retry-After`, in milliseconds.
pub const MAX_RETRY_AFTER: i64 = HOUR;
/// Number of `Retry-After` delays that do not count as attempts.
pub const MAX_DEFERRALS: u32 = 100;
/// Age of a delivery in milliseconds after which `Retry-After` delays count as attempts.
pub const MAX_DEFERRAL_AGE: i64 = DAY;
/// Retention of a delivery, in milliseconds.
pub const DELIVERY_RETENTION: i64 = 30 * DAY;
/// Number of attempts kept for a delivery: the newest.
pub const MAX_LOGGED_ATTEMPTS: usize = 20;

/// The recipient of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Recipient {
    /// A destination of a page's alerts.
    Destination(DestinationId),
    /// A subscriber of a page.
    Subscriber(SubscriberId),
    /// The owner of an account, at its address.
    Owner(AccountId),
    /// The operator's mailbox.
    OperatorMail,
    /// The operator's webhook.
    OperatorWebhook,
    /// The mailbox of a destination, for the confirmation request. It gets nothing else until it is
    /// confirmed.
    UnconfirmedDestination(DestinationId),
    /// A visitor of a private page, by the delivery's id; their address is stored under [`visitor_mailbox_key`] for a while.
    Visitor(DeliveryId),
}

impl Recipient {
    /// Returns true if mails to it hold a link that only its reader may know, and are never sent again.
    pub const fn gets_secret_link(self) -> bool {
        matches!(self, Self::Visitor(_) | Self::UnconfirmedDestination(_))
    }
}

/// Key under which a visitor's email address is stored.
pub fn visitor_mailbox_key(id: DeliveryId) -> String {
    format!("visitor/{id}")
}

/// A message, rendered when the event happened: later changes do not affect it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryMessage {
    /// JSON, as signed and posted. Service-specific secrets (a chat's id, a routing key) are added on
    /// sending, so that none is stored here.
    Json(Vec<u8>),
    /// A mail.
    Mail(MailMessage),
    /// A page's bulletin for many subscribers: its text is stored once.
    Bulletin(BulletinId),
}

/// The parts of a mail.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailMessage {
    /// The subject: one line.
    pub subject: String,
    /// Plain text part.
    pub text: String,
    /// HTML part.
    pub html: String,
}

impl fmt::Debug for MailMessage {
    /// Shows the subject alone: the text may hold a link that signs its reader in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailMessage").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Id, the same for all attempts.
    pub id: DeliveryId,
    /// Its page; none for operator alerts.
    pub page: Option<PageId>,
    /// The recipient.
    pub to: Recipient,
    /// Name of the event: `went-down`, `incident.created`, `test`.
    pub event: String,
    /// Its monitor.
    pub monitor: Option<MonitorId>,
    /// Its incident.
    pub incident: Option<IncidentId>,
    /// Position within its ordering key: the sequence number of its event.
    pub seq: u64,
    /// The message.
    pub message: DeliveryMessage,
    /// True if it is attempted only once.
    pub is_single_attempt: bool,
    /// Creation time.
    pub created_at: Timestamp,
    /// State.
    pub state: DeliveryState,
    /// Attempts since it was created or last retried by hand.
    pub attempts: AttemptCount,
    /// The newest attempts, oldest first.
    pub attempt_log: Vec<DeliveryAttempt>,
    /// Start of the outage or slow period that an alert is about: mails about one share a thread. Older
    /// records end before this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub outage_start: Option<Timestamp>,
}

/// Attempts of a delivery: counted ones and, separately, those that the receiver answered with a delay.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptCount(u32);

impl AttemptCount {
    /// The upper half holds the attempts with a requested delay; older records have none.
    const ASKED: u32 = 1 << 16;

    /// Attempts that count towards the limit.
    pub const fn counted(self) -> u32 {
        self.0 % Self::ASKED
    }

    /// Attempts after which the receiver asked for a delay.
    pub const fn deferred(self) -> u32 {
        self.0 / Self::ASKED
    }

    /// Number of all attempts.
    pub const fn total(self) -> u32 {
        self.counted() + self.deferred()
    }
}

impl fmt::Debug for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.counted(), self.deferred())
    }
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryState {
    /// To be sent at that time.
    Waiting(Timestamp),
    /// Accepted by its receiver.
    Delivered(Timestamp),
    /// Abandoned after the last attempt.
    Failed(Timestamp),
    /// Not sent: it is obsolete, or its receiver was deleted or disabled.
    Dropped(Timestamp),
}

impl DeliveryState {
    /// The names that the API uses, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["waiting", "delivered", "failed", "dropped"];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Delivered(_) => "delivered",
            Self::Failed(_) => "failed",
            Self::Dropped(_) => "dropped",
        }
    }
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    /// Start.
    pub at: Timestamp,
    /// Duration in milliseconds.
    pub duration_ms: u32,
    /// Status of the receiver's response, HTTP or SMTP.
    pub status: Option<u16>,
    /// Error that kept the receiver from accepting it.
    pub error: Option<String>,
    /// An [`excerpt()`] of the response; older records hold up to [`MAX_RESPONSE_BYTES`] bytes of it.
    pub response: String,
}

/// The outcome of an attempt, as far as it decides the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver accepted it.
    Accepted,
    /// Temporary failure, with the delay in milliseconds that the receiver asked for. Delays below a second
    /// are ignored.
    Deferred(Option<i64>),
    /// Permanent failure: the receiver is gone.
    Gone,
    /// Permanent failure: the receiver rejected the address.
    Rejected,
}

impl Delivery {
    /// Creates a delivery that is due now: it belongs to no page, monitor or incident, and nothing was attempted.
    pub fn waiting(id: DeliveryId, to: Recipient, event: &str, message: DeliveryMessage, now: Timestamp) -> Self {
        Self {
            id,
            page: None,
            to,
            event: event.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            message,
            is_single_attempt: false,
            created_at: now,
            state: DeliveryState::Waiting(now),
            attempts: AttemptCount::default(),
            attempt_log: Vec::new(),
            outage_start: None,
        }
    }

    /// Its ordering key: the recipient, and the monitor or incident. A delivery waits for earlier ones with
    /// the same key. One that is about neither waits for none.
    pub fn ordering_key(&self) -> OrderingKey {
        let subject = match (self.monitor, self.incident) {
            (Some(monitor), _) => monitor.to_u128(),
            (None, Some(incident)) => incident.to_u128(),
            (None, None) => self.id.to_u128(),
        };
        OrderingKey { to: self.to, subject }
    }

    /// Records an attempt and decides the next step. `jitter` is from -1 to 1 and applies to our own delays.
    /// A receiver's `Retry-After` is obeyed up to an hour, and up to [`MAX_DEFERRALS`] times within
    /// [`MAX_DEFERRAL_AGE`] it does not use up one of the ten attempts.
    pub fn record_attempt(&mut self, tried: DeliveryAttempt, outcome: AttemptOutcome, now: Timestamp, jitter: f64) {
        self.attempt_log.push(tried);
        let over = self.attempt_log.len().saturating_sub(MAX_LOGGED_ATTEMPTS);
        self.attempt_log.drain(..over);
        let delay = match outcome {
            AttemptOutcome::Deferred(Some(delay)) if delay >= SECOND => Some(delay.min(MAX_RETRY_AFTER)),
            AttemptOutcome::Deferred(_)
            | AttemptOutcome::Accepted
            | AttemptOutcome::Gone
            | AttemptOutcome::Rejected => None,
        };
        let is_free = self.attempts.deferred() < MAX_DEFERRALS && now.since(self.created_at) < MAX_DEFERRAL_AGE;
        if delay.is_some() && is_free && !self.is_single_attempt {
            self.attempts.0 += AttemptCount::ASKED;
        } else if self.attempts.counted() + 1 < AttemptCount::ASKED {
            self.attempts.0 += 1;
        }
        self.state = match (outcome, delay) {
            (AttemptOutcome::Accepted, _) => DeliveryState::Delivered(now),
            (AttemptOutcome::Gone | AttemptOutcome::Rejected, _) => DeliveryState::Failed(now),
            (AttemptOutcome::Deferred(_), _) if self.is_single_attempt => DeliveryState::Failed(now),
            (AttemptOutcome::Deferred(_), Some(delay)) if is_free => DeliveryState::Waiting(now + delay),
            (AttemptOutcome::Deferred(_), _) => match RETRY_DELAYS.get(self.attempts.counted() as usize - 1) {
                Some(pause) => DeliveryState::Waiting(now + delay.unwrap_or_else(|| jittered(*pause, jitter))),
                None => DeliveryState::Failed(now),
            },
        };
        self.forget_secret_link();
    }

    /// Ends its wait without sending it.
    pub fn drop_unsent(&mut self, now: Timestamp) {
        self.state = DeliveryState::Dropped(now);
        self.forget_secret_link();
    }

    /// Removes the text with a secret link once nothing sends it any more: the delivery is kept for weeks, and goes into
    /// every backup.
    fn forget_secret_link(&mut self) {
        let is_finished = !matches!(self.state, DeliveryState::Waiting(_));
        if let (true, true, DeliveryMessage::Mail(mail)) = (is_finished, self.to.gets_secret_link(), &mut self.message)
        {
            (mail.text, mail.html) = (String::new(), String::new());
        }
    }

    /// Schedules it to be sent again now, under the same id.
    pub fn resend(&mut self, now: Timestamp) {
        self.state = DeliveryState::Waiting(now);
        self.attempts = AttemptCount::default();
    }
}

fn jittered(pause: i64, jitter: f64) -> i64 {
    // Delays are far below 2^52, so the conversion loses nothing.
    pause + (pause as f64 * JITTER * jitter.clamp(-1.0, 1.0)) as i64
}

/// An ordering key: deliveries with the same recipient and subject are sent in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OrderingKey {
    /// The recipient.
    pub to: Recipient,
    /// Number of the monitor or incident; else of the delivery itself.
    pub subject: u128,
}

#[cfg(test)]
mod tests;
