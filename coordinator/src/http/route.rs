//! The table of routes: exact 404, 405 with what is allowed, HEAD after GET, and the old names of paths.

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

/// What a handler gives.
pub(super) type Answer = Result<Reply, Refused>;
type Handler<C> = fn(Arc<Context>, Call<C>) -> BoxFuture<'static, Answer>;
type MessageHandler = fn(Arc<Context>, Arc<Table>, Call<Caller>) -> BoxFuture<'static, Answer>;

/// A handler, and whether it needs a key.
#[derive(Clone, Copy)]
pub(super) enum Route {
    /// Anybody may call it.
    Open(Handler<()>),
    /// Only a good key may.
    Keyed(Handler<Caller>),
    /// Only a good key may, whatever its access; it counts messages itself, and does by them what other routes do.
    Messages(MessageHandler),
}

/// A route that anybody may call.
pub(super) const fn open(handler: Handler<()>) -> Route {
    Route::Open(handler)
}

/// A route that needs a good key.
pub(super) const fn keyed(handler: Handler<Caller>) -> Route {
    Route::Keyed(handler)
}

/// A route whose messages are requests by themselves.
pub(super) const fn messages(handler: MessageHandler) -> Route {
    Route::Messages(handler)
}

/// A request that found its handler.
pub(super) struct Call<C> {
    /// Who asks.
    pub(super) caller: C,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) peer: Option<Peer>,
    pub(super) params: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Whether nobody may keep the answer.
    pub(super) seal: Seal,
}

/// Whether an answer is of a page that not everybody may see: set by the gate, minded by whoever sends the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Seal(Arc<AtomicBool>);

impl Seal {
    /// Nobody may keep the answer.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The answer as it may go out.
    pub(super) fn put_on(&self, answer: Answer) -> Answer {
        if !self.0.load(Ordering::Relaxed) {
            return answer;
        }
        Ok(answer.unwrap_or_else(Refused::reply).sealed())
    }
}

impl<C> Call<C> {
    /// The part of the path of that name.
    pub(super) fn param(&self, name: &str) -> Result<&str, Refused> {
        let found = self.params.iter().find(|(candidate, _)| candidate == name);
        found.map(|(_, value)| value.as_str()).ok_or(Refused::Service(Error::NotFound))
    }

    /// The page that the path names. Text that is no id names nothing.
    pub(super) fn page(&self) -> Result<PageId, Refused> {
        self.id("page")
    }

    /// The monitor that the path names.
    pub(super) fn monitor(&self) -> Result<MonitorId, Refused> {
        self.id("monitor")
    }

    /// An id that the path names.
    pub(super) fn id<T: FromStr>(&self, name: &str) -> Result<T, Refused> {
        self.param(name)?.parse().map_err(|_| Refused::Service(Error::NotFound))
    }
}

impl Call<Caller> {
    /// Reads the body as a JSON object, and the request's ticket where it may be sent twice.
    pub(super) async fn object(&mut self) -> Result<(json::Object, Option<Ticket>), Refused> {
        let bytes = json::bytes(&self.headers, &mut self.body).await?;
        let object = json::object(&self.headers, &bytes)?;
        Ok((object, self.ticket(&bytes)?))
    }

    /// The ticket of a request that may be sent twice.
    pub(super) fn ticket(&self, body: &[u8]) -> Result<Option<Ticket>, Refused> {
        let Some(value) = json::idempotency_key(&self.headers)? else { return Ok(None) };
        let path = legacy::new_path(&self.path);
        let request = [self.method.as_str().as_bytes(), path.as_bytes(), body];
        Ok(Some(Ticket::new(self.caller.key.id, value, &request)))
    }
}

/// Every route by path.
pub(super) struct Table {
    router: Router<usize>,
    resources: Vec<Vec<(Method, Route)>>,
}

impl Table {
    /// A table of paths, each with its methods.
    pub(super) fn new(rows: Vec<(&'static str, Vec<(Method, Route)>)>) -> Self {
        let mut table = Self { router: Router::new(), resources: Vec::new() };
        for (path, methods) in rows {
            // Two equal paths would be a slip in the table above, which the tests would show.
            if table.router.insert(path, table.resources.len()).is_ok() {
                table.resources.push(methods);
            }
        }
        table
    }

    /// The route of a request and the parts of its path. HEAD is answered as GET; the server leaves the body out.
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

    /// Tells paths that have a route, whatever its method.
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
