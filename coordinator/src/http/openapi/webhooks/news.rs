//! What a page's webhook subscribers get, as the description tells of it: the challenge that confirms one, and the news.

use parallax_core::time::Timestamp;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use super::{SECRET, STEP, parameters};
use crate::http::api::incidents::view::{IncidentDocument, UpdateDocument};
use crate::http::openapi::examples;
use crate::http::openapi::words::{self, Iso};
use crate::letters::update::EVENTS;
use crate::service::subscribers::CHALLENGE;

/// When the example's update was posted.
const SAID: Timestamp = Timestamp::from_millis(1_772_357_540_000);

const NEWS: &str = "Sent to the webhook subscribers of a page that have answered their challenge, once for each word on an \
incident or maintenance that subscribers are told of. It is signed with the subscriber's own secret, shown to whoever asked, \
and sent again as an alert is. `update` is what was said, null where a window began or ended by itself. A POST to \
`unsubscribeUrl` ends it; so does an answer of 410.";

const ASKED: &str = "Sent once to an address that somebody subscribed to a page's news. A 2xx confirms it whose body is the \
value of `challenge`: alone, or as the one member `challenge` of a JSON object. Nothing else is sent to an address that has \
not answered so. It is signed like the news.";

/// News of an incident or of maintenance.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriberNews")]
struct News {
    #[schemars(with = "words::NewsEvent")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's address.
    page_url: String,
    /// The incident or window as it then was, with its newest updates: 20 at most, of 32 KiB together.
    #[schemars(with = "IncidentDocument")]
    incident: Value,
    /// What was said with it.
    #[schemars(with = "Option<UpdateDocument<Iso>>")]
    update: Value,
    /// When, in milliseconds since the epoch.
    at: i64,
    /// Where this subscriber leaves, by a POST: its own, and for nobody else.
    unsubscribe_url: String,
}

/// What a webhook is asked by.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriberChallenge")]
struct Challenge {
    #[schemars(with = "words::ChallengeEvent")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's address.
    page_url: String,
    /// What has to be the answer.
    challenge: String,
    /// When, in milliseconds since the epoch.
    at: i64,
}

/// Both; what their bodies refer to goes into the generator.
pub(super) fn webhooks(generator: &mut SchemaGenerator) -> [(&'static str, Value); 2] {
    let (news, asked) = (generator.subschema_for::<News>(), generator.subschema_for::<Challenge>());
    let one = |about: &str, id: &str, summary: &str, event: Value, schema: Value, body: Value| {
        let bytes = body.to_string().into_bytes();
        json!({ "post": {
            "operationId": id,
            "tags": ["Webhooks"],
            "summary": summary,
            "description": format!("{about}\n\nThe example's headers sign, with the secret `{SECRET}`, the example."),
            "security": [],
            "parameters": parameters(event, SAID + STEP, &bytes),
            "requestBody": { "required": true, "content": { "application/json": { "schema": schema, "example": body } } },
            "responses": {
                "200": { "description": "It is taken. Any other 2xx says so too." },
                "410": { "description": "Nobody is here any more: the subscriber is switched off." },
                "503": { "description": "Not now; a `Retry-After` is respected. Any other status is tried again too." },
            },
        } })
    };
    let event = |schema: &str| json!({ "$ref": format!("#/components/schemas/{schema}") });
    [
        (
            "subscriberNews",
            one(NEWS, "receiveNews", "Take a page's news", event("NewsEvent"), json!(news), example()),
        ),
        (
            "subscriberChallenge",
            one(
                ASKED,
                "receiveChallenge",
                "Answer a challenge",
                event("ChallengeEvent"),
                json!(asked),
                challenge(),
            ),
        ),
    ]
}

/// News as it is sent.
pub(in crate::http::openapi) fn example() -> Value {
    let incident = examples::incident();
    let [_, updated, ..] = EVENTS;
    json!(News {
        event: updated,
        page: "Example Shop".to_owned(),
        page_url: examples::PAGE_URL.to_owned(),
        update: incident["updates"][0].clone(),
        incident,
        at: SAID.as_millis(),
        unsubscribe_url: format!("{}/unsubscribe?t={}", examples::PAGE_URL, examples::link()),
    })
}

/// A challenge as it is sent.
pub(in crate::http::openapi) fn challenge() -> Value {
    json!(Challenge {
        event: CHALLENGE,
        page: "Example Shop".to_owned(),
        page_url: examples::PAGE_URL.to_owned(),
        challenge: "6f1f0d2a94c34b0b8e5b7d21c0a97e58".to_owned(),
        at: SAID.as_millis(),
    })
}
