//! Webhooks for a page's subscribers in the API description: the confirmation challenge and the incident updates.

use parallax_core::time::Timestamp;
use parallax_notify::render::incident_update::EVENTS;
use parallax_service::subscribers::CHALLENGE;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use super::{STEP, parameters};
use crate::http::api::incidents::view::{IncidentDocument, UpdateDocument};
use crate::http::openapi::examples::incidents;
use crate::http::openapi::sample_shop::{EXAMPLE_SECRET, PAGE_URL, subscriber_token};
use crate::http::openapi::value_schemas::{self, Iso};

/// Time of the example update.
const POSTED_AT: Timestamp = Timestamp::from_millis(1_772_357_540_000);

const UPDATE_ABOUT: &str = "Sent to a page's confirmed webhook subscribers, once for each update of an incident or maintenance \
that notifies subscribers. It is signed with the subscriber's own secret, which is shown on subscribing, \
and retried like an alert. `update` is null if a window started or ended by itself. A POST to \
`unsubscribeUrl` unsubscribes; so does a 410 response.";

const CHALLENGE_ABOUT: &str = "Sent once to an address that somebody subscribed to a page's updates. To confirm, respond with \
2xx and the value of `challenge` as the body: on its own, or as the only member `challenge` of a JSON object. \
Nothing else is sent to an unconfirmed address. It is signed like the updates.";

/// An update of an incident or maintenance window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriberNews")]
struct SubscriberUpdate {
    #[schemars(with = "value_schemas::NewsEvent")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's address.
    page_url: String,
    /// The incident or window at that time, with its newest updates: at most 20, 32 KiB in total.
    #[schemars(with = "IncidentDocument")]
    incident: Value,
    /// The update itself.
    #[schemars(with = "Option<UpdateDocument<Iso>>")]
    update: Value,
    /// Time, in milliseconds since the epoch.
    at: i64,
    /// This subscriber's own unsubscribe URL, to be called by POST.
    unsubscribe_url: String,
}

/// The request that confirms a webhook.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriberChallenge")]
struct SubscriberChallengeBody {
    #[schemars(with = "value_schemas::ChallengeEvent")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's address.
    page_url: String,
    /// The value to respond with.
    challenge: String,
    /// Time, in milliseconds since the epoch.
    at: i64,
}

/// Builds both webhooks; the schemas their bodies refer to are added to the generator.
pub(super) fn webhooks(generator: &mut SchemaGenerator) -> [(&'static str, Value); 2] {
    let (update_schema, challenge_schema) =
        (generator.subschema_for::<SubscriberUpdate>(), generator.subschema_for::<SubscriberChallengeBody>());
    let webhook = |description: &str, id: &str, summary: &str, event: Value, schema: Value, body: Value| {
        let bytes = body.to_string().into_bytes();
        json!({ "post": {
            "operationId": id,
            "tags": ["Webhooks"],
            "summary": summary,
            "description": format!("{description}\n\nThe headers in the example sign the example body with the secret \
             `{EXAMPLE_SECRET}`."),
            "security": [],
            "parameters": parameters(event, POSTED_AT + STEP, &bytes),
            "requestBody": { "required": true, "content": { "application/json": { "schema": schema, "example": body } } },
            "responses": {
                "200": { "description": "Accepted. Any other 2xx works too." },
                "410": { "description": "Gone: the subscriber is switched off." },
                "503": { "description": "Try again later; `Retry-After` is respected. Any other status is retried \
                 too." },
            },
        } })
    };
    let event = |schema: &str| json!({ "$ref": format!("#/components/schemas/{schema}") });
    [
        (
            "subscriberNews",
            webhook(
                UPDATE_ABOUT,
                "receiveNews",
                "Receive a page's updates",
                event("NewsEvent"),
                json!(update_schema),
                example(),
            ),
        ),
        (
            "subscriberChallenge",
            webhook(
                CHALLENGE_ABOUT,
                "receiveChallenge",
                "Answer a challenge",
                event("ChallengeEvent"),
                json!(challenge_schema),
                challenge(),
            ),
        ),
    ]
}

/// Returns an example update as it is sent.
pub(in crate::http::openapi) fn example() -> Value {
    let incident = incidents::incident();
    let [_, updated, ..] = EVENTS;
    json!(SubscriberUpdate {
        event: updated,
        page: "Example Shop".to_owned(),
        page_url: PAGE_URL.to_owned(),
        update: incident["updates"][0].clone(),
        incident,
        at: POSTED_AT.as_millis(),
        unsubscribe_url: format!("{PAGE_URL}/unsubscribe?t={}", subscriber_token()),
    })
}

/// Returns an example challenge as it is sent.
pub(in crate::http::openapi) fn challenge() -> Value {
    json!(SubscriberChallengeBody {
        event: CHALLENGE,
        page: "Example Shop".to_owned(),
        page_url: PAGE_URL.to_owned(),
        challenge: "6f1f0d2a94c34b0b8e5b7d21c0a97e58".to_owned(),
        at: POSTED_AT.as_millis(),
    })
}
