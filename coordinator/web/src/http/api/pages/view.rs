//! A page as the API returns it.

use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::DomainClaim;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::Services;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::value_schemas;

/// A page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Page")]
pub(in crate::http) struct PageDocument {
    /// Page id.
    id: String,
    /// Shown in the headline.
    name: String,
    /// Address label under the root domain.
    slug: String,
    /// Public address of the page.
    url: String,
    /// Custom hostname, if one is set.
    custom_domain: Option<String>,
    /// Line of text under the headline.
    description: Option<String>,
    /// Link under the headline.
    support_url: Option<String>,
    /// IANA zone in which the page shows times.
    timezone: &'static str,
    /// Uptime target in percent.
    uptime_target: Option<f64>,
    /// Visitors need the page's password.
    password_protected: bool,
    /// Only people and email domains the owner allows can see it.
    private: bool,
    /// Feed address of a page that is not open to everybody; anyone with the address can read the feed. It changes
    /// with the page's password, with private, and with the allowed people and domains. Null for an open page.
    private_feed_url: Option<String>,
    /// Deploy markers are drawn on the public page.
    show_deploys: bool,
    /// The public page shows each region under the uptime bars.
    show_locations: bool,
    /// Regions whose readings count toward response times; null means Europe.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    latency_locations: Option<Vec<&'static str>>,
    /// Regions whose checks count toward uptime; null means all.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    uptime_regions: Option<Vec<&'static str>>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
    /// Reason the page can't be visited at customDomain over TLS, or soon won't be: usually that the hostname does
    /// not point to this service. Null if there is no problem.
    custom_domain_problem: Option<String>,
    /// Hostname that was requested and is not verified yet.
    domain_verification: Option<DomainVerification>,
    /// Email addresses that can see it while it is private.
    allowed_people: Vec<String>,
    /// Domains whose email addresses can see it while it is private.
    allowed_domains: Vec<String>,
    /// Search engines are asked not to index it.
    noindex: bool,
    /// Colour scheme, until the visitor chooses: auto, light or dark.
    theme: &'static str,
    /// Colour of links and buttons, as it was set.
    accent_color: Option<String>,
    /// Address of the image next to the headline.
    logo: Option<String>,
    /// Address of the icon in the browser tab.
    favicon: Option<String>,
    /// Language of the page, as a BCP 47 tag.
    language: &'static str,
}

/// A requested hostname, and the TXT record that proves its ownership.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DomainVerification {
    /// Hostname.
    host: String,
    /// Name of the TXT record.
    record_name: String,
    /// Value of the TXT record.
    record_value: String,
    /// Time of the last look-up.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    checked_at: Option<String>,
    /// Reason the record was not found.
    problem: Option<String>,
}

/// Builds the document of a page.
pub(in crate::http) fn document(service: &Services, page: &Page) -> PageDocument {
    PageDocument {
        id: page.id.to_string(),
        name: page.name.clone(),
        slug: page.slug.clone(),
        url: service.pages.url(page),
        custom_domain: page.custom_domain.clone(),
        description: page.description.clone(),
        support_url: page.support_url.clone(),
        timezone: page.timezone.name(),
        uptime_target: page.uptime_target,
        password_protected: page.password_hash.is_some(),
        private: page.private,
        private_feed_url: service.page_access.feed_base_url(page).map(|address| format!("{address}/feed.atom")),
        show_deploys: page.show_deploys,
        show_locations: page.show_locations,
        latency_locations: page.latency_regions.map(names),
        uptime_regions: page.uptime_regions.map(names),
        created_at: page.created_at.to_string(),
        custom_domain_problem: service.hosts.certificate_problem(page),
        domain_verification: page.domain_claim.as_ref().map(verification),
        allowed_people: page.allowed_visitors.people.clone(),
        allowed_domains: page.allowed_visitors.domains.clone(),
        noindex: page.noindex,
        theme: page.branding.theme.name(),
        accent_color: page.branding.accent.map(|color| color.to_string()),
        logo: service.pages.picture_url(page, PictureUse::Logo),
        favicon: service.pages.picture_url(page, PictureUse::Favicon),
        language: page.language.tag(),
    }
}

fn verification(claim: &DomainClaim) -> DomainVerification {
    DomainVerification {
        host: claim.host.clone(),
        record_name: claim.record_name(),
        record_value: claim.record_value(),
        checked_at: claim.checked_at.map(|at| at.to_string()),
        problem: claim.problem.clone(),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}
