//! Options and answers of passkeys, as the script of their forms reads and sends them.

use ::http::StatusCode;
use parallax_service::ServiceError;
use parallax_service::people::{PasskeyAnswer, PasskeyChallenge};
use serde_json::{Value, json};

use super::forms::{Form, FormRefusal};
use super::with_security_headers;
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;

/// Replies with the options that a browser passes to its authenticator.
pub(super) fn challenge_reply(challenge: &PasskeyChallenge) -> HandlerResult {
    let options: Value = serde_json::from_str(&challenge.options)
        .map_err(|error| ServiceError::Internal(format!("options of a passkey: {error}")))?;
    let document = json!({ "ceremony": challenge.ceremony, "options": options });
    Ok(with_security_headers(HttpResponse::json(StatusCode::OK, &document)))
}

/// Reads the answer in the fields of a form.
pub(super) fn answer_of(form: &Form) -> PasskeyAnswer {
    let text = |name| form.text(name).to_owned();
    PasskeyAnswer { ceremony: text("ceremony"), credential: text("credential") }
}

/// Returns why a passkey was refused, as a sentence; empty if it was not.
pub(super) fn passkey_fault(refusal: &FormRefusal) -> String {
    let rule = refusal.fault("passkey");
    let mut letters = rule.chars();
    match letters.next() {
        Some(first) => format!("The passkey {}{}", first.to_lowercase(), letters.as_str()),
        None => refusal.problem.clone().unwrap_or_default(),
    }
}
