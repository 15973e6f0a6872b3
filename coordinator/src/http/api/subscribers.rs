//! A page's subscribers as its owner sees them: list, add, delete.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::destination::edit::MAX_EMAIL;
use parallax_core::given::Given;
use parallax_core::id::SubscriberId;
use parallax_core::incident::MAX_AFFECTED;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::ask::Ask;
use parallax_core::subscriber::{Contact, Subscriber};
use schemars::JsonSchema;
use serde::Serialize;

use super::sent::{self, Rules};
use super::{bare, done, made, mask, query, ticket, warned};
use crate::http::Context;
use crate::http::fields::{Fields, field};
use crate::http::openapi::words;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::once::Once;
use crate::service::{Caller, Error};

/// `GET /api/v1/pages/{page}/subscribers`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let rule = "must be the nextCursor of the previous page";
    let after = query::value(&call.query, "cursor", rule, |id| id.parse().ok())?;
    let limit = query::limit(&call.query)?;
    let part = context.service.subscribers(&call.caller, page, after, limit).await?;
    let writes = call.caller.key.access.writes();
    let list = SubscriberList {
        subscribers: part.subscribers.iter().map(|it| document(it, writes)).collect(),
        next_cursor: part.next.map(|id| id.to_string()),
    };
    Ok(Reply::written(StatusCode::OK, bare(&list)))
}

/// `POST /api/v1/pages/{page}/subscribers`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    context.service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let (new, warnings) = sent::read_new(&object, &RULES, |body| read(body));
    let ask = settled(&new)?;
    let answer = |subscriber: &Subscriber| warned("subscriber", &document(subscriber, true), &warnings);
    let once = Once::new(ticket, &answer);
    let added =
        context.service.add_subscriber(&call.caller, page, &ask, &once).await.map_err(in_our_words)?;
    Ok(made(&call.path, "subscriber", added, answer))
}

/// `DELETE /api/v1/pages/{page}/subscribers/{subscriber}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, id) = (call.page()?, call.id::<SubscriberId>("subscriber")?);
    let nothing = |(): &()| Vec::new();
    let ticket = ticket(&call, || context.service.page(&call.caller, page).map(drop))?;
    let once = Once::new(ticket, &nothing);
    let deleted = context.service.delete_subscriber(&call.caller, page, id, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, nothing))
}

/// Validation rules of the body.
const RULES: Rules = Rules {
    hints: &[
        ("to", "send it as email"),
        ("url", "a webhook subscribes on the page itself"),
        ("monitors", "send their ids as monitorIds"),
    ],
    elsewhere: &[],
    other: "",
    echoes: &[],
    measured: &[],
};

/// Fields of a subscriber, as sent.
pub(in crate::http) struct New {
    email: Given<String>,
    monitor_ids: Given<Vec<String>>,
}

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl Fields) -> New {
    New {
        email: body.text(
            field("email", "Email address. It has to be confirmed first.")
                .required()
                .characters(3, MAX_EMAIL)
                .example("reader@example.com"),
        ),
        monitor_ids: body.ids(
            field("monitorIds", "Monitors to be notified about, by id. Null: the whole page.")
                .least(1)
                .nullable(),
            MAX_AFFECTED,
        ),
    }
}

fn settled(new: &New) -> Result<Ask, Refusals> {
    let mut faults = Refusals::none();
    let email = new.email.required("email", None, &mut faults, |email| Ok(email.clone()));
    let monitors = new.monitor_ids.optional("monitorIds", None, &mut faults, |ids| Ok(Some(ids.clone())));
    if faults.is_empty() { Ok(Ask { email, url: None, monitors }) } else { Err(faults) }
}

/// Renames the fields of a validation error to their API names.
fn in_our_words(error: Error) -> Error {
    let Error::Invalid(faults) = error else { return error };
    let mut ours = Refusals::none();
    for fault in faults.iter() {
        let field = if fault.field == "monitors" { "monitorIds" } else { &fault.field };
        ours.add(field, fault.rule.clone());
    }
    ours.into()
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
    #[schemars(with = "words::SubscriberType")]
    kind: &'static str,
    /// email: email address. Masked for a read key.
    email: Option<String>,
    /// webhook: URL, masked except for its host.
    url: Option<String>,
    /// Monitors it is notified about; null means the whole page.
    monitor_ids: Option<Vec<String>>,
    /// Time of the confirmation; null until then, while nothing is sent.
    #[schemars(with = "Option<words::Moment>")]
    confirmed_at: Option<String>,
    /// Time since which nothing is sent to it, because deliveries failed.
    #[schemars(with = "Option<words::Moment>")]
    off_since: Option<String>,
    /// Reason nothing is sent to it.
    #[schemars(with = "Option<words::OffReason>")]
    off_reason: Option<&'static str>,
    /// Creation time.
    #[schemars(with = "words::Moment")]
    created_at: String,
}

fn document(subscriber: &Subscriber, writes: bool) -> SubscriberDocument {
    let (email, url) = match &subscriber.contact {
        Contact::Email(email) if writes => (Some(email.clone()), None),
        Contact::Email(email) => (Some(mask::email(email)), None),
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
        off_since: health.off.map(|(at, _)| at.to_string()),
        off_reason: health.off.map(|(_, reason)| reason.name()),
        created_at: subscriber.created_at.to_string(),
    }
}
