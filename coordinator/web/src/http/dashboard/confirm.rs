//! Confirmation by passkey, password or company, before secrets are shown or settings of security change.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::ServiceError;
use url::form_urlencoded;

use super::factor_gate::{CONFIRM_BY_PASSKEY, CONFIRM_OPTIONS};
use super::forms::{FormRefusal, SubmittedForm};
use super::frame::query_param;
use super::passkey_answer::{answer_of, challenge_reply, passkey_fault};
use super::signed_in::safe_next;
use super::{SignedIn, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::ConfirmForm;

/// Routes of the confirmation.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const POST: Method = Method::POST;
    vec![
        (
            "/confirm",
            vec![
                (Method::GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| submit(context, call).boxed())),
            ],
        ),
        (CONFIRM_BY_PASSKEY, vec![(POST, signed_in_route(|context, call| submit_passkey(context, call).boxed()))]),
        (CONFIRM_OPTIONS, vec![(POST, signed_in_route(|context, call| passkey_options(context, call).boxed()))]),
    ]
}

/// Redirects to the confirmation, and from there to a screen.
pub(super) fn ask_to_confirm(next: &str) -> HttpResponse {
    see_other(&confirm_path(next))
}

/// Returns the address of the confirmation that leads to a screen.
pub(super) fn confirm_path(next: &str) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("next", safe_next(next)).finish();
    format!("/confirm?{query}")
}

/// `GET /confirm?next=`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let next = query_param(&call.query, "next").unwrap_or_default();
    if context.service.people.require_confirmed(&call.caller.session).is_ok() {
        return Ok(see_other(safe_next(&next)));
    }
    Ok(screen(form(&context, &call.caller, safe_next(&next)).html()))
}

/// `POST /confirm`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form: fields, .. } = SubmittedForm::read(&mut call).await?;
    let next = safe_next(fields.text("next"));
    match context.service.people.confirm(&call.caller.session, fields.text("current")).await {
        Ok(()) => Ok(see_other(next)),
        Err(error @ (ServiceError::Invalid(_) | ServiceError::TooManyTries { .. } | ServiceError::Busy { .. })) => {
            let refusal = FormRefusal::of(error)?;
            let fault = refusal.fault_or_problem("current");
            let again = ConfirmForm { fault, ..form(&context, &call.caller, next) };
            Ok(refusal.status.apply(screen(again.html())))
        }
        Err(ServiceError::ConfirmationRequired) => Ok(ask_to_confirm(next)),
        Err(error) => Err(error.into()),
    }
}

/// `POST /confirm/passkey/options`: a challenge for the script.
async fn passkey_options(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    challenge_reply(&context.service.people.begin_passkey_confirmation(&call.caller.session)?)
}

/// `POST /confirm/passkey`
async fn submit_passkey(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form: fields, .. } = SubmittedForm::read(&mut call).await?;
    let next = safe_next(fields.text("next"));
    match context.service.people.confirm_by_passkey(&call.caller.session, &answer_of(|name| fields.text(name))).await {
        Ok(()) => Ok(see_other(next)),
        Err(error @ (ServiceError::Invalid(_) | ServiceError::TooManyTries { .. })) => {
            let refusal = FormRefusal::of(error)?;
            let passkey_fault = passkey_fault(&refusal);
            let again = ConfirmForm { passkey_fault, ..form(&context, &call.caller, next) };
            Ok(refusal.status.apply(screen(again.html())))
        }
        Err(error) => Err(error.into()),
    }
}

fn form(context: &HttpContext, person: &SignedIn, next: &str) -> ConfirmForm {
    let session = &person.session.session;
    let is_own = !session.is_company;
    let company = if is_own { String::new() } else { format!("/sign-in/oidc/{}", session.account) };
    ConfirmForm {
        next: next.to_owned(),
        email: person.email.clone(),
        // At company sign-in they would confirm, or guess, what opens other accounts, too.
        has_password: is_own && person.session.person.password_hash.is_some(),
        company,
        is_kept: session.is_kept,
        form_token: person.form_token.clone(),
        fault: String::new(),
        has_passkey: is_own && context.service.people.has_passkey(&person.session.person),
        passkey_fault: String::new(),
    }
}
