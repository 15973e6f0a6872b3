//! Screens of the dashboard, for persons who are signed in: a sub-module for each family of screens.
//!
//! `signed_in.rs` runs their handlers: it finds the session, checks that a form comes from the dashboard itself, and
//! sends every error as a page. The dashboard is served on the host of the base URL alone: on a page's own host, and
//! below `/p/`, these addresses are the page's.

mod account_switch;
mod alerts;
mod audit;
mod check_progress;
mod company_settings;
mod company_sign_in;
mod confirm;
mod deploys;
mod error_page;
mod factor_gate;
mod form_encoding;
mod forms;
mod frame;
mod incidents;
mod installation_accounts;
mod join;
mod keys;
mod live;
mod members;
mod mesh;
mod monitor_bulk_edit;
mod monitor_list;
mod monitor_order;
mod monitors;
mod next_steps;
mod overview;
mod page_screen;
mod passkey_answer;
mod passkey_sign_in;
mod passkeys;
mod password_reset;
mod person;
mod plan;
mod search;
mod second_factor;
mod security;
mod session_cookie;
mod set_up;
mod settings;
mod sign_in;
mod sign_in_code;
mod signed_in;
mod subscriber_import;
mod subscribers;
mod undo;
pub(super) use error_page::error_page;
pub(super) use person::SignedIn;
pub(super) use signed_in::respond;

use ::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};
use ::http::{Method, StatusCode};

use super::error::HandlerResult;
use super::response::HttpResponse;
use super::route::HttpRoute;

/// Path of the dashboard, and the prefix of its screens.
const ROOT: &str = "/app";

/// Content security policy of the dashboard: its own scripts, styles, images and forms, in no frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action \
     'self'; base-uri 'none'; frame-src 'self'; frame-ancestors 'none'",
);

/// Content security policy of a preview, which the dashboard shows in a frame: no scripts, no forms. The sandbox sends no
/// cookies, so that the logo and the accent color of a protected page are in the document.
const PREVIEW_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self' data:; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'; sandbox",
);

/// Returns every route of the dashboard.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    let families = [
        overview::rows(),
        monitor_list::rows(),
        monitor_order::rows(),
        monitors::rows(),
        live::rows(),
        search::rows(),
        set_up::rows(),
        sign_in::rows(),
        sign_in_code::rows(),
        company_sign_in::rows(),
        company_settings::rows(),
        passkey_sign_in::rows(),
        confirm::rows(),
        incidents::rows(),
        alerts::rows(),
        subscribers::rows(),
        subscriber_import::rows(),
        deploys::rows(),
        settings::rows(),
        mesh::rows(),
        installation_accounts::rows(),
        keys::rows(),
        security::rows(),
        second_factor::rows(),
        passkeys::rows(),
        members::rows(),
        audit::rows(),
        plan::rows(),
        account_switch::rows(),
        join::rows(),
        password_reset::rows(),
        undo::rows(),
    ];
    families.into_iter().flatten().collect()
}

/// Returns true for addresses of the dashboard.
pub(super) fn is_dashboard_path(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a person who is not signed in: every error is a page, and every reply has the dashboard's headers.
async fn as_page(answer: impl Future<Output = HandlerResult>) -> HandlerResult {
    Ok(answer.await.map_or_else(error_page, with_security_headers))
}

/// Replies with a screen.
fn screen(html: String) -> HttpResponse {
    with_security_headers(HttpResponse::html(html))
}

/// Replies with a page that the dashboard shows in a frame.
fn preview(html: String) -> HttpResponse {
    with_security_headers(HttpResponse::html(html)).with(CONTENT_SECURITY_POLICY, PREVIEW_POLICY)
}

/// Redirects to a path of the dashboard after a form, so that reloading the result does not send it again.
fn see_other(path: &str) -> HttpResponse {
    HttpResponse::empty(StatusCode::SEE_OTHER).with_location(path)
}

/// Sets the headers that every reply of the dashboard has. The stricter policy of a preview stays.
fn with_security_headers(reply: HttpResponse) -> HttpResponse {
    let is_preview = reply.header(&CONTENT_SECURITY_POLICY) == Some(&PREVIEW_POLICY);
    let reply = if is_preview { reply } else { reply.with(CONTENT_SECURITY_POLICY, POLICY) };
    reply
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        .with(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"))
        .with(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"))
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
}
