//! The HTTP interface: API, public pages and MCP. One warp filter passes each request to a dispatcher with a route
//! table.
//!
//! Every API request is checked in the same order: API key (401, also for unknown routes), rate limit (429), route and
//! method (404, 405), access of the key (403), its reach (404), body (400), plan (422). Every error becomes a
//! response here; warp's rejections are not used, since they would fall through to other filters.

mod answers;
mod api;
mod auth;
mod beat;
mod context;
mod crowd;
mod docs;
mod error;
mod fields;
mod guest;
mod help;
mod idle;
mod json;
mod lead;
mod legacy;
mod limit;
mod mcp;
mod openapi;
mod overdue;
mod public;
mod reply;
mod route;
pub mod server;
mod short;
mod stall;
mod streams;
mod tls;
mod tries;
mod unread;
mod visitor;

pub use context::Context;
pub use error::report_omitted_lines;

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ::http::header::EXPECT;
use ::http::{HeaderMap, Method};
use bytes::Buf;
use futures_util::{FutureExt, Stream, StreamExt};
use parallax_core::quota::Allowance;
use warp::Filter;
use warp::filters::path::FullPath;

use crate::service::Caller;
use answers::{Answers, Reader};
use error::Refused;
use json::Body;
use reply::Reply;
use route::{Answer, Call, Route, Seal, Table, keyed, messages, open};

/// Path prefix of the API.
const API: &str = "/api/v1";

