//! Alert destinations of a page: list, create, show, edit, delete, test, and their secrets.

pub(in crate::http) mod body;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::destination::Destination;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::id::DestinationId;

use super::deliveries::view as deliveries;
use super::sent::{self, Sent};
use super::{done, made, object_of, ticket, warned, wrapped};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::once::Once;
use crate::service::{self, Caller};

/// `GET /api/v1/pages/{page}/destinations`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let destinations = context.service.destinations(&call.caller, call.page()?).await?;
    let writes = call.caller.key.access.writes();
    let now = context.service.now();
    let destinations: Vec<_> = destinations.iter().map(|it| view::listed(it, writes, now)).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("destinations", &destinations)))
}

/// `POST /api/v1/pages/{page}/destinations`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let (edit, warnings) = sent::read_new(&object, &body::RULES, |body| body::read_new(body));
    let whole = whole(&context, warnings);
    let once = Once::new(ticket, &whole);
    let created = context.service.create_destination(&call.caller, page, &edit, &once).await?;
    Ok(made(&call.path, "destination", created, &whole))
}

/// `GET /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let destination = context.service.destination(&call.caller, call.page()?, destination(&call)?)?;
    let written = if call.caller.key.access.writes() {
        whole(&context, Vec::new())(&destination)
    } else {
        wrapped("destination", &view::listed(&destination, false, context.service.now()))
    };
    Ok(Reply::written(StatusCode::OK, written))
}

/// `PATCH /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, destination(&call)?);
    let reached = reaches(&context, &call);
    let (mut object, ticket) = object_of(&context, &mut call, reached).await?;
    // If it was deleted, the response is a replay or 404.
    let before = context.service.destination(&call.caller, page, id).ok();
    let now = context.service.now();
    let before = before.and_then(|destination| sent::shown(&view::whole(&destination, now)));
    // Lists show it as null.
    object.retain(|name, value| name != "secret" || !value.is_null());
    let Sent { edit, refused, warnings } =
        sent::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read(body));
    let edit = DestinationEdit { refused, ..edit };
    let whole = whole(&context, warnings);
    let once = Once::new(ticket, &whole);
    let changed = context.service.edit_destination(&call.caller, page, id, &edit, &once).await?;
    Ok(done(StatusCode::OK, changed, &whole))
}

/// `DELETE /api/v1/pages/{page}/destinations/{destination}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, destination(&call)?);
    let nothing = |(): &()| Vec::new();
    let ticket = ticket(&call, || reaches(&context, &call))?;
    let once = Once::new(ticket, &nothing);
    let deleted = context.service.delete_destination(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, nothing))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/rotate-secret`
pub(in crate::http) async fn rotate_secret(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, destination(&call)?);
    let ticket = ticket(&call, || reaches(&context, &call))?;
    let whole = whole(&context, Vec::new());
    let once = Once::new(ticket, &whole);
    let rotated = context.service.rotate_secret(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::OK, rotated, &whole))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/activate-secret`
pub(in crate::http) async fn activate_secret(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, destination(&call)?);
    let ticket = ticket(&call, || reaches(&context, &call))?;
    let whole = whole(&context, Vec::new());
    let once = Once::new(ticket, &whole);
    let activated = context.service.activate_secret(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::OK, activated, &whole))
}

/// `POST /api/v1/pages/{page}/destinations/{destination}/test`
pub(in crate::http) async fn test(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let tested = context.service.test_destination(&call.caller, call.page()?, destination(&call)?).await?;
    Ok(Reply::written(StatusCode::OK, wrapped("delivery", &deliveries::opened(&tested))))
}

fn destination(call: &Call<Caller>) -> Result<DestinationId, Refused> {
    call.id("destination")
}

fn reaches(context: &Context, call: &Call<Caller>) -> service::Result<()> {
    let (Ok(page), Ok(id)) = (call.page(), destination(call)) else { return Err(service::Error::NotFound) };
    context.service.destination(&call.caller, page, id).map(drop)
}

/// Writes the response about one destination for a write key: all fields, and warnings for the caller.
fn whole(context: &Context, warnings: Vec<String>) -> impl Fn(&Destination) -> Vec<u8> + use<> {
    let now = context.service.now();
    move |destination| warned("destination", &view::whole(destination, now), &warnings)
}
