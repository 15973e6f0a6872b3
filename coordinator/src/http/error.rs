//! Every refusal as status, code and envelope: the only place that names a status for one.

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

/// Lines that requests cause, by kind.
pub(super) static LOGS: LogLimit<&'static str> = LogLimit::new();

/// Logs each minute how many lines were left out where none of their kind has followed.
pub async fn report_omitted_lines() {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        for (kind, omitted) in LOGS.omitted() {
            tracing::info!(kind, omitted, "{omitted} more log lines of this kind were left out");
        }
    }
}

/// Why a request is not answered with what it asked for.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    /// The service says so.
    Service(Error),
    /// More requests than a minute allows.
    TooMany(Allowance),
    /// There is no good key, for that reason.
    NoKey(Cow<'static, str>),
    /// There is no such route, whatever the key.
    Route,
    /// There is nothing at the path, for that reason.
    Nowhere(Cow<'static, str>),
    /// There is no such page, or none that this visitor may see.
    Page,
    /// The same, or no such thing on the page that this visitor may see: what tells people so, as HTML.
    Nothing(String),
    /// The page is there for those who show something; the form by which they do, as HTML.
    Locked(String),
    /// The form was sent by a page of another site.
    Alien,
    /// The route has other methods: these.
    Method(String),
    /// The request does not say, or says twice, which host it is for.
    Host,
    /// Answers that nobody took yet fill the memory that there is for them.
    Overloaded,
    /// The request is for a host that is nobody's here (RFC 9110, section 15.5.20).
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
    /// The answer. A fault of ours is logged here, once; its words stay here.
    pub(super) fn reply(self) -> Reply {
        match self {
            Self::Service(error) => from_service(error),
            Self::TooMany(allowance) => {
                let words = format!(
                    "more than {} requests in a minute; the minute is up in {} seconds",
                    allowance.limit, allowance.reset_seconds
                );
                envelope(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &words)
                    .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
                    .with_allowance(&allowance)
            }
            Self::NoKey(words) => no_key(&words),
            Self::Route => nothing("there is nothing at this address"),
            Self::Nowhere(words) => nothing(&words),
            Self::Page => nothing(HIDDEN)
                .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
            Self::Nothing(html) => dressed(shown(html)).of(StatusCode::NOT_FOUND),
            // Not 401, which has to name a scheme by which browsers ask for themselves (RFC 9110, 15.5.2), and not 200,
            // since it is not the page: no reader, cache or index takes it for one.
            Self::Locked(form) => dressed(shown(form)).of(StatusCode::FORBIDDEN),
            Self::Alien => {
                envelope(StatusCode::FORBIDDEN, "forbidden", "this form must be sent from its own page")
            }
            Self::Host => {
                let words = "a request names its host in one `Host` header";
                envelope(StatusCode::BAD_REQUEST, "bad_request", words)
            }
            Self::Overloaded => envelope(StatusCode::SERVICE_UNAVAILABLE, "overloaded", OVERLOADED)
                .with(RETRY_AFTER, HeaderValue::from(2)),
            Self::Elsewhere => Reply::empty(StatusCode::MISDIRECTED_REQUEST),
            Self::Method(allowed) => {
                let words = format!("this route answers to {allowed}");
                let reply = envelope(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &words);
                match HeaderValue::try_from(allowed) {
                    Ok(allowed) => reply.with(ALLOW, allowed),
                    Err(_) => reply,
                }
            }
        }
    }
}

/// The words of [`Refused::Overloaded`].
pub(super) const OVERLOADED: &str = "long answers are under way that nobody takes; read those, and try again";

/// The one answer to programs for a page that is not there, one that they may not see, and what is not on a page.
const HIDDEN: &str = "not found, or not public: programs read a guarded page below its `privateFeedUrl`";

/// What people get otherwise, so that no cache takes one for the other.
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
        // The store logs it.
        Error::DiskFull => {
            envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong on our side")
        }
        Error::Internal(words) => {
            if let Some(omitted) = LOGS.admit("internal") {
                tracing::error!(%words, omitted, "a request was not answered");
            }
            envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something went wrong on our side")
        }
    }
}

fn envelope(status: StatusCode, code: &str, message: &str) -> Reply {
    Reply::json(status, &json!({ "error": { "code": code, "message": message } }))
}
