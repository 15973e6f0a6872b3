//! Deploy markers of a page: list, create, delete.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::deploy::{Deploy, DeployEdit};
use serde_json::{Value, json};

use super::{done, wrapped};
use crate::http::Context;
use crate::http::json::Object;
use crate::http::patch;
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
    let edit = read(&object);
    let answer = |deploy: &Deploy| wrapped("deploy", &document(deploy));
    let once = Once::new(ticket, &answer);
    let made = context.service.create_deploy(&call.caller, page, &edit, &once).await?;
    Ok(done(StatusCode::CREATED, made, answer))
}

/// `DELETE /api/v1/pages/{page}/deploys/{deploy}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, deploy) = (call.page()?, call.id("deploy")?);
    let answer = |(): &()| Vec::new();
    let once = Once::new(call.ticket(&[])?, &answer);
    let deleted = context.service.delete_deploy(&call.caller, page, deploy, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, answer))
}

fn read(body: &Object) -> DeployEdit {
    DeployEdit {
        version: patch::text(body, "version"),
        url: patch::text(body, "url"),
        note: patch::text(body, "note"),
        at: patch::text(body, "at"),
        monitor_ids: patch::texts(body, "monitorIds"),
    }
}

fn document(deploy: &Deploy) -> Value {
    let monitors = deploy.monitors.as_ref();
    json!({
        "id": deploy.id.to_string(),
        "pageId": deploy.page.to_string(),
        "version": deploy.version,
        "url": deploy.url,
        "note": deploy.note,
        "monitorIds": monitors.map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "at": deploy.at.to_string(),
        "createdAt": deploy.created_at.to_string(),
    })
}
