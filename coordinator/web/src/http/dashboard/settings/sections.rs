//! Forms of the uptime target, of regions, of language and zone; and the snippets to embed a page.

use std::sync::Arc;

use parallax_core::page::Page;
use parallax_core::vantage::Region;
use parallax_service::Caller;

use super::{change, current_values, head, stored_form};
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm};
use crate::http::dashboard::incidents::zones;
use crate::http::dashboard::page_screen::{PageScreen, reply, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::settings::{BadgesScreen, LanguageForm, SettingsSection, UptimeForm};
use crate::views::embed_snippets::Snippets;

/// Fields of the uptime section.
const UPTIME: [&str; 3] = ["uptimeTarget", "uptimeRegions", "latencyLocations"];
/// Fields of the language section.
const LANGUAGE: [&str; 2] = ["language", "timezone"];

/// `GET /app/pages/{page}/settings/uptime`
pub(super) async fn show_uptime(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let form = stored_uptime(&current_values(&context, &page_screen.page), &page_screen.page);
    draw_uptime(&context, &call.caller.caller, page_screen, &form, None).await
}

/// Form of the stored uptime section: the defaults are ticked.
fn stored_uptime(current: &JsonObject, page: &Page) -> Form {
    let mut form = stored_form(current, &UPTIME);
    if page.uptime_regions.is_none() {
        form.remove("uptimeRegions");
        Region::ALL.iter().for_each(|region| form.add("uptimeRegions", region.name()));
    }
    if page.latency_regions.is_none() {
        form.set("latencyLocations", Region::Europe.name());
    }
    form
}

/// `POST /app/pages/{page}/settings/uptime`
pub(super) async fn save_uptime(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&UPTIME);
    let typed = submitted.form.clone();
    // The defaults are ticked in the form, and null in the API.
    let form = &mut submitted.form;
    if form.all("uptimeRegions").count() == Region::ALL.len() {
        form.set("uptimeRegions", "");
    }
    if page_screen.page.latency_regions.is_none() && form.all("latencyLocations").eq([Region::Europe.name()]) {
        form.set("latencyLocations", "");
    }
    let caller = &call.caller.caller;
    match change(&context, caller, &page_screen, (&submitted, SettingsSection::Uptime), |form| body::read(form)).await?
    {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let current = current_values(&context, &page_screen.page);
            let stored = stored_uptime(&current, &page_screen.page);
            let form = typed.redrawn(&refusal, &current, &stored);
            draw_uptime(&context, caller, page_screen, &form, Some(refusal)).await
        }
    }
}

async fn draw_uptime(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let head = head(context, caller, &page_screen, SettingsSection::Uptime);
    reply_with(
        &UptimeForm { head, form: view, frame: page_screen.frame(context, caller, Section::StatusPage).await? },
        status,
    )
}

/// `GET /app/pages/{page}/settings/language`
pub(super) async fn show_language(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let form = stored_form(&current_values(&context, &page_screen.page), &LANGUAGE);
    draw_language(&context, &call.caller.caller, page_screen, &form, None).await
}

/// `POST /app/pages/{page}/settings/language`
pub(super) async fn save_language(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&LANGUAGE);
    let caller = &call.caller.caller;
    match change(&context, caller, &page_screen, (&submitted, SettingsSection::Language), |form| body::read(form))
        .await?
    {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let current = current_values(&context, &page_screen.page);
            let form = submitted.form.redrawn(&refusal, &current, &stored_form(&current, &LANGUAGE));
            draw_language(&context, caller, page_screen, &form, Some(refusal)).await
        }
    }
}

async fn draw_language(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let head = head(context, caller, &page_screen, SettingsSection::Language);
    let zones = zones(page_screen.page.timezone, form.text("timezone"), page_screen.now);
    reply_with(
        &LanguageForm {
            head,
            form: view,
            languages: LanguageForm::languages(),
            zones,
            frame: page_screen.frame(context, caller, Section::StatusPage).await?,
        },
        status,
    )
}

/// `GET /app/pages/{page}/settings/badges`
pub(super) async fn show_badges(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let head = head(&context, &call.caller.caller, &page_screen, SettingsSection::Badges);
    let snippets = Snippets::of(&page_screen.page, &head.url);
    let frame = page_screen.frame(&context, &call.caller.caller, Section::StatusPage).await?;
    reply(&BadgesScreen { head, snippets, frame })
}
