//! Incidents and maintenance windows of a page: list, open, show, edit, delete, and their updates.

pub(in crate::http) mod body;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::id::IncidentId;
use parallax_core::incident::edit::IncidentEdit;
use serde_json::Value;

use super::sent::{self, Sent};
use super::{bare, done, made, object_of, ticket, warned, wrapped};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::json::Object;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;
use crate::service::incidents::Shown;
use crate::service::once::Once;

/// `GET /api/v1/pages/{page}/incidents`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let wanted = body::read_query(&call.query)?;
    let incidents = context.service.incidents(&call.caller, page, wanted).await?;
    Ok(Reply::written(StatusCode::OK, bare(&view::list(&incidents))))
}

/// `POST /api/v1/pages/{page}/incidents`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let (edit, warnings) = sent::read_new(&object, &body::NEW, |body| body::read_new(body));
    let answer = answer_with(warnings);
    let once = Once::new(ticket, &answer);
    let opened = context.service.open_incident(&call.caller, page, &edit, &once).await?;
    Ok(made(&call.path, "incident", opened, &answer))
}

/// `GET /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let shown = context.service.incident(&call.caller, call.page()?, incident(&call)?).await?;
    Ok(Reply::written(StatusCode::OK, answer(&shown)))
}

/// `PATCH /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, incident(&call)?);
    let reached = context.service.reaches_incident(&call.caller, page, id);
    let (mut object, ticket) = object_of(&context, &mut call, reached).await?;
    // If it was deleted, the response is a replay or 404.
    let before = context.service.incident(&call.caller, page, id).await.ok();
    let kind = before.as_ref().map(|shown| shown.incident.kind).unwrap_or_default();
    let mut before = before.and_then(|shown| sent::shown(&view::document(&shown)));
    keep_posted(&object, before.as_mut());
    let Sent { edit, refused, warnings } =
        sent::read_change(&mut object, before.as_ref(), body::rules(kind), |body| body::read_change(body));
    let edit = IncidentEdit { refused, ..edit };
    let answer = answer_with(warnings);
    let once = Once::new(ticket, &answer);
    let changed = context.service.edit_incident(&call.caller, page, id, &edit, &once).await?;
    Ok(done(StatusCode::OK, changed, &answer))
}

/// `DELETE /api/v1/pages/{page}/incidents/{incident}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, incident(&call)?);
    let nothing = |(): &()| Vec::new();
    let ticket = ticket(&call, || context.service.reaches_incident(&call.caller, page, id))?;
    let once = Once::new(ticket, &nothing);
    let deleted = context.service.delete_incident(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, nothing))
}

/// `POST /api/v1/pages/{page}/incidents/{incident}/updates`
pub(in crate::http) async fn update(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, incident(&call)?);
    let reached = context.service.reaches_incident(&call.caller, page, id);
    let (object, ticket) = object_of(&context, &mut call, reached).await?;
    let (post, warnings) = sent::read_new(&object, &body::POSTED, |body| body::read_update(body));
    let answer = answer_with(warnings);
    let once = Once::new(ticket, &answer);
    let posted = context.service.post_update(&call.caller, page, id, &post, &once).await?;
    Ok(done(StatusCode::CREATED, posted, &answer))
}

fn incident(call: &Call<Caller>) -> Result<IncidentId, Refused> {
    call.id("incident")
}

/// Undoes in `shown` what changed since the sender read the incident, so that sending it back is not a change:
/// updates posted since, updates of an automatic incident that were renewed in place, and a status that followed
/// them.
fn keep_posted(sent: &Object, shown: Option<&mut Value>) {
    let Some(Value::Object(shown)) = shown else { return };
    let is_automatic = shown.get("automatic") == Some(&Value::Bool(true));
    let Some(Value::Array(read)) = sent.get("updates") else { return };
    let Some(Value::Array(posted)) = shown.get_mut("updates") else { return };
    let is_one = |one: &Value, other: &Value| {
        one == other || (is_automatic && ["id", "createdAt"].iter().all(|name| is_given(one, other, name)))
    };
    if !read.iter().all(|one| posted.iter().any(|other| is_one(one, other))) {
        return;
    }
    posted.clone_from(read);
    let followed = read.first().and_then(|newest| newest.get("status"));
    if let Some(status) = sent.get("status").filter(|status| followed == Some(*status)) {
        shown.insert("status".to_owned(), status.clone());
        if sent.get("resolvedAt").is_some_and(Value::is_null) {
            shown.insert("resolvedAt".to_owned(), Value::Null);
        }
    }
}

/// Returns true if two objects have the same value for that name.
fn is_given(one: &Value, other: &Value, name: &str) -> bool {
    one.get(name).is_some_and(|value| other.get(name) == Some(value))
}

fn answer(shown: &Shown) -> Vec<u8> {
    wrapped("incident", &view::document(shown))
}

fn answer_with(warnings: Vec<String>) -> impl Fn(&Shown) -> Vec<u8> {
    move |shown| warned("incident", &view::document(shown), &warnings)
}
