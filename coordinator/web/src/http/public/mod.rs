//! Routes of public pages, each of which begins with an access check.

mod access_check;
mod assets;
mod badge;
mod branding_assets;
mod cookie;
mod embed;
mod embed_snippets;
mod evidence;
mod feeds;
mod form;
mod html_pages;
mod login;
mod login_form;
mod markdown_pages;
mod not_found_page;
mod page_params;
mod share_image;
mod sse;
mod subscribe;
mod trailing_slash;
mod well_known;
pub(super) use access_check::{authorize, inner_path, split_feed_token};
pub(super) use cookie::{browser as browser_of, browser_cookie, is_https};
pub(super) use form::{FormFields, check_form_origin};
pub(super) use login_form::safe_path;
pub(super) use not_found_page::not_found_for_people;
pub(super) use sse::{greeting, shutdown_requested};
pub(super) use trailing_slash::redirect_trailing_slash;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::page::branding::PictureUse;

use super::mcp;
use super::route::{HttpRoute, public_route};
use access_check::{authorize_feed, feed_token};
use login_form::authorize_or_login;

/// Returns every route of a page. `/p/{slug}` covers all addresses: [`inner_path`] maps a request to a page's own host
/// to it. A handler's first step is [`authorize`], [`authorize_or_login`] for pages that people view, or
/// [`authorize_feed`] if a token in the path also gives access. Nothing else returns the page.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    let mut rows = vec![
        ("/", vec![(GET, public_route(|context, call| html_pages::root(context, call).boxed()))]),
        ("/assets/{name}", vec![(GET, public_route(|context, call| assets::asset(context, call).boxed()))]),
        ("/p/{slug}", vec![(GET, public_route(|context, call| html_pages::show(context, call).boxed()))]),
        ("/p/{slug}/history", vec![(GET, public_route(|context, call| html_pages::history(context, call).boxed()))]),
        (
            "/p/{slug}/history/{month}",
            vec![(GET, public_route(|context, call| html_pages::month(context, call).boxed()))],
        ),
        (
            "/p/{slug}/incidents/{incident}",
            vec![(GET, public_route(|context, call| html_pages::incident(context, call).boxed()))],
        ),
        (
            "/p/{slug}/monitors/{monitor}",
            vec![(GET, public_route(|context, call| html_pages::monitor(context, call).boxed()))],
        ),
        (
            "/p/{slug}/logo/{digest}",
            vec![(GET, public_route(|context, call| branding_assets::show(context, call, PictureUse::Logo).boxed()))],
        ),
        (
            "/p/{slug}/favicon/{digest}",
            vec![(
                GET,
                public_route(|context, call| branding_assets::show(context, call, PictureUse::Favicon).boxed()),
            )],
        ),
        (
            "/p/{slug}/accent/{digest}",
            vec![(GET, public_route(|context, call| branding_assets::accent(context, call).boxed()))],
        ),
        ("/p/{slug}/events", vec![(GET, public_route(|context, call| sse::events(context, call).boxed()))]),
        ("/p/{slug}/status.json", vec![(GET, public_route(|context, call| html_pages::status(context, call).boxed()))]),
        (
            "/p/{slug}/subscribe",
            vec![
                (GET, public_route(|context, call| subscribe::show_form(context, call).boxed())),
                (POST, public_route(|context, call| subscribe::submit(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/confirm",
            vec![
                (GET, public_route(|context, call| subscribe::show_confirmation(context, call).boxed())),
                (POST, public_route(|context, call| subscribe::confirm(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/unsubscribe",
            vec![
                (GET, public_route(|context, call| subscribe::show_unsubscribe(context, call).boxed())),
                (POST, public_route(|context, call| subscribe::unsubscribe(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/confirm-alerts",
            vec![
                (GET, public_route(|context, call| subscribe::alert_mailbox::show_confirmation(context, call).boxed())),
                (POST, public_route(|context, call| subscribe::alert_mailbox::confirm(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/stop-alerts",
            vec![
                (GET, public_route(|context, call| subscribe::alert_mailbox::show_stop(context, call).boxed())),
                (POST, public_route(|context, call| subscribe::alert_mailbox::stop(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/password",
            vec![
                (GET, public_route(|context, call| login::show_form(context, call).boxed())),
                (POST, public_route(|context, call| login::password(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/sign-in",
            vec![
                (GET, public_route(|context, call| login::show_form(context, call).boxed())),
                (POST, public_route(|context, call| login::send_link(context, call).boxed())),
            ],
        ),
        (
            "/p/{slug}/sign-in/link",
            vec![
                (GET, public_route(|context, call| login::show_link(context, call).boxed())),
                (POST, public_route(|context, call| login::follow_link(context, call).boxed())),
            ],
        ),
        ("/p/{slug}/sign-out", vec![(POST, public_route(|context, call| login::sign_out(context, call).boxed()))]),
        (
            "/p/{slug}/mcp",
            vec![
                (POST, public_route(|context, call| mcp::public(context, call).boxed())),
                (Method::OPTIONS, public_route(|context, call| mcp::preflight(context, call).boxed())),
            ],
        ),
    ];
    rows.extend(feeds::rows());
    for extra_rows in [
        badge::rows(),
        embed::rows(),
        evidence::rows(),
        markdown_pages::rows(),
        share_image::rows(),
        embed_snippets::rows(),
        well_known::rows(),
    ] {
        rows.extend(extra_rows);
    }
    rows
}
