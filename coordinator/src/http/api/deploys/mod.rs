//! Deploy markers of a page: list, create, delete.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::deploy::{Deploy, DeployEdit, MAX_NOTE, MAX_URL, MAX_VERSION};
use parallax_core::incident::MAX_AFFECTED;
use schemars::JsonSchema;
use serde::Serialize;

use super::sent::{self, Rules};
use super::{done, made, ticket, warned, wrapped};
use crate::http::Context;
use crate::http::fields::{Fields, field};
use crate::http::openapi::words;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;
use crate::service::once::Once;

/// `GET /api/v1/pages/{page}/deploys`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let deploys = context.service.deploys(&call.caller, call.page()?).await?;
    let deploys: Vec<_> = deploys.iter().map(document).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("deploys", &deploys)))
}

/// `POST /api/v1/pages/{page}/deploys`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let (edit, warnings) = sent::read_new(&object, &RULES, |body| read(body));
    let answer = |deploy: &Deploy| warned("deploy", &document(deploy), &warnings);
    let once = Once::new(ticket, &answer);
    let marked = context.service.create_deploy(&call.caller, page, &edit, &once).await?;
    Ok(made(&call.path, "deploy", marked, answer))
}

/// `DELETE /api/v1/pages/{page}/deploys/{deploy}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, deploy) = (call.page()?, call.id("deploy")?);
    let answer = |(): &()| Vec::new();
    let ticket = ticket(&call, || context.service.page(&call.caller, page).map(drop))?;
    let once = Once::new(ticket, &answer);
    let deleted = context.service.delete_deploy(&call.caller, page, deploy, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, answer))
}

/// Validation rules of the body.
const RULES: Rules = Rules {
    hints: &[
        ("monitors", "send their ids as monitorIds"),
        ("message", "send it as note"),
        ("createdAt", "send the deploy time as at"),
    ],
    elsewhere: &[],
    other: "",
    echoes: &[],
    measured: &[],
};

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl Fields) -> DeployEdit {
    DeployEdit {
        version: body.text(
            field("version", "Deployed version, tag or commit.")
                .required()
                .characters(1, MAX_VERSION)
                .example("v2.4.1"),
        ),
        url: body.text(field("url", "Link to the release.").characters(0, MAX_URL).nullable()),
        note: body.text(field("note", "Short note.").characters(0, MAX_NOTE).nullable()),
        at: body.text(field("at", "Time of the deploy. Default: now.").moment().nullable()),
        monitor_ids: body.ids(
            field("monitorIds", "Affected monitors, by id. Null or empty: all.").nullable(),
            MAX_AFFECTED,
        ),
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
    #[schemars(with = "words::Moment")]
    at: String,
    /// Creation time of the marker.
    #[schemars(with = "words::Moment")]
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
