//! A page as the API shows it.

use parallax_core::page::Page;
use parallax_core::place::{Region, RegionSet};
use serde::Serialize;

use crate::service::Service;

/// A page as the API shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageDocument {
    id: String,
    name: String,
    slug: String,
    url: String,
    custom_domain: Option<String>,
    description: Option<String>,
    support_url: Option<String>,
    timezone: &'static str,
    uptime_target: Option<f64>,
    password_protected: bool,
    private: bool,
    show_deploys: bool,
    show_locations: bool,
    latency_locations: Option<Vec<&'static str>>,
    uptime_regions: Option<Vec<&'static str>>,
    created_at: String,
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
        show_deploys: page.show_deploys,
        show_locations: page.show_locations,
        latency_locations: page.latency_regions.map(names),
        uptime_regions: page.uptime_regions.map(names),
        created_at: page.created_at.to_string(),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}
