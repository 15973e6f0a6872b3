//! Dispatches requests. One warp filter passes each request to [`dispatch`], which finds its route.
//!
//! Every API request is checked in the same order: API key (401, also for unknown routes), rate limit (429), route and
//! method (404, 405), access of the key (403), its reach (404), body (400), plan (422). Every error becomes a
//! response here; warp's rejections are not used, since they would fall through to other filters.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ::http::header::EXPECT;
use ::http::{HeaderMap, Method};
use bytes::Buf;
use futures_util::{FutureExt, Stream, StreamExt};
use parallax_core::rate_limit::RateLimitStatus;
use warp::Filter;
use warp::filters::path::FullPath;

use super::auth::{self, run_authenticated};
use super::error::ApiError;
use super::json_body::RequestBody;
use super::response::HttpResponse;
use super::route::{HttpRoute, RouteTable};
use super::routed_request::{NoStoreFlag, RoutedRequest};
use super::routes::routes;
use super::server::client_ip::{PeerAddress, client_address};
use super::server::response_memory::{ResponseMemory, ResponseOwner};
use super::server::{drain_body, request_timeout};
use super::{API_PREFIX, HttpContext, dashboard, error_hints, legacy, public};

/// The warp filter: splits a request into its parts and never rejects.
pub(super) fn filter(
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
pub(super) struct ParsedRequest {
    pub(super) method: Method,
    pub(super) path: String,
    /// Query string without the question mark; may be empty.
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) peer: Option<PeerAddress>,
    pub(super) body: RequestBody,
}

/// Handles a request. Always returns a response, even if a handler panics.
pub(super) async fn handle(
    context: Arc<HttpContext>,
    table: Arc<RouteTable>,
    mut request: ParsedRequest,
) -> HttpResponse {
    // With `Expect: 100-continue`, draining would ask the client to send a body that is not needed.
    let asks_first = request.headers.contains_key(EXPECT);
    let (body, rest) = drain_body::recoverable(request.body);
    request.body = body;
    let mut allowance = None;
    let is_old = legacy::is_old_path(&request.path);
    let response =
        AssertUnwindSafe(dispatch(Arc::clone(&context), table, request, &mut allowance)).catch_unwind().await;
    let reply = match response {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => error.into_response(),
        Err(_) => {
            ApiError::from(parallax_service::ServiceError::Internal("a handler panicked".to_owned())).into_response()
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
    let original_path = path.clone();
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
    let limit = request_timeout::timeout_for(&path);
    let no_store = NoStoreFlag::default();
    let (route, params) = match table.find(&method, &path) {
        Ok((HttpRoute::Public(handler), mut params)) => {
            params.extend(token);
            let (no_store_flag, reader) = (no_store.clone(), headers.clone());
            let call =
                RoutedRequest { caller: (), method, path, query, peer, params, headers, body, form: None, no_store };
            let response = handler(Arc::clone(&context), call);
            let response = match request_timeout::with_timeout(limit, arrived, response).await {
                Ok(reply) if ResponseMemory::is_counted(&reply) => {
                    context.response_memory.admit(ResponseOwner::from_request(peer, &reader), true, reply).await
                }
                response => response,
            };
            return no_store_flag
                .apply(response.map_err(|error| public::not_found_for_people(&context, &reader, is_own_host, error)));
        }
        Ok((HttpRoute::SignedIn(handler), params)) => {
            let call =
                RoutedRequest { caller: (), method, path, query, peer, params, headers, body, form: None, no_store };
            return Ok(dashboard::respond(context, handler, call, arrived).await);
        }
        Ok((route, params)) => (Ok(route), params),
        Err(error) if dashboard::is_dashboard_path(&path) => return Ok(dashboard::error_page(error)),
        // API routes are not revealed without a key.
        Err(error) if is_api_path(&path) => (Err(error), Vec::new()),
        Err(error) => {
            return public::redirect_trailing_slash(&table, &method, (&original_path, &query), &path).ok_or_else(
                || public::not_found_for_people(&context, &headers, is_own_host, with_route_hint(error, &table, &path)),
            );
        }
    };
    let caller = auth::authenticate(&context, &headers, peer, allowance)?.at(client_address(peer, &headers));
    let reader = ResponseOwner::Account(caller.account);
    let reservation = context.response_memory.reserve(reader)?;
    if let Ok(HttpRoute::Mcp(handler)) = route {
        let call = RoutedRequest { caller, method, path, query, peer, params, headers, body, form: None, no_store };
        let reply = request_timeout::with_timeout(
            request_timeout::CHECK_TIMEOUT,
            arrived,
            handler(Arc::clone(&context), table, call),
        )
        .await?;
        return reservation.admit(!reply.has_written(), reply).await;
    }
    auth::admit_request(&context.key_limit, caller.limit_id(), context.service.now(), allowance)?;
    let route = route.map_err(|error| with_route_hint(error, &table, &path))?;
    let (is_read, request_headers) = (method.is_safe(), headers.clone());
    let call = RoutedRequest { caller, method, path, query, peer, params, headers, body, form: None, no_store };
    let reply = request_timeout::with_timeout(limit, arrived, run_authenticated(&context, route, call)).await?;
    let reply = if is_read { reply.with_etag(&request_headers) } else { reply };
    reservation.admit(is_read, reply).await
}

/// Adds a hint to a missing route if a similar path has one.
fn with_route_hint(error: ApiError, table: &RouteTable, path: &str) -> ApiError {
    match (&error, error_hints::similar_route(table, path)) {
        (ApiError::NoRoute, Some(words)) => ApiError::NotFoundWithHint(words),
        _ => error,
    }
}

fn is_api_path(path: &str) -> bool {
    path.strip_prefix(API_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
