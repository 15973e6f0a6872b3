//! The HTTP interface: API, public pages and MCP. One warp filter passes each request to a dispatcher with a route
//! table.
//!
//! Every API request is checked in the same order: API key (401, also for unknown routes), rate limit (429), route and
//! method (404, 405), access of the key (403), its reach (404), body (400), plan (422). Every error becomes a
//! response here; warp's rejections are not used, since they would fall through to other filters.

mod api;
mod auth;
mod body_fields;
mod client_ip;
mod connection;
mod connection_limit;
mod context;
mod docs;
mod drain_body;
mod error;
mod error_hints;
mod fast_path;
mod h2_guard;
mod heartbeat_ping;
mod https;
mod https_redirect;
mod idle_connections;
mod json_body;
mod legacy;
mod login_throttle;
mod mcp;
mod openapi;
mod public;
mod request_timeout;
mod response;
mod response_memory;
mod route;
mod routes;
pub mod server;
mod write_timeout;

pub use context::HttpContext;
pub use error::report_omitted_lines;

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ::http::header::EXPECT;
use ::http::{HeaderMap, Method};
use bytes::Buf;
use futures_util::{FutureExt, Stream, StreamExt};
use parallax_core::rate_limit::RateLimitStatus;
use warp::Filter;
use warp::filters::path::FullPath;

use crate::service::Caller;
use error::ApiError;
use json_body::RequestBody;
use response::HttpResponse;
use response_memory::{ResponseMemory, ResponseOwner};
use route::{HandlerResult, HttpRoute, NoStoreFlag, RouteTable, RoutedRequest};
use routes::routes;

/// Path prefix of the API.
const API_PREFIX: &str = "/api/v1";

/// Peer address of the connection, which the server adds to each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The warp filter: splits a request into its parts and never rejects.
fn filter(
    context: Arc<HttpContext>,
) -> impl Filter<Extract = (warp::reply::Response,), Error = warp::Rejection> + Clone {
    let table = Arc::new(RouteTable::new(routes()));
    warp::method()
        .and(warp::path::full())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<PeerAddress>())
        .and(warp::body::stream())
        .and_then(move |method, path: FullPath, query, headers, peer, body| {
            let (context, table) = (Arc::clone(&context), Arc::clone(&table));
            let body = body_stream(body);
            async move {
                let request = ParsedRequest { method, path: path.as_str().to_owned(), query, headers, peer, body };
                Ok::<_, Infallible>(handle(context, table, request).await.into_warp())
            }
        })
}

/// Converts a body to a stream of bytes; the cause of a read error does not matter.
fn body_stream(body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + 'static) -> RequestBody {
    body.map(|part| part.map(|mut part| part.copy_to_bytes(part.remaining())).map_err(|_| ())).boxed()
}

/// A request, split into its parts.
struct ParsedRequest {
    method: Method,
    path: String,
    /// Query string without the question mark; may be empty.
    query: String,
    headers: HeaderMap,
    peer: Option<PeerAddress>,
    body: RequestBody,
}

/// Handles a request. Always returns a response, even if a handler panics.
async fn handle(context: Arc<HttpContext>, table: Arc<RouteTable>, mut request: ParsedRequest) -> HttpResponse {
    // With `Expect: 100-continue`, draining would ask the client to send a body that is not needed.
    let asks_first = request.headers.contains_key(EXPECT);
    let (body, rest) = drain_body::recoverable(request.body);
    request.body = body;
    let mut allowance = None;
    let is_old = legacy::is_old_path(&request.path);
    let answered =
        AssertUnwindSafe(dispatch(Arc::clone(&context), table, request, &mut allowance)).catch_unwind().await;
    let reply = match answered {
        Ok(Ok(reply)) => reply,
        Ok(Err(refused)) => refused.into_response(),
        Err(_) => {
            ApiError::from(crate::service::ServiceError::Internal("a handler panicked".to_owned())).into_response()
        }
    };
    if !asks_first {
        rest.drain().await;
    }
    context.count_response(reply.status());
    let reply = if is_old { legacy::with_deprecation(reply, context.service.base_url()) } else { reply };
    match allowance {
        Some(allowance) => reply.with_allowance(&allowance),
        None => reply,
    }
}

