//! Screens of one monitor and the forms that make and change monitors.

mod acknowledge;
mod confirm;
mod edit_form;
mod heartbeat;
mod lists;
mod record_form;
mod screen;
mod show;
mod zoom;

use ::http::Method;
use futures_util::FutureExt;

use crate::http::route::{HttpRoute, signed_in_route};

/// Returns the routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/{page}/monitors/new",
            vec![
                (GET, signed_in_route(|context, call| edit_form::show_new(context, call).boxed())),
                (POST, signed_in_route(|context, call| edit_form::create(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/monitors/new/type",
            vec![(POST, signed_in_route(|context, call| edit_form::redraw_new(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/new/test",
            vec![(POST, signed_in_route(|context, call| edit_form::test_new(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}",
            vec![(GET, signed_in_route(|context, call| show::summary(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/check",
            vec![(POST, signed_in_route(|context, call| show::check_now(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/acknowledge",
            vec![(POST, signed_in_route(|context, call| acknowledge::acknowledge(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/take-back",
            vec![(POST, signed_in_route(|context, call| acknowledge::take_back(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/checks",
            vec![(GET, signed_in_route(|context, call| lists::rounds(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/events",
            vec![(GET, signed_in_route(|context, call| lists::events(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/alerts",
            vec![(GET, signed_in_route(|context, call| lists::alerts(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/edit",
            vec![
                (GET, signed_in_route(|context, call| edit_form::show_edit(context, call).boxed())),
                (POST, signed_in_route(|context, call| edit_form::edit(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/edit/type",
            vec![(POST, signed_in_route(|context, call| edit_form::redraw_edit(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/edit/test",
            vec![(POST, signed_in_route(|context, call| edit_form::test_edit(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/pause",
            vec![
                (GET, signed_in_route(|context, call| confirm::ask_pause(context, call).boxed())),
                (POST, signed_in_route(|context, call| confirm::pause(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/resume",
            vec![(POST, signed_in_route(|context, call| confirm::resume(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/{monitor}/delete",
            vec![
                (GET, signed_in_route(|context, call| confirm::ask_delete(context, call).boxed())),
                (POST, signed_in_route(|context, call| confirm::delete(context, call).boxed())),
            ],
        ),
    ]
}
