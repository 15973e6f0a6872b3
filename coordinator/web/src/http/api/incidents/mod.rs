//! Incidents and maintenance windows of a page: list, open, show, edit, delete, and their updates.

pub(in crate::http) mod body;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::id::IncidentId;
use parallax_core::incident::edit::IncidentEdit;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;
use serde_json::Value;

use super::body_check::{self, ChangeBody};
use super::{created_reply, enveloped, enveloped_with_warnings, idempotency_key, read_object, to_json, write_reply};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body::JsonObject;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/incidents`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let filter = body::read_query(&call.query)?;
    let incidents = context.service.incidents.list(&call.caller, page, filter).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, to_json(&view::list(&incidents))))
}

/// `POST /api/v1/pages/{page}/incidents`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (edit, warnings) = body_check::read_new(&object, &body::NEW_RULES, |body| body::read_new(body));
    let answer = incident_json_with(warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let opened = context.service.incidents.open(&call.caller, page, &edit, &once).await?;
    Ok(created_reply(&call.path, "incident", opened, &answer))
}

/// `GET /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let detail = context.service.incidents.get(&call.caller, call.page_id()?, incident(&call)?).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, incident_json(&detail)))
}

/// `PATCH /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, incident(&call)?);
    let reached = context.service.incidents.check_access(&call.caller, page, id);
    let (mut object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    // If it was deleted, the response is a replay or 404.
    let before = context.service.incidents.get(&call.caller, page, id).await.ok();
    let kind = before.as_ref().map(|detail| detail.incident.kind).unwrap_or_default();
    let mut before = before.and_then(|detail| body_check::to_value(&view::document(&detail)));
    accept_newer_updates(&object, before.as_mut());
    let ChangeBody { edit, errors: field_errors, warnings } =
        body_check::read_change(&mut object, before.as_ref(), body::change_rules(kind), |body| body::read_change(body));
    let edit = IncidentEdit { read_only_errors: field_errors, ..edit };
    let answer = incident_json_with(warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let changed = context.service.incidents.edit(&call.caller, page, id, &edit, &once).await?;
    Ok(write_reply(StatusCode::OK, changed, &answer))
}

/// `DELETE /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, incident(&call)?);
    let nothing = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || context.service.incidents.check_access(&call.caller, page, id))?;
    let once = IdempotentRequest::new(idempotency_key, &nothing);
    let deleted = context.service.incidents.delete(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, nothing))
}

/// `POST /api/v1/pages/{page}/incidents/{incident}/updates`
pub(in crate::http) async fn update(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, incident(&call)?);
    let reached = context.service.incidents.check_access(&call.caller, page, id);
    let (object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    let (post, warnings) = body_check::read_new(&object, &body::UPDATE_RULES, |body| body::read_update(body));
    let answer = incident_json_with(warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let outcome = context.service.incidents.post_update(&call.caller, page, id, &post, &once).await?;
    Ok(write_reply(StatusCode::CREATED, outcome, &answer))
}

fn incident(call: &RoutedRequest<Caller>) -> Result<IncidentId, ApiError> {
    call.id("incident")
}

/// Undoes in `current` what changed since the sender read the incident, so that sending it back is not a change:
/// updates posted since, updates of an automatic incident that were renewed in place, and a status that followed
/// them.
fn accept_newer_updates(sent: &JsonObject, current: Option<&mut Value>) {
    let Some(Value::Object(current)) = current else { return };
    let is_automatic = current.get("automatic") == Some(&Value::Bool(true));
    let Some(Value::Array(read)) = sent.get("updates") else { return };
    let Some(Value::Array(updates)) = current.get_mut("updates") else { return };
    let is_one = |one: &Value, other: &Value| {
        one == other || (is_automatic && ["id", "createdAt"].iter().all(|name| has_same_value(one, other, name)))
    };
    if !read.iter().all(|one| updates.iter().any(|other| is_one(one, other))) {
        return;
    }
    updates.clone_from(read);
    let followed = read.first().and_then(|newest| newest.get("status"));
    if let Some(status) = sent.get("status").filter(|status| followed == Some(*status)) {
        current.insert("status".to_owned(), status.clone());
        if sent.get("resolvedAt").is_some_and(Value::is_null) {
            current.insert("resolvedAt".to_owned(), Value::Null);
        }
    }
}

/// Returns true if two objects have the same value for that name.
fn has_same_value(one: &Value, other: &Value, name: &str) -> bool {
    one.get(name).is_some_and(|value| other.get(name) == Some(value))
}

fn incident_json(detail: &IncidentDetail) -> Vec<u8> {
    enveloped("incident", &view::document(detail))
}

fn incident_json_with(warnings: Vec<String>) -> impl Fn(&IncidentDetail) -> Vec<u8> {
    move |detail| enveloped_with_warnings("incident", &view::document(detail), &warnings)
}