async fn dispatch(
    context: Arc<HttpContext>,
    table: Arc<RouteTable>,
    request: ParsedRequest,
    allowance: &mut Option<RateLimitStatus>,
) -> Result<HttpResponse, ApiError> {
    let ParsedRequest { method, mut path, query, headers, body, peer } = request;
    let asked = path.clone();
    let inner = public::inner_path(&context, &headers, &path)?;
    let is_own_host = inner.is_some();
    if let Some(inner) = inner {
        path = inner;
    }
    let token = public::split_feed_token(&path).map(|(inner, token)| {
        path = inner;
        token
    });
    let (body, arrived) = request_timeout::track_body(body, &method);
    let seal = NoStoreFlag::default();
    let (route, params) = match table.find(&method, &path) {
        Ok((HttpRoute::Public(handler), mut params)) => {
            params.extend(token);
            let (kept, reader) = (seal.clone(), headers.clone());
            let call = RoutedRequest { caller: (), method, path, query, peer, params, headers, body, no_store: seal };
            let answered = handler(Arc::clone(&context), call);
            let answered =
                match request_timeout::with_timeout(request_timeout::REQUEST_TIMEOUT, arrived, answered).await {
                    Ok(reply) if ResponseMemory::is_counted(&reply) => {
                        context.response_memory.admit(ResponseOwner::from_request(peer, &reader), true, reply).await
                    }
                    answered => answered,
                };
            return kept.apply(
                answered.map_err(|refused| public::not_found_for_people(&context, &reader, is_own_host, refused)),
            );
        }
        Ok((route, params)) => (Ok(route), params),
        // API routes are not revealed without a key.
        Err(refused) if is_api_path(&path) => (Err(refused), Vec::new()),
        Err(refused) => {
            return public::redirect_trailing_slash(&table, &method, (&asked, &query), &path).ok_or_else(|| {
                public::not_found_for_people(&context, &headers, is_own_host, with_route_hint(refused, &table, &path))
            });
        }
    };
    let caller = auth::authenticate(&context, &headers, peer, allowance)?;
    let reader = ResponseOwner::Account(caller.key.account);
    let begun = context.response_memory.reserve(reader)?;
    if let Ok(HttpRoute::Mcp(handler)) = route {
        let call = RoutedRequest { caller, method, path, query, peer, params, headers, body, no_store: seal };
        let reply = request_timeout::with_timeout(
            request_timeout::CHECK_TIMEOUT,
            arrived,
            handler(Arc::clone(&context), table, call),
        )
        .await?;
        return begun.admit(!reply.wrote(), reply).await;
    }
    auth::admit_request(&context.key_limit, caller.key.id, context.service.now(), allowance)?;
    let route = route.map_err(|refused| with_route_hint(refused, &table, &path))?;
    let limit = request_timeout::timeout_for(&path);
    let (is_read, known) = (method.is_safe(), headers.clone());
    let call = RoutedRequest { caller, method, path, query, peer, params, headers, body, no_store: seal };
    let reply = request_timeout::with_timeout(limit, arrived, run_authenticated(&context, route, call)).await?;
    let reply = if is_read { reply.with_etag(&known) } else { reply };
    begun.admit(is_read, reply).await
}

/// Runs the handler of an authenticated request that has been counted.
async fn run_authenticated(context: &Arc<HttpContext>, route: HttpRoute, call: RoutedRequest<Caller>) -> HandlerResult {
    let HttpRoute::Authenticated(handler) = route else { return Err(ApiError::NoRoute) };
    if !call.method.is_safe() {
        call.caller.require_write()?;
    }
    let help = error_hints::invalid_id(context, &call);
    handler(Arc::clone(context), call).await.map_err(|refused| error_hints::with_hint(help, refused))
}

/// Adds a hint to a missing route if a similar path has one.
fn with_route_hint(refused: ApiError, table: &RouteTable, path: &str) -> ApiError {
    match (&refused, error_hints::similar_route(table, path)) {
        (ApiError::NoRoute, Some(words)) => ApiError::NotFoundWithHint(words),
        _ => refused,
    }
}

fn is_api_path(path: &str) -> bool {
    path.strip_prefix(API_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
pub(crate) mod tests;
