//! API keys of the account: listed, created after the password was confirmed, and revoked.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::{KeyId, PageId};
use parallax_core::key::{ApiKey, KeyAccess};
use parallax_core::role::Permission;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::accounts::keys::NewKey;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::undo_offer::UndoOffer;

use super::confirm::ask_to_confirm;
use super::forms::{FormRefusal, ONCE, SubmittedForm, new_key, result_path};
use super::frame::frame;
use super::page_screen::{reply, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{KeysScreen, NewKeyScreen, Section, Toast};

/// Address of the list.
const KEYS: &str = "/app/account/keys";
/// Address of the form for a new key.
const NEW: &str = "/app/account/keys/new";

/// Routes of API keys.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (KEYS, vec![(GET, signed_in_route(|context, call| list(context, call).boxed()))]),
        (
            NEW,
            vec![
                (GET, signed_in_route(|context, call| show_form(context, call).boxed())),
                (POST, signed_in_route(|context, call| create(context, call).boxed())),
            ],
        ),
        (
            "/app/account/keys/{key}/revoke",
            vec![(POST, signed_in_route(|context, call| revoke(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/account/keys`
async fn list(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    reply(&list_screen(&context, &mut call).await?)
}

/// `GET /app/account/keys/new`: the form, once the password is confirmed, so that nothing typed is lost.
async fn show_form(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    call.caller.caller.require(Permission::ManageAccount)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(NEW));
    }
    let form = NewKeyScreen {
        frame: frame(&context, &mut call, None, Section::Account).await?,
        name: String::new(),
        name_fault: String::new(),
        access: KeyAccess::Read.name().to_owned(),
        page: String::new(),
        page_fault: String::new(),
        idempotency_key: new_key(),
    };
    reply(&form)
}

/// `POST /app/account/keys/new`: shows the key, which is stored as a hash alone.
async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    call.caller.caller.require(Permission::ManageAccount)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(NEW));
    }
    let form = &submitted.form;
    match create_key(&context, &mut call, &submitted).await {
        Ok(Some((key, text))) => {
            let list = list_screen(&context, &mut call).await?;
            let list = list.with_created(&key, text.reveal(), context.service.base_url());
            reply_with(&list, StatusCode::CREATED)
        }
        // Sent twice: the first answer has shown the key.
        Ok(None) => Ok(see_other(KEYS)),
        Err(error @ ServiceError::Invalid(_)) => {
            let refusal = FormRefusal::of(error)?;
            let again = NewKeyScreen {
                frame: frame(&context, &mut call, None, Section::Account).await?,
                name: form.text("name").to_owned(),
                name_fault: refusal.fault("name"),
                access: form.text("access").to_owned(),
                page: form.text("page").to_owned(),
                page_fault: refusal.fault("page"),
                idempotency_key: form.text(ONCE).to_owned(),
            };
            reply_with(&again, refusal.status)
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /app/account/keys/{key}/revoke`
async fn revoke(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let key: KeyId = call.id("key")?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let undo = UndoOffer::default();
    let path = |(): &()| Toast::address_with_undo(KEYS, "key-revoked", 1, undo.token());
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer).undoable(&undo);
    match context.service.keys.revoke_as_member(&call.caller.caller, key, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        // A second click without an idempotency key. The account has no such key, as asked.
        Err(ServiceError::NotFound) => Ok(see_other(&Toast::address(KEYS, "key-revoked", 1))),
        Err(error) => Err(error.into()),
    }
}

async fn create_key(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    SubmittedForm { form, idempotency_key }: &SubmittedForm,
) -> Result<Option<(ApiKey, parallax_service::secret_text::ApiKeyText)>, ServiceError> {
    let caller = &call.caller.caller;
    let access = KeyAccess::ALL.into_iter().find(|access| access.name() == form.text("access"));
    let page = match form.text("page").trim() {
        "" => None,
        id => Some(own_page(context, call, id)?),
    };
    let access = access.unwrap_or(KeyAccess::Read);
    let new = NewKey { account: caller.account, name: form.text("name").to_owned(), access, page };
    context.service.keys.create_as_member(caller, new, idempotency_key.clone()).await
}

/// Returns the page of that id if the caller reaches it.
fn own_page(context: &HttpContext, call: &RoutedRequest<SignedIn>, id: &str) -> Result<PageId, ServiceError> {
    let page = id.parse().ok().and_then(|id| context.service.pages.get(&call.caller.caller, id).ok());
    page.map(|page| page.id).ok_or_else(|| ValidationErrors::single("page", "must be a page of this account").into())
}

async fn list_screen(context: &HttpContext, call: &mut RoutedRequest<SignedIn>) -> Result<KeysScreen, ApiError> {
    let keys = context.service.keys.list_as_member(&call.caller.caller).await?;
    let frame = frame(context, call, None, Section::Account).await?;
    Ok(KeysScreen::new(frame, &keys, context.service.now(), &new_key()))
}
