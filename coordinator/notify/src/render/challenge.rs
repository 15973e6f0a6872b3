//! Challenge by which the receiver of a webhook confirms that it wants to receive updates.

use parallax_core::delivery::{Delivery, DeliveryMessage};
use serde_json::Value;

/// Event name of a challenge.
pub const CHALLENGE_EVENT: &str = "subscription.challenge";

/// Returns the value that the receiver must respond with; `None` if the delivery is not a challenge.
pub fn challenge_value(delivery: &Delivery) -> Option<String> {
    let DeliveryMessage::Json(body) = &delivery.message else { return None };
    if delivery.event != CHALLENGE_EVENT {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    body.get("challenge").and_then(Value::as_str).map(str::to_owned)
}

/// Returns true if the response is that value: alone, or as the only member `challenge` of a JSON object. A
/// receiver that echoes the whole body doesn't pass.
pub fn is_valid_response(value: &str, response: &str) -> bool {
    let response = response.trim();
    let is_member = || match serde_json::from_str(response) {
        Ok(Value::Object(members)) => {
            members.len() == 1 && members.get("challenge").and_then(Value::as_str) == Some(value)
        }
        Ok(Value::String(text)) => text == value,
        _ => false,
    };
    response == value || is_member()
}
