//! The challenge by which the receiver of a webhook shows that it wants to be written to.

use parallax_core::delivery::{Delivery, Letter};
use serde_json::Value;

/// Event name of a challenge's delivery.
pub const CHALLENGE: &str = "subscription.challenge";

/// The value that a receiver has to answer with; none where the delivery is no challenge.
pub fn value(question: &Delivery) -> Option<String> {
    let Letter::Json(sent) = &question.letter else { return None };
    if question.event != CHALLENGE {
        return None;
    }
    let sent: Value = serde_json::from_slice(sent).ok()?;
    sent.get("challenge").and_then(Value::as_str).map(str::to_owned)
}

/// True where an answer is that value: alone, or as the one member `challenge` of a JSON object. A receiver that sends back
/// whatever it is sent has not understood it.
pub fn is_answer(value: &str, answer: &str) -> bool {
    let answer = answer.trim();
    let is_member = || match serde_json::from_str(answer) {
        Ok(Value::Object(members)) => {
            members.len() == 1 && members.get("challenge").and_then(Value::as_str) == Some(value)
        }
        Ok(Value::String(text)) => text == value,
        _ => false,
    };
    answer == value || is_member()
}
