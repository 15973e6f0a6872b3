//! Login to a protected page by password or mailed link, and logout, as plain forms without scripts.
//!
//! These forms reveal nothing about the page behind them, not even its name, since anybody can see them.

mod cookie;

use std::hash::BuildHasher;
use std::sync::Arc;

use ::http::header::{HOST, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE};
use ::http::{HeaderValue, Method, StatusCode};
use foldhash::quality::FixedState;
use parallax_core::time::SECOND;

use super::access_check::{self, requested_page};
use super::form::{FormFields, check_button_origin, check_form_origin, token_in_query, uncached_page};
use crate::http::error::ApiError;
use crate::http::response::HttpResponse;
use crate::http::route::{HandlerResult, RoutedRequest};
use crate::http::{HttpContext, auth, client_ip};
use crate::service::ServiceError;
use crate::service::authorize::AccessDecision;
use crate::service::page_access::{ACCESS_TOKEN_LIFE, AccessToken};
use crate::service::sign_in::{BrowserId, LINK_LIFE, LinkValidity, SignInRequest};
use crate::views::access_pages::{AccessContext, AccessPage};
use crate::views::messages;

pub(super) use cookie::access_tokens;

/// Bytes of a path that a visitor can be redirected to.
const MAX_PATH: usize = 300;
/// Paths of login and logout, which are never redirect targets.
const LOGIN_PATHS: [&str; 4] = ["/password", "/sign-in", "/sign-in/link", "/sign-out"];

/// `GET /p/{slug}/password`, `GET /p/{slug}/sign-in`: the form, or a redirect for a visitor who has access already.
pub(super) async fn show_form(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    access_check::authorize_or_login(&context, &call)?;
    Ok(redirect_to(&LoginContext::of(&context, &call)?, ""))
}

/// `POST /p/{slug}/password`
pub(super) async fn password(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    call.no_store.set();
    check_form_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let at = LoginContext::of(&context, &call)?;
    let to = safe_path(fields.raw("to"));
    let (visitor, now) = (client_ip::client_ip(call.peer, &call.headers), context.service.now());
    let tried = match context.login_throttle.begin(visitor, at.throttle_key, now) {
        Ok(tried) => tried,
        Err(seconds) => return Ok(too_many(&at, seconds)),
    };
    match context.service.page_access.try_password(&at.slug, fields.raw("password")).await {
        Ok(Some(pass)) => {
            context.login_throttle.refund(tried);
            Ok(grant_access(&at, &pass, to))
        }
        Ok(None) => match access_check::check_access(&context, &call, None)? {
            AccessDecision::Granted(_) => Ok(redirect_to(&at, to)),
            AccessDecision::PasswordRequired => Ok(login_required(&AccessPage::wrong_password(&at.place, to))),
            AccessDecision::SignInRequired => Ok(login_required(&AccessPage::email(&at.place, to))),
        },
        Err(ServiceError::Busy { seconds }) => {
            context.login_throttle.refund(tried);
            Ok(too_many(&at, seconds))
        }
        Err(ServiceError::NotFound) => Err(ApiError::PageNotFound),
        Err(error) => Err(error.into()),
    }
}

