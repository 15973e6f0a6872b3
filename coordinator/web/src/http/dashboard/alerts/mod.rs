//! Alerts of a page: destinations with their secrets and tests, the delivery log, and settings.

mod data;
mod deliveries;
mod destination;
mod destination_form;
mod overview;

use ::http::Method;
use futures_util::FutureExt;

use crate::http::route::{HttpRoute, signed_in_route};

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/{page}/alerts",
            vec![
                (GET, signed_in_route(|context, call| overview::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| overview::save_settings(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/destinations/new",
            vec![
                (GET, signed_in_route(|context, call| destination_form::show_new(context, call).boxed())),
                (POST, signed_in_route(|context, call| destination_form::create(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/destinations/{destination}",
            vec![
                (GET, signed_in_route(|context, call| destination_form::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| destination_form::save(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/destinations/{destination}/test",
            vec![(POST, signed_in_route(|context, call| destination::test(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/destinations/{destination}/enable",
            vec![(POST, signed_in_route(|context, call| destination::enable(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/destinations/{destination}/rotate-secret",
            vec![
                (GET, signed_in_route(|context, call| destination::ask_rotate(context, call).boxed())),
                (POST, signed_in_route(|context, call| destination::rotate(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/destinations/{destination}/activate-secret",
            vec![(POST, signed_in_route(|context, call| destination::activate(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/destinations/{destination}/delete",
            vec![(POST, signed_in_route(|context, call| destination::delete(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/deliveries/{delivery}",
            vec![(GET, signed_in_route(|context, call| deliveries::show(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/deliveries/{delivery}/redeliver",
            vec![(POST, signed_in_route(|context, call| deliveries::redeliver(context, call).boxed()))],
        ),
    ]
}
