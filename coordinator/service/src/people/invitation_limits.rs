//! Limits on invitations, which are mails to people who never asked for one: an hour and a day by an account, an hour to
//! one mailbox, and an hour over the installation.
//!
//! An invitation counts once, when it is sent: one that is refused for any reason, or answers a repeated form, leaves all
//! counts as they were.

use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::AccountId;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::{DAY, HOUR, Timestamp};

/// Invitations that an account sends an hour, at most.
pub const INVITATIONS_PER_HOUR: u32 = 20;
/// Invitations that an account sends a day, at most.
pub const INVITATIONS_PER_DAY: u32 = 100;
/// Invitations that an account sends an hour to one mailbox, at most.
pub const INVITATIONS_PER_MAILBOX: u32 = 3;
/// Invitations that all accounts send an hour, at most: one account after the other must not write to thousands of
/// strangers in the installation's name.
const INVITATIONS_PER_INSTALLATION: u32 = 1000;
/// Accounts with a window, at most. Not reached: the limit of the installation admits fewer in a day.
const MAX_ACCOUNTS: usize = 100_000;

/// Invitations sent, in memory. To one mailbox an account counts for its own mails alone, so that nobody learns who else
/// invites.
#[derive(Debug)]
pub(super) struct InvitationLimits(Mutex<InvitationWindows>);

#[derive(Debug)]
struct InvitationWindows {
    by_mailbox: FixedWindowLimit<(AccountId, String)>,
    by_hour: FixedWindowLimit<AccountId>,
    by_day: FixedWindowLimit<AccountId>,
    of_all: FixedWindowLimit<()>,
}

/// A counted invitation. Unless it is [sent](Self::sent), its counts are taken back.
#[derive(Debug)]
pub(super) struct InvitationCharge<'a> {
    limits: &'a InvitationLimits,
    account: AccountId,
    mailbox: (AccountId, String),
    at: Timestamp,
    is_sent: bool,
}

impl InvitationLimits {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(InvitationWindows {
            by_mailbox: FixedWindowLimit::new(HOUR),
            by_hour: FixedWindowLimit::evicting(HOUR, MAX_ACCOUNTS),
            by_day: FixedWindowLimit::evicting(DAY, MAX_ACCOUNTS),
            of_all: FixedWindowLimit::new(HOUR),
        }))
    }

    /// Counts an invitation in every limit, or in none.
    ///
    /// # Errors
    /// [`RateExceeded`] with the longest wait of the limits that are reached.
    pub(super) fn charge(
        &self,
        account: AccountId,
        email: &str,
        now: Timestamp,
    ) -> Result<InvitationCharge<'_>, RateExceeded> {
        let mailbox = (account, SubscriberAddress::Email(email.to_owned()).mailbox_key());
        let mut windows = self.windows();
        let InvitationWindows { by_mailbox, by_hour, by_day, of_all } = &mut *windows;
        let left = [
            by_mailbox.peek(INVITATIONS_PER_MAILBOX, &mailbox, now),
            by_hour.peek(INVITATIONS_PER_HOUR, &account, now),
            by_day.peek(INVITATIONS_PER_DAY, &account, now),
            of_all.peek(INVITATIONS_PER_INSTALLATION, &(), now),
        ];
        let waits = left.iter().filter(|status| !status.allowed).map(|status| status.reset_seconds);
        if let Some(seconds) = waits.max() {
            return Err(RateExceeded { seconds });
        }
        // Mailboxes have room: the limit of the installation admits fewer in an hour than are tracked.
        by_mailbox.admit(INVITATIONS_PER_MAILBOX, &mailbox, now)?;
        by_hour.count(INVITATIONS_PER_HOUR, &account, 1, now);
        by_day.count(INVITATIONS_PER_DAY, &account, 1, now);
        of_all.count(INVITATIONS_PER_INSTALLATION, &(), 1, now);
        Ok(InvitationCharge { limits: self, account, mailbox, at: now, is_sent: false })
    }

    fn windows(&self) -> MutexGuard<'_, InvitationWindows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InvitationCharge<'_> {
    /// Keeps the counts: the mail is on its way.
    pub(super) const fn sent(&mut self) {
        self.is_sent = true;
    }
}

impl Drop for InvitationCharge<'_> {
    fn drop(&mut self) {
        if !self.is_sent {
            let mut windows = self.limits.windows();
            windows.by_mailbox.refund(&self.mailbox, self.at);
            windows.by_hour.refund(&self.account, self.at);
            windows.by_day.refund(&self.account, self.at);
            windows.of_all.refund(&(), self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_783_560_000);

    /// Sends an invitation; returns the seconds to wait if it is refused.
    fn send(limits: &InvitationLimits, account: u128, email: &str, now: Timestamp) -> Result<(), u32> {
        let mut charge = limits.charge(AccountId::from_u128(account), email, now).map_err(|it| it.seconds)?;
        charge.sent();
        Ok(())
    }

    #[test]
    fn a_refused_invitation_counts_nowhere() {
        let limits = InvitationLimits::new();
        for _ in 0..INVITATIONS_PER_MAILBOX {
            assert_eq!(send(&limits, 1, "ann@example.com", START), Ok(()));
        }
        // Neither the refusals of one mailbox nor what was not sent takes from the account.
        for number in 0..50 {
            assert_eq!(send(&limits, 1, "ann@example.com", START), Err(3600));
            let charge = limits.charge(AccountId::from_u128(1), &format!("unsent{number}@example.com"), START);
            assert!(charge.is_ok(), "{number}");
        }
        for number in INVITATIONS_PER_MAILBOX..INVITATIONS_PER_HOUR {
            assert_eq!(send(&limits, 1, &format!("p{number}@example.com"), START), Ok(()));
        }
        // The refusals of the account take nothing from a mailbox.
        for _ in 0..50 {
            assert_eq!(send(&limits, 1, "bob@example.com", START), Err(3600));
        }
        let next = START + HOUR;
        for _ in 0..INVITATIONS_PER_MAILBOX {
            assert_eq!(send(&limits, 1, "bob@example.com", next), Ok(()));
        }
        assert_eq!(send(&limits, 1, "bob@example.com", next), Err(3600));
    }

    #[test]
    fn an_account_sends_twenty_an_hour_and_a_hundred_a_day() {
        let limits = InvitationLimits::new();
        let mut sent = 0;
        for hour in 0..6 {
            for number in 0..30 {
                let result = send(&limits, 1, &format!("p{number}-{hour}@example.com"), START + hour * HOUR);
                sent += u32::from(result.is_ok());
            }
        }
        assert_eq!(sent, INVITATIONS_PER_DAY);
        assert_eq!(send(&limits, 1, "more@example.com", START + 6 * HOUR), Err(18 * 3600), "the longest wait");
        assert_eq!(send(&limits, 2, "more@example.com", START + 6 * HOUR), Ok(()), "another account");
        assert_eq!(send(&limits, 1, "more@example.com", START + DAY), Ok(()));
    }

    #[test]
    fn all_accounts_together_are_bounded() {
        let limits = InvitationLimits::new();
        let mut sent = 0;
        for account in 0..100 {
            for number in 0..INVITATIONS_PER_HOUR {
                let email = format!("p{number}@a{account}.example");
                sent += u32::from(send(&limits, account, &email, START).is_ok());
            }
        }
        assert_eq!(sent, INVITATIONS_PER_INSTALLATION);
        assert_eq!(send(&limits, 200, "ann@example.com", START + HOUR), Ok(()));
    }
}
