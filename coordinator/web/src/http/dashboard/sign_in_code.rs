//! The code of a person's second factor, between a right password or link and the session.
//!
//! A cookie holds the secret of the sign-in that waits, so that only the browser which began it can complete it.

use std::sync::Arc;

use ::http::header::{HeaderValue, RETRY_AFTER};
use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::AccountId;
use parallax_service::ServiceError;
use parallax_service::people::{SecondSteps, SessionToken, SignInStep};
use url::form_urlencoded;

use super::forms::FormRefusal;
use super::frame::query_param;
use super::session_cookie::{browser_info, pending_token, with_pending, with_session};
use super::signed_in::{check_origin, safe_next};
use super::{as_page, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::FormFields;
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{CodeForm, MessagePage, Toast};

/// Address of the form.
const CODE: &str = "/sign-in/code";

/// Routes of the code.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![(
        CODE,
        vec![
            (Method::GET, public_route(|context, call| as_page(show(context, call)).boxed())),
            (Method::POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
        ],
    )]
}

/// Replies to a right password or link: with the session and a redirect, or with a redirect to the form for the code or to
/// the company's provider.
pub(super) fn reply_to_step(context: &HttpContext, step: &SignInStep, next: &str) -> HttpResponse {
    match step {
        SignInStep::Complete(new) => with_session(context, see_other(next), new),
        SignInStep::Company(account) => see_other(&company_address(*account, next)),
        SignInStep::Code(token) => with_pending(context, see_other(&address(CODE, next)), token),
    }
}

/// `GET /sign-in/code?next=`: the form; with `recovery=1` the one for a recovery code.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let next = query_param(&call.query, "next").unwrap_or_default();
    let token = pending_token(&context, &call.headers);
    let steps = token.map(|token| context.service.people.second_steps(&token)).transpose()?.flatten();
    let Some(steps) = steps else { return Ok(see_other(&address("/sign-in", &next))) };
    let is_recovery = query_param(&call.query, "recovery").is_some();
    Ok(screen(form(steps, safe_next(&next), is_recovery).html()))
}

/// `POST /sign-in/code`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let next = safe_next(fields.raw("next"));
    let Some(token) = pending_token(&context, &call.headers) else { return Ok(begin_again(next)) };
    let Some(steps) = context.service.people.second_steps(&token)? else { return Ok(begin_again(next)) };
    let again = |fault: String| {
        screen(form(steps, next, fields.one("recovery").is_some()).with_faults(fault, String::new()).html())
    };
    match context.service.people.enter_code(&token, fields.raw("code"), &browser_info(&context, &call)).await {
        Ok(done) => {
            let next = match done.recovery_codes_left {
                Some(left) => Toast::address(next, "recovery-code-used", left),
                None => next.to_owned(),
            };
            Ok(with_session(&context, see_other(&next), &done.session))
        }
        Err(ServiceError::NotFound) => Ok(begin_again(next)),
        Err(ServiceError::Invalid(_)) => {
            let fault = "The code is wrong or was used already.".to_owned();
            Ok(again(fault).with_status(StatusCode::FORBIDDEN))
        }
        Err(ServiceError::TooManyTries { seconds }) => {
            let page = again(format!("Too many tries. Wait {seconds} seconds."));
            Ok(page.with_status(StatusCode::TOO_MANY_REQUESTS).with(RETRY_AFTER, HeaderValue::from(seconds)))
        }
        Err(error @ ServiceError::PlanLimit(_)) => {
            let refusal = FormRefusal::of(error)?;
            Ok(refusal.status.apply(again(refusal.problem.unwrap_or_default())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the form again after a passkey was refused; none if no sign-in waits any more.
pub(super) fn passkey_form(
    context: &HttpContext,
    token: &SessionToken,
    next: &str,
    fault: String,
) -> Result<Option<HttpResponse>, ApiError> {
    let steps = context.service.people.second_steps(token)?;
    Ok(steps.map(|steps| screen(form(steps, next, false).with_faults(String::new(), fault).html())))
}

fn form(steps: SecondSteps, next: &str, is_recovery: bool) -> CodeForm {
    let other = if is_recovery { address(CODE, next) } else { format!("{}&recovery=1", address(CODE, next)) };
    CodeForm::new(steps, next, (is_recovery, other))
}

/// Returns the address at which a company sign-in begins.
pub(super) fn company_address(account: AccountId, next: &str) -> String {
    address(&format!("/sign-in/oidc/{account}"), next)
}

/// Returns the address of a form that leads to a screen.
pub(super) fn address(path: &str, next: &str) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("next", safe_next(next)).finish();
    format!("{path}?{query}")
}

/// Page for a sign-in that waits no more.
pub(super) fn begin_again(next: &str) -> HttpResponse {
    let text =
        "The second step came more than 10 minutes after the password, or something changed meanwhile.".to_owned();
    let page = MessagePage::new("Sign in again", text).with_link(&address("/sign-in", next), "Sign in");
    screen(page.html()).with_status(StatusCode::FORBIDDEN)
}
