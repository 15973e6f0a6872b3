//! Regions with their networks and addresses, for firewall allowlists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::place::Region;
use schemars::JsonSchema;
use serde::Serialize;

use super::wrapped;
use crate::http::Context;
use crate::http::openapi::words;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;

/// A region with agents in service.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "RegionInService")]
pub(in crate::http) struct RegionDocument {
    #[schemars(with = "words::Region")]
    region: &'static str,
    /// Number of agents.
    places: usize,
    /// Networks of the agents.
    networks: BTreeSet<String>,
    /// Public addresses that checks come from.
    addresses: BTreeSet<String>,
}

/// `GET /api/v1/regions`
pub(in crate::http) async fn list(context: Arc<Context>, _call: Call<Caller>) -> Answer {
    let mut regions: BTreeMap<Region, RegionDocument> = BTreeMap::new();
    for stand in context.service.stands() {
        let document = regions.entry(stand.region).or_default();
        document.region = stand.region.name();
        document.places += 1;
        document.networks.insert(stand.network);
        document.addresses.extend(stand.address.map(|address| address.to_string()));
    }
    let regions: Vec<_> = regions.into_values().collect();
    Ok(Reply::written(StatusCode::OK, wrapped("regions", &regions)))
}
