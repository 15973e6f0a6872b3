//! HTTP client for the ACME server: HTTPS only, trusts the public roots and the operator's, limits time and size.
//!
//! Addresses come from the operator and the ACME directory, not from customers, so requests do not pass the guard
//! against internal addresses.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::timeout;

use super::AcmeError;
use crate::guarded_client;
use crate::tls::certificate_files;

/// Time limit of a request, until the last byte of the response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Size limit of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// The client. Cheap to clone.
#[derive(Clone)]
pub(super) struct AcmeHttpClient(reqwest::Client);

impl AcmeHttpClient {
    /// Creates a client that trusts the public roots and those in the file.
    pub(super) fn new(roots: Option<&Path>) -> Result<Self, AcmeError> {
        let mut extra = Vec::new();
        if let Some(path) = roots {
            let text = certificate_files::read_text(path).map_err(|error| AcmeError::Roots(error.to_string()))?;
            for root in CertificateDer::pem_slice_iter(text.as_bytes()) {
                extra.push(root.map_err(|error| AcmeError::Roots(error.to_string()))?);
            }
        }
        let builder = guarded_client::client_builder(&extra).map_err(|error| AcmeError::Roots(error.to_string()))?;
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
            let request = request.try_into().map_err(from_reqwest)?;
            let answered = async {
                let answer: http::Response<reqwest::Body> = client.execute(request).await.map_err(from_reqwest)?.into();
                let (head, body) = answer.into_parts();
                let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(Error::Other)?;
                Ok(BytesResponse::from(http::Response::from_parts(head, Full::new(body.to_bytes()))))
            };
            timeout(RESPONSE_TIMEOUT, answered).await.unwrap_or_else(|_| Err(Error::Timeout(None)))
        })
    }
}

/// Page owners may see the message, so it leaves out the operator's URL.
fn from_reqwest(error: reqwest::Error) -> Error {
    Error::Other(Box::new(error.without_url()))
}
