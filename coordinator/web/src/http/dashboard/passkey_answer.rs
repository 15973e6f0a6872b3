//! Options and answers of passkeys, as the script of their forms reads and sends them.

use ::http::StatusCode;
use parallax_service::ServiceError;
use parallax_service::people::{PasskeyAnswer, PasskeyChallenge};
use serde_json::{Value, json};

use super::forms::{FormRefusal, lower_first};
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
pub(super) fn answer_of<'a>(field: impl Fn(&str) -> &'a str) -> PasskeyAnswer {
    PasskeyAnswer { ceremony: field("ceremony").to_owned(), credential: field("credential").to_owned() }
}

/// Returns why a passkey was refused, as a sentence; empty if it was not.
pub(super) fn passkey_fault(refusal: &FormRefusal) -> String {
    match refusal.fault("passkey").as_str() {
        "" => refusal.problem.clone().unwrap_or_default(),
        rule => format!("The passkey {}", lower_first(rule)),
    }
}
