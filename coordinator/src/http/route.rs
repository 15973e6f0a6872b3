//! Route table: finds the handler of a request. Returns 404 and 405 errors, maps HEAD to GET and old paths to new ones.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::{HeaderMap, Method};
use futures_util::future::BoxFuture;
use matchit::Router;
use parallax_core::id::{MonitorId, PageId};

use super::error::Refused;
use super::json::{self, Body};
use super::legacy;
use super::reply::Reply;
use super::{Context, Peer};
use crate::service::once::Ticket;
use crate::service::{Caller, Error};

/// Result of a handler.
pub(super) type Answer = Result<Reply, Refused>;
type Handler<C> = fn(Arc<Context>, Call<C>) -> BoxFuture<'static, Answer>;
type MessageHandler = fn(Arc<Context>, Arc<Table>, Call<Caller>) -> BoxFuture<'static, Answer>;

/// A handler, by the authentication that it requires.
#[derive(Clone, Copy)]
pub(super) enum Route {
    /// No API key is required.
    Open(Handler<()>),
    /// A valid API key is required.
    Keyed(Handler<Caller>),
    /// A valid API key of any access is required. The handler (MCP) counts each message as a request and dispatches it.
    Messages(MessageHandler),
}

/// Makes a route that requires no API key.
pub(super) const fn open(handler: Handler<()>) -> Route {
    Route::Open(handler)
}

/// Makes a route that requires a valid API key.
pub(super) const fn keyed(handler: Handler<Caller>) -> Route {
    Route::Keyed(handler)
}

/// Makes a route whose messages count as requests of their own.
pub(super) const fn messages(handler: MessageHandler) -> Route {
    Route::Messages(handler)
}

/// A request with a matching route, as passed to its handler.
pub(super) struct Call<C> {
    /// The authenticated caller, or `()` on open routes.
    pub(super) caller: C,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) peer: Option<Peer>,
    pub(super) params: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Set by the handler if the response must not be cached.
    pub(super) seal: Seal,
}

/// Flag for responses that must not be cached, since not everyone may see the page: set by the access check, applied
/// when the response is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Seal(Arc<AtomicBool>);

impl Seal {
    /// Forbids caching of the response.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Adds the no-store headers if the flag is set.
    pub(super) fn put_on(&self, answer: Answer) -> Answer {
        if !self.0.load(Ordering::Relaxed) {
            return answer;
        }
        Ok(answer.unwrap_or_else(Refused::reply).sealed())
    }
}

impl<C> Call<C> {
    /// Returns the path parameter of that name.
    pub(super) fn param(&self, name: &str) -> Result<&str, Refused> {
        let found = self.params.iter().find(|(candidate, _)| candidate == name);
        found.map(|(_, value)| value.as_str()).ok_or(Refused::Service(Error::NotFound))
    }

    /// Parses the page id in the path. Invalid ids give "not found".
    pub(super) fn page(&self) -> Result<PageId, Refused> {
        self.id("page")
    }

    /// Parses the monitor id in the path.
    pub(super) fn monitor(&self) -> Result<MonitorId, Refused> {
        self.id("monitor")
    }

    /// Parses an id in the path.
    pub(super) fn id<T: FromStr>(&self, name: &str) -> Result<T, Refused> {
        self.param(name)?.parse().map_err(|_| Refused::Service(Error::NotFound))
    }
}

impl Call<Caller> {
    /// Reads the body as a JSON object, and the idempotency key if there is one.
    pub(super) async fn object(&mut self) -> Result<(json::Object, Option<Ticket>), Refused> {
        let bytes = json::bytes(&self.headers, &mut self.body).await?;
        let object = json::object(&self.headers, &bytes)?;
        Ok((object, self.ticket(&bytes)?))
    }

    /// Returns the idempotency key of the request, bound to its method, path and body.
    pub(super) fn ticket(&self, body: &[u8]) -> Result<Option<Ticket>, Refused> {
        let Some(value) = json::idempotency_key(&self.headers)? else { return Ok(None) };
        let path = legacy::new_path(&self.path);
        let request = [self.method.as_str().as_bytes(), path.as_bytes(), body];
        Ok(Some(Ticket::new(self.caller.key.id, value, &request)))
    }
}

/// All routes, by path.
pub(super) struct Table {
    router: Router<usize>,
    resources: Vec<Vec<(Method, Route)>>,
}

impl Table {
    /// Builds the table from paths and their methods.
    pub(super) fn new(rows: Vec<(&'static str, Vec<(Method, Route)>)>) -> Self {
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
    pub(super) fn find(
        &self,
        method: &Method,
        path: &str,
    ) -> Result<(Route, Vec<(String, String)>), Refused> {
        let path = legacy::new_path(path);
        let found = self.router.at(&path).map_err(|_| Refused::Route)?;
        let methods = self.resources.get(*found.value).ok_or(Refused::Route)?;
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        let Some((_, route)) = methods.iter().find(|(candidate, _)| candidate == wanted) else {
            return Err(Refused::Method(allowed(methods)));
        };
        let params = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok((*route, params.collect()))
    }

    /// Returns true if the path has a route for any method.
    pub(super) fn has(&self, path: &str) -> bool {
        self.router.at(&legacy::new_path(path)).is_ok()
    }
}

fn allowed(methods: &[(Method, Route)]) -> String {
    let mut names = Vec::new();
    for (method, _) in methods {
        names.push(method.as_str());
        if *method == Method::GET {
            names.push("HEAD");
        }
    }
    names.join(", ")
}
