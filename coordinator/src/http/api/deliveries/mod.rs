//! Deliveries of a page: list, show with all attempts, and redeliver.

pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::delivery::Stage;
use parallax_core::id::DeliveryId;
use parallax_core::refusal::Refusals;
use parallax_core::text;

use super::{bare, done, query, ticket, wrapped};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;
use crate::service::deliveries::{Opened, Wanted};
use crate::service::once::Once;

/// `GET /api/v1/pages/{page}/deliveries`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let wanted = read_query(&call.query)?;
    let part = context.service.deliveries(&call.caller, page, wanted).await?;
    Ok(Reply::written(StatusCode::OK, bare(&view::list(&part))))
}

/// `GET /api/v1/pages/{page}/deliveries/{delivery}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let opened = context.service.delivery(&call.caller, call.page()?, delivery(&call)?)?;
    Ok(Reply::written(StatusCode::OK, answer(&opened)))
}

/// `POST /api/v1/pages/{page}/deliveries/{delivery}/redeliver`
pub(in crate::http) async fn redeliver(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, delivery(&call)?);
    let ticket = ticket(&call, || context.service.delivery(&call.caller, page, id).map(drop))?;
    let once = Once::new(ticket, &answer);
    let again = context.service.redeliver(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::OK, again, answer))
}

fn delivery(call: &Call<Caller>) -> Result<DeliveryId, Refused> {
    call.id("delivery")
}

fn answer(opened: &Opened) -> Vec<u8> {
    wrapped("delivery", &view::opened(opened))
}

/// Reads the query of the list.
fn read_query(text: &str) -> Result<Wanted, Refusals> {
    let rule = "must be the id of a destination";
    let destination = query::value(text, "destinationId", rule, |id| id.parse().ok())?;
    let rule = "must be one of waiting, delivered, failed, dropped";
    let status = query::value(text, "status", rule, |name| text::one_of(name, &Stage::NAMES, |it| it).ok())?;
    let before = query::value(text, "before", "must be the id of a delivery", |id| id.parse().ok())?;
    Ok(Wanted { destination, status, before, limit: query::limit(text)? })
}
