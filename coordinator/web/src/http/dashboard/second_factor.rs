//! Second factor of a person: set up with an authenticator app, turned off, and new recovery codes.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::ServiceError;

use super::confirm::ask_to_confirm;
use super::factor_gate::{BEGIN, FACTOR};
use super::forms::{Form, FormRefusal, SubmittedForm};
use super::frame::frame;
use super::page_screen::reply;
use super::session_cookie::with_session;
use super::{SignedIn, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
use crate::views::dashboard::{FactorForm, FactorSecretView, RecoveryCodesScreen, Section, Toast};

/// Address of the screen with the password and sessions, which shows the second factor, too.
const SECURITY: &str = "/app/account/security";
/// Address of the question before it is turned off.
const OFF: &str = "/app/account/security/factor/off";

/// Routes of the second factor.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            FACTOR,
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| confirm(context, call).boxed())),
            ],
        ),
        (BEGIN, vec![(POST, signed_in_route(|context, call| begin(context, call).boxed()))]),
        (
            OFF,
            vec![
                (GET, signed_in_route(|context, call| ask_to_turn_off(context, call).boxed())),
                (POST, signed_in_route(|context, call| turn_off(context, call).boxed())),
            ],
        ),
        (
            "/app/account/security/factor/codes",
            vec![(POST, signed_in_route(|context, call| renew_codes(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/account/security/factor`: the secret that waits for its first code, or a button that makes one. A session by
/// company sign-in, which may make none, is told how to get one.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    match factor_form(&context, &call, String::new()) {
        Ok(form) => Ok(screen(form.html())),
        Err(error) => refused(error, FACTOR),
    }
}

/// `POST /app/account/security/factor/begin`: makes a secret.
async fn begin(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.begin_factor(&call.caller.session).await {
        Ok(()) => Ok(see_other(FACTOR)),
        Err(error) => refused(error, FACTOR),
    }
}

/// `POST /app/account/security/factor`: turns it on with its first right code, and shows the recovery codes.
async fn confirm(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    match context.service.people.confirm_factor(&call.caller.session, form.text("code")).await {
        Ok((new, codes)) => {
            // The screen's forms belong to the new session.
            call.caller.form_token = context.service.people.form_token(new.session.id);
            call.caller.session.factor_due = None;
            let page = codes_screen(&context, &mut call, codes, true).await?;
            Ok(with_session(&context, page, &new))
        }
        // Sent twice, or after an hour.
        Err(ServiceError::NotFound) => Ok(see_other(FACTOR)),
        Err(error @ ServiceError::Invalid(_)) => {
            let refusal = FormRefusal::of(error)?;
            let fault = "The code is wrong. Check the time of your phone, and enter the newest code.".to_owned();
            match factor_form(&context, &call, fault) {
                Ok(again) => Ok(refusal.status.apply(screen(again.html()))),
                Err(error) => refused(error, FACTOR),
            }
        }
        Err(error) => refused(error, FACTOR),
    }
}

/// `GET /app/account/security/factor/off`: the question before.
async fn ask_to_turn_off(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let people = &context.service.people;
    if people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(OFF));
    }
    let needed = if people.factor_need(&call.caller.session.person, None)?.rests_on_app() {
        " An account of yours needs one: without it you see only the screen that sets it up, once your time is over."
    } else {
        ""
    };
    reply(&QuestionScreen {
        href: OFF.to_owned(),
        back: SECURITY.to_owned(),
        title: "Turn the second factor off?".to_owned(),
        text: format!("Your password or mailbox alone signs you in then, and the recovery codes end.{needed}"),
        act: "Turn off",
        keep: "Cancel",
        form: Form::default().view(&call.caller.form_token),
        frame: frame(&context, &mut call, None, Section::Account).await?,
    })
}

/// `POST /app/account/security/factor/off`
async fn turn_off(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let done = Toast::address(SECURITY, "factor-off", 1);
    match context.service.people.turn_factor_off(&call.caller.session).await {
        Ok(new) => Ok(with_session(&context, see_other(&done), &new)),
        // A second click. It is off, as asked.
        Err(ServiceError::NotFound) => Ok(see_other(&done)),
        Err(error) => refused(error, OFF),
    }
}

/// `POST /app/account/security/factor/codes`: replaces the recovery codes, and shows the new ones.
async fn renew_codes(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.renew_recovery_codes(&call.caller.session).await {
        Ok(codes) => codes_screen(&context, &mut call, codes, false).await,
        // It was turned off in another tab.
        Err(ServiceError::NotFound) => Ok(see_other(SECURITY)),
        Err(error) => refused(error, SECURITY),
    }
}

fn factor_form(
    context: &HttpContext,
    call: &RoutedRequest<SignedIn>,
    fault: String,
) -> Result<FactorForm, ServiceError> {
    let (people, session) = (&context.service.people, &call.caller.session);
    let is_company = session.session.is_company;
    let set_up = if is_company { None } else { people.factor_set_up(session)? };
    Ok(FactorForm {
        secret: set_up.map(|it| FactorSecretView { text: it.secret, url: it.url }),
        is_replacement: session.person.second_factor.is_active(),
        is_overdue: session.is_factor_overdue(context.service.now()),
        is_company,
        offers_passkeys: people.offers_passkeys(),
        has_other_accounts: call.caller.accounts > 1,
        form_token: call.caller.form_token.clone(),
        fault,
    })
}

async fn codes_screen(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    codes: Vec<String>,
    is_new_factor: bool,
) -> Result<HttpResponse, ApiError> {
    let frame = frame(context, call, None, Section::Account).await?;
    reply(&RecoveryCodesScreen::new(frame, &codes, is_new_factor))
}

/// Asks for a confirmation first, which leads to that screen; any other error is a page.
fn refused(error: ServiceError, next: &str) -> HandlerResult {
    if error == ServiceError::ConfirmationRequired { Ok(ask_to_confirm(next)) } else { Err(error.into()) }
}
