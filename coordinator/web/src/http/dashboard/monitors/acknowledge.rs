//! Acknowledgement of a running outage from the headline: "I have it", and "Take back".

use std::sync::Arc;

use parallax_core::acknowledgement::AcknowledgementRequest;
use parallax_service::ServiceError;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::MonitorWithState;

use super::super::forms::{SubmittedForm, result_path};
use super::super::{SignedIn, see_other};
use super::screen::MonitorCall;
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;

/// `POST /app/pages/{page}/monitors/{monitor}/acknowledge`
pub(super) async fn acknowledge(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let (page, id, caller) = (call.page, call.monitor_id()?, &call.caller.caller);
    let screen = format!("/app/pages/{page}/monitors/{id}");
    let name = caller.actor_name();
    let path = |it: &MonitorWithState| {
        let acknowledgement = it.view.outage_since.and_then(|outage| it.monitor.acknowledgement_of(outage));
        let is_own = acknowledgement.is_none_or(|it| it.by == name);
        Toast::address(&screen, if is_own { "acknowledged" } else { "acknowledged-before" }, 1)
    };
    let answer = |it: &MonitorWithState| path(it).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let request = AcknowledgementRequest::default();
    match context.service.monitors.acknowledge(caller, page, id, &request, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        // It recovered since the screen was drawn.
        Err(ServiceError::Invalid(_)) => Ok(see_other(&Toast::address(&screen, "not-down", 1))),
        Err(error) => Err(error.into()),
    }
}

/// `POST /app/pages/{page}/monitors/{monitor}/take-back`
pub(super) async fn take_back(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let (page, id) = (call.page, call.monitor_id()?);
    let path = |(): &()| Toast::address(&format!("/app/pages/{page}/monitors/{id}"), "taken-back", 1);
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let monitors = &context.service.monitors;
    let outcome = monitors.withdraw_acknowledgement(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(outcome, path)))
}
