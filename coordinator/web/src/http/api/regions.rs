//! Regions with their networks and addresses, for firewall allowlists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::vantage::Region;
use parallax_service::Caller;
use schemars::JsonSchema;
use serde::Serialize;

use super::enveloped;
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// A region with agents in service.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "RegionInService")]
pub(in crate::http) struct RegionDocument {
    #[schemars(with = "value_schemas::Region")]
    region: &'static str,
    /// Number of agents.
    places: usize,
    /// Networks of the agents.
    networks: BTreeSet<String>,
    /// Public addresses that checks come from.
    addresses: BTreeSet<String>,
}

/// `GET /api/v1/regions`
pub(in crate::http) async fn list(context: Arc<HttpContext>, _call: RoutedRequest<Caller>) -> HandlerResult {
    let mut regions: BTreeMap<Region, RegionDocument> = BTreeMap::new();
    for agent in context.service.history.agents_in_service() {
        let document = regions.entry(agent.region).or_default();
        document.region = agent.region.name();
        document.places += 1;
        document.networks.insert(agent.network);
        document.addresses.extend(agent.address.map(|address| address.to_string()));
    }
    let regions: Vec<_> = regions.into_values().collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("regions", &regions)))
}
