//! HTTP client for the ACME server: HTTPS only, trusts the public roots and the operator's, limits time and size.
//!
//! Addresses come from the operator and the ACME directory, not from customers, so requests do not pass the guard
//! against internal addresses.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::timeout;

use super::AcmeError;
use crate::tls::certificate_files;

/// Time limit of a request, until the last byte of the response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Size limit of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Failed request, in words that page owners may see: they name no address and no system message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum AcmeRequestError {
    /// No connection: the name, the network or TLS failed.
    #[error("can't connect to the ACME server")]
    Connect,
    /// No complete response in time.
    #[error("the ACME server did not respond in time")]
    Timeout,
    /// The URL, the operator's or one from the server's directory, can't be used.
    #[error("the ACME server's address is not an https address")]
    UnsupportedUrl,
    /// The response is incomplete or not HTTP.
    #[error("the ACME server's response could not be read")]
    Unreadable,
    /// The response is too large.
    #[error("the ACME server's response is larger than 1 MiB")]
    TooLarge,
}

/// The client. Cheap to clone.
#[derive(Clone)]
pub(super) struct AcmeHttpClient(reqwest::Client);

impl AcmeHttpClient {
    /// Creates a client that trusts the public roots and those in the file.
    pub(super) fn new(roots: Option<&Path>) -> Result<Self, AcmeError> {
        let mut extra_roots = Vec::new();
        if let Some(path) = roots {
            let text = certificate_files::read_text(path).map_err(|error| AcmeError::Roots(error.to_string()))?;
            for root in CertificateDer::pem_slice_iter(text.as_bytes()) {
                extra_roots.push(root.map_err(|error| AcmeError::Roots(error.to_string()))?);
            }
        }
        let builder = parallax_guarded_client::unguarded_builder(&extra_roots)
            .map_err(|error| AcmeError::Roots(error.to_string()))?;
        let client = builder.https_only(true).build().map_err(|error| AcmeError::Client(error.to_string()))?;
        Ok(Self(client))
    }
}

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|error| Error::Other(error.into()))?.to_bytes();
            let request = http::Request::from_parts(head, body);
            let request = request.try_into().map_err(failed)?;
            let exchange = async {
                let response: http::Response<reqwest::Body> = client.execute(request).await.map_err(failed)?.into();
                let (head, body) = response.into_parts();
                let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(unreadable)?;
                Ok(BytesResponse::from(http::Response::from_parts(head, Full::new(body.to_bytes()))))
            };
            timeout(RESPONSE_TIMEOUT, exchange).await.unwrap_or_else(|_| Err(AcmeRequestError::Timeout.into()))
        })
    }
}

impl From<AcmeRequestError> for Error {
    fn from(error: AcmeRequestError) -> Self {
        Self::Other(Box::new(error))
    }
}

/// Classifies a failed request; its details are logged for the operator.
fn failed(error: reqwest::Error) -> Error {
    tracing::warn!(?error, "a request to the ACME server failed");
    let kind = match () {
        () if error.is_timeout() => AcmeRequestError::Timeout,
        () if error.is_builder() => AcmeRequestError::UnsupportedUrl,
        () if error.is_connect() => AcmeRequestError::Connect,
        () => AcmeRequestError::Unreadable,
    };
    kind.into()
}

/// Classifies a response body that could not be read.
fn unreadable(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    tracing::warn!(%error, "a response of the ACME server could not be read");
    if error.is::<LengthLimitError>() { AcmeRequestError::TooLarge.into() } else { AcmeRequestError::Unreadable.into() }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_failed_request_names_its_cause_but_no_address() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let client = AcmeHttpClient::new(None).unwrap();
        for (url, text) in [
            (format!("https://{closed}/"), "can't connect to the ACME server"),
            (format!("http://{closed}/"), "the ACME server's address is not an https address"),
        ] {
            let request = http::Request::get(url).body(BodyWrapper::from(Vec::new())).unwrap();
            let error = client.request(request).await.err().unwrap();
            assert_eq!(error.to_string(), text);
        }
    }
}
