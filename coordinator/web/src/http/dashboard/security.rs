//! Sign-in and security of a person: their password, the state of their second factor, their passkeys and sessions.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::ServiceError;
use parallax_service::people::CurrentSession;

use super::confirm::ask_to_confirm;
use super::forms::{FormRefusal, SubmittedForm};
use super::frame::frame;
use super::page_screen::{reply, reply_with};
use super::session_cookie::{browser_info, with_session};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{FactorState, PasskeyList, Section, SecurityScreen, Toast, time};

/// Address of the screen.
const SECURITY: &str = "/app/account/security";

/// Routes of sign-in and security.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const POST: Method = Method::POST;
    vec![
        (SECURITY, vec![(Method::GET, signed_in_route(|context, call| show(context, call).boxed()))]),
        (
            "/app/account/security/password",
            vec![(POST, signed_in_route(|context, call| change_password(context, call).boxed()))],
        ),
        (
            "/app/account/security/sessions/end-others",
            vec![(POST, signed_in_route(|context, call| end_others(context, call).boxed()))],
        ),
        (
            "/app/account/security/sessions/{session}/end",
            vec![(POST, signed_in_route(|context, call| end_session(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/account/security`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    reply(&security_screen(&context, &mut call).await?)
}

/// `POST /app/account/security/password`: ends every other session and gives the browser a new one.
async fn change_password(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let passwords = (form.text("current"), form.text("password"));
    let browser = browser_info(&context, &call);
    match context.service.people.change_password(&call.caller.session, passwords, &browser).await {
        Ok(new) => Ok(with_session(&context, see_other(&Toast::address(SECURITY, "saved", 1)), &new)),
        Err(ServiceError::ConfirmationRequired) => Ok(ask_to_confirm(SECURITY)),
        Err(error @ (ServiceError::Invalid(_) | ServiceError::TooManyTries { .. } | ServiceError::Busy { .. })) => {
            let refusal = FormRefusal::of(error)?;
            let again = security_screen(&context, &mut call).await?;
            let again = if call.caller.session.session.is_company {
                again.with_problem(refusal.problem.clone().unwrap_or_default())
            } else {
                again.with_faults(refusal.fault_or_problem("current"), refusal.fault("password"))
            };
            reply_with(&again, refusal.status)
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /app/account/security/sessions/{session}/end`
async fn end_session(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.end_session(&call.caller.session, call.path_param("session")?).await {
        // Not found: a second click. The person has no such session, as asked.
        Ok(()) | Err(ServiceError::NotFound) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(see_other(&Toast::address(SECURITY, "session-ended", 1)))
}

/// `POST /app/account/security/sessions/end-others`
async fn end_others(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let ended = context.service.people.end_other_sessions(&call.caller.session).await?;
    Ok(see_other(&Toast::address(SECURITY, "session-ended", ended)))
}

async fn security_screen(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
) -> Result<SecurityScreen, ApiError> {
    let sessions = context.service.people.sessions(&call.caller.session).await?;
    let frame = frame(context, call, None, Section::Account).await?;
    let now = context.service.now();
    let people = &context.service.people;
    let CurrentSession { session, person, .. } = &call.caller.session;
    let need = people.factor_need(person, None)?;
    let factor = FactorState {
        since: person.second_factor.active_since().map(|since| time(since, now)),
        codes_left: person.second_factor.recovery_codes_left(),
        is_missing: need.is_missing(),
    };
    let is_only_factor = need.rests_on_one_passkey();
    let passkeys = PasskeyList::new(person.passkeys.all(), people.passkey_host(), is_only_factor, now);
    let screen = SecurityScreen::new(frame, (person.password_hash.is_some(), factor), (&sessions, session), now);
    Ok(screen.with_passkeys(passkeys))
}
