//! One change to many monitors of a page.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::monitor::bulk_edit::{MAX_BULK_MONITORS, MonitorBulkEdit};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::validation::ValidationErrors;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::bulk::{BulkReport, BulkResult};
use parallax_service::{Caller, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::body::{self, read_change, read_shared};
use crate::http::HttpContext;
use crate::http::api::body_check::{self, BodyRules, MAX_WARNINGS, SET_BY_SERVICE};
use crate::http::api::{enveloped_with_warnings, write_reply};
use crate::http::body_fields::{BodyFields, RecordedFields, field};
use crate::http::error::{HandlerResult, error_code};
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;

/// Validation rules of the body.
const RULES: BodyRules =
    BodyRules { hints: &[], other_routes: &[], default_rule: SET_BY_SERVICE, echoes: &[], volatile: &[] };

/// Result for one monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorUpdateResult")]
pub(in crate::http) struct BulkResultDocument {
    /// Monitor id as sent.
    id: String,
    #[schemars(with = "BulkStatus")]
    status: BulkStatus,
    /// Reason, if it was refused.
    error: Option<ItemErrorDocument>,
}

/// Outcome for one monitor.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorUpdateStatus")]
enum BulkStatus {
    Changed,
    Unchanged,
    Refused,
}

/// Error of one item, as a request of its own would get it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ItemError")]
struct ItemErrorDocument {
    /// Machine-readable reason.
    code: &'static str,
    /// Human-readable reason.
    message: String,
    /// Every problem with the item, if the code is `bad_request`.
    fields: Option<Vec<ItemErrorField>>,
}

/// Invalid field of an item.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ItemErrorField {
    /// Name of the field.
    field: String,
    /// The rule it breaks, in words.
    rule: String,
}

/// `POST /api/v1/pages/{page}/monitors/bulk`
pub(in crate::http) async fn update(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (edit, mut warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    warnings.extend(object.get("set").and_then(Value::as_object).map(set_warnings).unwrap_or_default());
    warnings.truncate(MAX_WARNINGS);
    let answer = |report: &BulkReport| {
        let results: Vec<_> = report.results.iter().map(document).collect();
        enveloped_with_warnings("results", &results, &warnings)
    };
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let report = service.monitors.change_many(&call.caller, page, &edit, &once).await?;
    Ok(write_reply(StatusCode::OK, report, answer))
}

/// Reads the body.
pub(in crate::http) fn read(mut body: impl BodyFields) -> MonitorBulkEdit {
    let ids = field("monitorIds", "Ids of the monitors, each once.").required().min_items(1);
    MonitorBulkEdit {
        monitor_ids: body.ids(ids, MAX_BULK_MONITORS),
        set: body
            .object(
                field("set", "Fields to change on each monitor. Required unless `delete` is true."),
                |fields| drop(read_shared(fields)),
            )
            .map(|object| read_set(&object)),
        delete: body.boolean(field("delete", "Deletes the monitors and their history.").default(false)),
        notify: body.boolean(field(
            "notify",
            "Notify subscribers that incidents are over because their monitors are no longer monitored. Default: false.",
        )),
    }
}

/// Reads the change. A field of a monitor that can't be the same for many is refused: ignoring it would look like
/// success.
fn read_set(object: &JsonObject) -> MonitorEdit {
    let mut fields = RecordedFields::new(object);
    let edit = read_shared(&mut fields);
    let mut all = RecordedFields::new(object);
    drop(read_change(&mut all));
    let mut errors = ValidationErrors::new();
    let is_own = |name: &&&str| !fields.names().contains(name) && object.contains_key(**name);
    for name in all.names().iter().filter(is_own) {
        errors.add(*name, format!("can't be set for many monitors: these can, {}", fields.names().join(", ")));
    }
    MonitorEdit { read_only_errors: errors, ..edit }
}

/// Warnings about unknown fields of the change.
fn set_warnings(set: &JsonObject) -> Vec<String> {
    let (_, warnings) = body_check::read_new(set, &body::RULES, |fields| drop(read_shared(fields)));
    warnings.into_iter().map(|warning| format!("set.{warning}")).collect()
}

fn document(result: &BulkResult) -> BulkResultDocument {
    let (status, error) = match &result.outcome {
        Ok(true) => (BulkStatus::Changed, None),
        Ok(false) => (BulkStatus::Unchanged, None),
        Err(error) => (BulkStatus::Refused, Some(item_error(error))),
    };
    BulkResultDocument { id: result.id.clone(), status, error }
}

fn item_error(error: &ServiceError) -> ItemErrorDocument {
    let fields = match error {
        ServiceError::Invalid(faults) => Some(
            faults
                .iter()
                .map(|fault| ItemErrorField { field: fault.field.clone(), rule: fault.rule.clone() })
                .collect(),
        ),
        _ => None,
    };
    ItemErrorDocument { code: error_code(error), message: error.to_string(), fields }
}
