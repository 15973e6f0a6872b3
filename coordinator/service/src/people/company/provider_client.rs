//! Requests to providers, whose addresses customers choose: through the guard, bounded in size and time.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::USER_AGENT;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use parallax_dial::{BlockedAddressMode, DialError, DialGuard, DialPolicy, DnsResolver};
use parallax_guarded_client::{ClientSetupError, GuardedClient, GuardedClientError, GuardedRequest};
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Time for all requests of one step of a sign-in.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Longest answer, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Sends requests to providers.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    http: GuardedClient,
    allow_private: bool,
    timeout: Duration,
}

/// Client for the requests of one step of a sign-in.
#[derive(Debug)]
pub(super) struct ProviderStep {
    client: ProviderClient,
    deadline: Instant,
}

impl ProviderStep {
    /// Returns true if an address may be a provider's.
    pub(super) fn is_allowed(&self, url: &Url) -> bool {
        self.client.is_allowed(url)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderStep {
    type Error = ProviderRequestError;
    type Future = BoxFuture<'c, Result<HttpResponse, ProviderRequestError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        self.client.send(request, self.deadline).boxed()
    }
}

/// Reason why a provider gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProviderRequestError {
    /// The address is not an https one.
    #[error("the provider names an address that is not https: {0}")]
    NotHttps(String),
    /// The host has an address that is not allowed.
    #[error("the host {0} is in a private network, or is this host")]
    PrivateAddress(String),
    /// The request failed.
    #[error("the host {0} can't be reached: {1}")]
    Failed(String, GuardedClientError),
    /// It took too long.
    #[error("the host {0} did not answer in time")]
    TooSlow(String),
    /// The answer is too long.
    #[error("the host {0} sent an answer of more than 256 KiB")]
    TooLong(String),
    /// The request can't be written.
    #[error("the provider names an address that can't be read")]
    Unreadable,
}

impl ProviderClient {
    /// Creates a client that trusts the public web roots. Addresses of private networks and of this host, and plain
    /// http, are allowed only with `allow_private`.
    ///
    /// # Errors
    /// [`ClientSetupError`] if TLS can't be set up.
    pub fn new(resolver: DnsResolver, allow_private: bool) -> Result<Self, ClientSetupError> {
        let policy = DialPolicy { allow_private, allow_own_host: allow_private, ..DialPolicy::default() };
        let http = GuardedClient::new(DialGuard::new(resolver, policy), BlockedAddressMode::RefuseAny, &[])?;
        Ok(Self { http, allow_private, timeout: TIMEOUT })
    }

    /// Sets another time limit for the requests of one step.
    #[must_use]
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Begins a step of a sign-in: the time for all of its requests runs from now.
    pub(super) fn step(&self) -> ProviderStep {
        ProviderStep { client: self.clone(), deadline: Instant::now() + self.timeout }
    }

    /// Returns true if an address may be a provider's: https, or plain http where private networks are allowed.
    pub(super) fn is_allowed(&self, url: &Url) -> bool {
        url.has_host() && (url.scheme() == "https" || (self.allow_private && url.scheme() == "http"))
    }

    /// Sends a request, and reads the whole answer. A redirect is an answer like any other.
    async fn send(&self, request: HttpRequest, deadline: Instant) -> Result<HttpResponse, ProviderRequestError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| ProviderRequestError::Unreadable)?;
        if !self.is_allowed(&url) {
            return Err(ProviderRequestError::NotHttps(url.to_string()));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let failed = |error| match error {
            GuardedClientError::Dial(DialError::AddressNotAllowed(_)) => {
                ProviderRequestError::PrivateAddress(host.clone())
            }
            GuardedClientError::Timeout => ProviderRequestError::TooSlow(host.clone()),
            error => ProviderRequestError::Failed(host.clone(), error),
        };
        let mut headers = parts.headers;
        headers.insert(USER_AGENT, HeaderValue::from_static("Parallax"));
        let guarded = GuardedRequest { method: parts.method, url: &url, headers, body: body.into() };
        let mut response = self.http.send(guarded, deadline).await.map_err(failed)?;
        let mut read = Vec::new();
        loop {
            let chunk = timeout_at(deadline, response.chunk()).await;
            let chunk = chunk.map_err(|_| ProviderRequestError::TooSlow(host.clone()))?;
            let Some(chunk) = chunk.map_err(failed)? else { break };
            if read.len() + chunk.len() > MAX_ANSWER {
                return Err(ProviderRequestError::TooLong(host));
            }
            read.extend_from_slice(&chunk);
        }
        let mut answer = HttpResponse::new(read);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }
}
