//! A page as the API shows it.

use parallax_core::page::Page;
use parallax_core::page::domain::DomainClaim;
use parallax_core::page::look::PictureUse;
use parallax_core::place::{Region, RegionSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::words;
use crate::service::Service;

/// A page as the API shows it.
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
    /// Where visitors are served the page.
    url: String,
    /// Owner's own hostname, where one is set.
    custom_domain: Option<String>,
    /// One line under the headline.
    description: Option<String>,
    /// Link under the headline.
    support_url: Option<String>,
    /// IANA zone that the page shows times in.
    timezone: &'static str,
    /// Uptime target in percent.
    uptime_target: Option<f64>,
    /// Visitors need the page's password.
    password_protected: bool,
    /// Only people and email domains that the owner allows can see it.
    private: bool,
    /// Where feed readers read a page that not everybody may see; whoever has the address reads along. It changes with
    /// the page's password, with private, and with who is allowed. Null for an open page.
    private_feed_url: Option<String>,
    /// Deploy markers are drawn on the public page.
    show_deploys: bool,
    /// The public page shows each region under the strips.
    show_locations: bool,
    /// Regions whose readings count toward response times; null means Europe.
    #[schemars(with = "Option<Vec<words::Region>>")]
    latency_locations: Option<Vec<&'static str>>,
    /// Regions whose checks count toward uptime; null means all.
    #[schemars(with = "Option<Vec<words::Region>>")]
    uptime_regions: Option<Vec<&'static str>>,
    /// When it was made.
    #[schemars(with = "words::Moment")]
    created_at: String,
    /// Why the page can't be visited at customDomain over TLS, or will not be for long: mostly that the hostname does not
    /// point to this service. Null where all is well.
    custom_domain_problem: Option<String>,
    /// A hostname that is asked for and not verified yet.
    domain_verification: Option<DomainVerification>,
    /// Email addresses that may see it while it is private.
    allowed_people: Vec<String>,
    /// Domains whose email addresses may see it while it is private.
    allowed_domains: Vec<String>,
    /// Search engines are asked to leave it out.
    noindex: bool,
    /// Its colours, until its visitor chooses: auto, light or dark.
    theme: &'static str,
    /// Colour of links and buttons, as it was set.
    accent_color: Option<String>,
    /// Where the picture beside the headline is served.
    logo: Option<String>,
    /// Where the picture in the browser's tab is served.
    favicon: Option<String>,
    /// Language of its fixed words, as a tag (BCP 47).
    language: &'static str,
}

/// A hostname that is asked for: the TXT record that shows it to be the owner's.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DomainVerification {
    /// The hostname.
    host: String,
    /// Name of the TXT record.
    record_name: String,
    /// Its value.
    record_value: String,
    /// When it was last looked for.
    #[schemars(with = "Option<words::Moment>")]
    checked_at: Option<String>,
    /// Why it was not found then.
    problem: Option<String>,
}

/// The document of a page.
pub(super) fn document(service: &Service, page: &Page) -> PageDocument {
    PageDocument {
        id: page.id.to_string(),
        name: page.name.clone(),
        slug: page.slug.clone(),
        url: service.page_url(page),
        custom_domain: page.custom_domain.clone(),
        description: page.description.clone(),
        support_url: page.support_url.clone(),
        timezone: page.timezone.name(),
        uptime_target: page.uptime_target,
        password_protected: page.password.is_some(),
        private: page.private,
        private_feed_url: service.feed_address(page).map(|address| format!("{address}/feed.atom")),
        show_deploys: page.show_deploys,
        show_locations: page.show_locations,
        latency_locations: page.latency_regions.map(names),
        uptime_regions: page.uptime_regions.map(names),
        created_at: page.created_at.to_string(),
        custom_domain_problem: service.domain_problem(page),
        domain_verification: page.domain_claim.as_ref().map(verification),
        allowed_people: page.allowed.people.clone(),
        allowed_domains: page.allowed.domains.clone(),
        noindex: page.noindex,
        theme: page.look.theme.name(),
        accent_color: page.look.accent.map(|color| color.to_string()),
        logo: service.picture_url(page, PictureUse::Logo),
        favicon: service.picture_url(page, PictureUse::Favicon),
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
