//! Randomness of the operating system.

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;

use crate::error::CertsError;

/// Fills `bytes` from the system's source of randomness.
///
/// # Errors
/// [`CertsError::Random`] if it fails.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), CertsError> {
    let provider: CryptoProvider = default_provider();
    provider.secure_random.fill(bytes).map_err(|_| CertsError::Random)
}
