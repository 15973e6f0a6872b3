//! A page's alert settings: show, edit.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::alert_settings::{AlertSettings, AlertSettingsEdit, REPEAT_MINUTES};
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use schemars::JsonSchema;
use serde::Serialize;

use super::body_check::{self, BodyRules, ChangeBody, SET_BY_SERVICE};
use super::{enveloped, enveloped_with_warnings, write_reply};
use crate::http::HttpContext;
use crate::http::body_fields::{BodyFields, field};
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/alerts`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let settings = context.service.alert_settings.get(&call.caller, call.page_id()?)?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("alerts", &document(&settings))))
}

/// `PATCH /api/v1/pages/{page}/alerts`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    let before = body_check::to_value(&document(&context.service.alert_settings.get(&call.caller, page)?));
    let (mut object, idempotency_key) = call.json_object().await?;
    let ChangeBody { edit, errors: field_errors, warnings } =
        body_check::read_change(&mut object, before.as_ref(), &RULES, |body| read(body));
    let edit = AlertSettingsEdit { read_only_errors: field_errors, ..edit };
    let answer = |settings: &AlertSettings| enveloped_with_warnings("alerts", &document(settings), &warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let changed = context.service.alert_settings.edit(&call.caller, page, &edit, &once).await?;
    Ok(write_reply(StatusCode::OK, changed, answer))
}

/// Validation rules of the body.
const RULES: BodyRules = BodyRules {
    hints: &[("repeat", "send it as repeatMinutes"), ("repeatSeconds", "send it as repeatMinutes")],
    other_routes: &[],
    default_rule: SET_BY_SERVICE,
    echoes: &[],
    volatile: &[],
};

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> AlertSettingsEdit {
    AlertSettingsEdit {
        repeat_minutes: body.integer(
            field("repeatMinutes", "Minutes between repeated alerts during an outage. Null: one alert.")
                .range(*REPEAT_MINUTES.start(), *REPEAT_MINUTES.end())
                .nullable()
                .example(30),
        ),
        automatic_incidents: body.boolean(
            field("automaticIncidents", "Open an incident automatically when a monitor goes down. Null: true.")
                .nullable(),
        ),
        ..AlertSettingsEdit::default()
    }
}

/// Alert settings of a page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AlertSettings")]
pub(in crate::http) struct AlertsDocument {
    /// Minutes between repeated alerts during an outage; null means one alert.
    repeat_minutes: Option<u16>,
    /// True if an incident opens automatically when a monitor goes down.
    automatic_incidents: bool,
}

fn document(settings: &AlertSettings) -> AlertsDocument {
    let AlertSettings { repeat_minutes, automatic_incidents } = *settings;
    AlertsDocument { repeat_minutes, automatic_incidents }
}
