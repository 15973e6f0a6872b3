//! HTTP client for the ACME server: HTTPS only, trusts the public roots and the operator's, limits time and size.
//!
//! Addresses come from the operator and the ACME directory, not from customers, so requests do not pass the guard
//! against internal addresses.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use super::AcmeError;
use crate::tls::certificate_files;

/// Time limit of a request, until the last byte of the response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Size limit of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// The client. Cheap to clone.
#[derive(Clone)]
pub(super) struct AcmeHttpClient(Pool<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

impl AcmeHttpClient {
    /// Creates a client that trusts the public roots and those in the file.
    pub(super) fn new(roots: Option<&Path>) -> Result<Self, AcmeError> {
        let mut trusted = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = roots {
            let text = certificate_files::read_text(path).map_err(|error| AcmeError::Roots(error.to_string()))?;
            for root in CertificateDer::pem_slice_iter(text.as_bytes()) {
                let root = root.map_err(|error| AcmeError::Roots(error.to_string()))?;
                trusted.add(root).map_err(|error| AcmeError::Roots(error.to_string()))?;
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| AcmeError::Roots(error.to_string()))?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        Ok(Self(Pool::builder(TokioExecutor::new()).build(connector)))
    }
}

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let asked = self.0.request(request);
        Box::pin(async move {
            let answered = async {
                let answer = asked.await.map_err(|error| Error::Other(Box::new(error)))?;
                let (head, body) = answer.into_parts();
                let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(Error::Other)?;
                Ok(BytesResponse::from(http::Response::from_parts(head, Full::new(body.to_bytes()))))
            };
            timeout(RESPONSE_TIMEOUT, answered).await.unwrap_or_else(|_| Err(Error::Timeout(None)))
        })
    }
}
