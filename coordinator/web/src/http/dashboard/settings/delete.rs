//! Deletion of a page, confirmed by its name.

use std::sync::Arc;

use parallax_core::role::Permission;
use parallax_core::validation::ValidationErrors;
use parallax_service::idempotency::IdempotentRequest;

use super::head;
use crate::http::HttpContext;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm, result_path};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::settings::{DeleteForm, SettingsSection};
use crate::views::dashboard::{Section, Toast};

/// `GET /app/pages/{page}/settings/delete`
pub(super) async fn ask(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    call.caller.caller.require(Permission::ManagePage)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(&format!("{}/settings/delete", page_screen.base)));
    }
    draw(&context, &call.caller, page_screen, &Form::default(), None).await
}

/// `POST /app/pages/{page}/settings/delete`
pub(super) async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let id = call.page_id()?;
    let caller = call.caller.caller.clone();
    let path = |(): &()| Toast::address("/app", "page-deleted", 1);
    // If it is gone already, the deletion is a repetition or a 404.
    if context.service.pages.get(&caller, id).is_ok() {
        caller.require(Permission::ManagePage)?;
        let page_screen = PageScreen::read(&context, &call)?;
        if context.service.people.require_confirmed(&call.caller.session).is_err() {
            return Ok(ask_to_confirm(&format!("{}/settings/delete", page_screen.base)));
        }
        if page_screen.page.name.trim() != submitted.form.text("name").trim() {
            let refusal = FormRefusal::of(ValidationErrors::single("name", "must be the name of the page").into())?;
            return draw(&context, &call.caller, page_screen, &submitted.form, Some(refusal)).await;
        }
    }
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let deleted = context.service.pages.delete(&caller, id, &once).await?;
    Ok(see_other(&result_path(deleted, path)))
}

async fn draw(
    context: &HttpContext,
    signed_in: &SignedIn,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let monitors = context.service.public_pages.overview(&signed_in.caller, page_screen.page.id).await?.monitors.len();
    let head = head(context, &signed_in.caller, &page_screen, SettingsSection::Delete);
    reply_with(
        &DeleteForm {
            head,
            form: view,
            monitors,
            frame: page_screen.frame(context, &signed_in.caller, Section::StatusPage).await?,
        },
        status,
    )
}
