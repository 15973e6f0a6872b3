//! Deliveries of a page: list, show with all attempts, and redeliver.

pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::delivery::DeliveryState;
use parallax_core::id::DeliveryId;
use parallax_core::text;
use parallax_core::validation::ValidationErrors;
use parallax_service::Caller;
use parallax_service::deliveries::{DeliveryContent, DeliveryFilter};
use parallax_service::idempotency::IdempotentRequest;

use super::{enveloped, idempotency_key, query_params, to_json, write_reply};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/deliveries`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let filter = read_query(&call.query)?;
    let slice = context.service.deliveries.list(&call.caller, page, filter).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, to_json(&view::list(&slice))))
}

/// `GET /api/v1/pages/{page}/deliveries/{delivery}`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let opened = context.service.deliveries.get(&call.caller, call.page_id()?, delivery(&call)?)?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, answer(&opened)))
}

/// `POST /api/v1/pages/{page}/deliveries/{delivery}/redeliver`
pub(in crate::http) async fn redeliver(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, delivery(&call)?);
    let idempotency_key = idempotency_key(&call, || context.service.deliveries.get(&call.caller, page, id).map(drop))?;
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let delivery = context.service.deliveries.redeliver(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::OK, delivery, answer))
}

fn delivery(call: &RoutedRequest<Caller>) -> Result<DeliveryId, ApiError> {
    call.id("delivery")
}

fn answer(opened: &DeliveryContent) -> Vec<u8> {
    enveloped("delivery", &view::detail(opened))
}

/// Reads the query of the list.
fn read_query(text: &str) -> Result<DeliveryFilter, ValidationErrors> {
    let rule = "must be the id of a destination";
    let destination = query_params::value(text, "destinationId", rule, |id| id.parse().ok())?;
    let rule = "must be one of waiting, delivered, failed, dropped";
    let status =
        query_params::value(text, "status", rule, |name| text::one_of(name, &DeliveryState::NAMES, |it| it).ok())?;
    let before = query_params::value(text, "before", "must be the id of a delivery", |id| id.parse().ok())?;
    let limit = query_params::limit(text)?;
    Ok(DeliveryFilter { destination, status, before, limit, ..DeliveryFilter::default() })
}
