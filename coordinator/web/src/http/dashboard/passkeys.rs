//! Passkeys of a person on their screens: added, renamed and removed.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::passkey::PersonPasskey;
use parallax_service::ServiceError;
use parallax_service::people::CurrentSession;

use super::confirm::ask_to_confirm;
use super::factor_gate::{NEW_PASSKEY, PASSKEY_OPTIONS};
use super::forms::{Form, FormRefusal, SubmittedForm};
use super::frame::frame;
use super::page_screen::{reply, reply_with};
use super::passkey_answer::{answer_of, challenge_reply, passkey_fault};
use super::session_cookie::{browser_info, with_session};
use super::{SignedIn, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
use crate::views::dashboard::{PasskeyForm, PasskeyScreen, Section, Toast, browser_name};

/// Address of the screen with the list.
const SECURITY: &str = "/app/account/security";

/// Routes of the passkeys.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            NEW_PASSKEY,
            vec![
                (GET, signed_in_route(|context, call| show_new(context, call).boxed())),
                (POST, signed_in_route(|context, call| add(context, call).boxed())),
            ],
        ),
        (PASSKEY_OPTIONS, vec![(POST, signed_in_route(|context, call| options(context, call).boxed()))]),
        (
            "/app/account/security/passkeys/{passkey}",
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| rename(context, call).boxed())),
            ],
        ),
        (
            "/app/account/security/passkeys/{passkey}/remove",
            vec![
                (GET, signed_in_route(|context, call| ask_to_remove(context, call).boxed())),
                (POST, signed_in_route(|context, call| remove(context, call).boxed())),
            ],
        ),
    ]
}

/// `GET /app/account/security/passkeys/new`: the form, after a confirmation.
async fn show_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let people = &context.service.people;
    if !people.offers_passkeys() || call.caller.session.session.is_company {
        return Ok(see_other(SECURITY));
    }
    if people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(NEW_PASSKEY));
    }
    let name = browser_name(&browser_info(&context, &call).user_agent);
    Ok(screen(form(&call, name, String::new(), String::new()).html()))
}

/// `POST /app/account/security/passkeys/options`: the options of a new one, for the script.
async fn options(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.begin_passkey_registration(&call.caller.session) {
        Ok(challenge) => challenge_reply(&challenge),
        Err(error) => refused(error, NEW_PASSKEY),
    }
}

/// `POST /app/account/security/passkeys/new`: adds the one that the browser made, and gives it a new session.
async fn add(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form: fields, .. } = SubmittedForm::read(&mut call).await?;
    let name = fields.text("name");
    match context.service.people.add_passkey(&call.caller.session, &answer_of(|name| fields.text(name)), name).await {
        Ok(new) => Ok(with_session(&context, see_other(&Toast::address(SECURITY, "passkey-added", 1)), &new)),
        Err(error @ ServiceError::Invalid(_)) => {
            let refusal = FormRefusal::of(error)?;
            let again = form(&call, name.to_owned(), refusal.fault("name"), passkey_fault(&refusal));
            Ok(refusal.status.apply(screen(again.html())))
        }
        Err(error) => refused(error, NEW_PASSKEY),
    }
}

/// `GET /app/account/security/passkeys/{passkey}`: the form for its name.
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let PersonPasskey { name, .. } = passkey(&call)?;
    if call.caller.session.session.is_company {
        return Ok(see_other(SECURITY));
    }
    reply(&rename_form(&context, &mut call, name, String::new()).await?)
}

/// `POST /app/account/security/passkeys/{passkey}`
async fn rename(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    passkey(&call)?;
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let name = form.text("name");
    match context.service.people.rename_passkey(&call.caller.session, call.path_param("passkey")?, name).await {
        Ok(()) => Ok(see_other(&Toast::address(SECURITY, "saved", 1))),
        Err(error @ ServiceError::Invalid(_)) => {
            let refusal = FormRefusal::of(error)?;
            let again = rename_form(&context, &mut call, name.to_owned(), refusal.fault_or_problem("name")).await?;
            reply_with(&again, refusal.status)
        }
        Err(error) => refused(error, SECURITY),
    }
}

