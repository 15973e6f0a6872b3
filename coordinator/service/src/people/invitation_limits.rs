//! Limits on invitations sent: a day by an account, an hour to one mailbox.

use std::sync::{Mutex, PoisonError};

use parallax_core::id::AccountId;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::{DAY, HOUR, Timestamp};

/// Invitations that an account sends a day, at most.
pub const INVITATIONS_PER_DAY: u32 = 100;
/// Invitations that an account sends an hour to one mailbox, at most.
pub const INVITATIONS_PER_MAILBOX: u32 = 3;

/// Invitations sent, in memory. An account counts for its own mails alone, so that nobody learns who else invites.
#[derive(Debug)]
pub(super) struct InvitationLimits {
    by_account: Mutex<FixedWindowLimit<AccountId>>,
    by_mailbox: Mutex<FixedWindowLimit<(AccountId, String)>>,
}

impl InvitationLimits {
    pub(super) const fn new() -> Self {
        Self { by_account: Mutex::new(FixedWindowLimit::new(DAY)), by_mailbox: Mutex::new(FixedWindowLimit::new(HOUR)) }
    }

    /// Counts an invitation. One that its mailbox refuses does not count for the account.
    pub(super) fn admit(&self, account: AccountId, email: &str, now: Timestamp) -> Result<(), RateExceeded> {
        let mailbox = (account, SubscriberAddress::Email(email.to_owned()).mailbox_key());
        let mut by_mailbox = self.by_mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        by_mailbox.admit(INVITATIONS_PER_MAILBOX, &mailbox, now)?;
        drop(by_mailbox);
        let mut by_account = self.by_account.lock().unwrap_or_else(PoisonError::into_inner);
        by_account.admit(INVITATIONS_PER_DAY, &account, now)
    }
}
