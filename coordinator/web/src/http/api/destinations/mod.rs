//! Alert destinations of a page: list, create, show, edit, delete, test, and their secrets.

pub(in crate::http) mod body;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::destination::Destination;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::id::DestinationId;
use parallax_core::role::Permission;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::{self as service, Caller};

use super::body_check::{self, ChangeBody};
use super::deliveries::view as deliveries;
use super::{created_reply, enveloped, enveloped_with_warnings, idempotency_key, read_object, write_reply};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/destinations`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let destinations = context.service.destinations.list(&call.caller, call.page_id()?).await?;
    let writes = call.caller.allows(Permission::ManageAlerts);
    let now = context.service.now();
    let destinations: Vec<_> = destinations.iter().map(|it| view::masked_document(it, writes, now)).collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("destinations", &destinations)))
}

/// `POST /api/v1/pages/{page}/destinations`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (edit, warnings) = body_check::read_new(&object, &body::RULES, |body| body::read_new(body));
    let full_json = full_response(&context, warnings);
    let once = IdempotentRequest::new(idempotency_key, &full_json);
    let created = context.service.destinations.create(&call.caller, page, &edit, &once).await?;
    Ok(created_reply(&call.path, "destination", created, &full_json))
}

/// `GET /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let destination = context.service.destinations.get(&call.caller, call.page_id()?, destination(&call)?)?;
    let document = if call.caller.allows(Permission::ManageAlerts) {
        full_response(&context, Vec::new())(&destination)
    } else {
        enveloped("destination", &view::masked_document(&destination, false, context.service.now()))
    };
    Ok(HttpResponse::json_bytes(StatusCode::OK, document))
}

/// `PATCH /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, destination(&call)?);
    let reached = check_access(&context, &call);
    let (mut object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    // If it was deleted, the response is a replay or 404.
    let before = context.service.destinations.get(&call.caller, page, id).ok();
    let now = context.service.now();
    let before = before.and_then(|destination| body_check::to_value(&view::full_document(&destination, now)));
    // Lists show it as null.
    object.retain(|name, value| name != "secret" || !value.is_null());
    let ChangeBody { edit, errors: field_errors, warnings } =
        body_check::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read(body));
    let edit = DestinationEdit { read_only_errors: field_errors, ..edit };
    let full_json = full_response(&context, warnings);
    let once = IdempotentRequest::new(idempotency_key, &full_json);
    let changed = context.service.destinations.edit(&call.caller, page, id, &edit, &once).await?;
    Ok(write_reply(StatusCode::OK, changed, &full_json))
}

/// `DELETE /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, destination(&call)?);
    let nothing = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || check_access(&context, &call))?;
    let once = IdempotentRequest::new(idempotency_key, &nothing);
    let deleted = context.service.destinations.delete(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, nothing))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/rotate-secret`
pub(in crate::http) async fn rotate_secret(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, destination(&call)?);
    let idempotency_key = idempotency_key(&call, || check_access(&context, &call))?;
    let full_json = full_response(&context, Vec::new());
    let once = IdempotentRequest::new(idempotency_key, &full_json);
    let rotated = context.service.destinations.rotate_secret(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::OK, rotated, &full_json))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/activate-secret`
pub(in crate::http) async fn activate_secret(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, destination(&call)?);
    let idempotency_key = idempotency_key(&call, || check_access(&context, &call))?;
    let full_json = full_response(&context, Vec::new());
    let once = IdempotentRequest::new(idempotency_key, &full_json);
    let activated = context.service.destinations.activate_secret(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::OK, activated, &full_json))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/test`
pub(in crate::http) async fn test(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let tested = context.service.deliveries.send_test(&call.caller, call.page_id()?, destination(&call)?).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("delivery", &deliveries::detail(&tested))))
}

fn destination(call: &RoutedRequest<Caller>) -> Result<DestinationId, ApiError> {
    call.id("destination")
}

fn check_access(context: &HttpContext, call: &RoutedRequest<Caller>) -> service::ServiceResult<()> {
    let (Ok(page), Ok(id)) = (call.page_id(), destination(call)) else {
        return Err(service::ServiceError::NotFound);
    };
    context.service.destinations.get(&call.caller, page, id).map(drop)
}

/// Writes the response about one destination for a write key: all fields, and warnings for the caller.
fn full_response(context: &HttpContext, warnings: Vec<String>) -> impl Fn(&Destination) -> Vec<u8> + use<> {
    let now = context.service.now();
    move |destination| enveloped_with_warnings("destination", &view::full_document(destination, now), &warnings)
}
