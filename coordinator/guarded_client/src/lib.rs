//! Guarded HTTP client for URLs that customers choose: reqwest over an address that the dial guard has judged.
//!
//! Each request first passes the guard, which resolves the host and judges its addresses. If several are left, they
//! race as [`parallax_dial`]'s own connections do, so a dead address delays a request only briefly, and the error is
//! the most informative one. reqwest takes no connected stream: the race's connection is closed, and reqwest opens
//! another to the same address. It gets the address from `SelectedAddressResolver`, which knows no other; a literal in
//! the URL is replaced by the judged address.
//!
//! The address reaches the resolver as a task-local value, since hyper connects inside the caller's future while its
//! pool is off. A connection that ran elsewhere would find no address and fail. Every request has its own connection,
//! because a pooled one would not ask the guard again. Redirects are responses, and no proxy is read from the
//! environment.
//!
//! hyper buffers a response head up to a fixed limit of 408 KiB. One over 64 KiB is refused once it is complete.
//! A head between the two limits without an end is a timeout.

use std::error::Error as _;
use std::io;
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parallax_dial::{BlockedAddressMode, DialError, DialGuard, Host};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

/// Time limit of the race of addresses, and again of the connection with its TLS handshake. A caller's deadline may end
/// them earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response head in bytes.
const MAX_HEAD: usize = 64 * 1024;

tokio::task_local! {
    /// Judged address of the request that the current task sends.
    static SELECTED_ADDRESS: SocketAddr;
}

/// HTTP client whose connections pass the dial guard. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    guard: DialGuard,
    mode: BlockedAddressMode,
    http: reqwest::Client,
}

/// One request.
#[derive(Debug)]
pub struct GuardedRequest<'a> {
    /// Method.
    pub method: Method,
    /// URL. A user and a password in it are not sent.
    pub url: &'a Url,
    /// Headers; `Host` is taken from the URL if it is missing.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Response whose body has not been read.
#[derive(Debug)]
pub struct GuardedResponse(reqwest::Response);

/// Reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardedClientError {
    /// The URL is not one of HTTP.
    #[error("not an http or https address")]
    UnsupportedUrl,
    /// The host could not be resolved, admitted or connected to.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// No response by the deadline.
    #[error("timed out")]
    Timeout,
    /// The server's certificate is not acceptable.
    #[error("the certificate is not acceptable: {0}")]
    Certificate(String),
    /// The TLS handshake failed for another reason.
    #[error("the TLS handshake failed")]
    Tls,
    /// The response is not HTTP.
    #[error("the response is not HTTP")]
    NotHttp,
    /// The response head is too large.
    #[error("the response headers are larger than 64 KiB")]
    HeadTooLarge,
    /// The connection closed before the response ended.
    #[error("the connection was closed before a response")]
    Closed,
}

/// Reason why a client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientSetupError {
    /// TLS or a root certificate can't be used.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// reqwest refused the settings.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// Resolver that knows one address: the judged one of the current task's request.
struct SelectedAddressResolver;

impl GuardedClient {
    /// Creates a client that trusts the public web roots and `extra` ones.
    ///
    /// # Errors
    /// [`ClientSetupError`] if TLS or the client can't be set up.
    pub fn new(
        guard: DialGuard,
        mode: BlockedAddressMode,
        extra: &[CertificateDer<'static>],
    ) -> Result<Self, ClientSetupError> {
        let http = unguarded_builder(extra)?
            .dns_resolver(SelectedAddressResolver)
            // Also keeps hyper from connecting in a task of its own.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_TIMEOUT)
            // reqwest closes a connection in a task of its own, which a receiver that stops reading could hold up.
            .tcp_user_timeout(CONNECT_TIMEOUT)
            .build()?;
        Ok(Self { guard, mode, http })
    }

    /// Returns the guard.
    pub fn guard(&self) -> &DialGuard {
        &self.guard
    }

    /// Sends a request over a new connection, and returns its response once its head has arrived.
    ///
    /// # Errors
    /// Reason why there is no response by `deadline`.
    pub async fn send(
        &self,
        request: GuardedRequest<'_>,
        deadline: Instant,
    ) -> Result<GuardedResponse, GuardedClientError> {
        let (host, port) = target(request.url)?;
        let admitted = self.guard.admit(&host, port, self.mode, deadline).await?;
        let address = admitted.select(deadline.min(Instant::now() + CONNECT_TIMEOUT)).await?;
        let request = build(request, &host, address)?;
        let sending = SELECTED_ADDRESS.scope(address, self.http.execute(request));
        let response = match timeout_at(deadline, sending).await {
            Err(_) => return Err(GuardedClientError::Timeout),
            Ok(Err(error)) => return Err(classify(&error)),
            Ok(Ok(response)) => response,
        };
        if head_size(response.headers()) > MAX_HEAD {
            return Err(GuardedClientError::HeadTooLarge);
        }
        Ok(GuardedResponse(response))
    }
}

impl GuardedResponse {
    /// Status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Reads the next part of the body; `None` at its end. The caller bounds size and time.
    ///
    /// # Errors
    /// Reason why the body is incomplete.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, GuardedClientError> {
        self.0.chunk().await.map_err(|error| classify(&error))
    }
}