/// All routes.
fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    use api::monitors::history;
    use api::{
        alerts, deliveries, deploys, destinations, incidents, me, monitors, pages, regions, subscribers,
    };
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    const PATCH: Method = Method::PATCH;
    const DELETE: Method = Method::DELETE;
    let mut rows = public::rows();
    rows.extend([
        ("/ping/{*address}", pings()),
        (
            "/api/v1/mcp",
            vec![(POST, messages(|context, table, call| mcp::post(context, table, call).boxed()))],
        ),
        ("/api/v1/openapi.json", vec![(GET, open(|context, call| openapi::show(context, call).boxed()))]),
        ("/api/v1/docs", vec![(GET, open(|context, call| docs::show(context, call).boxed()))]),
        ("/api/v1/me", vec![(GET, keyed(|context, call| me::show(context, call).boxed()))]),
        ("/api/v1/regions", vec![(GET, keyed(|context, call| regions::list(context, call).boxed()))]),
        (
            "/api/v1/pages",
            vec![
                (GET, keyed(|context, call| pages::list(context, call).boxed())),
                (POST, keyed(|context, call| pages::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}",
            vec![
                (GET, keyed(|context, call| pages::show(context, call).boxed())),
                (PATCH, keyed(|context, call| pages::edit(context, call).boxed())),
                (DELETE, keyed(|context, call| pages::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/domain/check",
            vec![(POST, keyed(|context, call| pages::check_domain(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/status",
            vec![(GET, keyed(|context, call| pages::status::show(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors",
            vec![
                (GET, keyed(|context, call| monitors::list(context, call).boxed())),
                (POST, keyed(|context, call| monitors::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/pings",
            vec![(GET, keyed(|context, call| monitors::pings::list(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/check",
            vec![(POST, keyed(|context, call| history::check_now(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/checks",
            vec![(GET, keyed(|context, call| history::checks(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/events",
            vec![(GET, keyed(|context, call| history::events(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/uptime",
            vec![(GET, keyed(|context, call| history::uptime(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}",
            vec![
                (GET, keyed(|context, call| monitors::show(context, call).boxed())),
                (PATCH, keyed(|context, call| monitors::edit(context, call).boxed())),
                (DELETE, keyed(|context, call| monitors::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents",
            vec![
                (GET, keyed(|context, call| incidents::list(context, call).boxed())),
                (POST, keyed(|context, call| incidents::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents/{incident}",
            vec![
                (GET, keyed(|context, call| incidents::show(context, call).boxed())),
                (PATCH, keyed(|context, call| incidents::edit(context, call).boxed())),
                (DELETE, keyed(|context, call| incidents::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents/{incident}/updates",
            vec![(POST, keyed(|context, call| incidents::update(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deploys",
            vec![
                (GET, keyed(|context, call| deploys::list(context, call).boxed())),
                (POST, keyed(|context, call| deploys::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/deploys/{deploy}",
            vec![(DELETE, keyed(|context, call| deploys::delete(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations",
            vec![
                (GET, keyed(|context, call| destinations::list(context, call).boxed())),
                (POST, keyed(|context, call| destinations::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}",
            vec![
                (GET, keyed(|context, call| destinations::show(context, call).boxed())),
                (PATCH, keyed(|context, call| destinations::edit(context, call).boxed())),
                (DELETE, keyed(|context, call| destinations::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/test",
            vec![(POST, keyed(|context, call| destinations::test(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/rotate-secret",
            vec![(POST, keyed(|context, call| destinations::rotate_secret(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/activate-secret",
            vec![(POST, keyed(|context, call| destinations::activate_secret(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries",
            vec![(GET, keyed(|context, call| deliveries::list(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries/{delivery}",
            vec![(GET, keyed(|context, call| deliveries::show(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries/{delivery}/redeliver",
            vec![(POST, keyed(|context, call| deliveries::redeliver(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/subscribers",
            vec![
                (GET, keyed(|context, call| subscribers::list(context, call).boxed())),
                (POST, keyed(|context, call| subscribers::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/subscribers/{subscriber}",
            vec![(DELETE, keyed(|context, call| subscribers::delete(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/address",
            vec![(PATCH, keyed(|context, call| pages::address(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/alerts",
            vec![
                (GET, keyed(|context, call| alerts::show(context, call).boxed())),
                (PATCH, keyed(|context, call| alerts::edit(context, call).boxed())),
            ],
        ),
    ]);
    rows
}

/// Methods of ping URLs. Jobs use whatever HTTP client they have; HEAD, which is handled as GET, counts as a ping too.
fn pings() -> Vec<(Method, Route)> {
    let ping = open(|context, call| beat::ping(context, call).boxed());
    vec![(Method::GET, ping), (Method::POST, ping)]
}

/// Peer address of the connection, which the server adds to each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The warp filter: splits a request into its parts and never rejects.
fn filter(
    context: Arc<Context>,
) -> impl Filter<Extract = (warp::reply::Response,), Error = warp::Rejection> + Clone {
    let table = Arc::new(Table::new(rows()));
    warp::method()
        .and(warp::path::full())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<Peer>())
        .and(warp::body::stream())
        .and_then(move |method, path: FullPath, query, headers, peer, body| {
            let (context, table) = (Arc::clone(&context), Arc::clone(&table));
            let body = in_parts(body);
            async move {
                let request = Request { method, path: path.as_str().to_owned(), query, headers, peer, body };
                Ok::<_, Infallible>(answer(context, table, request).await.into_warp())
            }
        })
}

/// Converts a body to a stream of bytes; the cause of a read error does not matter.
fn in_parts(body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + 'static) -> Body {
    body.map(|part| part.map(|mut part| part.copy_to_bytes(part.remaining())).map_err(|_| ())).boxed()
}

/// A request, split into its parts.
struct Request {
    method: Method,
    path: String,
    /// Query string without the question mark; may be empty.
    query: String,
    headers: HeaderMap,
    peer: Option<Peer>,
    body: Body,
}

/// Handles a request. Always returns a response, even if a handler panics.
async fn answer(context: Arc<Context>, table: Arc<Table>, mut request: Request) -> Reply {
    // With `Expect: 100-continue`, draining would ask the client to send a body that is not needed.
    let asks_first = request.headers.contains_key(EXPECT);
    let (body, rest) = unread::lend(request.body);
    request.body = body;
    let mut allowance = None;
    let is_old = legacy::is_old_path(&request.path);
    let answered =
        AssertUnwindSafe(dispatch(Arc::clone(&context), table, request, &mut allowance)).catch_unwind().await;
    let reply = match answered {
        Ok(Ok(reply)) => reply,
        Ok(Err(refused)) => refused.reply(),
        Err(_) => Refused::from(crate::service::Error::Internal("a handler panicked".to_owned())).reply(),
    };
    if !asks_first {
        rest.take().await;
    }
    context.count(reply.status());
    let reply = if is_old { legacy::deprecated(reply, context.service.base_url()) } else { reply };
    match allowance {
        Some(allowance) => reply.with_allowance(&allowance),
        None => reply,
    }
}

async fn dispatch(
    context: Arc<Context>,
    table: Arc<Table>,
    request: Request,
    allowance: &mut Option<Allowance>,
) -> Result<Reply, Refused> {
    let Request { method, mut path, query, headers, body, peer } = request;
    let asked = path.clone();
    let inner = public::inner_path(&context, &headers, &path)?;
    let is_own_host = inner.is_some();
    if let Some(inner) = inner {
        path = inner;
    }
    let token = public::without_token(&path).map(|(inner, token)| {
        path = inner;
        token
    });
    let (body, arrived) = overdue::watched(body, &method);
    let seal = Seal::default();
    let (route, params) = match table.find(&method, &path) {
        Ok((Route::Open(handler), mut params)) => {
            params.extend(token);
            let (kept, reader) = (seal.clone(), headers.clone());
            let call = Call { caller: (), method, path, query, peer, params, headers, body, seal };
            let answered = handler(Arc::clone(&context), call);
            let answered = match overdue::within(overdue::LIMIT, arrived, answered).await {
                Ok(reply) if Answers::counts(&reply) => {
                    context.answers.hold(Reader::visitor(peer, &reader), true, reply).await
                }
                answered => answered,
            };
            return kept.put_on(
                answered.map_err(|refused| public::to_people(&context, &reader, is_own_host, refused)),
            );
        }
        Ok((route, params)) => (Ok(route), params),
        // API routes are not revealed without a key.
        Err(refused) if is_api(&path) => (Err(refused), Vec::new()),
        Err(refused) => {
            return public::without_slash(&table, &method, (&asked, &query), &path).ok_or_else(|| {
                public::to_people(&context, &headers, is_own_host, explained(refused, &table, &path))
            });
        }
    };
    let caller = auth::caller(&context, &headers, peer, allowance)?;
    let reader = Reader::Account(caller.key.account);
    let begun = context.answers.begin(reader)?;
    if let Ok(Route::Messages(handler)) = route {
        let call = Call { caller, method, path, query, peer, params, headers, body, seal };
        let reply =
            overdue::within(overdue::LOOK, arrived, handler(Arc::clone(&context), table, call)).await?;
        return begun.hold(!reply.wrote(), reply).await;
    }
    context.keys.admit(caller.key.id, context.service.now(), allowance)?;
    let route = route.map_err(|refused| explained(refused, &table, &path))?;
    let limit = overdue::limit_of(&path);
    let (is_read, known) = (method.is_safe(), headers.clone());
    let call = Call { caller, method, path, query, peer, params, headers, body, seal };
    let reply = overdue::within(limit, arrived, run(&context, route, call)).await?;
    let reply = if is_read { reply.tagged(&known) } else { reply };
    begun.hold(is_read, reply).await
}

/// Runs the handler of an authenticated request that has been counted.
async fn run(context: &Arc<Context>, route: Route, call: Call<Caller>) -> Answer {
    let Route::Keyed(handler) = route else { return Err(Refused::Route) };
    if !call.method.is_safe() {
        call.caller.writes()?;
    }
    let help = help::bad_id(context, &call);
    handler(Arc::clone(context), call).await.map_err(|refused| help::with(help, refused))
}

/// Adds a hint to a missing route if a similar path has one.
fn explained(refused: Refused, table: &Table, path: &str) -> Refused {
    match (&refused, help::no_route(table, path)) {
        (Refused::Route, Some(words)) => Refused::Nowhere(words),
        _ => refused,
    }
}

fn is_api(path: &str) -> bool {
    path.strip_prefix(API).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
pub(crate) mod tests;
