//! Form of a new page.

use std::sync::Arc;

use chrono_tz::Tz;
use parallax_core::page::Page;
use parallax_service::idempotency::IdempotentRequest;

use super::around_slug;
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, SubmittedForm, result_path};
use crate::http::dashboard::frame::frame;
use crate::http::dashboard::incidents::zones;
use crate::http::dashboard::page_screen::reply_with;
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::settings::NewPageForm;
use crate::views::dashboard::{Section, Toast};

/// Fields of the form.
const FIELDS: [&str; 3] = ["name", "slug", "timezone"];

/// `GET /app/pages/new`
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    context.service.pages.require_admin(&call.caller.caller)?;
    draw(&context, &mut call, &Form::of([("timezone", Tz::UTC.name())]), None).await
}

/// `POST /app/pages/new`
pub(super) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&FIELDS);
    let new = body::read_new(FormBody::new(&submitted.form));
    let path = |page: &Page| Toast::address(&format!("/app/pages/{}/monitors", page.id), "page-created", 1);
    let answer = |page: &Page| path(page).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    match context.service.pages.create(&call.caller.caller, &new, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        Err(error) => draw(&context, &mut call, &submitted.form, Some(FormRefusal::of(error)?)).await,
    }
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let frame = frame(context, call, None, Section::StatusPage).await?;
    let usage = context.service.accounts.usage(&call.caller.caller).await?;
    let (view, status) = form.drawn(&call.caller.form_token, refusal);
    let screen = NewPageForm {
        frame,
        form: view,
        around: around_slug(context),
        zones: zones(Tz::UTC, form.text("timezone"), context.service.now()),
        used: format!("{} of {} pages", usage.pages, usage.max_pages),
    };
    reply_with(&screen, status)
}
