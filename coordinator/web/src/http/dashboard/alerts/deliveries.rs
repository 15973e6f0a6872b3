//! One delivery: its attempts, what was sent, and sending it again.

use std::sync::Arc;

use parallax_core::delivery::{DeliveryState, Recipient};
use parallax_core::destination::Channel;
use parallax_core::id::DeliveryId;
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::deliveries::DeliveryContent;
use parallax_service::idempotency::IdempotentRequest;

use super::data::Names;
use super::destination_form::sees_secrets;
use crate::http::HttpContext;
use crate::http::dashboard::confirm::confirm_path;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm, result_path};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::deliveries::{AttemptLine, DeliveryScreen};
use crate::views::dashboard::{Section, Toast, clock};

/// `GET /app/pages/{page}/deliveries/{delivery}`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    draw(&context, call, None).await
}

/// `POST /app/pages/{page}/deliveries/{delivery}/redeliver`
pub(super) async fn redeliver(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DeliveryId>("delivery")?);
    let submitted = SubmittedForm::read(&mut call).await?;
    let path = Toast::address(&format!("/app/pages/{page}/deliveries/{id}"), "sent", 1);
    let answer = |_: &DeliveryContent| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let refusal = match context.service.deliveries.redeliver(&call.caller.caller, page, id, &once).await {
        Ok(outcome) => return Ok(see_other(&result_path(outcome, |_| path.clone()))),
        Err(error) => FormRefusal::of(error)?,
    };
    draw(&context, call, Some(refusal)).await
}

async fn draw(context: &HttpContext, call: RoutedRequest<SignedIn>, refusal: Option<FormRefusal>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DeliveryId>("delivery")?);
    let content = context.service.deliveries.get(&call.caller.caller, page, id)?;
    let page_screen = PageScreen::read(context, &call)?;
    let caller = &call.caller.caller;
    let (names, _) = Names::read(context, caller, &page_screen).await?;
    let (form, status) = Form::default().drawn(page_screen.form_token(), refusal);
    let delivery = &content.delivery;
    let body = content.body.as_deref().map(readable);
    let (href, curl) = (format!("{}/deliveries/{id}", page_screen.base), curl(context, caller, &content));
    // It has the receiver's address.
    let (curl, confirm_href) = match curl.is_empty() || sees_secrets(context, &call.caller) {
        true => (curl, String::new()),
        false => (String::new(), confirm_path(&href)),
    };
    if let Recipient::Destination(destination) = delivery.to
        && !curl.is_empty()
    {
        context.service.destinations.log_shown_secrets(caller, page, destination).await?;
    }
    let next = match delivery.state {
        DeliveryState::Waiting(at) => Some(clock(at)),
        DeliveryState::Delivered(_) | DeliveryState::Failed(_) | DeliveryState::Dropped(_) => None,
    };
    let screen = DeliveryScreen {
        href,
        row: names.row(delivery, &page_screen),
        id: id.to_string(),
        attempts: AttemptLine::list(delivery),
        next,
        subject: content.subject.clone(),
        size: content.body.as_ref().map(|body| size(body.len())).unwrap_or_default(),
        body,
        curl,
        confirm_href,
        form,
        frame: page_screen.frame(context, caller, Section::Alerts).await?,
    };
    reply_with(&screen, status)
}

/// Writes JSON with line breaks; other text as it is.
fn readable(body: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(body).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| body.to_owned())
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{:.1} kB", bytes as f64 / 1024.0),
    }
}

/// Command that posts the same body to a webhook; empty for other receivers, and for those who may not see its URL.
fn curl(context: &HttpContext, caller: &Caller, content: &DeliveryContent) -> String {
    let delivery = &content.delivery;
    let (Recipient::Destination(id), Some(page), Some(body)) = (delivery.to, delivery.page, &content.body) else {
        return String::new();
    };
    if !caller.allows(Permission::ManageAlerts) {
        return String::new();
    }
    match context.service.destinations.get(caller, page, id).map(|destination| destination.channel) {
        Ok(Channel::Webhook { url, .. }) => {
            let headers = format!("-H 'content-type: application/json' -H 'webhook-id: {}'", delivery.id);
            format!("curl -X POST {headers} \\\n  -d {} \\\n  {}", quoted(body), quoted(&url))
        }
        _ => String::new(),
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_text_as_it_is() {
        assert_eq!(quoted("it's $HOME `x` \"y\""), "'it'\\''s $HOME `x` \"y\"'");
        assert_eq!([size(10), size(1229)], ["10 bytes", "1.2 kB"]);
        assert_eq!(readable("{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(readable("Dear reader"), "Dear reader");
    }
}
