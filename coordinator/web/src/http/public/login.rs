//! Login (sign-in) to a protected page by password or mailed link, and logout, as plain forms without scripts.
//!
//! These forms reveal nothing about the page behind them, not even its name, since anybody can see them.

use std::sync::Arc;

use ::http::header::{RETRY_AFTER, SET_COOKIE};
use ::http::{HeaderValue, StatusCode};
use parallax_core::time::SECOND;
use parallax_service::ServiceError;
use parallax_service::page_access::authorize::AccessDecision;
use parallax_service::page_access::sign_in::{BrowserId, LINK_LIFE, LinkValidity, SignInRequest};
use parallax_service::page_access::{ACCESS_TOKEN_LIFE, AccessToken};

use super::form::{FormFields, access_page, check_button_origin, check_form_origin, token_in_query};
use super::login_form::{LoginContext, authorize_or_login, safe_path};
use super::{access_check, cookie};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::access_pages::AccessPage;

/// `GET /p/{slug}/password`, `GET /p/{slug}/sign-in`: the form, or a redirect for a visitor who has access already.
pub(super) async fn show_form(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    authorize_or_login(&context, &call)?;
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
    let attempt = match context.login_throttle.begin(visitor, at.throttle_key, now) {
        Ok(attempt) => attempt,
        Err(seconds) => return Ok(too_many(&at, seconds)),
    };
    match context.service.page_access.try_password(&at.slug, fields.raw("password")).await {
        Ok(Some(pass)) => {
            context.login_throttle.refund(attempt);
            Ok(grant_access(&at, &pass, to))
        }
        Ok(None) => match access_check::check_access(&context, &call, None)? {
            AccessDecision::Granted(_) => Ok(redirect_to(&at, to)),
            AccessDecision::PasswordRequired => Ok(login_required(&AccessPage::wrong_password(&at.access, to))),
            AccessDecision::SignInRequired => Ok(login_required(&AccessPage::email(&at.access, to))),
        },
        Err(ServiceError::Busy { seconds }) => {
            context.login_throttle.refund(attempt);
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
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.access, to))),
        AccessDecision::SignInRequired => {}
    }
    let now = context.service.now();
    let network = visitor_key(&call);
    if let Some(Err(exceeded)) = network.map(|network| context.sign_in_link_limit.admit_many(network, 1, now)) {
        return Ok(too_many(&at, exceeded.reset_seconds));
    }
    let browser = cookie::browser(&call.headers, at.is_https).unwrap_or_else(rand::random::<BrowserId>);
    let email = fields.one("email").unwrap_or_default();
    let request = SignInRequest {
        email: email.clone(),
        page_url: at.address.clone(),
        browser,
        client_ip: network,
        redirect_to: to.to_owned(),
    };
    match context.service.page_access.request_sign_in(&at.slug, &request).await {
        Ok(()) => {
            let reply = page(&AccessPage::email_sent(&at.access));
            let cookie = cookie::browser_cookie(browser, LINK_LIFE / SECOND, at.is_https);
            Ok(cookie.map_or_else(|| HttpResponse::empty(StatusCode::OK), |cookie| reply.with(SET_COOKIE, cookie)))
        }
        Err(ServiceError::Invalid(_)) => {
            let form = AccessPage::wrong_email(&at.access, to, &email);
            Ok(page(&form).with_status(StatusCode::BAD_REQUEST))
        }
        Err(ServiceError::NotFound) => Err(ApiError::PageNotFound),
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/sign-in/link?t=`: a confirmation button. Mail scanners and previews follow links, so a GET
/// changes nothing.
pub(super) async fn show_link(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let at = LoginContext::of(&context, &call)?;
    match access_check::check_access(&context, &call, None)? {
        AccessDecision::Granted(_) => return Ok(redirect_to(&at, "")),
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.access, ""))),
        AccessDecision::SignInRequired => {}
    }
    let (token, browser) = (token_in_query(&call.query), cookie::browser(&call.headers, at.is_https));
    Ok(match context.service.page_access.link_validity(&at.slug, &token, browser.as_ref())? {
        LinkValidity::Valid => page(&AccessPage::button(&at.access, &token)),
        LinkValidity::OtherBrowser => login_required(&AccessPage::other_browser(&at.access)),
        LinkValidity::Invalid => login_required(&AccessPage::invalid_link(&at.access)),
    })
}

/// `POST /p/{slug}/sign-in/link`
pub(super) async fn follow_link(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_form_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let at = LoginContext::of(&context, &call)?;
    match access_check::check_access(&context, &call, None)? {
        AccessDecision::Granted(_) => return Ok(redirect_to(&at, "")),
        AccessDecision::PasswordRequired => return Ok(login_required(&AccessPage::password(&at.access, ""))),
        AccessDecision::SignInRequired => {}
    }
    let browser = cookie::browser(&call.headers, at.is_https);
    match context.service.page_access.sign_in_by_link(&at.slug, fields.raw("t"), browser.as_ref()).await? {
        Ok(arrived) => Ok(grant_access(&at, &arrived.token, safe_path(&arrived.redirect_to))),
        Err(LinkValidity::OtherBrowser) => Ok(login_required(&AccessPage::other_browser(&at.access))),
        Err(LinkValidity::Invalid | LinkValidity::Valid) => Ok(login_required(&AccessPage::invalid_link(&at.access))),
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
        Some(cookie) => reply.with(SET_COOKIE, cookie),
        None => reply,
    })
}

fn redirect_to(at: &LoginContext, to: &str) -> HttpResponse {
    let path = format!("{}{to}", at.access.root);
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    HttpResponse::empty(StatusCode::SEE_OTHER).with_location(&path)
}

fn grant_access(at: &LoginContext, pass: &AccessToken, to: &str) -> HttpResponse {
    let reply = redirect_to(at, to);
    match cookie::set_cookie(&pass.name, &pass.value, ACCESS_TOKEN_LIFE / SECOND, at.is_https) {
        Some(cookie) => reply.with(SET_COOKIE, cookie),
        None => reply,
    }
}

fn page(view: &AccessPage) -> HttpResponse {
    access_page(view.html())
}

fn login_required(view: &AccessPage) -> HttpResponse {
    ApiError::LoginRequired(Box::new(access_page(view.html()))).into_response()
}

fn too_many(at: &LoginContext, seconds: u32) -> HttpResponse {
    page(&AccessPage::too_many_attempts(&at.access, seconds))
        .with_status(StatusCode::TOO_MANY_REQUESTS)
        .with(RETRY_AFTER, HeaderValue::from(seconds))
}

/// Returns the key under which this visitor's link requests are counted, if their address is known.
fn visitor_key(call: &RoutedRequest<()>) -> Option<u128> {
    client_ip::client_ip(call.peer, &call.headers).map(|visitor| address_key(visitor.address))
}
