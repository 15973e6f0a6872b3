//! Forms for a mailbox owner to confirm a page's alerts, and to stop them. A GET changes nothing.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page::Page;
use parallax_service::ServiceError;
use parallax_service::destinations::mailbox_confirmation::LinkedDestination;

use super::super::form::{FormFields, token_in_query};
use super::{FormContext, authorized_page, path_prefix};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::subscription_forms::SubscriptionStep;

/// `GET /p/{slug}/confirm-alerts?t=`
pub(in crate::http) async fn show_confirmation(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let link = token_in_query(&call.query);
    confirmation_response(&context, &call, context.service.destinations.linked_destination(&link), &link)
}

/// `POST /p/{slug}/confirm-alerts`
pub(in crate::http) async fn confirm(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let link = match FormFields::read(&mut call).await {
        Ok(fields) => fields.one("t").unwrap_or_else(|| token_in_query(&call.query)),
        Err(faults) => {
            authorized_page(&context, &call)?;
            return Err(faults.into());
        }
    };
    let confirmed = context.service.destinations.confirm(&link).await;
    confirmation_response(&context, &call, confirmed, &link)
}

/// `GET /p/{slug}/stop-alerts?t=`
pub(in crate::http) async fn show_stop(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let link = token_in_query(&call.query);
    let destination = context.service.destinations.stoppable(&link);
    let step = |LinkedDestination { page, mailbox, is_confirmed }| {
        let step = if is_confirmed {
            SubscriptionStep::StopAlerts { mailbox, link: link.clone() }
        } else {
            SubscriptionStep::AlertsStopped { mailbox }
        };
        (page, step)
    };
    step_response(&context, &call, destination.map(step))
}

/// `POST /p/{slug}/stop-alerts?t=`: from the form, or by one click in a mail program (RFC 8058).
pub(in crate::http) async fn stop(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let mut link = token_in_query(&call.query);
    if link.is_empty() {
        // A mail program's body may have any format; the token is in the address.
        authorized_page(&context, &call)?;
        link = FormFields::read(&mut call).await?.one("t").unwrap_or_default();
    }
    let stopped = context.service.destinations.stop_alerts(&link).await;
    let step = |LinkedDestination { page, mailbox, .. }| (page, SubscriptionStep::AlertsStopped { mailbox });
    step_response(&context, &call, stopped.map(step))
}

fn confirmation_response(
    context: &HttpContext,
    call: &RoutedRequest<()>,
    destination: Result<LinkedDestination, ServiceError>,
    link: &str,
) -> HandlerResult {
    let link = link.to_owned();
    let step = |LinkedDestination { page, mailbox, is_confirmed }| {
        let step = if is_confirmed {
            SubscriptionStep::AlertsConfirmed { mailbox }
        } else {
            SubscriptionStep::ConfirmAlerts { mailbox, link }
        };
        (page, step)
    };
    step_response(context, call, destination.map(step))
}

fn step_response(
    context: &HttpContext,
    call: &RoutedRequest<()>,
    destination: Result<(Page, SubscriptionStep), ServiceError>,
) -> HandlerResult {
    match destination {
        Ok((page, step)) => {
            let root = path_prefix(context, call, &page)?;
            FormContext { page, root }.respond(context, step)
        }
        // A valid link works even if the page is hidden; any other reveals no more of the page than the visitor may
        // see.
        Err(ServiceError::NotFound) => {
            let at = authorized_page(context, call)?;
            Ok(at.respond(context, SubscriptionStep::InvalidAlertLink)?.with_status(StatusCode::NOT_FOUND))
        }
        Err(error) => Err(error.into()),
    }
}
