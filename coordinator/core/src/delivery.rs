//! Deliveries: one rendered message to one recipient, with its attempts and retries.

mod excerpt;

pub use excerpt::{ANSWER_KEPT, ANSWER_READ, excerpt};

use serde::{Deserialize, Serialize};

use crate::id::{
    AccountId, BulletinId, DeliveryId, DestinationId, IncidentId, MonitorId, PageId, SubscriberId,
};
use crate::late;
use crate::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Delays from each failed attempt to the next in milliseconds, before jitter.
pub const PAUSES: [i64; 9] =
    [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
/// Share of a delay by which jitter lengthens or shortens it.
pub const JITTER: f64 = 0.2;
/// Upper bound on a receiver's `Retry-After`, in milliseconds.
pub const MAX_RETRY_AFTER: i64 = HOUR;
/// Number of `Retry-After` delays that do not count as attempts.
pub const MAX_ASKED: u32 = 100;
/// Age of a delivery in milliseconds after which `Retry-After` delays count as attempts.
pub const MAX_ASKING: i64 = DAY;
/// Retention of a delivery, in milliseconds.
pub const KEPT: i64 = 30 * DAY;
/// Number of attempts kept for a delivery: the newest.
pub const TRIES_KEPT: usize = 20;

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
    OperatorHook,
    /// The mailbox of a destination, for the confirmation request. It gets nothing else until it is
    /// confirmed.
    Asked(DestinationId),
    /// A visitor of a private page, by the delivery's id; their address is stored under [`mailbox_name`] for a while.
    Visitor(DeliveryId),
}

/// Key under which a visitor's email address is stored.
pub fn mailbox_name(id: DeliveryId) -> String {
    format!("visitor/{id}")
}

/// A message, rendered when the event happened: later changes do not affect it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Letter {
    /// JSON, as signed and posted. Service-specific secrets (a chat's id, a routing key) are added on
    /// sending, so that none is stored here.
    Json(Vec<u8>),
    /// A mail.
    Mail(Mail),
    /// A page's bulletin for many subscribers: its text is stored once.
    Bulletin(BulletinId),
}

/// The parts of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The subject: one line.
    pub subject: String,
    /// Plain text part.
    pub text: String,
    /// HTML part.
    pub html: String,
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
    pub letter: Letter,
    /// True if it is attempted only once.
    pub once: bool,
    /// Creation time.
    pub created_at: Timestamp,
    /// State.
    pub stage: Stage,
    /// Attempts since it was created or last retried by hand.
    pub tries: Tries,
    /// The newest attempts, oldest first.
    pub log: Vec<Try>,
    /// Start of the outage or slow period that an alert is about: mails about one share a thread. Older
    /// records end before this field.
    #[serde(deserialize_with = "late::or_default")]
    pub began: Option<Timestamp>,
}

/// Attempts of a delivery: counted ones and, separately, those that the receiver answered with a delay.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tries(u32);

impl Tries {
    /// The upper half holds the attempts with a requested delay; older records have none.
    const ASKED: u32 = 1 << 16;

    /// Attempts that count towards the limit.
    pub const fn counted(self) -> u32 {
        self.0 % Self::ASKED
    }

    /// Attempts after which the receiver asked for a delay.
    pub const fn asked(self) -> u32 {
        self.0 / Self::ASKED
    }

    /// All attempts.
    pub const fn all(self) -> u32 {
        self.counted() + self.asked()
    }
}

impl std::fmt::Debug for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.counted(), self.asked())
    }
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// To be sent at that time.
    Waiting(Timestamp),
    /// Accepted by its receiver.
    Delivered(Timestamp),
    /// Abandoned after the last attempt.
    Failed(Timestamp),
    /// Not sent: it is obsolete, or its receiver was deleted or disabled.
    Dropped(Timestamp),
}

impl Stage {
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
pub struct Try {
    /// Start.
    pub at: Timestamp,
    /// Duration in milliseconds.
    pub took_ms: u32,
    /// Status of the receiver's response, HTTP or SMTP.
    pub status: Option<u16>,
    /// Error that kept the receiver from accepting it.
    pub error: Option<String>,
    /// An [`excerpt()`] of the response; older records hold up to [`ANSWER_READ`] bytes of it.
    pub answer: String,
}

/// The outcome of an attempt, as far as it decides the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver accepted it.
    Taken,
    /// Temporary failure, with the delay in milliseconds that the receiver asked for. Delays below a second
    /// are ignored.
    NotNow(Option<i64>),
    /// Permanent failure: the receiver is gone.
    Gone,
    /// Permanent failure: the receiver rejected the address.
    Refused,
}

