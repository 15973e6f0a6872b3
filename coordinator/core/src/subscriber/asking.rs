//! How many addresses that have not agreed yet may be written to because of one page or account.

/// Addresses that a page's visitors may have asked within a minute, and as many its owner.
pub const PAGE_A_MINUTE: u32 = 30;
/// Addresses that one visitor may have asked within an hour, over all pages: nobody uses up an account's pace alone.
pub const VISITOR_AN_HOUR: u32 = 30;
/// Addresses that an account's owner may have unconfirmed at once.
pub const MAX_UNCONFIRMED: usize = 200;

/// The one who has an address asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// The page's owner, by the API or as a destination of alerts: for others, who did not ask.
    Owner,
    /// A visitor, by the page's form: mostly for themselves.
    Visitor,
}

impl Asker {
    /// Addresses that an account may have asked within an hour, where so many have confirmed. Those who confirm show that
    /// its mails are wanted.
    pub fn an_hour(self, confirmed: usize) -> u32 {
        let (base, each, most) = self.rule();
        let confirmed = u32::try_from(confirmed).unwrap_or(u32::MAX);
        base.saturating_add(each.saturating_mul(confirmed)).min(most)
    }

    /// Confirmed addresses beyond which more of them change nothing.
    pub fn most_counted(self) -> usize {
        let (base, each, most) = self.rule();
        usize::try_from((most - base).div_ceil(each)).unwrap_or(usize::MAX)
    }

    /// Words of the rule, for a refusal.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Owner => "20, and one more for each mailbox confirmed for a day, up to 1000",
            Self::Visitor => "1000, and ten more for each mailbox confirmed for a day, up to 10000",
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
    fn an_accounts_pace_grows_with_those_who_confirmed_up_to_a_bound() {
        for (asker, confirmed, pace) in [
            (Asker::Owner, 0, 20),
            (Asker::Owner, 30, 50),
            (Asker::Owner, 980, 1_000),
            (Asker::Owner, usize::MAX, 1_000),
            (Asker::Visitor, 0, 1_000),
            (Asker::Visitor, 899, 9_990),
            (Asker::Visitor, 901, 10_000),
        ] {
            assert_eq!(asker.an_hour(confirmed), pace, "{asker:?} {confirmed}");
            assert_eq!(asker.an_hour(asker.most_counted()), asker.an_hour(usize::MAX));
        }
    }
}
