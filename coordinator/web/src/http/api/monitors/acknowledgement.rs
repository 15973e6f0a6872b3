//! Acknowledgement of a monitor's running outage: the routes, their body, and the acknowledgement as the API returns it.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::acknowledgement::{AcknowledgementRequest, MAX_NOTE};
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::MonitorWithState;
use schemars::JsonSchema;
use serde::Serialize;

use super::saved_response;
use crate::http::HttpContext;
use crate::http::api::body_check::{self, BodyRules};
use crate::http::api::{idempotency_key, read_object, write_reply};
use crate::http::body_fields::{BodyFields, field};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::openapi::value_schemas;
use crate::http::routed_request::RoutedRequest;

/// Validation rules of the body.
const RULES: BodyRules = BodyRules {
    hints: &[("message", "send it as note"), ("by", "it is the name of the key")],
    other_routes: &[],
    default_rule: "",
    echoes: &[],
    volatile: &["at"],
};

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> AcknowledgementRequest {
    AcknowledgementRequest {
        note: body
            .text(field("note", "Note of one line.").length(0, MAX_NOTE).nullable().example("Restarting the cache")),
    }
}

/// `POST /api/v1/pages/{page}/monitors/{monitor}/acknowledge`
pub(in crate::http) async fn acknowledge(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    let reached = service.monitors.check_access(&call.caller, page, monitor);
    // An unreachable monitor is reported before an error in the body.
    call.fill_empty_body().await.or_else(|fault| reached.clone().map_err(ApiError::from).and(Err(fault)))?;
    let (object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    let (request, warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    let caller = &call.caller;
    let answer = |monitor: &MonitorWithState| saved_response(service, caller, monitor, &warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let acknowledged = service.monitors.acknowledge(caller, page, monitor, &request, &once).await?;
    Ok(write_reply(StatusCode::OK, acknowledged, answer))
}

/// `DELETE /api/v1/pages/{page}/monitors/{monitor}/acknowledge`
pub(in crate::http) async fn withdraw(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    let monitors = &context.service.monitors;
    let answer = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || monitors.check_access(&call.caller, page, monitor))?;
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let withdrawn = monitors.withdraw_acknowledgement(&call.caller, page, monitor, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, withdrawn, answer))
}

/// Acknowledgement of a running outage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Acknowledgement")]
pub(super) struct AcknowledgementDocument {
    /// Name of the person or API key that acknowledged it.
    by: String,
    /// Time of the acknowledgement.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    /// Note of one line.
    note: Option<String>,
}

/// Returns the acknowledgement of the running outage; none for one that is over.
pub(super) fn document(current: &MonitorWithState) -> Option<AcknowledgementDocument> {
    let acknowledgement = current.monitor.acknowledgement_of(current.view.outage_since?)?;
    Some(AcknowledgementDocument {
        by: acknowledgement.by.to_string(),
        at: acknowledgement.at.to_string(),
        note: acknowledgement.note.clone(),
    })
}
