//! Preview of a page's look: the page as visitors would see it, in a frame of the form.

use std::sync::Arc;

use parallax_core::page::branding::Theme;
use parallax_core::page::edit::PageEdit;
use parallax_service::pages::editing::PagePreview;
use parallax_service::{Caller, ServiceError};

use super::{current_values, look};
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::forms::{Form, FormBody, SubmittedForm, faults};
use crate::http::dashboard::{SignedIn, preview};
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::run_blocking;
use crate::views::dashboard::MessagePage;
use crate::views::page::StatusPage;
use crate::views::render;

/// `GET /app/pages/{page}/preview?theme=`: the page as it is saved, in another theme if one is named.
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let caller = &call.caller.caller;
    let query = Form::parse(call.query.as_bytes())?;
    let mut preview = context.service.pages.preview(caller, call.page_id()?, &PageEdit::default()).await?;
    if let Ok(theme) = Theme::read(query.text("theme")) {
        preview.page.branding.theme = theme;
    }
    reply(&context, caller, preview).await
}

/// `POST /app/pages/{page}/preview`: the page with the settings of the form, which are not saved.
pub(super) async fn unsaved(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let id = call.page_id()?;
    let page = context.service.pages.get(&call.caller.caller, id)?;
    let form = look::normalize(SubmittedForm::read(&mut call).await?.form);
    let current = current_values(&context, &page);
    let edit = body::read(&mut FormBody::change(&form, &current));
    let caller = &call.caller.caller;
    match context.service.pages.preview(caller, id, &edit).await {
        Ok(preview) => reply(&context, caller, preview).await,
        Err(ServiceError::Invalid(errors)) => {
            let text = faults(&errors).into_iter().map(|fault| format!("{}: {}", fault.field, fault.text));
            Ok(message(&text.collect::<Vec<_>>().join(" ")))
        }
        Err(error) => Err(error.into()),
    }
}

async fn reply(context: &HttpContext, caller: &Caller, unsaved: PagePreview) -> HandlerResult {
    let PagePreview { page, logo } = unsaved;
    let (root, address) = (format!("/p/{}", page.slug), context.service.pages.url(&page));
    let accent = page.branding.accent;
    let view = context.service.public_pages.unsaved_view(caller, page).await?;
    let render_page = move || render(&StatusPage::new(&view, &root, &address).into_preview(logo, accent));
    let html = run_blocking(render_page).await?;
    Ok(preview(String::from_utf8_lossy(&html).into_owned()))
}

fn message(text: &str) -> HttpResponse {
    preview(MessagePage::new("No preview", text.to_owned()).html())
}
