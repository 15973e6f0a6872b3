//! Monitors of a page: list, create, show, edit, delete.

pub(in crate::http) mod body;
pub(in crate::http) mod history;
pub(in crate::http) mod pings;
pub(in crate::http) mod seen;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::event::Status;

use super::{done, made, object_of, query, ticket, warned, wrapped};
use crate::http::Context;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::monitors::Shown;
use crate::service::once::Once;
use crate::service::{Caller, Service};

/// Rule of the list's parameter `status`.
const STATUSES_RULE: &str = "must be one or several of up, slow, down, unknown, with commas between";

/// Reads a list of statuses with commas between.
pub(in crate::http) fn statuses(text: &str) -> Option<Vec<Status>> {
    text.split(',').map(|name| Status::ALL.into_iter().find(|status| status.name() == name.trim())).collect()
}

/// `GET /api/v1/pages/{page}/monitors`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let service = &context.service;
    let page = call.page()?;
    service.page(&call.caller, page)?;
    let wanted = query::value(&call.query, "status", STATUSES_RULE, statuses)?;
    let monitors = service.monitors(&call.caller, page).await?;
    let is_wanted = |shown: &&Shown| {
        wanted.as_ref().is_none_or(|wanted: &Vec<Status>| wanted.contains(&shown.view.status))
    };
    let monitors: Vec<_> = monitors
        .iter()
        .filter(is_wanted)
        .map(|shown| view::document(shown, service.ping_url(&call.caller, &shown.monitor)))
        .collect();
    Ok(Reply::written(StatusCode::OK, wrapped("monitors", &monitors)))
}

/// `POST /api/v1/pages/{page}/monitors`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let page = call.page()?;
    service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let edit = body::read(&object);
    let caller = &call.caller;
    let answer = |shown: &Shown| saved(service, caller, shown);
    let new = service.create_monitor(caller, page, &edit, &Once::new(ticket, &answer)).await?;
    Ok(made(&format!("/api/v1/pages/{page}/monitors"), "monitor", new, answer))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let service = &context.service;
    let shown = service.monitor(&call.caller, call.page()?, call.monitor()?).await?;
    let ping_url = service.ping_url(&call.caller, &shown.monitor);
    Ok(Reply::written(StatusCode::OK, wrapped("monitor", &view::document(&shown, ping_url))))
}

/// `PATCH /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let (page, monitor) = (call.page()?, call.monitor()?);
    let reached = service.reaches_monitor(&call.caller, page, monitor);
    let (object, ticket) = object_of(&context, &mut call, reached).await?;
    let edit = body::read(&object);
    let caller = &call.caller;
    let answer = |shown: &Shown| saved(service, caller, shown);
    let changed = service.edit_monitor(caller, page, monitor, &edit, &Once::new(ticket, &answer)).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// `DELETE /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, monitor) = (call.page()?, call.monitor()?);
    let answer = |(): &()| Vec::new();
    let ticket = ticket(&call, || context.service.reaches_monitor(&call.caller, page, monitor))?;
    let once = Once::new(ticket, &answer);
    let deleted = context.service.delete_monitor(&call.caller, page, monitor, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, answer))
}

/// A monitor that was saved, and what its owner should know of it.
fn saved(service: &Service, caller: &Caller, shown: &Shown) -> Vec<u8> {
    let document = view::document(shown, service.ping_url(caller, &shown.monitor));
    warned("monitor", &document, &view::warnings(shown))
}