impl Delivery {
    /// Its ordering key: the recipient, and the monitor or incident. A delivery waits for earlier ones with
    /// the same key. One that is about neither waits for none.
    pub fn lane(&self) -> Lane {
        let subject = match (self.monitor, self.incident) {
            (Some(monitor), _) => monitor.to_u128(),
            (None, Some(incident)) => incident.to_u128(),
            (None, None) => self.id.to_u128(),
        };
        Lane { to: self.to, subject }
    }

    /// Records an attempt and decides the next step. `jitter` is from -1 to 1 and applies to our own delays.
    /// A receiver's `Retry-After` is obeyed up to an hour, and up to [`MAX_ASKED`] times within
    /// [`MAX_ASKING`] it does not use up one of the ten attempts.
    pub fn note(&mut self, tried: Try, outcome: Outcome, now: Timestamp, jitter: f64) {
        self.log.push(tried);
        let over = self.log.len().saturating_sub(TRIES_KEPT);
        self.log.drain(..over);
        let asked = match outcome {
            Outcome::NotNow(Some(asked)) if asked >= SECOND => Some(asked.min(MAX_RETRY_AFTER)),
            Outcome::NotNow(_) | Outcome::Taken | Outcome::Gone | Outcome::Refused => None,
        };
        let is_free = self.tries.asked() < MAX_ASKED && now.since(self.created_at) < MAX_ASKING;
        if asked.is_some() && is_free && !self.once {
            self.tries.0 += Tries::ASKED;
        } else if self.tries.counted() + 1 < Tries::ASKED {
            self.tries.0 += 1;
        }
        self.stage = match (outcome, asked) {
            (Outcome::Taken, _) => Stage::Delivered(now),
            (Outcome::Gone | Outcome::Refused, _) => Stage::Failed(now),
            (Outcome::NotNow(_), _) if self.once => Stage::Failed(now),
            (Outcome::NotNow(_), Some(asked)) if is_free => Stage::Waiting(now + asked),
            (Outcome::NotNow(_), _) => match PAUSES.get(self.tries.counted() as usize - 1) {
                Some(pause) => Stage::Waiting(now + asked.unwrap_or_else(|| spread(*pause, jitter))),
                None => Stage::Failed(now),
            },
        };
    }

    /// Schedules it to be sent again now, under the same id.
    pub fn again(&mut self, now: Timestamp) {
        self.stage = Stage::Waiting(now);
        self.tries = Tries::default();
    }
}

fn spread(pause: i64, jitter: f64) -> i64 {
    // Delays are far below 2^52, so the conversion loses nothing.
    pause + (pause as f64 * JITTER * jitter.clamp(-1.0, 1.0)) as i64
}

