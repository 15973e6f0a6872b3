//! The table of all routes.

use ::http::Method;
use futures_util::FutureExt;

use super::route::{HttpRoute, key_route, mcp_route, public_route};
use super::{api, dashboard, docs, heartbeat_ping, mcp, openapi, public};

/// All routes.
pub(super) fn routes() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    use api::monitors::history;
    use api::{
        alerts, current_key, deliveries, deploys, destinations, incidents, monitors, pages, regions,
        subscriber_transfer, subscribers,
    };
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    const PATCH: Method = Method::PATCH;
    const DELETE: Method = Method::DELETE;
    let mut rows = public::rows();
    rows.extend(dashboard::rows());
    rows.extend([
        ("/ping/{*address}", ping_routes()),
        ("/api/v1/mcp", vec![(POST, mcp_route(|context, table, call| mcp::post(context, table, call).boxed()))]),
        ("/api/v1/openapi.json", vec![(GET, public_route(|context, call| openapi::show(context, call).boxed()))]),
        ("/api/v1/docs", vec![(GET, public_route(|context, call| docs::show(context, call).boxed()))]),
        ("/api/v1/me", vec![(GET, key_route(|context, call| current_key::show(context, call).boxed()))]),
        ("/api/v1/regions", vec![(GET, key_route(|context, call| regions::list(context, call).boxed()))]),
        (
            "/api/v1/pages",
            vec![
                (GET, key_route(|context, call| pages::list(context, call).boxed())),
                (POST, key_route(|context, call| pages::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}",
            vec![
                (GET, key_route(|context, call| pages::show(context, call).boxed())),
                (PATCH, key_route(|context, call| pages::edit(context, call).boxed())),
                (DELETE, key_route(|context, call| pages::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/domain/check",
            vec![(POST, key_route(|context, call| pages::check_domain(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/status",
            vec![(GET, key_route(|context, call| pages::status::show(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/events",
            vec![(GET, key_route(|context, call| history::page_events(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors",
            vec![
                (GET, key_route(|context, call| monitors::list(context, call).boxed())),
                (POST, key_route(|context, call| monitors::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/monitors/test",
            vec![(POST, key_route(|context, call| history::test(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/bulk",
            vec![(POST, key_route(|context, call| monitors::bulk::update(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/order",
            vec![(PATCH, key_route(|context, call| monitors::order::edit(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/pings",
            vec![(GET, key_route(|context, call| monitors::pings::list(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/check",
            vec![(POST, key_route(|context, call| history::check_now(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/acknowledge",
            vec![
                (POST, key_route(|context, call| monitors::acknowledgement::acknowledge(context, call).boxed())),
                (DELETE, key_route(|context, call| monitors::acknowledgement::withdraw(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/checks",
            vec![(GET, key_route(|context, call| history::checks(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/events",
            vec![(GET, key_route(|context, call| history::events(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/latency",
            vec![(GET, key_route(|context, call| monitors::latency::show(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}/uptime",
            vec![(GET, key_route(|context, call| history::uptime(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/monitors/{monitor}",
            vec![
                (GET, key_route(|context, call| monitors::show(context, call).boxed())),
                (PATCH, key_route(|context, call| monitors::edit(context, call).boxed())),
                (DELETE, key_route(|context, call| monitors::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents",
            vec![
                (GET, key_route(|context, call| incidents::list(context, call).boxed())),
                (POST, key_route(|context, call| incidents::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents/{incident}",
            vec![
                (GET, key_route(|context, call| incidents::show(context, call).boxed())),
                (PATCH, key_route(|context, call| incidents::edit(context, call).boxed())),
                (DELETE, key_route(|context, call| incidents::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/incidents/{incident}/updates",
            vec![(POST, key_route(|context, call| incidents::update(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deploys",
            vec![
                (GET, key_route(|context, call| deploys::list(context, call).boxed())),
                (POST, key_route(|context, call| deploys::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/deploys/{deploy}",
            vec![(DELETE, key_route(|context, call| deploys::delete(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations",
            vec![
                (GET, key_route(|context, call| destinations::list(context, call).boxed())),
                (POST, key_route(|context, call| destinations::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}",
            vec![
                (GET, key_route(|context, call| destinations::show(context, call).boxed())),
                (PATCH, key_route(|context, call| destinations::edit(context, call).boxed())),
                (DELETE, key_route(|context, call| destinations::delete(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/test",
            vec![(POST, key_route(|context, call| destinations::test(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/rotate-secret",
            vec![(POST, key_route(|context, call| destinations::rotate_secret(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/destinations/{destination}/activate-secret",
            vec![(POST, key_route(|context, call| destinations::activate_secret(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries",
            vec![(GET, key_route(|context, call| deliveries::list(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries/{delivery}",
            vec![(GET, key_route(|context, call| deliveries::show(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/deliveries/{delivery}/redeliver",
            vec![(POST, key_route(|context, call| deliveries::redeliver(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/subscribers",
            vec![
                (GET, key_route(|context, call| subscribers::list(context, call).boxed())),
                (POST, key_route(|context, call| subscribers::create(context, call).boxed())),
            ],
        ),
        (
            "/api/v1/pages/{page}/subscribers/import",
            vec![(POST, key_route(|context, call| subscriber_transfer::import(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/subscribers.csv",
            vec![(GET, key_route(|context, call| subscriber_transfer::export(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/subscribers/{subscriber}",
            vec![(DELETE, key_route(|context, call| subscribers::delete(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/address",
            vec![(PATCH, key_route(|context, call| pages::address(context, call).boxed()))],
        ),
        (
            "/api/v1/pages/{page}/alerts",
            vec![
                (GET, key_route(|context, call| alerts::show(context, call).boxed())),
                (PATCH, key_route(|context, call| alerts::edit(context, call).boxed())),
            ],
        ),
    ]);
    rows
}

/// Methods of ping URLs. Jobs use whatever HTTP client they have; HEAD, which is handled as GET, counts as a ping too.
fn ping_routes() -> Vec<(Method, HttpRoute)> {
    let ping = public_route(|context, call| heartbeat_ping::ping(context, call).boxed());
    vec![(Method::GET, ping), (Method::POST, ping)]
}
