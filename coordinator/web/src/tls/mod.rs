//! TLS termination: certificates by host name, from the operator's files or by ACME.
//!
//! The listener resolves certificates with [`CertificateResolver`], which is filled from the operator's files ([`certificate_files`]) and by ACME
//! ([`acme`]).

pub mod acme;
pub mod certificate_files;
mod certified_key;
mod resolver;
mod server_config;

pub use certified_key::{CertificateAndKey, CertificateError};
pub use resolver::CertificateResolver;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Path prefix of HTTP-01 challenges, followed by the token (RFC 8555, section 8.3).
pub(crate) const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// Limit of open challenges; certificates are ordered one after the other.
const MAX_CHALLENGES: usize = 16;

/// Open HTTP-01 challenges by token, served by the plain HTTP listener (RFC 8555, section 8.3).
#[derive(Debug, Clone, Default)]
pub struct AcmeChallenges(Arc<Mutex<BTreeMap<String, String>>>);

impl AcmeChallenges {
    /// Returns the key authorization for a token, or `None` for an unknown token.
    pub fn proof(&self, token: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Adds a token with its key authorization.
    pub fn insert(&self, token: &str, proof: &str) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() < MAX_CHALLENGES {
            open.insert(token.to_owned(), proof.to_owned());
        }
    }

    /// Removes a token.
    pub fn remove(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}
