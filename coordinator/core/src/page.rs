//! A status page's settings, as they are kept.

pub mod access;
pub mod domain;
pub mod edit;
pub mod look;

use serde::{Deserialize, Serialize};

use self::access::Allowed;
use self::domain::DomainClaim;
use self::look::{Language, Look};
use crate::id::{AccountId, PageId};
use crate::place::RegionSet;
use crate::time::Timestamp;

/// A status page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Its id.
    pub id: PageId,
    /// Who owns it.
    pub account: AccountId,
    /// Shown in the headline.
    pub name: String,
    /// Address label under the root domain.
    pub slug: String,
    /// Owner's own hostname, once verified.
    pub custom_domain: Option<String>,
    /// One line under the headline.
    pub description: Option<String>,
    /// Link under the headline.
    pub support_url: Option<String>,
    /// IANA zone.
    pub timezone: chrono_tz::Tz,
    /// Uptime target in percent.
    pub uptime_target: Option<f64>,
    /// Hash of the visitors' password in the PHC string format, where one is set.
    pub password: Option<String>,
    /// Only allowed people see it.
    pub private: bool,
    /// Deploy markers are drawn for visitors.
    pub show_deploys: bool,
    /// Regions are shown under the strips.
    pub show_locations: bool,
    /// Regions whose readings count for response times; none means Europe.
    pub latency_regions: Option<RegionSet>,
    /// Regions whose checks count for up and down; none means all.
    pub uptime_regions: Option<RegionSet>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who may see it while it is private.
    pub allowed: Allowed,
    /// Counts the changes of who may see it: what a visitor was let in by counts with this number alone.
    pub access_revision: u32,
    /// The owner's hostname that is asked for and not verified yet.
    pub domain_claim: Option<DomainClaim>,
    /// Search engines are asked to leave it out.
    pub noindex: bool,
    /// Its colours and pictures.
    pub look: Look,
    /// Of the words that are not its owner's.
    pub language: Language,
}

/// The account of pages that are being deleted: nobody's, since ids are made of a moment.
pub const NOBODY: AccountId = AccountId::from_u128(0);

impl Page {
    /// A page with nothing set but whose it is, its address label and its moment; its name is the label.
    pub fn blank(id: PageId, account: AccountId, slug: String, created_at: Timestamp) -> Self {
        Self {
            id,
            account,
            name: slug.clone(),
            slug,
            custom_domain: None,
            description: None,
            support_url: None,
            timezone: chrono_tz::UTC,
            uptime_target: None,
            password: None,
            private: false,
            show_deploys: false,
            show_locations: false,
            latency_regions: None,
            uptime_regions: None,
            created_at,
            allowed: Allowed::default(),
            access_revision: 0,
            domain_claim: None,
            noindex: false,
            look: Look::default(),
            language: Language::default(),
        }
    }

    /// The page as it is kept while what lies on it is deleted bit by bit: nobody has it, no key reaches it, it counts
    /// for no plan, its address is free for others, and no visitor is shown it.
    #[must_use]
    pub fn let_go(&self) -> Self {
        // No address label has that sign, so nobody asks for it.
        let slug = format!("!{}", self.id);
        Self { account: NOBODY, slug, custom_domain: None, domain_claim: None, private: true, ..self.clone() }
    }

    /// Where visitors are served the page: its own domain, its label under the root domain, or below the base URL, which
    /// ends without a slash.
    pub fn address(&self, base_url: &str, root_domain: Option<&str>) -> String {
        match (&self.custom_domain, root_domain) {
            (Some(domain), _) => format!("https://{domain}"),
            (None, Some(root)) => format!("https://{}.{root}", self.slug),
            (None, None) => format!("{base_url}/p/{}", self.slug),
        }
    }
}
