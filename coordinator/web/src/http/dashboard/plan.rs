//! The account's plan and the use of its limits, for owners.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;

use super::SignedIn;
use super::frame::frame;
use super::page_screen::reply;
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::plan::PlanScreen;

/// Routes of the plan.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![("/app/account/plan", vec![(Method::GET, signed_in_route(|context, call| show(context, call).boxed()))])]
}

/// `GET /app/account/plan`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let meters = context.service.accounts.meters(&call.caller.caller).await?;
    let frame = frame(&context, &mut call, None, Section::Account).await?;
    reply(&PlanScreen::new(frame, &meters))
}
