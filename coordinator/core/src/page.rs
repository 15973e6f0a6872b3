//! A status page's settings, as they are kept.

pub mod edit;

use serde::{Deserialize, Serialize};

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
    /// Hash of the visitors' password, where one is set.
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
}

/// The account of pages that are being deleted: nobody's, since ids are made of a moment.
pub const NOBODY: AccountId = AccountId::from_u128(0);

impl Page {
    /// The page as it is kept while what lies on it is deleted bit by bit: nobody has it, no key reaches it, it counts
    /// for no plan, its address is free for others, and no visitor is shown it.
    #[must_use]
    pub fn let_go(&self) -> Self {
        // No address label has that sign, so nobody asks for it.
        let slug = format!("!{}", self.id);
        Self { account: NOBODY, slug, custom_domain: None, private: true, ..self.clone() }
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
