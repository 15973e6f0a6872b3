//! Order of a page's monitors.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::monitor::order_edit::{MAX_ORDERED_MONITORS, MonitorOrderEdit};
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::order::MonitorOrder;

use crate::http::HttpContext;
use crate::http::api::body_check::{self, BodyRules, SET_BY_SERVICE};
use crate::http::api::{enveloped_with_warnings, read_object, write_reply};
use crate::http::body_fields::{BodyFields, field};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;

/// Validation rules of the body.
const RULES: BodyRules =
    BodyRules { hints: &[], other_routes: &[], default_rule: SET_BY_SERVICE, echoes: &[], volatile: &[] };

/// `PATCH /api/v1/pages/{page}/monitors/order`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    let reached = service.pages.get(&call.caller, page).map(|_| ());
    let (object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    let (edit, warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    let answer = |order: &MonitorOrder| {
        let ids: Vec<String> = order.ids.iter().map(ToString::to_string).collect();
        enveloped_with_warnings("monitorIds", &ids, &warnings)
    };
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let order = service.monitors.reorder(&call.caller, page, &edit, &once).await?;
    Ok(write_reply(StatusCode::OK, order, answer))
}

/// Reads the body.
pub(in crate::http) fn read(mut body: impl BodyFields) -> MonitorOrderEdit {
    let ids = field("monitorIds", "Ids of all monitors of the page, first to last.").required();
    MonitorOrderEdit { monitor_ids: body.ids(ids, MAX_ORDERED_MONITORS) }
}
