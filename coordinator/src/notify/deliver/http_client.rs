//! Guarded HTTP client for user-supplied URLs: one POST over a new connection, one bounded response.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parallax_core::delivery::MAX_RESPONSE_BYTES;
use parallax_dial::{
    BlockedAddressMode, DialError, DialGuard, DialPolicy, DialedConnection, DnsResolver, FaultOrigin, Host,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::Url;

use super::DeliveryError;

/// Default time limit of a request, including DNS, connection, handshake and response.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the response body after the headers.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from a response body.
const MAX_BODY: usize = 64 * 1024;
/// Maximum size of the response headers.
const MAX_HEADERS: usize = 64 * 1024;
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
    guard: DialGuard,
    tls: Arc<ClientConfig>,
    timeout: Duration,
    /// Last time that unreadable own addresses were logged.
    last_logged: Mutex<Option<Instant>>,
}

impl DeliveryClient {
    /// Creates a client that trusts the public web roots and `extra` ones. Addresses of this host and of
    /// private networks are allowed only with `allow_private`, which is for tests and the demo, where
    /// receivers run on this host.
    ///
    /// # Errors
    /// [`DeliveryError::Setup`] if the resolver or TLS can't be set up.
    pub fn new(allow_private: bool, extra: &[CertificateDer<'static>]) -> Result<Self, DeliveryError> {
        let resolver = DnsResolver::system().map_err(|error| DeliveryError::Setup(error.to_string()))?;
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in extra {
            roots.add(certificate.clone()).map_err(|error| DeliveryError::Setup(error.to_string()))?;
        }
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()
            .map_err(|error| DeliveryError::Setup(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let policy = DialPolicy { allow_private, allow_own_host: allow_private, ..DialPolicy::default() };
        let guard = DialGuard::new(resolver, policy);
        Ok(Self { guard, tls: Arc::new(tls), timeout: REQUEST_TIMEOUT, last_logged: Mutex::new(None) })
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
    pub async fn post(&self, call: &ChannelRequest) -> Result<ChannelResponse, DeliveryError> {
        let deadline = Instant::now() + self.timeout;
        let host = call.url.host().ok_or(DeliveryError::UnsupportedUrl)?;
        let host = Host::from_url(&host).map_err(|_| DeliveryError::UnsupportedUrl)?;
        let is_secret = match call.url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(DeliveryError::UnsupportedUrl),
        };
        let port = call.url.port_or_known_default().ok_or(DeliveryError::UnsupportedUrl)?;
        let admitted = self.guard.admit(&host, port, BlockedAddressMode::RefuseAny, deadline).await;
        let admitted = admitted.inspect_err(|error| self.log_unreadable_addresses(*error)).map_err(|error| {
            match (&host, error) {
                (Host::Name(_), DialError::NotFound | DialError::NoAddress | DialError::AddressNotAllowed(_)) => {
                    DeliveryError::NoPublicAddress
                }
                _ => error.into(),
            }
        })?;
        let connected = admitted.connect(deadline).await?;
        connected.disable_nagle();
        if is_secret {
            // Boxed, so that a plain-text request doesn't need the space of a TLS one.
            Box::pin(self.post_over_tls(call, connected, &host, deadline)).await
        } else {
            exchange(call, connected.stream, deadline).await
        }
    }

    async fn post_over_tls(
        &self,
        call: &ChannelRequest,
        connected: DialedConnection,
        host: &Host,
        deadline: Instant,
    ) -> Result<ChannelResponse, DeliveryError> {
        let name = match host {
            Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
            Host::Name(name) => {
                ServerName::try_from(name.as_str().to_owned()).map_err(|_| DeliveryError::UnsupportedUrl)?
            }
        };
        let shaking = TlsConnector::from(Arc::clone(&self.tls)).connect(name, connected.stream);
        let stream = match timeout_at(deadline, shaking).await {
            Err(_) => return Err(DeliveryError::Timeout),
            Ok(Err(error)) => return Err(from_io_error(&error)),
            Ok(Ok(stream)) => stream,
        };
        exchange(call, stream, deadline).await
    }

    /// Logs, at most once a minute, the one error that the operator has to fix.
    fn log_unreadable_addresses(&self, error: DialError) {
        if error != DialError::OwnAddressesUnreadable {
            return;
        }
        let mut said = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            *said = Some(Instant::now());
            tracing::error!(
                "this host's own addresses can't be read, so only mail is delivered: allow the coordinator \
                 AF_NETLINK (RestrictAddressFamilies= in its unit); deliveries are retried"
            );
        }
    }
}

async fn exchange<S>(call: &ChannelRequest, stream: S, deadline: Instant) -> Result<ChannelResponse, DeliveryError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = build_request(call)?;
    let asking = async {
        let (mut sender, connection) = http1::Builder::new()
            .max_header_size(MAX_HEADERS)
            .max_buf_size(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| from_hyper_error(&error))?;
        let driver = ConnectionDriver(tokio::spawn(connection));
        let response = sender.send_request(request).await.map_err(|error| from_hyper_error(&error))?;
        Ok::<_, DeliveryError>((response, driver))
    };
    let (response, _driver) = timeout_at(deadline, asking).await.map_err(|_| DeliveryError::Timeout)??;
    let (head, body) = response.into_parts();
    let retry_after = head.headers.get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_text = head.headers.get(header::CONTENT_TYPE).is_none_or(is_text);
    let text = read_body(body, deadline.min(Instant::now() + BODY_TIMEOUT)).await.unwrap_or_default();
    Ok(ChannelResponse { status: head.status, retry_after, body: text, is_text })
}

fn build_request(call: &ChannelRequest) -> Result<Request<Full<Bytes>>, DeliveryError> {
    let mut request = Request::new(Full::new(call.body.clone()));
    *request.method_mut() = http::Method::POST;
    let target = &call.url[url::Position::BeforePath..url::Position::AfterQuery];
    *request.uri_mut() = target.parse().map_err(|_| DeliveryError::UnsupportedUrl)?;
    let host = &call.url[url::Position::BeforeHost..url::Position::AfterPort];
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_str(host).map_err(|_| DeliveryError::UnsupportedUrl)?);
    headers.insert(header::USER_AGENT, USER_AGENT);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.extend(call.headers.iter().cloned());
    Ok(request)
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
async fn read_body(mut body: Incoming, until: Instant) -> Option<String> {
    let (mut kept, mut seen) = (Vec::new(), 0);
    while seen < MAX_BODY {
        let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await else { break };
        let Some(data) = frame.data_ref() else { continue };
        seen += data.len();
        let room = MAX_RESPONSE_BYTES.saturating_sub(kept.len());
        kept.extend(data.iter().take(room));
    }
    match std::str::from_utf8(&kept) {
        // The size limit may split a character.
        Err(error) if error.error_len().is_none() => kept.truncate(error.valid_up_to()),
        Err(_) => return None,
        Ok(_) => {}
    }
    String::from_utf8(kept).ok().filter(|text| !text.contains('\0'))
}

fn from_hyper_error(error: &hyper::Error) -> DeliveryError {
    if error.is_parse_too_large() {
        return DeliveryError::HeadersTooLarge;
    }
    if error.is_parse() {
        return DeliveryError::NotHttp;
    }
    let inner = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    inner.map_or(DeliveryError::Closed, from_io_error)
}

fn from_io_error(error: &io::Error) -> DeliveryError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(fault)) => DeliveryError::Certificate(fault.to_string()),
        Some(_) => DeliveryError::Tls,
        None if error.kind() == io::ErrorKind::InvalidData => DeliveryError::Tls,
        None => DeliveryError::Closed,
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

/// Task that drives a connection; it ends with the request.
struct ConnectionDriver(JoinHandle<hyper::Result<()>>);

impl Drop for ConnectionDriver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
