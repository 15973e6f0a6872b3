//! Company sign-in: the OpenID Connect provider of an account's company, and the email domains of its people.
//!
//! A domain counts once its TXT record proves that the company has it, and for one account alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::page::access::normalize_email_domain;
use crate::page::domain::{DomainClaim, MAX_HOST};
use crate::time::Timestamp;
use crate::validation::Rule;

/// Email domains of one account's company, at most.
pub const MAX_COMPANY_DOMAINS: usize = 10;
/// Longest address of a provider, in bytes.
pub const MAX_ISSUER: usize = 300;
/// Longest client id, in bytes.
pub const MAX_CLIENT_ID: usize = 256;
/// Longest client secret, in bytes.
pub const MAX_CLIENT_SECRET: usize = 1024;
/// Longest subject of a person at a provider, in bytes (OpenID Connect Core 1.0, section 2).
pub const MAX_SUBJECT: usize = 255;

/// Company sign-in of an account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanySignIn {
    /// The account.
    pub account: AccountId,
    /// Address of the provider, exactly as it names itself in its tokens.
    pub issuer: String,
    /// Id of this service at the provider.
    pub client_id: String,
    /// Secret of this service at the provider; empty if the provider gave none.
    pub client_secret: String,
    /// Email domains of the company, proved or not.
    pub domains: Vec<CompanyDomain>,
    /// True if members other than owners have no other way in.
    pub is_required: bool,
    /// True if the provider asks for a second factor, so that the person's own is not asked for.
    pub covers_second_factor: bool,
    /// Time at which the provider was last seen to work with these settings; none since they changed.
    pub worked_at: Option<Timestamp>,
}

/// An email domain of a company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanyDomain {
    /// The domain, with the TXT record that proves it.
    pub claim: DomainClaim,
    /// Time of the proof; none until then.
    pub proved_at: Option<Timestamp>,
}

impl CompanySignIn {
    /// Returns the proved domains.
    pub fn proved_domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().filter(|it| it.proved_at.is_some()).map(|it| it.claim.host.as_str())
    }

    /// Returns true if the email address is of a proved domain.
    pub fn covers_email(&self, email: &str) -> bool {
        email_domain(email).is_some_and(|domain| self.proved_domains().any(|proved| proved == domain))
    }
}

impl fmt::Debug for CompanySignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompanySignIn")
            .field("account", &self.account)
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("domains", &self.domains)
            .field("is_required", &self.is_required)
            .field("covers_second_factor", &self.covers_second_factor)
            .field("worked_at", &self.worked_at)
            .finish_non_exhaustive()
    }
}

/// Returns the domain of an email address in lower case; none if it has none.
pub fn email_domain(email: &str) -> Option<String> {
    let (_, domain) = email.trim().rsplit_once('@')?;
    read_company_domain(domain).ok()
}

/// Validates an email domain: a name of at least two labels, short enough for the name of its TXT record.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_company_domain(typed: &str) -> Result<String, Rule> {
    let typed = typed.trim().trim_start_matches('@');
    let domain = normalize_email_domain(typed).ok();
    let domain = domain.filter(|domain| !domain.contains('_') && domain.len() <= MAX_HOST);
    domain.ok_or_else(|| "must be an email domain such as example.com".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> CompanySignIn {
        let domain = |host: &str, proved: Option<i64>| CompanyDomain {
            claim: DomainClaim::new(host.to_owned(), "token".to_owned(), Timestamp::from_millis(1)),
            proved_at: proved.map(Timestamp::from_millis),
        };
        CompanySignIn {
            account: AccountId::from_u128(1),
            issuer: "https://id.shop.example".to_owned(),
            client_id: "parallax".to_owned(),
            client_secret: "canary".to_owned(),
            domains: vec![domain("shop.example", Some(2)), domain("new.example", None)],
            is_required: false,
            covers_second_factor: false,
            worked_at: None,
        }
    }

    #[test]
    fn an_address_is_covered_by_exactly_a_proved_domain() {
        for (email, is_covered) in [
            ("ann@shop.example", true),
            ("ann@SHOP.example", true),
            ("ann@new.example", false),
            ("ann@eu.shop.example", false),
            ("ann@shop.example.evil.example", false),
            ("ann@evilshop.example", false),
            ("shop.example", false),
            ("ann@", false),
            ("\"a@shop.example\"@evil.example", false),
        ] {
            assert_eq!(settings().covers_email(email), is_covered, "{email}");
        }
    }

    #[test]
    fn a_domain_is_read_in_one_form() {
        assert_eq!(read_company_domain(" @Shop.Example ").as_deref(), Ok("shop.example"));
        let name = |length: usize| format!("{}.example", vec!["a"; (length - 7) / 2].join("."));
        assert!(read_company_domain(&name(MAX_HOST)).is_ok(), "{}", name(MAX_HOST).len());
        let long = name(MAX_HOST + 2);
        for invalid in
            ["", "@", "shop", "shop example", "a_b.example", "ann@shop.example", "https://shop.example", long.as_str()]
        {
            assert!(read_company_domain(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn debug_output_has_no_secret() {
        assert!(!format!("{:?}", settings()).contains("canary"));
    }
}
