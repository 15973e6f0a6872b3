//! API errors: maps every error to its status, code and JSON envelope. No other module chooses an error status.

use std::borrow::Cow;
use std::time::Duration;

use ::http::header::{ALLOW, HeaderName, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use ::http::{HeaderValue, StatusCode};
use parallax_core::quota::Allowance;
use parallax_core::refusal::Refusals;
use serde_json::{Value, json};

use super::public::{dressed, shown};
use super::reply::Reply;
use crate::log_limit::LogLimit;
use crate::service::Error;

/// Rate limit of log lines caused by requests, by kind.
pub(super) static LOGS: LogLimit<&'static str> = LogLimit::new();

/// Logs once a minute how many log lines of each kind were suppressed, if no later line has reported it.
pub async fn report_omitted_lines() {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        for (kind, omitted) in LOGS.omitted() {
            tracing::info!(kind, omitted, "{omitted} more log lines of this kind were left out");
        }
    }
}

/// Error response to a request.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    /// An error of the service layer.
    Service(Error),
    /// The rate limit is exceeded.
    TooMany(Allowance),
    /// The API key is missing or invalid, with the reason.
    NoKey(Cow<'static, str>),
    /// No route matches the path.
    Route,
    /// Not found, with a hint on what may be wrong.
    Nowhere(Cow<'static, str>),
    /// The page does not exist or is not visible to this visitor.
    Page,
    /// The page, or something on it, does not exist or is not visible to this visitor; as an HTML document for people.
    Nothing(String),
    /// The page requires a login; holds the login form as HTML.
    Locked(String),
    /// The form was submitted from another site.
    Alien,
    /// The method is not allowed; holds the allowed ones.
    Method(String),
    /// The `Host` header is missing, repeated or contradictory.
    Host,
    /// Responses in flight use all the memory reserved for them.
    Overloaded,
    /// No page is served at the requested host (RFC 9110, section 15.5.20).
    Elsewhere,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

impl From<Refusals> for Refused {
    fn from(faults: Refusals) -> Self {
        Self::Service(Error::Invalid(faults))
    }
}

impl Refused {
    /// Builds the response. Internal errors are logged here, once, and their details are not sent to the client.
    pub(super) fn reply(self) -> Reply {
        match self {
            Self::Service(error) => from_service(error),
            Self::TooMany(allowance) => {
                let words = format!(
                    "more than {} requests in a minute; retry in {} seconds",
                    allowance.limit, allowance.reset_seconds
                );
                envelope(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &words)
                    .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
                    .with_allowance(&allowance)
            }
            Self::NoKey(words) => no_key(&words),
            Self::Route => nothing("no route matches this path"),
            Self::Nowhere(words) => nothing(&words),
            Self::Page => nothing(HIDDEN)
                .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
            Self::Nothing(html) => dressed(shown(html)).of(StatusCode::NOT_FOUND),
            // Not 401, which must name an authentication scheme and makes browsers prompt (RFC 9110, section 15.5.2).
            // Not 200, so that no client, cache or search index takes the form for the page.
            Self::Locked(form) => dressed(shown(form)).of(StatusCode::FORBIDDEN),
            Self::Alien => {
                envelope(StatusCode::FORBIDDEN, "forbidden", "this form must be submitted from its own page")
            }
            Self::Host => {
                let words = "a request must have exactly one `Host` header";
                envelope(StatusCode::BAD_REQUEST, "bad_request", words)
            }
            Self::Overloaded => envelope(StatusCode::SERVICE_UNAVAILABLE, "overloaded", OVERLOADED)
                .with(RETRY_AFTER, HeaderValue::from(2)),
            Self::Elsewhere => Reply::empty(StatusCode::MISDIRECTED_REQUEST),
            Self::Method(allowed) => {
                let words = format!("this route accepts {allowed}");
                let reply = envelope(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &words);
                match HeaderValue::try_from(allowed) {
                    Ok(allowed) => reply.with(ALLOW, allowed),
                    Err(_) => reply,
                }
            }
        }
    }
}

/// Message of [`Refused::Overloaded`].
pub(super) const OVERLOADED: &str =
    "too many large responses are still being sent; read those, then try again";

/// Message for programs; the same for a missing page, a protected page and anything missing on a page.
const HIDDEN: &str = "not found, or not public: programs read a protected page at its `privateFeedUrl`";

/// Builds a 404 response. It varies by `Accept`, since browsers get HTML instead.
fn nothing(words: &str) -> Reply {
    envelope(StatusCode::NOT_FOUND, "not_found", words).with(VARY, HeaderValue::from_static("accept"))
}

fn no_key(words: &str) -> Reply {
    envelope(StatusCode::UNAUTHORIZED, "unauthenticated", words)
        .with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn from_service(error: Error) -> Reply {
    let words = error.to_string();
    match error {
        Error::Unauthenticated => no_key(&words),
        Error::ReadOnly => envelope(StatusCode::FORBIDDEN, "read_only", &words),
        Error::OnePage => envelope(StatusCode::FORBIDDEN, "one_page", &words),
        Error::NotFound | Error::UnknownPing => envelope(StatusCode::NOT_FOUND, "not_found", &words),
        Error::Invalid(faults) => {
            let fields: Vec<Value> =
                faults.iter().map(|fault| json!({ "field": fault.field, "rule": fault.rule })).collect();
            let error = json!({ "code": "bad_request", "message": words, "fields": fields });
            Reply::json(StatusCode::BAD_REQUEST, &json!({ "error": error }))
        }
        Error::KeyReused => envelope(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", &words),
        Error::CheckedJustNow { seconds }
        | Error::DomainCheckedJustNow { seconds }
        | Error::Busy { seconds }
        | Error::PageAsks { seconds }
        | Error::AccountAsks { seconds, .. }
        | Error::AccountTestedTooOften { seconds }
        | Error::NotifiedTooOften { seconds, .. }
        | Error::TestedTooOften { seconds } => {
            envelope(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &words)
                .with(RETRY_AFTER, HeaderValue::from(seconds))
        }
        Error::TooManyPings => envelope(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &words)
            .with(RETRY_AFTER, HeaderValue::from(1)),
        Error::PlanLimit(_) => envelope(StatusCode::UNPROCESSABLE_ENTITY, "plan_limit", &words),
        // Logged by the store.
        Error::DiskFull => {
            envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong on our side")
        }
        Error::Internal(words) => {
            if let Some(omitted) = LOGS.admit("internal") {
                tracing::error!(%words, omitted, "a request failed with an internal error");
            }
            envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong on our side")
        }
    }
}

fn envelope(status: StatusCode, code: &str, message: &str) -> Reply {
    Reply::json(status, &json!({ "error": { "code": code, "message": message } }))
}
