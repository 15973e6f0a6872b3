//! How mails leave: what a mailer is given, and what it says of it.

use std::fmt;

use futures_util::future::BoxFuture;
use parallax_core::delivery::{Mail, Outcome};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;

/// A mail on its way to one mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The delivery, for the mail's own id: the same over all tries.
    pub delivery: DeliveryId,
    /// When the letter was made: the mail's date over all tries.
    pub date: Timestamp,
    /// What it belongs to, by its id: mail programs show those of one together.
    pub thread: Option<String>,
    /// The list that it comes by, by a name below our domain (RFC 2919): mail programs sort by it.
    pub list: Option<String>,
    /// The mailbox.
    pub to: String,
    /// What it says.
    pub mail: Mail,
    /// Where its reader unsubscribes with one click (RFC 8058), or stops alerts, where it is a subscriber's or a destination's.
    pub unsubscribe: Option<String>,
}

/// What came of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// What is next.
    pub outcome: Outcome,
    /// SMTP's code, where there was an answer.
    pub status: Option<u16>,
    /// Why it was not taken.
    pub error: Option<String>,
    /// What the server said.
    pub answer: String,
    /// Whether the trouble is ours, and says nothing of the receiver.
    pub is_ours: bool,
}

/// A mailer.
pub trait Post: fmt::Debug + Send + Sync {
    /// Sends a mail, and says what came of it.
    fn post(&self, parcel: Parcel) -> BoxFuture<'_, Posted>;
}
