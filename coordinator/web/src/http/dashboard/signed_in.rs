//! Runs the handlers of signed-in persons: finds the session, limits requests, and refuses forms of other sites.

use std::sync::Arc;

use ::http::header::{HeaderName, HeaderValue, ORIGIN};
use ::http::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq;
use url::form_urlencoded;

use super::form_encoding;
use super::forms::FORM_TOKEN;
use super::person::SignedIn;
use super::session_cookie::session_token;
use super::{ROOT, error_page, factor_gate, is_dashboard_path, see_other, with_security_headers};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body;
use crate::http::public::{check_form_origin, safe_path};
use crate::http::response::HttpResponse;
use crate::http::route::Handler;
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::client_address;
use crate::http::server::request_timeout::{self, BodyReceived};
use crate::http::server::response_memory::ResponseOwner;
use crate::views::dashboard::MessagePage;

/// Name of the header that holds it in a script's request.
const FORM_TOKEN_HEADER: HeaderName = HeaderName::from_static("x-form-token");

/// Answers a request for a screen. Every error is a page.
pub(in crate::http) async fn respond(
    context: Arc<HttpContext>,
    handler: Handler<SignedIn>,
    call: RoutedRequest<()>,
    arrived: BodyReceived,
) -> HttpResponse {
    let reply = match authenticate(&context, &call) {
        Ok(Some(signed_in)) => run(context, handler, call.with_caller(signed_in), arrived).await,
        Ok(None) => Ok(ask_to_sign_in(&call)),
        Err(error) => Err(error),
    };
    reply.map_or_else(error_page, with_security_headers)
}

async fn run(
    context: Arc<HttpContext>,
    handler: Handler<SignedIn>,
    mut call: RoutedRequest<SignedIn>,
    arrived: BodyReceived,
) -> HandlerResult {
    let (session, now) = (call.caller.session.session.id, context.service.now());
    context.session_limit.admit_many(session, 1, now).map_err(ApiError::RateLimited)?;
    if let Some(redirect) = factor_gate::redirect(&call.caller.session, &call.path, now) {
        return Ok(redirect);
    }
    let reservation = context.response_memory.reserve(ResponseOwner::Account(call.caller.caller.account))?;
    let (is_read, limit) = (call.method.is_safe(), request_timeout::timeout_for(&call.path));
    let answer = async {
        if !is_read {
            check_form(&context, &mut call).await?;
        }
        handler(Arc::clone(&context), call).await
    };
    let reply = request_timeout::with_timeout(limit, arrived, answer).await?;
    reservation.admit(is_read, reply).await
}

/// Finds the session of the request's cookie.
fn authenticate(context: &HttpContext, call: &RoutedRequest<()>) -> Result<Option<SignedIn>, ApiError> {
    let Some(token) = session_token(context, &call.headers) else { return Ok(None) };
    let people = &context.service.people;
    let Some(mut session) = people.authenticate(&token)? else { return Ok(None) };
    session.address = client_address(call.peer, &call.headers);
    Ok(Some(SignedIn {
        caller: session.caller(),
        email: session.person.email.clone(),
        name: session.person.name.clone(),
        role: session.role,
        is_operator: session.is_operator(),
        accounts: people.account_count(&session)?,
        form_token: people.form_token(session.session.id),
        path: call.path.clone(),
        session,
    }))
}

/// Sends a visitor without a session to the sign-in form, and from there back to the requested screen. A form can't
/// be sent again by a redirect, so it gets a page.
fn ask_to_sign_in(call: &RoutedRequest<()>) -> HttpResponse {
    let sign_in = sign_in_path(&call.path, &call.query);
    if call.method.is_safe() {
        return see_other(&sign_in);
    }
    let text = "You are signed out. Sign in, then send the form again: your browser's Back button shows it.".to_owned();
    let page = MessagePage::new("Signed out", text).with_link(&sign_in, "Sign in");
    HttpResponse::html(page.html()).with_status(StatusCode::FORBIDDEN)
}

/// Returns the address of the sign-in form for a visitor of that screen.
fn sign_in_path(path: &str, query: &str) -> String {
    let whole = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let next = if safe_path(&whole).is_empty() { safe_path(path) } else { safe_path(&whole) };
    let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("/sign-in?{query}")
}

