//! Form of the page's look.

use std::sync::Arc;

use parallax_core::page::branding::PictureUse;
use parallax_service::Caller;

use super::{change, current_values, head, stored_form};
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::forms::{Form, FormRefusal, LOADED, SubmittedForm, loaded};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::settings::{LookForm, SettingsSection};

/// Fields of the form, pictures excepted.
const FIELDS: [&str; 8] =
    ["name", "description", "supportUrl", "accentColor", "theme", "showLocations", "showDeploys", "noindex"];
/// Pictures, each with the tick that removes it.
const PICTURES: [(&str, &str); 2] = [("logo", "removeLogo"), ("favicon", "removeFavicon")];

/// `GET /app/pages/{page}/settings/look`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let current = current_values(&context, &page_screen.page);
    let mut form = stored_form(&current, &FIELDS);
    form.set(LOADED, loaded(&look_of(&current)));
    draw(&context, &call.caller.caller, page_screen, &form, None).await
}

/// `POST /app/pages/{page}/settings/look`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let typed = submitted.form.clone();
    let submitted = SubmittedForm { form: normalize(submitted.form), ..submitted };
    match change(&context, caller, &page_screen, (&submitted, SettingsSection::Look), |form| body::read(form)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let current = current_values(&context, &page_screen.page);
            let form = typed.redrawn(&refusal, &current, &stored_form(&current, &FIELDS));
            draw(&context, caller, page_screen, &form, Some(refusal)).await
        }
    }
}

/// Form with the look's fields alone, in which a picture to remove is empty.
pub(super) fn normalize(mut form: Form) -> Form {
    let removed: Vec<&str> = PICTURES.iter().filter(|(_, tick)| form.is_on(tick)).map(|(name, _)| *name).collect();
    let pictures = PICTURES.map(|(name, _)| name);
    form.keep(&[FIELDS.as_slice(), pictures.as_slice()].concat());
    removed.into_iter().for_each(|name| form.set(name, ""));
    form
}

/// The values that the form changes.
fn look_of(current: &JsonObject) -> JsonObject {
    let is_look = |name: &str| FIELDS.contains(&name) || PICTURES.iter().any(|(picture, _)| *picture == name);
    current.iter().filter(|(name, _)| is_look(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let picture = |usage| context.service.pages.picture_url(&page_screen.page, usage);
    let screen = LookForm {
        head: head(context, caller, &page_screen, SettingsSection::Look),
        form: view,
        logo: picture(PictureUse::Logo),
        icon: picture(PictureUse::Favicon),
        frame: page_screen.frame(context, caller, Section::StatusPage).await?,
    };
    reply_with(&screen, status)
}