impl Resolve for SelectedAddressResolver {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async {
            let address = SELECTED_ADDRESS.try_with(|address| *address).map_err(|_| DialError::NotFound)?;
            Ok(Box::new(iter::once(address)) as Addrs)
        })
    }
}

/// Returns the settings of all outgoing HTTP: HTTP/1.1 and TLS with the public web roots and `extra` ones; no
/// redirects, proxies, retries, cookies or decompression. A client of these settings alone connects to any address:
/// only for URLs that the operator chooses.
///
/// # Errors
/// [`rustls::Error`] if a root is not acceptable.
pub fn unguarded_builder(extra: &[CertificateDer<'static>]) -> Result<reqwest::ClientBuilder, rustls::Error> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in extra {
        roots.add(certificate.clone())?;
    }
    let mut tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd())
}

/// Returns the host and the port that the guard judges.
fn target(url: &Url) -> Result<(Host, u16), GuardedClientError> {
    let host = url.host().and_then(|host| Host::from_url(&host).ok());
    let port = url.port_or_known_default().filter(|_| matches!(url.scheme(), "http" | "https"));
    host.zip(port).ok_or(GuardedClientError::UnsupportedUrl)
}

/// Builds the request in the form in which its host was judged.
fn build(
    request: GuardedRequest<'_>,
    host: &Host,
    address: SocketAddr,
) -> Result<reqwest::Request, GuardedClientError> {
    let GuardedRequest { method, url, mut headers, body } = request;
    let unsupported = GuardedClientError::UnsupportedUrl;
    if !headers.contains_key(header::HOST) {
        let value = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.insert(header::HOST, value.map_err(|_| unsupported.clone())?);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut url = url.clone();
    url.set_fragment(None);
    let mut is_set = url.set_username("").is_ok() && url.set_password(None).is_ok();
    is_set &= match host {
        Host::Name(name) => url.set_host(Some(name.as_str())).is_ok(),
        Host::Ip(_) => url.set_ip_host(address.ip()).is_ok(),
    };
    if !is_set {
        return Err(unsupported);
    }
    let mut http_request = reqwest::Request::new(method, url);
    *http_request.headers_mut() = headers;
    *http_request.body_mut() = (!body.is_empty()).then(|| body.into());
    Ok(http_request)
}

/// Returns the size of a response head, close enough for a limit.
fn head_size(headers: &HeaderMap) -> usize {
    // ": " and the end of the line.
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

fn classify(error: &reqwest::Error) -> GuardedClientError {
    if error.is_builder() {
        return GuardedClientError::UnsupportedUrl;
    }
    if error.is_timeout() {
        return GuardedClientError::Timeout;
    }
    let mut cause = error.source();
    while let Some(source) = cause {
        if let Some(error) = source.downcast_ref::<DialError>() {
            return GuardedClientError::Dial(*error);
        }
        match source.downcast_ref::<hyper::Error>() {
            Some(error) if error.is_parse_too_large() => return GuardedClientError::HeadTooLarge,
            Some(error) if error.is_parse() => return GuardedClientError::NotHttp,
            Some(_) | None => {}
        }
        if let Some(source) = source.downcast_ref::<io::Error>() {
            // A failed connection has the system's error itself; TLS wraps its own.
            return match source.raw_os_error() {
                Some(_) if error.is_connect() => GuardedClientError::Dial(DialError::from_connect(source)),
                Some(_) | None => from_io_error(source),
            };
        }
        cause = source.source();
    }
    GuardedClientError::Closed
}

fn from_io_error(error: &io::Error) -> GuardedClientError {
    let mut error = error;
    while let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
        error = inner;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(fault)) => GuardedClientError::Certificate(fault.to_string()),
        Some(_) => GuardedClientError::Tls,
        None if error.kind() == io::ErrorKind::InvalidData => GuardedClientError::Tls,
        None => GuardedClientError::Closed,
    }
}

#[cfg(test)]
mod tests;
