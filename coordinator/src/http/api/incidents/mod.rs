//! Incidents and maintenance of a page: list, open, show, edit, delete, and their updates.

pub(in crate::http) mod body;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::id::IncidentId;

use super::{done, made, object_of, ticket, wrapped};
use crate::http::Context;
use crate::http::error::Refused;
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
    let incidents: Vec<_> = incidents.iter().map(view::document).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("incidents", &incidents)))
}

/// `POST /api/v1/pages/{page}/incidents`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let edit = body::read_new(&object);
    let once = Once::new(ticket, &answer);
    let opened = context.service.open_incident(&call.caller, page, &edit, &once).await?;
    Ok(made(&call.path, "incident", opened, answer))
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
    let (object, ticket) = object_of(&context, &mut call, reached).await?;
    let edit = body::read_change(&object);
    let once = Once::new(ticket, &answer);
    let changed = context.service.edit_incident(&call.caller, page, id, &edit, &once).await?;
    Ok(done(StatusCode::OK, changed, answer))
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
    let post = body::read_update(&object);
    let once = Once::new(ticket, &answer);
    let posted = context.service.post_update(&call.caller, page, id, &post, &once).await?;
    Ok(done(StatusCode::CREATED, posted, answer))
}

fn incident(call: &Call<Caller>) -> Result<IncidentId, Refused> {
    call.id("incident")
}

fn answer(shown: &Shown) -> Vec<u8> {
    wrapped("incident", &view::document(shown))
}
