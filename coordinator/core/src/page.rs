//! Status pages: the stored record and its parts.

pub mod access;
pub mod branding;
pub mod contrast;
pub mod domain;
pub mod domain_verification;
pub mod edit;

use serde::{Deserialize, Serialize};

use self::access::AllowedVisitors;
use self::branding::{Branding, Language};
use self::domain::DomainClaim;
use crate::id::{AccountId, PageId};
use crate::time::Timestamp;
use crate::vantage::RegionSet;

/// A status page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Its id.
    pub id: PageId,
    /// The account that owns it.
    pub account: AccountId,
    /// Shown in the headline.
    pub name: String,
    /// Slug: label under the root domain.
    pub slug: String,
    /// Owner's own hostname, once verified.
    pub custom_domain: Option<String>,
    /// Line under the headline.
    pub description: Option<String>,
    /// Link under the headline.
    pub support_url: Option<String>,
    /// IANA time zone.
    pub timezone: chrono_tz::Tz,
    /// Uptime target in percent.
    pub uptime_target: Option<f64>,
    /// Hash of the visitors' password in the PHC string format, if set.
    pub password_hash: Option<String>,
    /// True if only allowed people may see it.
    pub private: bool,
    /// True if visitors see deploy markers.
    pub show_deploys: bool,
    /// True if visitors see the regions under the uptime bars.
    pub show_locations: bool,
    /// Regions whose readings count for response times; none means Europe.
    pub latency_regions: Option<RegionSet>,
    /// Regions whose checks count for up and down; none means all.
    pub uptime_regions: Option<RegionSet>,
    /// Creation time.
    pub created_at: Timestamp,
    /// People who may see it while it is private.
    pub allowed_visitors: AllowedVisitors,
    /// Incremented when the access rules change: visitors' access tokens are valid only with the number they
    /// were issued for.
    pub access_revision: u32,
    /// The owner's hostname, until it is verified.
    pub domain_claim: Option<DomainClaim>,
    /// True if search engines are asked not to index it.
    pub noindex: bool,
    /// Theme, colours and images.
    pub branding: Branding,
    /// Language of the service's own texts.
    pub language: Language,
}

/// The account of pages that are being deleted. No real account has this id, since ids contain a time.
pub const NO_ACCOUNT: AccountId = AccountId::from_u128(0);

impl Page {
    /// A page with only owner, slug and creation time set; its name is the slug.
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
            password_hash: None,
            private: false,
            show_deploys: false,
            show_locations: false,
            latency_regions: None,
            uptime_regions: None,
            created_at,
            allowed_visitors: AllowedVisitors::default(),
            access_revision: 0,
            domain_claim: None,
            noindex: false,
            branding: Branding::default(),
            language: Language::default(),
        }
    }

    /// The page as stored while its contents are deleted in batches: no account or key reaches it, it counts
    /// towards no plan, its slug and domain are free, and no visitor sees it.
    #[must_use]
    pub fn mark_deleted(&self) -> Self {
        // No slug can contain this character, so no request matches it.
        let slug = format!("!{}", self.id);
        Self { account: NO_ACCOUNT, slug, custom_domain: None, domain_claim: None, private: true, ..self.clone() }
    }

    /// Public URL of the page: its own domain, its slug under the root domain, or below the base URL, which
    /// ends without a slash.
    pub fn address(&self, base_url: &str, root_domain: Option<&str>) -> String {
        match (&self.custom_domain, root_domain) {
            (Some(domain), _) => format!("https://{domain}"),
            (None, Some(root)) => format!("https://{}.{root}", self.slug),
            (None, None) => format!("{base_url}/p/{}", self.slug),
        }
    }
}
