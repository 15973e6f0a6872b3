//! Route table: finds the handler of a request. Returns 404 and 405 errors, maps HEAD to GET and old paths to new ones.

use std::sync::Arc;

use ::http::Method;
use futures_util::future::BoxFuture;
use matchit::Router;
use parallax_service::Caller;

use super::dashboard::SignedIn;
use super::error::{ApiError, HandlerResult};
use super::routed_request::RoutedRequest;
use super::{HttpContext, legacy};

/// A handler of requests whose caller is `C`.
pub(super) type Handler<C> = fn(Arc<HttpContext>, RoutedRequest<C>) -> BoxFuture<'static, HandlerResult>;
type MessageHandler = fn(Arc<HttpContext>, Arc<RouteTable>, RoutedRequest<Caller>) -> BoxFuture<'static, HandlerResult>;

/// A handler, by the authentication that it requires.
#[derive(Clone, Copy)]
pub(super) enum HttpRoute {
    /// No API key is required.
    Public(Handler<()>),
    /// A valid API key is required.
    Authenticated(Handler<Caller>),
    /// A signed-in person is required. Others are sent to the sign-in form.
    SignedIn(Handler<SignedIn>),
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

/// Makes a route that requires a signed-in person.
pub(super) const fn signed_in_route(handler: Handler<SignedIn>) -> HttpRoute {
    HttpRoute::SignedIn(handler)
}

/// Makes a route whose messages count as requests of their own.
pub(super) const fn mcp_route(handler: MessageHandler) -> HttpRoute {
    HttpRoute::Mcp(handler)
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
        let matched = self.router.at(&path).map_err(|_| ApiError::NoRoute)?;
        let methods = self.resources.get(*matched.value).ok_or(ApiError::NoRoute)?;
        let route_method = if *method == Method::HEAD { &Method::GET } else { method };
        let Some((_, route)) = methods.iter().find(|(candidate, _)| candidate == route_method) else {
            return Err(ApiError::MethodNotAllowed(allowed_methods(methods)));
        };
        let params = matched.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
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
