//! Custom domains: a hostname is claimed first, and becomes the page's once a DNS record proves its
//! ownership.

use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::text;
use crate::time::{DAY, Timestamp};
use crate::validation::Rule;

/// Milliseconds for which a released hostname stays reserved for its former account.
pub const RESERVED_FOR: i64 = 30 * DAY;
/// First label of the record's name, before the hostname.
pub const RECORD_LABEL: &str = "_parallax-challenge";
/// Prefix of the record's value, before the token.
pub const RECORD_PREFIX: &str = "parallax-domain-verification=";

/// A claimed hostname that is not verified yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainClaim {
    /// Hostname in lower-case ASCII, without a trailing dot.
    pub host: String,
    /// Token that the TXT record must contain to prove ownership.
    pub token: String,
    /// Time of the claim.
    pub claimed_at: Timestamp,
    /// Time of the last look-up.
    pub checked_at: Option<Timestamp>,
    /// Reason for which the last look-up failed, in words for the owner.
    pub problem: Option<String>,
}

impl DomainClaim {
    /// Creates a claim as of now.
    pub const fn new(host: String, token: String, now: Timestamp) -> Self {
        Self { host, token, claimed_at: now, checked_at: None, problem: None }
    }

    /// Name of the expected TXT record.
    pub fn record_name(&self) -> String {
        format!("{RECORD_LABEL}.{}", self.host)
    }

    /// Value of the expected TXT record.
    pub fn record_value(&self) -> String {
        format!("{RECORD_PREFIX}{}", self.token)
    }
}

/// A released hostname, reserved for its former account for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedHostname {
    /// The account whose page had it.
    pub account: AccountId,
    /// End of the reservation.
    pub until: Timestamp,
}

impl ReservedHostname {
    /// Returns true if the hostname is reserved against that account now.
    pub fn is_reserved_from(&self, account: AccountId, now: Timestamp) -> bool {
        self.account != account && self.until > now
    }
}

/// Validates a custom domain: a name of at least two labels without underscores, neither the service's own
/// nor below the root domain of pages.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_custom_domain(text: &str, own: Option<&str>, root_domain: Option<&str>) -> Result<String, Rule> {
    let host = text::domain(text).map_err(|_| "must be a hostname such as status.example.com".to_owned())?;
    let below = |root: &str| host == root || host.strip_suffix(root).is_some_and(|rest| rest.ends_with('.'));
    if !host.contains('.') || host.contains('_') || host.len() > MAX_HOST {
        Err("must be a hostname such as status.example.com".to_owned())
    } else if own == Some(&host) {
        Err("must not be this service's own hostname".to_owned())
    } else if root_domain.is_some_and(below) {
        Err("must not be a subdomain of this service's own domain".to_owned())
    } else {
        Ok(host)
    }
}

/// Maximum length of a hostname: with the record's label it must still be a DNS name (RFC 1035 section
/// 2.3.4).
pub const MAX_HOST: usize = 253 - RECORD_LABEL.len() - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_domain_is_not_one_of_the_service() {
        let read = |text: &str| read_custom_domain(text, Some("status.example"), Some("pages.example"));
        assert_eq!(read(" Status.Shop.example. ").as_deref(), Ok("status.shop.example"));
        assert_eq!(read("not-pages.example").as_deref(), Ok("not-pages.example"));
        assert_eq!(read("b\u{fc}cher.example").as_deref(), Ok("xn--bcher-kva.example"));
        for bad in
            ["", "localhost", "192.0.2.1", "[::1]", "a_b.example", "https://a.example", "a.example:443", "a.example/x"]
        {
            assert!(read(bad).unwrap_err().starts_with("must be a hostname"), "{bad}");
        }
        assert!(read("STATUS.example").unwrap_err().contains("own hostname"));
        for below in ["pages.example", "shop.pages.example", "a.b.Pages.example."] {
            assert!(read(below).unwrap_err().contains("own domain"), "{below}");
        }
        let name = format!("{}.example", vec!["a"; (MAX_HOST - 7) / 2].join("."));
        assert!(name.len() == MAX_HOST && read(&name).is_ok(), "{}", name.len());
        assert!(read(&format!("aa.{name}")).is_err());
    }

    #[test]
    fn a_released_hostname_is_reserved_for_its_former_account() {
        let (old, other, at) = (AccountId::from_u128(1), AccountId::from_u128(2), Timestamp::from_millis);
        let freed = ReservedHostname { account: old, until: at(10) };
        assert!(freed.is_reserved_from(other, at(9)));
        assert!(!freed.is_reserved_from(other, at(10)) && !freed.is_reserved_from(old, at(9)));
    }
}