/// Returns a path of the dashboard to redirect to; the overview for anything else.
pub(super) fn safe_next(next: &str) -> &str {
    let path = next.split('?').next().unwrap_or_default();
    if is_dashboard_path(path) && !safe_path(next).is_empty() { next } else { ROOT }
}

/// Checks that a form comes from the dashboard itself: by its origin and by the token of the session, which other
/// sites can't read. The body is read for that, and its fields stay in the request.
async fn check_form(context: &HttpContext, call: &mut RoutedRequest<SignedIn>) -> Result<(), ApiError> {
    check_origin(&call.headers, context.service.base_url())?;
    let header = call.headers.get(&FORM_TOKEN_HEADER).and_then(|token| token.to_str().ok()).map(str::to_owned);
    let token = match header {
        Some(token) => token,
        None => {
            let body = json_body::read_bytes_to(&call.path, &call.headers, &mut call.body).await?;
            let fields = form_encoding::parse(&call.headers, &body).await?;
            let token = fields.iter().rfind(|(name, _)| name == FORM_TOKEN);
            let token = token.map(|(_, token)| token.clone()).unwrap_or_default();
            call.form = Some(fields);
            token
        }
    };
    let is_own = bool::from(token.as_bytes().ct_eq(call.caller.form_token.as_bytes()));
    if is_own { Ok(()) } else { Err(ApiError::CrossOrigin) }
}

/// Checks the origin of a form. A browser names it by Fetch Metadata, or by `Origin`; over plain HTTP a page without
/// referrers sends `Origin: null` alone (Fetch, 3.2.5), and only the form token decides.
pub(super) fn check_origin(headers: &HeaderMap, base_url: &str) -> Result<(), ApiError> {
    match (headers.get("sec-fetch-site"), headers.get(ORIGIN)) {
        (Some(site), _) if site == "same-origin" => Ok(()),
        (Some(_), _) | (None, None) => Err(ApiError::CrossOrigin),
        (None, Some(origin)) if origin == HeaderValue::from_static("null") => {
            if base_url.starts_with("http://") {
                Ok(())
            } else {
                Err(ApiError::CrossOrigin)
            }
        }
        (None, Some(_)) => check_form_origin(headers, base_url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_the_dashboard_as_its_origin() {
        let is_allowed = |base: &str, pairs: &[(&'static str, &'static str)]| {
            let header = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            check_origin(&pairs.iter().map(header).collect(), base).is_ok()
        };
        let host = ("host", "status.example");
        for (base, pairs, expected) in [
            ("https://status.example", &[host, ("sec-fetch-site", "same-origin"), ("origin", "null")][..], true),
            ("https://status.example", &[host, ("origin", "https://status.example")], true),
            ("http://192.0.2.1", &[host, ("origin", "null")], true),
            ("https://status.example", &[host, ("origin", "null")], false),
            ("https://status.example", &[host], false),
            ("https://status.example", &[host, ("sec-fetch-site", "none")], false),
            ("https://status.example", &[host, ("sec-fetch-site", "same-site")], false),
            ("https://status.example", &[host, ("sec-fetch-site", "cross-site")], false),
            ("https://status.example", &[host, ("origin", "https://evil.example")], false),
            ("http://192.0.2.1", &[host, ("origin", "null"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(is_allowed(base, pairs), expected, "{base} {pairs:?}");
        }
    }

    #[test]
    fn a_redirect_stays_in_the_dashboard() {
        for allowed in ["/app", "/app/mesh?state=down", "/app/pages/pg_0"] {
            assert_eq!(safe_next(allowed), allowed);
        }
        for rejected in ["", "/", "/apps", "//evil.example", "/app//evil", "https://evil.example", "/p/shop", "/app/<"]
        {
            assert_eq!(safe_next(rejected), "/app", "{rejected}");
        }
    }

    #[test]
    fn the_sign_in_form_leads_back_to_the_screen() {
        assert_eq!(sign_in_path("/app", ""), "/sign-in?next=%2Fapp");
        assert_eq!(sign_in_path("/app/mesh", "state=down"), "/sign-in?next=%2Fapp%2Fmesh%3Fstate%3Ddown");
        assert_eq!(sign_in_path("/app", "q=%2f%2fevil.example"), "/sign-in?next=%2Fapp");
    }
}
