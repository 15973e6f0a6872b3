//! Form of who may see the page.

use std::sync::Arc;

use parallax_core::validation::ValidationErrors;

use super::{change, current_values, head, stored_form};
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::settings::{SettingsSection, VisitorAccess, VisitorAccessForm};

/// Fields of the API that the form changes.
const FIELDS: [&str; 4] = ["password", "private", "allowedPeople", "allowedDomains"];
/// Fields with a list, which the form has as lines.
const LISTS: [&str; 2] = ["allowedPeople", "allowedDomains"];

/// `GET /app/pages/{page}/settings/access`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let form = stored(&context, &page_screen);
    let is_confirmed = context.service.people.require_confirmed(&call.caller.session).is_ok();
    let head = head(&context, &call.caller.caller, &page_screen, SettingsSection::Access);
    if head.may_change && !is_confirmed {
        return Ok(ask_to_confirm(&head.href()));
    }
    draw(&context, &call.caller, page_screen, &form, None).await
}

/// `POST /app/pages/{page}/settings/access`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    caller.require(parallax_core::role::Permission::ManagePage)?;
    let typed = submitted.form.clone();
    if let Err(error) = context.service.people.require_confirmed(&call.caller.session) {
        let mut refusal = FormRefusal::of(error)?;
        // The notice with the link says it.
        refusal.problem = None;
        return draw(&context, &call.caller, page_screen, &typed, Some(refusal)).await;
    }
    let form = normalize(submitted.form);
    if typed.text("access") == "password" && page_screen.page.password_hash.is_none() && !form.has("password") {
        let refusal = FormRefusal::of(ValidationErrors::single("password", "is required").into())?;
        return draw(&context, &call.caller, page_screen, &typed, Some(refusal)).await;
    }
    let submitted = SubmittedForm { form, ..submitted };
    match change(&context, caller, &page_screen, (&submitted, SettingsSection::Access), |form| body::read(form)).await?
    {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let mut current = current_values(&context, &page_screen.page);
            // What an empty one means is in `access`, which is drawn as typed: a colleague's password stays a conflict.
            current.remove("password");
            let form = typed.redrawn(&refusal, &current, &stored(&context, &page_screen));
            draw(&context, &call.caller, page_screen, &form, Some(refusal)).await
        }
    }
}

fn stored(context: &HttpContext, page_screen: &PageScreen) -> Form {
    let mut form = stored_form(&current_values(context, &page_screen.page), &FIELDS);
    form.remove("password");
    form.set("access", VisitorAccess::of(&page_screen.page).name());
    for name in LISTS {
        let lines = form.all(name).collect::<Vec<_>>().join("\n");
        form.set(name, lines);
    }
    form
}

/// Form with the API's fields: the choice becomes `private` and `password`, and lines become entries. A stored password
/// stays while its field is empty and passwords are chosen.
fn normalize(mut form: Form) -> Form {
    let choice = form.text("access").to_owned();
    form.keep(&FIELDS);
    form.set("private", if choice == "private" { "true" } else { "false" });
    if choice != "password" {
        form.set("password", "");
    } else if form.text("password").is_empty() {
        form.remove("password");
    }
    for name in LISTS {
        let text = form.text(name).to_owned();
        form.set(name, "");
        text.split([',', '\n', ' ']).map(str::trim).filter(|it| !it.is_empty()).for_each(|it| form.add(name, it));
    }
    form
}

async fn draw(
    context: &HttpContext,
    signed_in: &SignedIn,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let feed =
        context.service.page_access.feed_base_url(&page_screen.page).map(|address| format!("{address}/feed.atom"));
    let screen = VisitorAccessForm {
        head: head(context, &signed_in.caller, &page_screen, SettingsSection::Access),
        form: view,
        has_password: page_screen.page.password_hash.is_some(),
        feed,
        asks_to_confirm: context.service.people.require_confirmed(&signed_in.session).is_err(),
        frame: page_screen.frame(context, &signed_in.caller, Section::StatusPage).await?,
    };
    reply_with(&screen, status)
}
