//! The page with the evidence of an outage, opened by a link in an alert, without sign-in.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::ServiceError;
use parallax_service::page_access::authorize::PageAddress;

use super::form::uncached_page;
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::evidence::EvidencePage;

/// Returns the route, which only the base host has.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![("/evidence/{link}", vec![(Method::GET, public_route(|context, call| show(context, call).boxed()))])]
}

/// `GET /evidence/{link}`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    call.no_store.set();
    if let Some(visitor) = client_ip::client_ip(call.peer, &call.headers) {
        let admitted = context.evidence_limit.admit_many(address_key(visitor.address), 1, context.service.now());
        admitted.map_err(ApiError::RateLimited)?;
    }
    let evidence = context.service.evidence.outage(call.path_param("link")?).await;
    let evidence = evidence.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    let base = context.service.hosts.shared_prefix(PageAddress::BasePath);
    // Its referrer policy is `no-referrer`, as of all HTML: the address is the only credential.
    Ok(uncached_page(EvidencePage::new(&evidence, base).html()))
}
