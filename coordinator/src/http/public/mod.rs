//! Routes of public pages, each of which begins with an access check.

mod badge;
mod door;
mod embed;
mod feeds;
mod form;
mod front;
mod gate;
mod live;
mod notes;
mod nothing;
mod page;
mod picture;
mod served;
mod share;
mod slash;
mod snippets;
mod subscribe;
mod wellknown;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::page::look::PictureUse;

use super::mcp;
use super::route::{Route, open};
pub(super) use door::dressed;
pub(super) use form::shown;
pub(super) use front::Front;
use gate::token_of;
pub(super) use gate::{enter, enter_feed, enter_or_ask, inner_path, without_token};
pub(super) use nothing::to_people;
pub(super) use served::{reference, shared};
pub(super) use slash::without_slash;

/// Returns every route of a page. `/p/{slug}` covers all addresses: [`inner_path`] maps a request to a page's own
/// host to it. A handler's first step is [`enter`], [`enter_or_ask`] for pages that people view, or [`enter_feed`]
/// if a token in the path also gives access. Nothing else returns the page.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    let mut rows = vec![
        ("/", vec![(GET, open(|context, call| page::root(context, call).boxed()))]),
        ("/assets/{name}", vec![(GET, open(|context, call| served::asset(context, call).boxed()))]),
        ("/p/{slug}", vec![(GET, open(|context, call| page::show(context, call).boxed()))]),
        ("/p/{slug}/history", vec![(GET, open(|context, call| page::history(context, call).boxed()))]),
        ("/p/{slug}/history/{month}", vec![(GET, open(|context, call| page::month(context, call).boxed()))]),
        (
            "/p/{slug}/incidents/{incident}",
            vec![(GET, open(|context, call| page::incident(context, call).boxed()))],
        ),
        (
            "/p/{slug}/monitors/{monitor}",
            vec![(GET, open(|context, call| page::monitor(context, call).boxed()))],
        ),
        (
            "/p/{slug}/logo/{digest}",
            vec![(GET, open(|context, call| picture::show(context, call, PictureUse::Logo).boxed()))],
        ),
        (
            "/p/{slug}/favicon/{digest}",
            vec![(GET, open(|context, call| picture::show(context, call, PictureUse::Favicon).boxed()))],
        ),
        (
            "/p/{slug}/accent/{digest}",
            vec![(GET, open(|context, call| picture::accent(context, call).boxed()))],
        ),
        ("/p/{slug}/events", vec![(GET, open(|context, call| live::events(context, call).boxed()))]),
        ("/p/{slug}/status.json", vec![(GET, open(|context, call| page::status(context, call).boxed()))]),
        (
            "/p/{slug}/subscribe",
            vec![
                (GET, open(|context, call| subscribe::ask(context, call).boxed())),
                (POST, open(|context, call| subscribe::take(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/confirm",
            vec![
                (GET, open(|context, call| subscribe::choose(context, call).boxed())),
                (POST, open(|context, call| subscribe::confirm(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/unsubscribe",
            vec![
                (GET, open(|context, call| subscribe::leave(context, call).boxed())),
                (POST, open(|context, call| subscribe::unsubscribe(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/confirm-alerts",
            vec![
                (GET, open(|context, call| subscribe::mailbox::look(context, call).boxed())),
                (POST, open(|context, call| subscribe::mailbox::confirm(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/stop-alerts",
            vec![
                (GET, open(|context, call| subscribe::mailbox::leave(context, call).boxed())),
                (POST, open(|context, call| subscribe::mailbox::stop(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/password",
            vec![
                (GET, open(|context, call| door::ask(context, call).boxed())),
                (POST, open(|context, call| door::password(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/sign-in",
            vec![
                (GET, open(|context, call| door::ask(context, call).boxed())),
                (POST, open(|context, call| door::send_link(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/sign-in/link",
            vec![
                (GET, open(|context, call| door::look(context, call).boxed())),
                (POST, open(|context, call| door::arrive(context, call).boxed())),
            ],
        ),
        ("/p/{slug}/sign-out", vec![(POST, open(|context, call| door::leave(context, call).boxed()))]),
        (
            "/p/{slug}/mcp",
            vec![
                (POST, open(|context, call| mcp::public(context, call).boxed())),
                (Method::OPTIONS, open(|context, call| mcp::preflight(context, call).boxed())),
            ],
        ),
    ];
    rows.extend(feeds::rows());
    for more in
        [badge::rows(), embed::rows(), notes::rows(), share::rows(), snippets::rows(), wellknown::rows()]
    {
        rows.extend(more);
    }
    rows
}