/// `GET /app/account/security/passkeys/{passkey}/remove`: the question before.
async fn ask_to_remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let PersonPasskey { id, name, host, .. } = passkey(&call)?;
    let href = format!("{SECURITY}/passkeys/{id}/remove");
    if call.caller.session.session.is_company {
        return Ok(see_other(SECURITY));
    }
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(&href));
    }
    let text = remove_text(&context, &call.caller.session, &host)?;
    remove_question(&context, &mut call, (href, &name), (text, None)).await
}

/// `POST /app/account/security/passkeys/{passkey}/remove`
async fn remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let id = call.path_param("passkey")?.to_owned();
    let (done, href) = (Toast::address(SECURITY, "passkey-removed", 1), format!("{SECURITY}/passkeys/{id}/remove"));
    match context.service.people.remove_passkey(&call.caller.session, &id).await {
        Ok(new) => Ok(with_session(&context, see_other(&done), &new)),
        Err(error @ ServiceError::Invalid(_)) => {
            let (refusal, name) = (FormRefusal::of(error)?, passkey(&call)?.name);
            remove_question(&context, &mut call, (href, &name), (passkey_fault(&refusal), Some(refusal))).await
        }
        Err(error) => refused(error, &href),
    }
}

async fn remove_question(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    (href, name): (String, &str),
    (text, refusal): (String, Option<FormRefusal>),
) -> HandlerResult {
    let question = QuestionScreen {
        href,
        back: SECURITY.to_owned(),
        title: format!("Remove the passkey “{name}”?"),
        text,
        act: "Remove",
        keep: "Cancel",
        form: Form::default().view(&call.caller.form_token),
        frame: frame(context, call, None, Section::Account).await?,
    };
    match refusal {
        Some(refusal) => reply_with(&question, refusal.status),
        None => reply(&question),
    }
}

/// Consequences of removing a passkey.
fn remove_text(context: &HttpContext, current: &CurrentSession, host: &str) -> Result<String, ApiError> {
    let people = &context.service.people;
    let is_last = people.factor_need(&current.person, None)?.rests_on_one_passkey();
    let needed = if is_last && people.passkey_host() == Some(host) {
        " It is your only second factor, and an account of yours needs one: set up another one first, or you see only \
         the screen that sets it up once your time is over."
    } else {
        ""
    };
    Ok(format!(
        "You can't sign in with it any more, and are signed out on all other browsers. Your device may still offer it: \
         delete it there, too.{needed}"
    ))
}

async fn rename_form(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    name: String,
    fault: String,
) -> Result<PasskeyScreen, ApiError> {
    let id = call.path_param("passkey")?.to_owned();
    Ok(PasskeyScreen { frame: frame(context, call, None, Section::Account).await?, id, typed_name: name, fault })
}

fn form(call: &RoutedRequest<SignedIn>, name: String, name_fault: String, fault: String) -> PasskeyForm {
    PasskeyForm { typed_name: name, name_fault, fault, form_token: call.caller.form_token.clone() }
}

/// Returns the person's passkey that the path names.
fn passkey(call: &RoutedRequest<SignedIn>) -> Result<PersonPasskey, ApiError> {
    let id = call.path_param("passkey")?;
    let passkeys = call.caller.session.person.passkeys.all();
    let named = passkeys.iter().find(|passkey| passkey.id.to_string() == id);
    Ok(named.cloned().ok_or(ServiceError::NotFound)?)
}

/// Asks for a confirmation first, which leads to that screen; any other error is a page.
fn refused(error: ServiceError, next: &str) -> HandlerResult {
    if error == ServiceError::ConfirmationRequired { Ok(ask_to_confirm(next)) } else { Err(error.into()) }
}
