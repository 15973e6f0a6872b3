//! Buttons of a destination: test, switch on, rotate its secret, delete.

use std::sync::Arc;

use parallax_core::destination::Destination;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::id::{DestinationId, PageId};
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::undo_offer::UndoOffer;

use super::destination_form::{draw_stored, sees_secrets};
use crate::http::HttpContext;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{FormRefusal, SubmittedForm, result_path};
use crate::http::dashboard::page_screen::{PageScreen, ScreenQuestion};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{Section, Toast};

fn ids(call: &RoutedRequest<SignedIn>) -> Result<(PageId, DestinationId), ApiError> {
    Ok((call.page_id()?, call.id("destination")?))
}

fn path_of(page: PageId, id: DestinationId) -> String {
    format!("/app/pages/{page}/destinations/{id}")
}

/// `POST /app/pages/{page}/destinations/{destination}/test`: sends a test, and shows its result on the destination's
/// screen.
pub(super) async fn test(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = ids(&call)?;
    let caller = call.caller.caller.clone();
    let refusal = match context.service.deliveries.send_test(&caller, page, id).await {
        Ok(tested) => return Ok(see_other(&format!("{}?test={}", path_of(page, id), tested.delivery.id))),
        Err(error) => FormRefusal::of(error)?,
    };
    let destination = context.service.destinations.get(&caller, page, id)?;
    let scene = PageScreen::read(&context, &call)?;
    draw_stored(&context, &call.caller, scene, &destination, Some(refusal)).await
}

/// `POST /app/pages/{page}/destinations/{destination}/enable`: switches it on again, or asks its mailbox again.
pub(super) async fn enable(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = ids(&call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = call.caller.caller.clone();
    let edit = DestinationEdit { enabled: PatchField::Value(true), ..DestinationEdit::default() };
    let path = Toast::address(&path_of(page, id), "saved", 1);
    let answer = |_: &Destination| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let refusal = match context.service.destinations.edit(&caller, page, id, &edit, &once).await {
        Ok(outcome) => return Ok(see_other(&result_path(outcome, |_| path.clone()))),
        Err(error) => FormRefusal::of(error)?,
    };
    let destination = context.service.destinations.get(&caller, page, id)?;
    let scene = PageScreen::read(&context, &call)?;
    draw_stored(&context, &call.caller, scene, &destination, Some(refusal)).await
}

/// Returns the redirect to the confirmation, and from there to a screen of the destination, before its secrets change;
/// none if the person confirmed a moment ago.
fn confirmation(
    context: &HttpContext,
    call: &RoutedRequest<SignedIn>,
    next: &str,
) -> Result<Option<HttpResponse>, ApiError> {
    let (page, id) = ids(call)?;
    call.caller.caller.require(Permission::ManageAlerts)?;
    context.service.destinations.get(&call.caller.caller, page, id)?;
    let asks = !sees_secrets(context, &call.caller);
    Ok(asks.then(|| ask_to_confirm(&format!("{}{next}", path_of(page, id)))))
}

/// `GET /app/pages/{page}/destinations/{destination}/rotate-secret`
pub(super) async fn ask_rotate(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    if let Some(confirmation) = confirmation(&context, &call, "/rotate-secret")? {
        return Ok(confirmation);
    }
    let question = (
        "Rotate the secret of",
        "The new secret signs beside the old one for 24 h. Enter it where you verify \
        signatures before then: after that, only the new one signs.",
    );
    ask(context, call, question, ("rotate-secret", "Rotate secret")).await
}

/// `POST /app/pages/{page}/destinations/{destination}/rotate-secret`
pub(super) async fn rotate(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = ids(&call)?;
    if let Some(confirmation) = confirmation(&context, &call, "/rotate-secret")? {
        return Ok(confirmation);
    }
    let submitted = SubmittedForm::read(&mut call).await?;
    let path = Toast::address(&path_of(page, id), "saved", 1);
    let answer = |_: &Destination| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let rotated = context.service.destinations.rotate_secret(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(rotated, |_| path.clone())))
}

/// `POST /app/pages/{page}/destinations/{destination}/activate-secret`
pub(super) async fn activate(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = ids(&call)?;
    if let Some(confirmation) = confirmation(&context, &call, "")? {
        return Ok(confirmation);
    }
    let submitted = SubmittedForm::read(&mut call).await?;
    let path = Toast::address(&path_of(page, id), "saved", 1);
    let answer = |_: &Destination| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let activated = context.service.destinations.activate_secret(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(activated, |_| path.clone())))
}

/// `POST /app/pages/{page}/destinations/{destination}/delete`
pub(super) async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = ids(&call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let undo = UndoOffer::default();
    let list = format!("/app/pages/{page}/alerts");
    let path = |(): &()| Toast::address_with_undo(&list, "destination-deleted", 1, undo.token());
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer).undoable(&undo);
    let deleted = context.service.destinations.delete(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(deleted, path)))
}

/// Asks one question about a destination.
async fn ask(
    context: Arc<HttpContext>,
    call: RoutedRequest<SignedIn>,
    (title, text): (&str, &str),
    (path, act): (&str, &'static str),
) -> HandlerResult {
    let (page, id) = ids(&call)?;
    call.caller.caller.require(Permission::ManageAlerts)?;
    let destination = context.service.destinations.get(&call.caller.caller, page, id)?;
    let scene = PageScreen::read(&context, &call)?;
    let question = ScreenQuestion {
        href: format!("{}/{path}", path_of(page, id)),
        back: path_of(page, id),
        title: format!("{title} “{}”?", destination.name),
        text: text.to_owned(),
        act,
        keep: "Keep it as it is",
    };
    scene.question(&context, &call.caller.caller, Section::Alerts, question).await
}
