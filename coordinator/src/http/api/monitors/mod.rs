//! Monitors of a page: list, create, show, edit, delete.

pub(in crate::http) mod body;
pub(in crate::http) mod history;
pub(in crate::http) mod pings;
mod readable;
pub(in crate::http) mod seen;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::event::Status;
use parallax_core::given::Given;
use parallax_core::monitor::edit::MonitorEdit;

use super::sent::{self, Sent};
use super::{done, made, object_of, query, ticket, warned, wrapped};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::monitors::Shown;
use crate::service::once::Once;
use crate::service::{Caller, Service};

/// Rule for the list's parameter `status`.
const STATUSES_RULE: &str = "must be one or more of up, slow, down, unknown, separated by commas";

/// Warning for the sender of `paused: false` if that does not resume checks.
const STAYS_PAUSED: &str = "the monitor stays paused: the account's plan has no component monitors";

/// Reads a comma-separated list of statuses.
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
    let (edit, warnings) = sent::read_new(&object, &body::RULES, |body| body::read(body));
    let caller = &call.caller;
    let answer = |shown: &Shown| saved(service, caller, shown, &warnings);
    let new = service.create_monitor(caller, page, &edit, &Once::new(ticket, &answer)).await?;
    Ok(made(&format!("/api/v1/pages/{page}/monitors"), "monitor", new, answer))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let service = &context.service;
    let shown = service.monitor(&call.caller, call.page()?, call.monitor()?).await?;
    let ping_url = service.ping_url(&call.caller, &shown.monitor);
    let body = warned("monitor", &view::document(&shown, ping_url), &view::warnings(&shown));
    Ok(Reply::written(StatusCode::OK, body))
}

/// `PATCH /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let (page, monitor) = (call.page()?, call.monitor()?);
    let reached = service.reaches_monitor(&call.caller, page, monitor);
    let (mut object, ticket) = object_of(&context, &mut call, reached).await?;
    let caller = &call.caller;
    // If it was deleted, the response is a replay or 404.
    let before = service.monitor(caller, page, monitor).await.ok();
    let before = before
        .and_then(|shown| sent::shown(&view::document(&shown, service.ping_url(caller, &shown.monitor))));
    let Sent { edit, refused, warnings } =
        sent::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read_change(body));
    let edit = MonitorEdit { refused, ..edit };
    let resumes = matches!(edit.paused, Given::Value(false) | Given::Null);
    let answer = |shown: &Shown| {
        let stays = (resumes && shown.paused_by_plan).then(|| STAYS_PAUSED.to_owned());
        saved(service, caller, shown, &warnings.iter().cloned().chain(stays).collect::<Vec<_>>())
    };
    let changed = service.edit_monitor(caller, page, monitor, &edit, &Once::new(ticket, &answer)).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// `DELETE /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, monitor) = (call.page()?, call.monitor()?);
    let answer = |(): &()| Vec::new();
    let reaches = || context.service.reaches_monitor(&call.caller, page, monitor);
    let ticket = ticket(&call, reaches)?;
    let notify = query::flag(&call.query, "notify");
    let notify = notify.or_else(|fault| reaches().map_err(Refused::from).and(Err(fault.into())))?;
    let once = Once::new(ticket, &answer);
    let notify = notify.unwrap_or(false);
    let deleted = context.service.delete_monitor(&call.caller, page, monitor, notify, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, answer))
}

/// Writes the response for a saved monitor, with warnings about it and about the body.
fn saved(service: &Service, caller: &Caller, shown: &Shown, of_body: &[String]) -> Vec<u8> {
    let document = view::document(shown, service.ping_url(caller, &shown.monitor));
    let mut warnings = view::warnings(shown);
    warnings.extend(of_body.iter().cloned());
    warnings.extend(readable::warning(shown));
    warned("monitor", &document, &warnings)
}
