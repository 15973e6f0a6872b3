//! Interface of a mail transport: the mail to send and the result.

use std::fmt;

use futures_util::future::BoxFuture;
use parallax_core::delivery::{AttemptOutcome, MailMessage};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;

/// A mail to one mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMail {
    /// Delivery id, which is part of the `Message-ID`: the same for all attempts.
    pub delivery: DeliveryId,
    /// Creation time of the message: the `Date` header of all attempts.
    pub date: Timestamp,
    /// Thread id: mail programs group mails by it.
    pub thread_id: Option<String>,
    /// List name under our domain (`List-Id`, RFC 2919): mail programs filter by it.
    pub list_id: Option<String>,
    /// Recipient's address.
    pub to: String,
    /// Content.
    pub content: MailMessage,
    /// URL of one-click unsubscribe (RFC 8058) for a subscriber, or of the stop link for a destination.
    pub unsubscribe_url: Option<String>,
}

/// Result of sending a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendResult {
    /// Outcome.
    pub outcome: AttemptOutcome,
    /// SMTP status code, if the server replied.
    pub status: Option<u16>,
    /// Reason of a failure.
    pub error: Option<String>,
    /// Reply of the server.
    pub reply: String,
    /// True if the failure is on our side and says nothing about the receiver.
    pub is_our_fault: bool,
}

/// Mail transport.
pub trait SendMail: fmt::Debug + Send + Sync {
    /// Sends a mail and returns the result.
    fn send_mail(&self, mail: OutgoingMail) -> BoxFuture<'_, SendResult>;
}
