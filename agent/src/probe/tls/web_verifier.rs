//! Verification of a server's certificates by the trusted roots, with errors that name the certificate at fault.

use std::sync::Arc;

use parallax_protocol::result::WireFailure;
use rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        VerifierBuilderError, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::parse_x509_certificate;

use super::{explain, explained_error};
use crate::probe::facts::CheckError;

/// Verifies certificate chains and proofs of possession, without revocation lists; cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::probe) struct WebVerifier(Arc<WebPkiServerVerifier>);

impl WebVerifier {
    /// Creates a verifier that trusts `roots`.
    ///
    /// # Errors
    /// [`VerifierBuilderError`] for no roots at all.
    pub(in crate::probe) fn new(
        roots: RootCertStore,
        crypto: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(crypto)).build().map(Self)
    }

    /// Verifies a chain; the error is the library's.
    ///
    /// # Errors
    /// The first fault of the chain. The name is verified last.
    pub(in crate::probe) fn verify_chain(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        self.0.verify_server_cert(leaf, others, name, ocsp, now)
    }
}

impl ServerCertVerifier for WebVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let verdict = self.verify_chain(leaf, others, name, ocsp, now);
        verdict.map_err(|error| explained_chain_error(error, leaf, others, name, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let proof = self.0.verify_tls12_signature(message, leaf, signed);
        proof.map_err(|error| explain::signature(error, leaf))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let proof = self.0.verify_tls13_signature(message, leaf, signed);
        proof.map_err(|error| explain::signature(error, leaf))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Explains an error of [`WebVerifier::verify_chain`].
///
/// A self-signed certificate may have another fault as well, which the library reports first: openssl, for example,
/// creates an authority by default. Visitors see the unknown issuer, so that is the error here.
pub(in crate::probe) fn explained_chain_error(
    error: TlsError,
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    name: &ServerName<'_>,
    now: UnixTime,
) -> TlsError {
    let error = explain::chain(error, leaf, others, name, now);
    let is_other = matches!(explained_error(&error), CheckError::Target(WireFailure::TlsOther { .. }));
    if is_other && is_self_signed(leaf) { CertificateError::UnknownIssuer.into() } else { error }
}

/// Returns true if a certificate names itself as its issuer.
fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    parse_x509_certificate(certificate).is_ok_and(|(_, parsed)| parsed.issuer() == parsed.subject())
}
