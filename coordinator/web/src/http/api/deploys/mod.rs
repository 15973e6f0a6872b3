//! Deploy markers of a page: list, create, delete.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::deploy::{Deploy, DeployEdit, MAX_NOTE, MAX_URL, MAX_VERSION};
use parallax_core::incident::MAX_AFFECTED;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use schemars::JsonSchema;
use serde::Serialize;

use super::body_check::{self, BodyRules};
use super::{created_reply, enveloped, enveloped_with_warnings, idempotency_key, write_reply};
use crate::http::HttpContext;
use crate::http::body_fields::{BodyFields, field};
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/deploys`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let deploys = context.service.deploys.list(&call.caller, call.page_id()?).await?;
    let deploys: Vec<_> = deploys.iter().map(document).collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("deploys", &deploys)))
}

/// `POST /api/v1/pages/{page}/deploys`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (edit, warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    let answer = |deploy: &Deploy| enveloped_with_warnings("deploy", &document(deploy), &warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let marked = context.service.deploys.create(&call.caller, page, &edit, &once).await?;
    Ok(created_reply(&call.path, "deploy", marked, answer))
}

/// `DELETE /api/v1/pages/{page}/deploys/{deploy}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, deploy) = (call.page_id()?, call.id("deploy")?);
    let answer = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || context.service.pages.get(&call.caller, page).map(drop))?;
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let deleted = context.service.deploys.delete(&call.caller, page, deploy, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, answer))
}

/// Validation rules of the body.
const RULES: BodyRules = BodyRules {
    hints: &[
        ("monitors", "send their ids as monitorIds"),
        ("message", "send it as note"),
        ("createdAt", "send the deploy time as at"),
    ],
    other_routes: &[],
    default_rule: "",
    echoes: &[],
    volatile: &[],
};

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> DeployEdit {
    DeployEdit {
        version: body.text(
            field("version", "Deployed version, tag or commit.").required().length(1, MAX_VERSION).example("v2.4.1"),
        ),
        url: body.text(field("url", "Link to the release.").length(0, MAX_URL).nullable()),
        note: body.text(field("note", "Short note.").length(0, MAX_NOTE).nullable()),
        at: body.text(field("at", "Time of the deploy. Default: now.").date_time().nullable()),
        monitor_ids: body
            .ids(field("monitorIds", "Affected monitors, by id. Null or empty: all.").nullable(), MAX_AFFECTED),
    }
}

/// A deploy marker as the API returns it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Deploy")]
pub(in crate::http) struct DeployDocument {
    /// Deploy id.
    id: String,
    /// Page it is on.
    page_id: String,
    /// Deployed version, tag or commit.
    version: String,
    /// Link to the release.
    url: Option<String>,
    /// Short note.
    note: Option<String>,
    /// Affected monitors; null means all.
    monitor_ids: Option<Vec<String>>,
    /// Time of the deploy.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    /// Creation time of the marker.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

fn document(deploy: &Deploy) -> DeployDocument {
    let monitors = deploy.monitors.as_ref();
    DeployDocument {
        id: deploy.id.to_string(),
        page_id: deploy.page.to_string(),
        version: deploy.version.clone(),
        url: deploy.url.clone(),
        note: deploy.note.clone(),
        monitor_ids: monitors.map(|ids| ids.iter().map(ToString::to_string).collect()),
        at: deploy.at.to_string(),
        created_at: deploy.created_at.to_string(),
    }
}
