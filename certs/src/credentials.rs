//! A certificate chain with the private key of its leaf.

use std::fmt;

use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::CertsError;
use crate::files;

/// Certificate chain and private key of one side of a handshake; its `Debug` hides the key.
pub struct Credentials {
    chain: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Credentials {
    /// Creates credentials from a chain, leaf first, and the leaf's key as PKCS#8 DER.
    ///
    /// # Errors
    /// [`CertsError::Certificate`] for an empty chain.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: Vec<u8>) -> Result<Self, CertsError> {
        if chain.is_empty() {
            return Err(CertsError::Certificate("chain is empty"));
        }
        Ok(Self { chain, key: PrivatePkcs8KeyDer::from(key) })
    }

    /// Parses chain and key from one PEM text.
    ///
    /// # Errors
    /// [`CertsError::Pem`] if the key or every certificate is missing.
    pub fn from_pem(text: &str) -> Result<Self, CertsError> {
        Self::new(files::parse_certificates(text)?, files::parse_key(text)?)
    }

    /// Returns chain and key as one PEM text: a secret.
    #[must_use]
    pub fn to_pem(&self) -> String {
        files::certificates_to_pem(&self.chain) + &files::key_to_pem(self.key.secret_pkcs8_der())
    }

    /// Returns the chain, leaf first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    pub(crate) fn for_rustls(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), PrivateKeyDer::Pkcs8(self.key.clone_key()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}
