//! TLS of the coordinator's own: which certificate is shown for which name, and where certificates come from.
//!
//! [`Shown`] is what the listener asks. The operator's files fill it ([`files`]), and an authority asked by ACME ([`acme`]).

pub mod acme;
mod config;
pub mod files;
mod pair;
mod shown;

pub use pair::{Pair, PairError};
pub use shown::Shown;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Where an authority asks for the proof that a host is ours, before the token (RFC 8555, section 8.3).
pub const CHALLENGE: &str = "/.well-known/acme-challenge/";

/// Challenges that may be open at once; orders are made one after the other.
const CHALLENGES: usize = 16;

/// What an authority may ask for at the plain listener right now, by token (RFC 8555, section 8.3).
#[derive(Debug, Clone, Default)]
pub struct Challenges(Arc<Mutex<BTreeMap<String, String>>>);

impl Challenges {
    /// What proves that this host is ours; none for a token that nobody is asked for.
    pub fn answer(&self, token: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Has a token answered, until it is taken back.
    pub fn put(&self, token: &str, proof: &str) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() < CHALLENGES {
            open.insert(token.to_owned(), proof.to_owned());
        }
    }

    /// Takes a token back.
    pub fn take(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}
