//! Rate limits for confirmation requests: mails to unconfirmed addresses on behalf of one page or account.

/// Confirmation requests per minute and page from visitors, and as many from the owner.
pub const PER_PAGE_MINUTE: u32 = 30;
/// Confirmation requests per hour from one visitor over all pages: no visitor alone can use up an account's
/// limit.
pub const PER_VISITOR_HOUR: u32 = 30;
/// New addresses that an account may import per hour, over all its pages: two full imports.
pub const IMPORTED_PER_HOUR: u32 = 10_000;
/// Maximum number of unconfirmed addresses entered by an account's owner.
pub const MAX_UNCONFIRMED: usize = 200;

/// The originator of a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfirmationOrigin {
    /// The page's owner, through the API or as an alert destination: on behalf of others, who did not ask.
    Owner,
    /// A visitor, through the page's form: mostly for themselves.
    Visitor,
}

impl ConfirmationOrigin {
    /// Confirmation requests per hour and account, given the number of confirmed addresses: each confirmation
    /// shows that the account's mails are wanted.
    pub fn hourly_limit(self, confirmed: usize) -> u32 {
        let (base, each, most) = self.rule();
        let confirmed = u32::try_from(confirmed).unwrap_or(u32::MAX);
        base.saturating_add(each.saturating_mul(confirmed)).min(most)
    }

    /// Number of confirmed addresses above which the limit no longer grows.
    pub fn max_counted(self) -> usize {
        let (base, each, most) = self.rule();
        usize::try_from((most - base).div_ceil(each)).unwrap_or(usize::MAX)
    }

    /// Description of the limit for error messages.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Owner => "20, plus one for each address confirmed for a day, up to 1000",
            Self::Visitor => "1000, plus ten for each address confirmed for a day, up to 10000",
        }
    }

    const fn rule(self) -> (u32, u32, u32) {
        match self {
            Self::Owner => (20, 1, 1_000),
            Self::Visitor => (1_000, 10, 10_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accounts_limit_grows_with_confirmed_subscribers_up_to_a_bound() {
        for (asker, confirmed, pace) in [
            (ConfirmationOrigin::Owner, 0, 20),
            (ConfirmationOrigin::Owner, 30, 50),
            (ConfirmationOrigin::Owner, 980, 1_000),
            (ConfirmationOrigin::Owner, usize::MAX, 1_000),
            (ConfirmationOrigin::Visitor, 0, 1_000),
            (ConfirmationOrigin::Visitor, 899, 9_990),
            (ConfirmationOrigin::Visitor, 901, 10_000),
        ] {
            assert_eq!(asker.hourly_limit(confirmed), pace, "{asker:?} {confirmed}");
            assert_eq!(asker.hourly_limit(asker.max_counted()), asker.hourly_limit(usize::MAX));
        }
    }
}
