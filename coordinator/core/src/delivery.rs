//! A delivery: one finished letter to one receiver, what came of each try, and when it is tried again.

mod excerpt;

pub use excerpt::{ANSWER_KEPT, ANSWER_READ, excerpt};

use serde::{Deserialize, Serialize};

use crate::id::{
    AccountId, BulletinId, DeliveryId, DestinationId, IncidentId, MonitorId, PageId, SubscriberId,
};
use crate::late;
use crate::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Milliseconds from each failed try to the next, before jitter.
pub const PAUSES: [i64; 9] =
    [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
/// How much of a pause may be added or taken away.
pub const JITTER: f64 = 0.2;
/// The longest that a receiver's `Retry-After` is respected, in milliseconds.
pub const MAX_RETRY_AFTER: i64 = HOUR;
/// Waits that a receiver may ask for before further ones count as tries.
pub const MAX_ASKED: u32 = 100;
/// Milliseconds since it was made after which waits that its receiver asks for count as tries.
pub const MAX_ASKING: i64 = DAY;
/// Milliseconds that a delivery is kept.
pub const KEPT: i64 = 30 * DAY;
/// Tries that are kept of one delivery: the newest.
pub const TRIES_KEPT: usize = 20;

/// Who gets a letter.
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
    /// The mailbox of a destination, asked whether it wants to be one. It gets nothing else before it says so.
    Asked(DestinationId),
    /// A visitor of a private page, by the delivery itself: his mailbox is remembered under [`mailbox_name`] for as long as
    /// the letter is of use.
    Visitor(DeliveryId),
}

/// The name under which a visitor's mailbox is remembered.
pub fn mailbox_name(id: DeliveryId) -> String {
    format!("visitor/{id}")
}

/// What is sent, finished when it happened: nothing that changes later shows in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Letter {
    /// JSON, as it is signed and posted. What a service wants of its own (a chat's id, a routing key) is added when it is
    /// sent, so that no secret lies here.
    Json(Vec<u8>),
    /// A mail.
    Mail(Mail),
    /// News of a page that many get: the record holds it once.
    Bulletin(BulletinId),
}

/// A mail's parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The subject: one line.
    pub subject: String,
    /// As plain text.
    pub text: String,
    /// As HTML.
    pub html: String,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its id, which stays the same over all tries.
    pub id: DeliveryId,
    /// The page that it is about; none for the operator's.
    pub page: Option<PageId>,
    /// Who gets it.
    pub to: Recipient,
    /// What it tells of, by name: `went-down`, `incident.created`, `test`.
    pub event: String,
    /// The monitor that it is about.
    pub monitor: Option<MonitorId>,
    /// The incident that it is about.
    pub incident: Option<IncidentId>,
    /// Its place among those of its lane: the number of the event that it tells of.
    pub seq: u64,
    /// What is sent.
    pub letter: Letter,
    /// Whether it is tried once only.
    pub once: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it stands.
    pub stage: Stage,
    /// Tries since it was made, or asked for anew.
    pub tries: Tries,
    /// The newest tries, oldest first.
    pub log: Vec<Try>,
    /// Start of the outage, or of the slow time, that an alert is about: mails of one belong together. An older record
    /// ends before this.
    #[serde(deserialize_with = "late::or_default")]
    pub began: Option<Timestamp>,
}

/// How often a delivery was tried: a count of tries, and beside it a count of those after which the receiver asked to
/// wait, which do not use the others up.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tries(u32);

impl Tries {
    /// The upper half holds those that were asked to wait: records of before have none.
    const ASKED: u32 = 1 << 16;

    /// Those that count.
    pub const fn counted(self) -> u32 {
        self.0 % Self::ASKED
    }

    /// Those after which the receiver asked to wait.
    pub const fn asked(self) -> u32 {
        self.0 / Self::ASKED
    }

    /// Both.
    pub const fn all(self) -> u32 {
        self.counted() + self.asked()
    }
}

impl std::fmt::Debug for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.counted(), self.asked())
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// To be sent then.
    Waiting(Timestamp),
    /// Taken by its receiver.
    Delivered(Timestamp),
    /// Given up.
    Failed(Timestamp),
    /// Not sent, since it says nothing new any more, or its receiver is gone or switched off.
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

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u32,
    /// The status that the receiver answered with: of HTTP, or of SMTP.
    pub status: Option<u16>,
    /// Why there was no good answer.
    pub error: Option<String>,
    /// An [`excerpt()`] of the answer; older records have up to [`ANSWER_READ`] bytes of it.
    pub answer: String,
}

/// What came of a try, as far as it decides what is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver took it.
    Taken,
    /// It did not, and may later; with the milliseconds that it asked to wait. Less than a second is no wish.
    NotNow(Option<i64>),
    /// It never will: the receiver is gone.
    Gone,
    /// It never will: the receiver refused the address for good.
    Refused,
}

impl Delivery {
    /// What keeps its order: the receiver, and the monitor or incident. A later one waits for those before it. One that
    /// is about neither waits for nobody.
    pub fn lane(&self) -> Lane {
        let subject = match (self.monitor, self.incident) {
            (Some(monitor), _) => monitor.to_u128(),
            (None, Some(incident)) => incident.to_u128(),
            (None, None) => self.id.to_u128(),
        };
        Lane { to: self.to, subject }
    }

    /// Notes a try and decides what is next. `jitter` is from -1 to 1, and for pauses of ours: a receiver that says when
    /// to come again is taken at its word, an hour at most, and up to [`MAX_ASKED`] times within [`MAX_ASKING`] at no cost
    /// of the ten tries.
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

    /// To be sent anew, now, under its old id.
    pub fn again(&mut self, now: Timestamp) {
        self.stage = Stage::Waiting(now);
        self.tries = Tries::default();
    }
}

fn spread(pause: i64, jitter: f64) -> i64 {
    // Pauses are far below 2^52, so nothing is lost on the way.
    pause + (pause as f64 * JITTER * jitter.clamp(-1.0, 1.0)) as i64
}

/// A receiver, and what it is told of: deliveries of one lane go out in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// The receiver.
    pub to: Recipient,
    /// The monitor's or incident's number; else the delivery's own.
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