/// An ordering key: deliveries with the same recipient and subject are sent in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// The recipient.
    pub to: Recipient,
    /// Number of the monitor or incident; else of the delivery itself.
    pub subject: u128,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn delivery() -> Delivery {
        Delivery {
            id: DeliveryId::from_u128(1),
            page: None,
            to: Recipient::OperatorMail,
            event: "went-down".to_owned(),
            monitor: None,
            incident: None,
            seq: 1,
            letter: Letter::Json(Vec::new()),
            once: false,
            created_at: Timestamp::from_millis(0),
            stage: Stage::Waiting(Timestamp::from_millis(0)),
            tries: Tries::default(),
            log: Vec::new(),
            began: None,
        }
    }

    fn tried(now: Timestamp) -> Try {
        Try { at: now, took_ms: 1, status: None, error: None, answer: String::new() }
    }

    #[test]
    fn a_receiver_that_never_answers_is_given_up_after_ten_tries() {
        let mut delivery = delivery();
        let mut pauses = Vec::new();
        let mut now = Timestamp::from_millis(0);
        while let Stage::Waiting(due) = delivery.stage {
            pauses.push(due.since(now));
            now = due;
            delivery.note(tried(now), Outcome::NotNow(None), now, 0.0);
        }
        assert_eq!((pauses[0], &pauses[1..]), (0, &PAUSES[..]));
        assert_eq!((delivery.stage, delivery.log.len()), (Stage::Failed(now), 10));
    }

    #[test]
    fn each_outcome_leads_where_it_should() {
        let now = Timestamp::from_millis(1_000);
        let after = |once, outcome, jitter| {
            let mut delivery = Delivery { once, ..delivery() };
            delivery.note(tried(now), outcome, now, jitter);
            delivery.stage
        };
        let waits = |millis| Stage::Waiting(now + millis);
        for (once, outcome, jitter, stage) in [
            (false, Outcome::Taken, 0.0, Stage::Delivered(now)),
            (false, Outcome::Gone, 0.0, Stage::Failed(now)),
            (false, Outcome::Refused, 0.0, Stage::Failed(now)),
            (false, Outcome::NotNow(None), 1.0, waits(6_000)),
            (false, Outcome::NotNow(None), -1.0, waits(4_000)),
            (false, Outcome::NotNow(Some(7_000)), 1.0, waits(7_000)),
            (false, Outcome::NotNow(Some(1_000)), -1.0, waits(1_000)),
            (false, Outcome::NotNow(Some(40 * MINUTE)), -1.0, waits(40 * MINUTE)),
            (false, Outcome::NotNow(Some(999)), 0.0, waits(5_000)),
            (false, Outcome::NotNow(Some(0)), 0.0, waits(5_000)),
            (false, Outcome::NotNow(Some(-7)), 0.0, waits(5_000)),
            (false, Outcome::NotNow(Some(9 * HOUR)), 0.0, waits(HOUR)),
            (true, Outcome::NotNow(Some(7_000)), 0.0, Stage::Failed(now)),
        ] {
            assert_eq!(after(once, outcome, jitter), stage, "{once} {outcome:?}");
        }
    }

    #[test]
    fn a_wait_that_was_asked_for_costs_no_try_until_there_were_a_hundred_or_a_day_is_over() {
        let start = Timestamp::from_millis(0);
        let asks = |delivery: &mut Delivery, now| {
            delivery.note(tried(now), Outcome::NotNow(Some(7_000)), now, 1.0);
            assert!(matches!(delivery.stage, Stage::Waiting(due) if due.since(now) == 7_000), "{delivery:?}");
            (delivery.tries.counted(), delivery.tries.asked())
        };
        let mut delivery = delivery();
        delivery.note(tried(start), Outcome::NotNow(None), start, 0.0);
        for asked in 1..=MAX_ASKED {
            assert_eq!(asks(&mut delivery, start), (1, asked));
        }
        for counted in 2..=9 {
            assert_eq!(asks(&mut delivery, start), (counted, MAX_ASKED));
        }
        delivery.note(tried(start), Outcome::NotNow(Some(7_000)), start, 1.0);
        assert_eq!((delivery.stage, delivery.tries.all()), (Stage::Failed(start), 10 + MAX_ASKED));
        delivery.again(start + MAX_ASKING - 1);
        assert_eq!(asks(&mut delivery, start + MAX_ASKING - 1), (0, 1));
        assert_eq!(asks(&mut delivery, start + MAX_ASKING), (1, 1));
    }

    proptest! {
        #[test]
        fn whatever_a_receiver_says_each_delivery_ends_in_bounds(
            answers in vec((option::of(-10_i64..3 * HOUR), -1.0..1.0_f64), 1..12),
        ) {
            let mut delivery = delivery();
            let mut now = Timestamp::from_millis(0);
            for (asked, jitter) in answers.iter().cycle() {
                let Stage::Waiting(due) = delivery.stage else { break };
                prop_assert!(due >= now);
                now = due;
                delivery.note(tried(now), Outcome::NotNow(*asked), now, *jitter);
                if let (Stage::Waiting(due), Some(asked)) = (delivery.stage, asked)
                    && *asked >= SECOND
                {
                    prop_assert_eq!(due.since(now), (*asked).min(MAX_RETRY_AFTER));
                }
            }
            let pauses: i64 = PAUSES.iter().map(|pause| (pause * 6 / 5).max(MAX_RETRY_AFTER)).sum();
            prop_assert_eq!(delivery.stage, Stage::Failed(now));
            prop_assert!(delivery.tries.counted() == 10 && delivery.tries.asked() <= MAX_ASKED);
            prop_assert!(now.as_millis() <= MAX_ASKING + MAX_RETRY_AFTER + pauses, "{now}");
        }
    }

    #[test]
    fn one_that_is_sent_anew_has_all_its_tries_again_and_keeps_its_log() {
        let now = Timestamp::from_millis(5);
        let mut delivery = delivery();
        for _ in 0..30 {
            delivery.note(tried(now), Outcome::NotNow(None), now, 0.0);
        }
        delivery.again(now);
        assert_eq!(
            (delivery.stage, delivery.tries, delivery.log.len()),
            (Stage::Waiting(now), Tries::default(), TRIES_KEPT)
        );
    }
}
