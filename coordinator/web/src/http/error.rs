//! API errors: maps every error to its status, code and JSON envelope. No other module chooses an error status.

use std::borrow::Cow;
use std::time::Duration;

use ::http::header::{ALLOW, HeaderName, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use ::http::{HeaderValue, StatusCode};
use parallax_core::rate_limit::RateLimitStatus;
use parallax_core::validation::ValidationErrors;
use parallax_runtime::log_limit::LogLimit;
use parallax_service::ServiceError;
use serde_json::{Value, json};

use super::response::HttpResponse;
use crate::views::RenderError;

/// Rate limit of log lines caused by requests, by kind.
pub(super) static REQUEST_LOGS: LogLimit<&'static str> = LogLimit::new();

/// Logs once a minute how many log lines of each kind were suppressed, if no later line has reported it.
pub async fn report_omitted_lines() {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        for (kind, omitted) in REQUEST_LOGS.omitted() {
            tracing::info!(kind, omitted, "{omitted} more log lines of this kind were left out");
        }
    }
}

/// Result of a handler.
pub(super) type HandlerResult = Result<HttpResponse, ApiError>;

/// Error response to a request.
#[derive(Debug)]
pub(super) enum ApiError {
    /// An error of the service layer.
    Service(ServiceError),
    /// The rate limit is exceeded.
    RateLimited(RateLimitStatus),
    /// The API key is missing or invalid, with the reason.
    Unauthenticated(Cow<'static, str>),
    /// No route matches the path.
    NoRoute,
    /// Not found, with a hint on what may be wrong.
    NotFoundWithHint(Cow<'static, str>),
    /// The page does not exist or is not visible to this visitor.
    PageNotFound,
    /// The page, or something on it, does not exist or is not visible to this visitor; holds the reply for people,
    /// except for its status.
    NotFound(Box<HttpResponse>),
    /// The page requires a login; holds the reply with the login form, except for its status.
    LoginRequired(Box<HttpResponse>),
    /// The form was submitted from another site.
    CrossOrigin,
    /// The method is not allowed; holds the allowed ones.
    MethodNotAllowed(String),
    /// The `Host` header is missing, repeated or contradictory.
    InvalidHost,
    /// Responses in flight use all the memory reserved for them.
    Overloaded,
    /// No page is served at the requested host (RFC 9110, section 15.5.20).
    MisdirectedRequest,
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<RenderError> for ApiError {
    fn from(error: RenderError) -> Self {
        Self::Service(ServiceError::Internal(error.to_string()))
    }
}

impl From<ValidationErrors> for ApiError {
    fn from(faults: ValidationErrors) -> Self {
        Self::Service(ServiceError::Invalid(faults))
    }
}

impl ApiError {
    /// Builds the response. Internal errors are logged here, once, and their details are not sent to the client.
    pub(super) fn into_response(self) -> HttpResponse {
        match self {
            Self::Service(error) => service_error(error),
            Self::RateLimited(allowance) => {
                let message = format!(
                    "more than {} requests in a minute; retry in {} seconds",
                    allowance.limit, allowance.reset_seconds
                );
                envelope(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &message)
                    .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
                    .with_allowance(&allowance)
            }
            Self::Unauthenticated(message) => unauthenticated(&message),
            Self::NoRoute => not_found("no route matches this path"),
            Self::NotFoundWithHint(message) => not_found(&message),
            Self::PageNotFound => {
                not_found(NOT_PUBLIC).with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
            }
            Self::NotFound(page) => page.with_status(StatusCode::NOT_FOUND),
            // Not 401, which must name an authentication scheme and makes browsers prompt (RFC 9110, section 15.5.2).
            // Not 200, so that no client, cache or search index takes the form for the page.
            Self::LoginRequired(form) => form.with_status(StatusCode::FORBIDDEN),
            Self::CrossOrigin => {
                envelope(StatusCode::FORBIDDEN, "forbidden", "this form must be submitted from its own page")
            }
            Self::InvalidHost => {
                let message = "a request must have exactly one `Host` header";
                envelope(StatusCode::BAD_REQUEST, "bad_request", message)
            }
            Self::Overloaded => envelope(StatusCode::SERVICE_UNAVAILABLE, "overloaded", OVERLOADED_MESSAGE)
                .with(RETRY_AFTER, HeaderValue::from(2)),
            Self::MisdirectedRequest => HttpResponse::empty(StatusCode::MISDIRECTED_REQUEST),
            Self::MethodNotAllowed(allowed) => {
                let message = format!("this route accepts {allowed}");
                let reply = envelope(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message);
                match HeaderValue::try_from(allowed) {
                    Ok(allowed) => reply.with(ALLOW, allowed),
                    Err(_) => reply,
                }
            }
        }
    }
}

/// Message of [`ApiError::Overloaded`].
pub(super) const OVERLOADED_MESSAGE: &str = "too many large responses are still being sent; read those, then try again";

/// Message for programs; the same for a missing page, a protected page and anything missing on a page.
const NOT_PUBLIC: &str = "not found, or not public: programs read a protected page at its `privateFeedUrl`";

/// Builds a 404 response. It varies by `Accept`, since browsers get HTML instead.
fn not_found(message: &str) -> HttpResponse {
    envelope(StatusCode::NOT_FOUND, "not_found", message).with(VARY, HeaderValue::from_static("accept"))
}

fn unauthenticated(message: &str) -> HttpResponse {
    envelope(StatusCode::UNAUTHORIZED, "unauthenticated", message)
        .with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// Message of an internal error; the details go to the log.
const INTERNAL_MESSAGE: &str = "something went wrong on our side";

fn service_error(error: ServiceError) -> HttpResponse {
    let message = match &error {
        // The store has logged the full disk.
        ServiceError::DiskFull => INTERNAL_MESSAGE.to_owned(),
        ServiceError::Internal(message) => {
            if let Some(omitted) = REQUEST_LOGS.admit("internal") {
                tracing::error!(words = %message, omitted, "a request failed with an internal error");
            }
            INTERNAL_MESSAGE.to_owned()
        }
        error => error.to_string(),
    };
    let ((status, code), retry_after) = (status_and_code(&error), retry_after(&error));
    let reply = match error {
        ServiceError::Unauthenticated => unauthenticated(&message),
        ServiceError::Invalid(faults) => {
            let fields: Vec<Value> =
                faults.iter().map(|fault| json!({ "field": fault.field, "rule": fault.rule })).collect();
            let error = json!({ "code": code, "message": message, "fields": fields });
            HttpResponse::json(status, &json!({ "error": error }))
        }
        _ => envelope(status, code, &message),
    };
    match retry_after {
        Some(seconds) => reply.with(RETRY_AFTER, HeaderValue::from(seconds)),
        None => reply,
    }
}

/// Returns the code of an error in the API.
pub(super) const fn error_code(error: &ServiceError) -> &'static str {
    status_and_code(error).1
}

const fn status_and_code(error: &ServiceError) -> (StatusCode, &'static str) {
    match error {
        ServiceError::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated"),
        ServiceError::ReadOnly => (StatusCode::FORBIDDEN, "read_only"),
        ServiceError::RoleForbids { .. } => (StatusCode::FORBIDDEN, "role_forbids"),
        ServiceError::WrongCredentials => (StatusCode::FORBIDDEN, "wrong_credentials"),
        ServiceError::ConfirmationRequired => (StatusCode::FORBIDDEN, "confirmation_required"),
        ServiceError::KeyBoundToPage => (StatusCode::FORBIDDEN, "one_page"),
        ServiceError::NotFound | ServiceError::UnknownPing => (StatusCode::NOT_FOUND, "not_found"),
        ServiceError::Invalid(_) => (StatusCode::BAD_REQUEST, "bad_request"),
        ServiceError::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
        ServiceError::PlanLimit(_) => (StatusCode::UNPROCESSABLE_ENTITY, "plan_limit"),
        ServiceError::CheckNowTooSoon { .. }
        | ServiceError::CheckNowLimit { .. }
        | ServiceError::MonitorTestLimit { .. }
        | ServiceError::DomainCheckTooSoon { .. }
        | ServiceError::Busy { .. }
        | ServiceError::TooManyTries { .. }
        | ServiceError::InvitationLimit { .. }
        | ServiceError::PageConfirmationLimit { .. }
        | ServiceError::AccountConfirmationLimit { .. }
        | ServiceError::AccountTestLimit { .. }
        | ServiceError::NotificationLimit { .. }
        | ServiceError::PageTestLimit { .. }
        | ServiceError::TooManyPings => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        ServiceError::DiskFull | ServiceError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
    }
}

/// Returns the seconds until a retry, for errors of rate limits.
const fn retry_after(error: &ServiceError) -> Option<u32> {
    match error {
        ServiceError::CheckNowTooSoon { seconds }
        | ServiceError::CheckNowLimit { seconds }
        | ServiceError::MonitorTestLimit { seconds }
        | ServiceError::DomainCheckTooSoon { seconds }
        | ServiceError::Busy { seconds }
        | ServiceError::TooManyTries { seconds }
        | ServiceError::InvitationLimit { seconds }
        | ServiceError::PageConfirmationLimit { seconds }
        | ServiceError::AccountConfirmationLimit { seconds, .. }
        | ServiceError::AccountTestLimit { seconds }
        | ServiceError::NotificationLimit { seconds, .. }
        | ServiceError::PageTestLimit { seconds } => Some(*seconds),
        ServiceError::TooManyPings => Some(1),
        _ => None,
    }
}

fn envelope(status: StatusCode, code: &str, message: &str) -> HttpResponse {
    HttpResponse::json(status, &json!({ "error": { "code": code, "message": message } }))
}
