//! TLS termination: certificates by host name, from the operator's files or by ACME.
//!
//! The listener resolves certificates with [`Shown`], which is filled from the operator's files ([`files`]) and by ACME
//! ([`acme`]).

pub mod acme;
mod config;
pub mod files;
mod pair;
mod shown;

pub use pair::{Pair, PairError};
pub use shown::Shown;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Path prefix of HTTP-01 challenges, followed by the token (RFC 8555, section 8.3).
pub const CHALLENGE: &str = "/.well-known/acme-challenge/";

/// Limit of open challenges; certificates are ordered one after the other.
const CHALLENGES: usize = 16;

/// Open HTTP-01 challenges by token, served by the plain HTTP listener (RFC 8555, section 8.3).
#[derive(Debug, Clone, Default)]
pub struct Challenges(Arc<Mutex<BTreeMap<String, String>>>);

impl Challenges {
    /// Returns the key authorization for a token, or `None` for an unknown token.
    pub fn answer(&self, token: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Adds a token with its key authorization.
    pub fn put(&self, token: &str, proof: &str) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() < CHALLENGES {
            open.insert(token.to_owned(), proof.to_owned());
        }
    }

    /// Removes a token.
    pub fn take(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}
