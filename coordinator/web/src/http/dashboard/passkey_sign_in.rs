//! Sign-in by passkey, and the passkey in place of a code.
//!
//! Nobody is named before the answer: the browser's authenticator finds whose passkey it is.

use std::sync::Arc;

use ::http::header::{HeaderValue, RETRY_AFTER, SET_COOKIE};
use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::time::SECOND;
use parallax_service::ServiceError;
use parallax_service::page_access::sign_in::{BrowserId, LINK_LIFE};

use super::forms::FormRefusal;
use super::passkey_answer::{answer_of, challenge_reply, passkey_fault};
use super::session_cookie::{browser_info, pending_token, with_session};
use super::sign_in::sign_in_form;
use super::sign_in_code::{begin_again, passkey_form, reply_to_step};
use super::signed_in::{check_origin, safe_next};
use super::{as_page, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::public::{FormFields, browser_cookie, browser_of, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;

/// Routes of passkeys at sign-in.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const POST: Method = Method::POST;
    vec![
        (
            "/sign-in/passkey/options",
            vec![(POST, public_route(|context, call| as_page(options(context, call)).boxed()))],
        ),
        ("/sign-in/passkey", vec![(POST, public_route(|context, call| as_page(sign_in(context, call)).boxed()))]),
        (
            "/sign-in/code/passkey/options",
            vec![(POST, public_route(|context, call| as_page(step_options(context, call)).boxed()))],
        ),
        ("/sign-in/code/passkey", vec![(POST, public_route(|context, call| as_page(enter(context, call)).boxed()))]),
    ]
}

/// `POST /sign-in/passkey/options`: a challenge for the browser with the cookie that is set here.
async fn options(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let browser = browser_of(&call.headers, is_https(&context)).unwrap_or_else(rand::random::<BrowserId>);
    let begun = context.service.people.begin_passkey_sign_in(&browser, &browser_info(&context, &call));
    let challenge = match begun {
        Ok(challenge) => challenge,
        Err(ServiceError::TooManyTries { seconds }) => return Ok(too_many(seconds)),
        Err(error) => return Err(error.into()),
    };
    let reply = challenge_reply(&challenge)?;
    // As long as for a mailed link, which has the same cookie.
    Ok(match browser_cookie(browser, LINK_LIFE / SECOND, is_https(&context)) {
        Some(cookie) => reply.with(SET_COOKIE, cookie),
        None => reply,
    })
}

/// `POST /sign-in/passkey`
async fn sign_in(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let (next, is_kept) = (safe_next(fields.raw("next")), fields.one("keep").is_some());
    // Without the cookie no ceremony is this browser's.
    let browser = browser_of(&call.headers, is_https(&context)).unwrap_or_else(rand::random::<BrowserId>);
    let (answer, info) = (answer_of(|name| fields.raw(name)), browser_info(&context, &call));
    match context.service.people.sign_in_by_passkey((&browser, &answer), is_kept, &info).await {
        Ok(step) => Ok(reply_to_step(&context, &step, next)),
        Err(error @ (ServiceError::Invalid(_) | ServiceError::TooManyTries { .. })) => {
            let refusal = FormRefusal::of(error)?;
            let mut form = sign_in_form(&context, next, "", None);
            form.passkey_fault = passkey_fault(&refusal);
            Ok(refusal.status.apply(screen(form.html())))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /sign-in/code/passkey/options`: a challenge for the sign-in that waits at the browser.
async fn step_options(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let Some(token) = pending_token(&context, &call.headers) else { return Ok(begin_again("")) };
    match context.service.people.begin_passkey_step(&token, &browser_info(&context, &call)) {
        Ok(challenge) => challenge_reply(&challenge),
        Err(ServiceError::TooManyTries { seconds }) => Ok(too_many(seconds)),
        Err(ServiceError::NotFound) => Ok(begin_again("")),
        Err(error) => Err(error.into()),
    }
}

/// `POST /sign-in/code/passkey`
async fn enter(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let next = safe_next(fields.raw("next"));
    let Some(token) = pending_token(&context, &call.headers) else { return Ok(begin_again(next)) };
    match context
        .service
        .people
        .enter_passkey(&token, &answer_of(|name| fields.raw(name)), &browser_info(&context, &call))
        .await
    {
        Ok(done) => Ok(with_session(&context, see_other(next), &done.session)),
        Err(ServiceError::NotFound) => Ok(begin_again(next)),
        Err(error @ (ServiceError::Invalid(_) | ServiceError::TooManyTries { .. } | ServiceError::PlanLimit(_))) => {
            let refusal = FormRefusal::of(error)?;
            match passkey_form(&context, &token, next, passkey_fault(&refusal))? {
                Some(again) => Ok(refusal.status.apply(again)),
                None => Ok(begin_again(next)),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The script says how long to wait.
fn too_many(seconds: u32) -> HttpResponse {
    HttpResponse::empty(StatusCode::TOO_MANY_REQUESTS).with(RETRY_AFTER, HeaderValue::from(seconds))
}
