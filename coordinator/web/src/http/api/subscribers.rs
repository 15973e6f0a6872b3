//! A page's subscribers as its owner sees them: list, add, delete.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::destination::edit::MAX_EMAIL;
use parallax_core::id::SubscriberId;
use parallax_core::incident::MAX_AFFECTED;
use parallax_core::patch::PatchField;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::validation::ValidationErrors;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::{Caller, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;

use super::body_check::{self, BodyRules};
use super::{created_reply, enveloped_with_warnings, idempotency_key, mask, query_params, to_json, write_reply};
use crate::http::HttpContext;
use crate::http::body_fields::{BodyFields, field};
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/subscribers`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let rule = "must be the nextCursor of the previous page";
    let after = query_params::value(&call.query, "cursor", rule, |id| id.parse().ok())?;
    let limit = query_params::limit(&call.query)?;
    let slice = context.service.subscribers.list(&call.caller, page, after, limit).await?;
    let list = SubscriberList {
        subscribers: slice.subscribers.iter().map(document).collect(),
        next_cursor: slice.next.map(|id| id.to_string()),
    };
    Ok(HttpResponse::json_bytes(StatusCode::OK, to_json(&list)))
}

/// `POST /api/v1/pages/{page}/subscribers`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    context.service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (new, warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    let ask = validate(&new)?;
    let answer = |subscriber: &Subscriber| enveloped_with_warnings("subscriber", &document(subscriber), &warnings);
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let added = context.service.subscribers.add(&call.caller, page, &ask, &once).await.map_err(with_api_field_names)?;
    Ok(created_reply(&call.path, "subscriber", added, answer))
}

/// `DELETE /api/v1/pages/{page}/subscribers/{subscriber}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<SubscriberId>("subscriber")?);
    let nothing = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || context.service.pages.get(&call.caller, page).map(drop))?;
    let once = IdempotentRequest::new(idempotency_key, &nothing);
    let deleted = context.service.subscribers.delete(&call.caller, page, id, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, nothing))
}

/// Validation rules of the body.
const RULES: BodyRules = BodyRules {
    hints: &[
        ("to", "send it as email"),
        ("url", "a webhook subscribes on the page itself"),
        ("monitors", "send their ids as monitorIds"),
    ],
    other_routes: &[],
    default_rule: "",
    echoes: &[],
    volatile: &[],
};

/// Fields of a subscriber, as sent.
pub(in crate::http) struct SubscriberFields {
    email: PatchField<String>,
    monitor_ids: PatchField<Vec<String>>,
}

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> SubscriberFields {
    SubscriberFields {
        email: body.text(
            field("email", "Email address. It has to be confirmed first.")
                .required()
                .length(3, MAX_EMAIL)
                .example("reader@example.com"),
        ),
        monitor_ids: body.ids(
            field("monitorIds", "Monitors to be notified about, by id. Null: the whole page.").min_items(1).nullable(),
            MAX_AFFECTED,
        ),
    }
}

/// Validates the fields as far as that needs no page.
pub(in crate::http) fn validate(new: &SubscriberFields) -> Result<SubscriptionRequest, ValidationErrors> {
    let mut faults = ValidationErrors::new();
    let email = new.email.required("email", None, &mut faults, |email| Ok(email.clone()));
    let monitors = new.monitor_ids.optional("monitorIds", None, &mut faults, |ids| Ok(Some(ids.clone())));
    if faults.is_empty() { Ok(SubscriptionRequest { email, url: None, monitors }) } else { Err(faults) }
}

/// Renames the fields of a validation error to their API names.
pub(in crate::http) fn with_api_field_names(error: ServiceError) -> ServiceError {
    let ServiceError::Invalid(faults) = error else { return error };
    let mut api_errors = ValidationErrors::new();
    for fault in faults.iter() {
        let field = if fault.field == "monitors" { "monitorIds" } else { &fault.field };
        api_errors.add(field, fault.rule.clone());
    }
    api_errors.into()
}

/// A page of a list of subscribers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct SubscriberList {
    /// Oldest first.
    subscribers: Vec<SubscriberDocument>,
    /// Value of `cursor` for the next page; null on the last page.
    next_cursor: Option<String>,
}

/// A subscriber to a page's incidents and maintenance.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Subscriber")]
pub(in crate::http) struct SubscriberDocument {
    /// Subscriber id.
    id: String,
    /// Page it is subscribed to.
    page_id: String,
    /// Channel.
    #[serde(rename = "type")]
    #[schemars(with = "value_schemas::SubscriberType")]
    kind: &'static str,
    /// email: email address. Masked for a read key.
    email: Option<String>,
    /// webhook: URL, masked except for its host.
    url: Option<String>,
    /// Monitors it is notified about; null means the whole page.
    monitor_ids: Option<Vec<String>>,
    /// Time of the confirmation; null until then, while nothing is sent.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    confirmed_at: Option<String>,
    /// Time of its import, while it waits to be asked.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    queued_at: Option<String>,
    /// Time since which nothing is sent to it, because deliveries failed.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    off_since: Option<String>,
    /// Reason nothing is sent to it.
    #[schemars(with = "Option<value_schemas::OffReason>")]
    off_reason: Option<&'static str>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

/// Makes the document of a subscriber as the service returns it, masked for those who may not see its address.
fn document(subscriber: &Subscriber) -> SubscriberDocument {
    let (email, url) = match &subscriber.contact {
        Contact::Email(email) => (Some(email.clone()), None),
        // Always masked: the URL may hold a secret that the subscriber gave to the service alone.
        Contact::Webhook { url, .. } => (None, Some(mask::url(url))),
    };
    let (monitors, health) = (subscriber.monitors.as_ref(), &subscriber.health);
    SubscriberDocument {
        id: subscriber.id.to_string(),
        page_id: subscriber.page.to_string(),
        kind: subscriber.contact.kind(),
        email,
        url,
        monitor_ids: monitors.map(|ids| ids.iter().map(ToString::to_string).collect()),
        confirmed_at: subscriber.confirmed_at.map(|at| at.to_string()),
        queued_at: subscriber.queued_at.filter(|_| subscriber.is_queued()).map(|at| at.to_string()),
        off_since: health.disabled.map(|(at, _)| at.to_string()),
        off_reason: health.disabled.map(|(_, reason)| reason.name()),
        created_at: subscriber.created_at.to_string(),
    }
}
