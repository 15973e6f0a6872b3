//! Settings of a status page: a form for each section, the preview of its look, its deletion, and new pages.

mod access;
mod address;
mod delete;
mod look;
mod new_page;
mod preview;
mod sections;

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::id::PageId;
use parallax_core::page::edit::PageEdit;
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use serde_json::{Value, json};

use super::forms::{Form, FormBody, LOADED, Saved, SubmittedForm, changed, loaded, saved};
use super::frame::without_scheme;
use super::page_screen::PageScreen;
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::api::pages::view;
use crate::http::error::HandlerResult;
use crate::http::json_body::JsonObject;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;
use crate::views::dashboard::settings::{SettingsHead, SettingsSection, VisitorAccess};

/// Slug that stands for any in an address. No page has it: slugs have no capital letters.
const ANY_SLUG: &str = "SLUG";

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/new",
            vec![
                (GET, signed_in_route(|context, call| new_page::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| new_page::create(context, call).boxed())),
            ],
        ),
        ("/app/pages/{page}/settings", vec![(GET, signed_in_route(|context, call| first(context, call).boxed()))]),
        (
            "/app/pages/{page}/settings/look",
            vec![
                (GET, signed_in_route(|context, call| look::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| look::save(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/preview",
            vec![
                (GET, signed_in_route(|context, call| preview::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| preview::unsaved(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/settings/address",
            vec![
                (GET, signed_in_route(|context, call| address::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| address::save(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/settings/address/check",
            vec![(POST, signed_in_route(|context, call| address::check(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/settings/access",
            vec![
                (GET, signed_in_route(|context, call| access::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| access::save(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/settings/uptime",
            vec![
                (GET, signed_in_route(|context, call| sections::show_uptime(context, call).boxed())),
                (POST, signed_in_route(|context, call| sections::save_uptime(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/settings/language",
            vec![
                (GET, signed_in_route(|context, call| sections::show_language(context, call).boxed())),
                (POST, signed_in_route(|context, call| sections::save_language(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/settings/badges",
            vec![(GET, signed_in_route(|context, call| sections::show_badges(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/settings/delete",
            vec![
                (GET, signed_in_route(|context, call| delete::ask(context, call).boxed())),
                (POST, signed_in_route(|context, call| delete::delete(context, call).boxed())),
            ],
        ),
    ]
}

/// `GET /app/pages/{page}/settings`
async fn first(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = context.service.pages.get(&call.caller.caller, call.page_id()?)?;
    Ok(see_other(&format!("/app/pages/{}/settings/look", page.id)))
}

/// Heading of a section.
fn head(context: &HttpContext, caller: &Caller, page_screen: &PageScreen, section: SettingsSection) -> SettingsHead {
    let url = context.service.pages.url(&page_screen.page);
    let manages = caller.allows(Permission::ManagePage);
    let may_change = match section {
        SettingsSection::Address | SettingsSection::Access | SettingsSection::Delete => manages,
        SettingsSection::Look | SettingsSection::Uptime | SettingsSection::Language | SettingsSection::Badges => {
            caller.allows(Permission::Edit)
        }
    };
    SettingsHead {
        section,
        base: page_screen.base.clone(),
        name: page_screen.page.name.clone(),
        address: without_scheme(&url).to_owned(),
        url,
        access: VisitorAccess::of(&page_screen.page),
        may_change,
        tabs: SettingsHead::tabs(&page_screen.base, section, manages),
    }
}

/// Values of a page as the API's body has them. A stored password is `true`: it is never shown, and null removes it. A
/// claimed domain stands in for the one that is set.
fn current_values(context: &HttpContext, page: &Page) -> JsonObject {
    let document = serde_json::to_value(view::document(&context.service, page)).unwrap_or_default();
    let Value::Object(mut values) = document else { return JsonObject::new() };
    values.insert("password".to_owned(), if page.password_hash.is_some() { json!(true) } else { Value::Null });
    if let Some(claim) = &page.domain_claim {
        values.insert("customDomain".to_owned(), json!(claim.host));
    }
    values
}

/// Form of the page's values of those names, as text.
fn stored_form(current: &JsonObject, names: &[&str]) -> Form {
    let mut form = Form::default();
    let mut drawn = JsonObject::new();
    for name in names {
        let value = current.get(*name).cloned().unwrap_or_default();
        match &value {
            Value::Null => form.set(name, ""),
            Value::String(text) => form.set(name, text.as_str()),
            Value::Array(items) => items.iter().filter_map(Value::as_str).for_each(|item| form.add(name, item)),
            Value::Number(number) => form.set(name, number.as_f64().map(|it| it.to_string()).unwrap_or_default()),
            other => form.set(name, other.to_string()),
        }
        drawn.insert((*name).to_owned(), value);
    }
    form.set(LOADED, loaded(&drawn));
    form
}

/// Changes the page by a form of a section, by the rules of the API; returns where to go.
async fn change(
    context: &HttpContext,
    caller: &Caller,
    page_screen: &PageScreen,
    (submitted, section): (&SubmittedForm, SettingsSection),
    read: fn(&mut FormBody<'_>) -> PageEdit,
) -> Saved {
    let current = current_values(context, &page_screen.page);
    let edit = match changed(&submitted.form, &current, read) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let path = Toast::address(&format!("{}/settings/{}", page_screen.base, section.path()), "saved", 1);
    let answer = |_: &Page| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.pages.edit(caller, page_screen.page.id, &edit, &once).await, |_| path.clone())
}

/// Beginning and end of the addresses of pages, around the slug.
fn around_slug(context: &HttpContext) -> (String, String) {
    let page = Page::blank(PageId::from_u128(0), NO_ACCOUNT, ANY_SLUG.to_owned(), context.service.now());
    let address = without_scheme(&context.service.pages.url(&page)).to_owned();
    address.split_once(ANY_SLUG).map(|(before, after)| (before.to_owned(), after.to_owned())).unwrap_or_default()
}