/// `POST /p/{slug}/sign-in`
pub(super) async fn send_link(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_form_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let at = LoginContext::of(&context, &call)?;
    let to = safe_path(fields.raw("to"));
    match access_check::check_access(&context, &call, None)? {
        AccessDecision::Granted(_) => return Ok(redirect_to(&at, to)),
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.place, to))),
        AccessDecision::SignInRequired => {}
    }
    let now = context.service.now();
    let place = visitor_key(&call);
    if let Some(Err(found)) = place.map(|place| context.sign_in_link_limit.admit_many(place, 1, now)) {
        return Ok(too_many(&at, found.reset_seconds));
    }
    let browser = cookie::browser(&call.headers, at.is_https).unwrap_or_else(rand::random::<BrowserId>);
    let email = fields.one("email").unwrap_or_default();
    let asking = SignInRequest {
        email: email.clone(),
        page_url: at.address.clone(),
        browser,
        client_ip: place,
        redirect_to: to.to_owned(),
    };
    match context.service.page_access.request_sign_in(&at.slug, &asking).await {
        Ok(()) => {
            let reply = page(&AccessPage::email_sent(&at.place));
            let kept = cookie::browser_cookie(browser, LINK_LIFE / SECOND, at.is_https);
            Ok(kept.map_or_else(|| HttpResponse::empty(StatusCode::OK), |kept| reply.with(SET_COOKIE, kept)))
        }
        Err(ServiceError::Invalid(_)) => {
            let again = AccessPage::wrong_email(&at.place, to, &email);
            Ok(page(&again).with_status(StatusCode::BAD_REQUEST))
        }
        Err(ServiceError::NotFound) => Err(ApiError::PageNotFound),
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/sign-in/link_validity?t=`: a confirmation button. Mail scanners and previews follow links, so a GET
/// changes nothing.
pub(super) async fn show_link(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let at = LoginContext::of(&context, &call)?;
    match access_check::check_access(&context, &call, None)? {
        AccessDecision::Granted(_) => return Ok(redirect_to(&at, "")),
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.place, ""))),
        AccessDecision::SignInRequired => {}
    }
    let (token, browser) = (token_in_query(&call.query), cookie::browser(&call.headers, at.is_https));
    Ok(match context.service.page_access.link_validity(&at.slug, &token, browser.as_ref())? {
        LinkValidity::Valid => page(&AccessPage::button(&at.place, &token)),
        LinkValidity::OtherBrowser => login_required(&AccessPage::other_browser(&at.place)),
        LinkValidity::Invalid => login_required(&AccessPage::invalid_link(&at.place)),
    })
}

/// `POST /p/{slug}/sign-in/link_validity`
pub(super) async fn follow_link(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_form_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let at = LoginContext::of(&context, &call)?;
    match access_check::check_access(&context, &call, None)? {
        AccessDecision::Granted(_) => return Ok(redirect_to(&at, "")),
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.place, ""))),
        AccessDecision::SignInRequired => {}
    }
    let browser = cookie::browser(&call.headers, at.is_https);
    match context.service.page_access.sign_in_by_link(&at.slug, fields.raw("t"), browser.as_ref()).await? {
        Ok(arrived) => Ok(grant_access(&at, &arrived.token, safe_path(&arrived.redirect_to))),
        Err(LinkValidity::OtherBrowser) => Ok(login_required(&AccessPage::other_browser(&at.place))),
        Err(LinkValidity::Invalid | LinkValidity::Valid) => Ok(login_required(&AccessPage::invalid_link(&at.place))),
    }
}

/// `POST /p/{slug}/sign-out`
pub(super) async fn sign_out(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    call.no_store.set();
    check_button_origin(&call.headers, context.service.base_url())?;
    let at = LoginContext::of(&context, &call)?;
    let name = context.service.page_access.token_cookie_of(&at.slug).map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    let reply = redirect_to(&at, "");
    Ok(match cookie::set_cookie(&name, "", 0, at.is_https) {
        Some(taken) => reply.with(SET_COOKIE, taken),
        None => reply,
    })
}

/// Renders the form by which a visitor gets access and is then redirected to the requested path.
pub(super) fn form(
    context: &HttpContext,
    call: &RoutedRequest<()>,
    entry: &AccessDecision,
) -> Result<String, ApiError> {
    let at = LoginContext::of(context, call)?;
    let prefix = format!("/p/{}", at.slug);
    let path = call.path.strip_prefix(&prefix).filter(|_| call.method != Method::POST).unwrap_or_default();
    let to = match call.query.as_str() {
        _ if LOGIN_PATHS.contains(&path) => String::new(),
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let to = safe_path(&to);
    Ok(match entry {
        AccessDecision::PasswordRequired => AccessPage::password(&at.place, to),
        AccessDecision::SignInRequired | AccessDecision::Granted(_) => AccessPage::email(&at.place, to),
    }
    .html())
}

/// Address data of a login request.
struct LoginContext {
    slug: String,
    place: AccessContext,
    /// Address of the page as the visitor requested it.
    address: String,
    is_https: bool,
    /// Number that distinguishes this page in the login throttle, whether the page exists or not.
    throttle_key: u128,
}

impl LoginContext {
    fn of(context: &HttpContext, call: &RoutedRequest<()>) -> Result<Self, ApiError> {
        let (slug, door) = requested_page(context, call)?;
        let service = &context.service;
        let host = call.headers.get(HOST).and_then(|host| host.to_str().ok());
        Ok(Self {
            slug: slug.to_owned(),
            place: AccessContext {
                root: service.hosts.path_prefix_of(slug, door),
                base: service.hosts.shared_prefix(door).to_owned(),
                messages: messages::messages(service.page_access.page_language(slug)?),
            },
            address: service.hosts.page_url_at(slug, door, host),
            is_https: is_https(context),
            throttle_key: u128::from(FixedState::default().hash_one(slug)),
        })
    }
}

/// Returns true if browsers connect by https. Custom hosts are served like the base URL.
pub(super) fn is_https(context: &HttpContext) -> bool {
    context.service.base_url().starts_with("https://")
}

/// Returns a path of the page, or an empty text for anything else, so that no redirect leads to another host (a
/// second slash, a backslash), out of the page (dots), or into a header.
fn safe_path(to: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~?=&".contains(&byte);
    let is_inside = to.len() <= MAX_PATH
        && (to.starts_with('/') || to.starts_with('?'))
        && to.bytes().all(is_plain)
        && !to.contains("//")
        && !to.contains("..");
    if is_inside { to } else { "" }
}

fn redirect_to(at: &LoginContext, to: &str) -> HttpResponse {
    let path = format!("{}{to}", at.place.root);
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    HttpResponse::empty(StatusCode::SEE_OTHER).with_location(&path)
}

fn grant_access(at: &LoginContext, pass: &AccessToken, to: &str) -> HttpResponse {
    let reply = redirect_to(at, to);
    match cookie::set_cookie(&pass.name, &pass.value, ACCESS_TOKEN_LIFE / SECOND, at.is_https) {
        Some(kept) => reply.with(SET_COOKIE, kept),
        None => reply,
    }
}

/// Replies with a login page. Its referrer policy sends the origin to the service's own host only.
fn page(door: &AccessPage) -> HttpResponse {
    with_login_headers(uncached_page(door.html()))
}

/// Adds the headers of every login page.
pub(in crate::http) fn with_login_headers(reply: HttpResponse) -> HttpResponse {
    reply.with(REFERRER_POLICY, HeaderValue::from_static("same-origin"))
}

fn login_required(door: &AccessPage) -> HttpResponse {
    ApiError::LoginRequired(door.html()).into_response()
}

fn too_many(at: &LoginContext, seconds: u32) -> HttpResponse {
    page(&AccessPage::too_many_attempts(&at.place, seconds))
        .with_status(StatusCode::TOO_MANY_REQUESTS)
        .with(RETRY_AFTER, HeaderValue::from(seconds))
}

/// Returns the key under which this visitor's link requests are counted, if their address is known.
fn visitor_key(call: &RoutedRequest<()>) -> Option<u128> {
    client_ip::client_ip(call.peer, &call.headers).map(|visitor| auth::address_key(visitor.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_out_of_the_page() {
        for good in ["/incidents/inc_0", "/confirm?t=00ff", "/history/2026-11", "/", "?span=30", "/a.b"] {
            assert_eq!(safe_path(good), good);
        }
        let long = format!("/{}", "a".repeat(MAX_PATH));
        for bad in [
            "",
            "x",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/../api",
            "/a//b",
            "/%2e%2e/",
            "/%2F/evil.example",
            "/a\r\nSet-Cookie: b",
            "/a b",
            "/<",
            "@evil.example",
            ".evil",
            "/%5cevil.example/\u{e9}",
            &long,
        ] {
            assert_eq!(safe_path(bad), "", "{bad}");
        }
    }
}
