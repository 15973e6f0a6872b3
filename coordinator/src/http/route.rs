//! Route table: finds the handler of a request. Returns 404 and 405 errors, maps HEAD to GET and old paths to new ones.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::{HeaderMap, Method};
use futures_util::future::BoxFuture;
use matchit::Router;
use parallax_core::id::{MonitorId, PageId};

use super::error::ApiError;
use super::json_body::{self, RequestBody};
use super::legacy;
use super::response::HttpResponse;
use super::{HttpContext, PeerAddress};
use crate::service::idempotency::IdempotencyKey;
use crate::service::{Caller, ServiceError};

/// Result of a handler.
pub(super) type HandlerResult = Result<HttpResponse, ApiError>;
type Handler<C> = fn(Arc<HttpContext>, RoutedRequest<C>) -> BoxFuture<'static, HandlerResult>;
type MessageHandler = fn(Arc<HttpContext>, Arc<RouteTable>, RoutedRequest<Caller>) -> BoxFuture<'static, HandlerResult>;

/// A handler, by the authentication that it requires.
#[derive(Clone, Copy)]
pub(super) enum HttpRoute {
    /// No API key is required.
    Public(Handler<()>),
    /// A valid API key is required.
    Authenticated(Handler<Caller>),
    /// A valid API key of any access is required. The handler (MCP) counts each message as a request and dispatches it.
    Mcp(MessageHandler),
}

/// Makes a route that requires no API key.
pub(super) const fn public_route(handler: Handler<()>) -> HttpRoute {
    HttpRoute::Public(handler)
}

/// Makes a route that requires a valid API key.
pub(super) const fn key_route(handler: Handler<Caller>) -> HttpRoute {
    HttpRoute::Authenticated(handler)
}

/// Makes a route whose messages count as requests of their own.
pub(super) const fn mcp_route(handler: MessageHandler) -> HttpRoute {
    HttpRoute::Mcp(handler)
}

/// A request with a matching route, as passed to its handler.
pub(super) struct RoutedRequest<C> {
    /// The authenticated caller, or `()` on open routes.
    pub(super) caller: C,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) peer: Option<PeerAddress>,
    pub(super) params: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    /// Set by the handler if the response must not be cached.
    pub(super) no_store: NoStoreFlag,
}

/// Flag for responses that must not be cached, since not everyone may see the page: set by the access check, applied
/// when the response is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct NoStoreFlag(Arc<AtomicBool>);

impl NoStoreFlag {
    /// Forbids caching of the response.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Adds the no-store headers if the flag is set.
    pub(super) fn apply(&self, answer: HandlerResult) -> HandlerResult {
        if !self.0.load(Ordering::Relaxed) {
            return answer;
        }
        Ok(answer.unwrap_or_else(ApiError::into_response).no_store())
    }
}

impl<C> RoutedRequest<C> {
    /// Returns the path parameter of that name.
    pub(super) fn path_param(&self, name: &str) -> Result<&str, ApiError> {
        let found = self.params.iter().find(|(candidate, _)| candidate == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::Service(ServiceError::NotFound))
    }

    /// Parses the page id in the path. Invalid ids give "not found".
    pub(super) fn page_id(&self) -> Result<PageId, ApiError> {
        self.id("page")
    }

    /// Parses the monitor id in the path.
    pub(super) fn monitor_id(&self) -> Result<MonitorId, ApiError> {
        self.id("monitor")
    }

    /// Parses an id in the path.
    pub(super) fn id<T: FromStr>(&self, name: &str) -> Result<T, ApiError> {
        self.path_param(name)?.parse().map_err(|_| ApiError::Service(ServiceError::NotFound))
    }
}

impl RoutedRequest<Caller> {
    /// Reads the body as a JSON object, and the idempotency key if there is one.
    pub(super) async fn json_object(&mut self) -> Result<(json_body::JsonObject, Option<IdempotencyKey>), ApiError> {
        let bytes = json_body::read_bytes(&self.headers, &mut self.body).await?;
        let object = json_body::parse_object(&self.headers, &bytes)?;
        Ok((object, self.idempotency_key(&bytes)?))
    }

    /// Returns the idempotency key of the request, bound to its method, path and body.
    pub(super) fn idempotency_key(&self, body: &[u8]) -> Result<Option<IdempotencyKey>, ApiError> {
        let Some(value) = json_body::idempotency_key(&self.headers)? else { return Ok(None) };
        let path = legacy::new_path(&self.path);
        let request = [self.method.as_str().as_bytes(), path.as_bytes(), body];
        Ok(Some(IdempotencyKey::new(self.caller.key.id, value, &request)))
    }
}

/// All routes, by path.
pub(super) struct RouteTable {
    router: Router<usize>,
    resources: Vec<Vec<(Method, HttpRoute)>>,
}

impl RouteTable {
    /// Builds the table from paths and their methods.
    pub(super) fn new(rows: Vec<(&'static str, Vec<(Method, HttpRoute)>)>) -> Self {
        let mut table = Self { router: Router::new(), resources: Vec::new() };
        for (path, methods) in rows {
            // A duplicate path would be a mistake in the list of routes, which the tests would detect.
            if table.router.insert(path, table.resources.len()).is_ok() {
                table.resources.push(methods);
            }
        }
        table
    }

    /// Finds the route of a request and its path parameters. HEAD is handled as GET; the server omits the body.
    pub(super) fn find(&self, method: &Method, path: &str) -> Result<(HttpRoute, Vec<(String, String)>), ApiError> {
        let path = legacy::new_path(path);
        let found = self.router.at(&path).map_err(|_| ApiError::NoRoute)?;
        let methods = self.resources.get(*found.value).ok_or(ApiError::NoRoute)?;
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        let Some((_, route)) = methods.iter().find(|(candidate, _)| candidate == wanted) else {
            return Err(ApiError::MethodNotAllowed(allowed_methods(methods)));
        };
        let params = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok((*route, params.collect()))
    }

    /// Returns true if the path has a route for any method.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.router.at(&legacy::new_path(path)).is_ok()
    }
}

fn allowed_methods(methods: &[(Method, HttpRoute)]) -> String {
    let mut names = Vec::new();
    for (method, _) in methods {
        names.push(method.as_str());
        if *method == Method::GET {
            names.push("HEAD");
        }
    }
    names.join(", ")
}
