//! HTTP client of deliveries: one POST to a user-supplied URL through the guarded client, one bounded response.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use parallax_core::delivery::MAX_RESPONSE_BYTES;
use parallax_dial::{BlockedAddressMode, DialError, DialGuard, DialPolicy, DnsResolver, FaultOrigin};
use parallax_guarded_client::{GuardedClient, GuardedClientError, GuardedRequest, GuardedResponse};
use rustls_pki_types::CertificateDer;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::DeliveryError;

/// Default time limit of a request, including DNS, connection, handshake and response.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the response body after the headers.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from a response body.
const MAX_BODY: usize = 64 * 1024;
/// Minimum pause between two log lines about unreadable own addresses.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// `User-Agent` header.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Parallax/", env!("CARGO_PKG_VERSION")));

/// HTTP POST request.
#[derive(Debug, Clone)]
pub struct ChannelRequest {
    /// URL.
    pub url: Url,
    /// Headers in addition to those of every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON body.
    pub body: Bytes,
    /// Follow-up request, sent once this one was accepted.
    pub follow_up: Option<Box<Self>>,
}

/// Response of the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelResponse {
    /// Status.
    pub status: StatusCode,
    /// `Retry-After` as received.
    pub retry_after: Option<String>,
    /// First [`MAX_RESPONSE_BYTES`] bytes of the body; empty if they are not text.
    pub body: String,
    /// True if the media type is text; other bodies are never shown.
    pub is_text: bool,
}

/// Sends requests to user-supplied URLs.
#[derive(Debug)]
pub struct DeliveryClient {
    http: GuardedClient,
    timeout: Duration,
    /// Last time that unreadable own addresses were logged.
    last_logged: Mutex<Option<Instant>>,
}

impl DeliveryClient {
    /// Creates a client that trusts the public web roots and `extra_roots`. Addresses of this host and of
    /// private networks are allowed only with `allow_private`, which is for tests and the demo, where
    /// receivers run on this host.
    ///
    /// # Errors
    /// [`DeliveryError::Setup`] if the resolver or TLS can't be set up.
    pub fn new(allow_private: bool, extra_roots: &[CertificateDer<'static>]) -> Result<Self, DeliveryError> {
        let resolver = DnsResolver::system().map_err(|error| DeliveryError::Setup(error.to_string()))?;
        let policy = DialPolicy { allow_private, allow_own_host: allow_private, ..DialPolicy::default() };
        Self::with_guard(DialGuard::new(resolver, policy), extra_roots)
    }

    fn with_guard(guard: DialGuard, extra_roots: &[CertificateDer<'static>]) -> Result<Self, DeliveryError> {
        let http = GuardedClient::new(guard, BlockedAddressMode::RefuseAny, extra_roots);
        let http = http.map_err(|error| DeliveryError::Setup(error.to_string()))?;
        Ok(Self { http, timeout: REQUEST_TIMEOUT, last_logged: Mutex::new(None) })
    }

    /// Sets another time limit for a request.
    #[must_use]
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sends one POST. A redirect is a response like any other.
    ///
    /// # Errors
    /// Reason why there is no response.
    pub async fn post(&self, request: &ChannelRequest) -> Result<ChannelResponse, DeliveryError> {
        let deadline = Instant::now() + self.timeout;
        let mut headers = HeaderMap::from_iter([
            (header::USER_AGENT, USER_AGENT),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        headers.extend(request.headers.iter().cloned());
        let guarded = GuardedRequest { method: Method::POST, url: &request.url, headers, body: request.body.clone() };
        let response = self.http.send(guarded, deadline).await.map_err(|error| {
            if error == GuardedClientError::Dial(DialError::OwnAddressesUnreadable) {
                self.log_unreadable_addresses();
            }
            match (request.url.domain(), error) {
                (
                    Some(_),
                    GuardedClientError::Dial(
                        DialError::NotFound | DialError::NoAddress | DialError::AddressNotAllowed(_),
                    ),
                ) => DeliveryError::NoPublicAddress,
                (_, error) => error.into(),
            }
        })?;
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let is_text = response.headers().get(header::CONTENT_TYPE).is_none_or(is_text);
        let status = response.status();
        let body = read_body(response, deadline.min(Instant::now() + BODY_TIMEOUT)).await.unwrap_or_default();
        Ok(ChannelResponse { status, retry_after, body, is_text })
    }

    /// Logs, at most once a minute, the one error that the operator has to fix.
    fn log_unreadable_addresses(&self) {
        let mut last_logged = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last_logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            *last_logged = Some(Instant::now());
            tracing::error!(
                "this host's own addresses can't be read, so only mail is delivered: allow the coordinator \
                 AF_NETLINK (RestrictAddressFamilies= in its unit); deliveries are retried"
            );
        }
    }
}

/// Returns true for media types of text.
fn is_text(media: &HeaderValue) -> bool {
    let media = media.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    let media = media.trim().to_ascii_lowercase();
    media.starts_with("text/")
        || ["json", "xml"]
            .iter()
            .any(|form| media.strip_suffix(form).is_some_and(|kind| kind == "application/" || kind.ends_with('+')))
}

/// Reads the start of a body; `None` if it is not text. Stops at the time limit or the size limit.
async fn read_body(mut response: GuardedResponse, deadline: Instant) -> Option<String> {
    let (mut body, mut received) = (Vec::new(), 0);
    while received < MAX_BODY {
        let Ok(Ok(Some(data))) = timeout_at(deadline, response.chunk()).await else { break };
        received += data.len();
        let free = MAX_RESPONSE_BYTES.saturating_sub(body.len());
        body.extend(data.iter().take(free));
    }
    match std::str::from_utf8(&body) {
        // The size limit may split a character.
        Err(error) if error.error_len().is_none() => body.truncate(error.valid_up_to()),
        Err(_) => return None,
        Ok(_) => {}
    }
    String::from_utf8(body).ok().filter(|text| !text.contains('\0'))
}

impl From<GuardedClientError> for DeliveryError {
    fn from(error: GuardedClientError) -> Self {
        match error {
            GuardedClientError::UnsupportedUrl => Self::UnsupportedUrl,
            GuardedClientError::Dial(error) => error.into(),
            GuardedClientError::Timeout => Self::Timeout,
            GuardedClientError::Certificate(fault) => Self::Certificate(fault),
            GuardedClientError::Tls => Self::Tls,
            GuardedClientError::NotHttp => Self::NotHttp,
            GuardedClientError::HeadTooLarge => Self::HeadersTooLarge,
            GuardedClientError::Closed => Self::Closed,
        }
    }
}

impl From<DialError> for DeliveryError {
    fn from(error: DialError) -> Self {
        match (error, error.fault_origin()) {
            (DialError::Timeout, _) => Self::Timeout,
            (_, FaultOrigin::Own) => Self::OwnFault(error),
            (_, FaultOrigin::Target) => Self::Dial(error),
        }
    }
}

#[cfg(test)]
mod tests;
