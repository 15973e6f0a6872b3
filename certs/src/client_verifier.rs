//! Verification of an agent's certificate by the coordinator: size bounds first, then the authorities, each
//! failure with its own error text.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, OtherError, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::CertsError;

/// Maximum number of certificates that an agent may send: its own, and its authority's.
const MAX_CERTIFICATES: usize = 2;

/// Maximum total size in bytes; regular chains have about 1,000.
const MAX_CHAIN_BYTES: usize = 8_192;

/// Wraps rustls's verifier for the authorities with size bounds.
#[derive(Debug)]
pub(crate) struct BoundedClientVerifier(pub(crate) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for BoundedClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        if sent.len() >= MAX_CERTIFICATES {
            return Err(certificate_error("is sent in a chain of more than two"));
        }
        let bytes: usize = sent.iter().chain([leaf]).map(|certificate| certificate.len()).sum();
        if bytes > MAX_CHAIN_BYTES {
            return Err(certificate_error("is longer than 8192 bytes"));
        }
        self.0.verify_client_cert(leaf, sent, now).map_err(|error| match error {
            TlsError::InvalidCertificate(CertificateError::UnknownIssuer) if is_self_signed(leaf) => {
                certificate_error("is self-signed")
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn certificate_error(rule: &'static str) -> TlsError {
    TlsError::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(CertsError::Certificate(rule)))))
}

fn is_self_signed(leaf: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(leaf).is_ok_and(|(_, parsed)| parsed.issuer().as_raw() == parsed.subject().as_raw())
}
