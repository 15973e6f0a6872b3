//! Forms of the uptime target, of regions, of language and zone; and the snippets to embed a page.

use std::sync::Arc;

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
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::settings::{BadgesScreen, LanguageForm, SettingsSection, UptimeForm};
use crate::views::embed_snippets::Snippets;

/// Fields of the uptime section.
const UPTIME: [&str; 3] = ["uptimeTarget", "uptimeRegions", "latencyLocations"];
/// Fields of the language section.
const LANGUAGE: [&str; 2] = ["language", "timezone"];

/// `GET /app/pages/{page}/settings/uptime`
pub(super) async fn show_uptime(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::StatusPage).await?;
    let mut form = stored_form(&current_values(&context, &scene.page), &UPTIME);
    if scene.page.uptime_regions.is_none() {
        form.remove("uptimeRegions");
        Region::ALL.iter().for_each(|region| form.add("uptimeRegions", region.name()));
    }
    if scene.page.latency_regions.is_none() {
        form.set("latencyLocations", Region::Europe.name());
    }
    draw_uptime(&context, &call.caller.caller, scene, &form, None)
}

/// `POST /app/pages/{page}/settings/uptime`
pub(super) async fn save_uptime(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::StatusPage).await?;
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&UPTIME);
    let typed = submitted.form.clone();
    // The defaults are ticked in the form, and null in the API.
    let form = &mut submitted.form;
    if form.all("uptimeRegions").count() == Region::ALL.len() {
        form.set("uptimeRegions", "");
    }
    if scene.page.latency_regions.is_none() && form.all("latencyLocations").eq([Region::Europe.name()]) {
        form.set("latencyLocations", "");
    }
    let caller = &call.caller.caller;
    match change(&context, caller, &scene, (&submitted, SettingsSection::Uptime), |form| body::read(form)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = typed.redrawn(&refusal, &current_values(&context, &scene.page));
            draw_uptime(&context, caller, scene, &form, Some(refusal))
        }
    }
}

fn draw_uptime(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(scene.form_token(), refusal);
    let head = head(context, caller, &scene, SettingsSection::Uptime);
    reply_with(&UptimeForm { head, form: view, frame: scene.frame }, status)
}

/// `GET /app/pages/{page}/settings/language`
pub(super) async fn show_language(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::StatusPage).await?;
    let form = stored_form(&current_values(&context, &scene.page), &LANGUAGE);
    draw_language(&context, &call.caller.caller, scene, &form, None)
}

/// `POST /app/pages/{page}/settings/language`
pub(super) async fn save_language(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::StatusPage).await?;
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&LANGUAGE);
    let caller = &call.caller.caller;
    match change(&context, caller, &scene, (&submitted, SettingsSection::Language), |form| body::read(form)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = submitted.form.redrawn(&refusal, &current_values(&context, &scene.page));
            draw_language(&context, caller, scene, &form, Some(refusal))
        }
    }
}

fn draw_language(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(scene.form_token(), refusal);
    let head = head(context, caller, &scene, SettingsSection::Language);
    let zones = zones(scene.page.timezone, form.text("timezone"), scene.now);
    reply_with(
        &LanguageForm { head, form: view, languages: LanguageForm::languages(), zones, frame: scene.frame },
        status,
    )
}

/// `GET /app/pages/{page}/settings/badges`
pub(super) async fn show_badges(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::StatusPage).await?;
    let head = head(&context, &call.caller.caller, &scene, SettingsSection::Badges);
    let snippets = Snippets::of(&scene.page, &head.url);
    reply(&BadgesScreen { head, snippets, frame: scene.frame })
}
