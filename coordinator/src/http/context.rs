//! What handlers share: the service, and who has used how much of a minute.

use parallax_core::id::KeyId;

use super::limit::Limiter;
use crate::service::Service;

/// Requests a key may make in a minute.
const KEY_REQUESTS: u32 = 120;
/// Requests without a good key that one address may make in a minute: generous, since many may share it.
const FAILED_REQUESTS: u32 = 600;

/// What handlers share.
#[derive(Debug)]
pub struct Context {
    pub(super) service: Service,
    pub(super) keys: Limiter<KeyId>,
    pub(super) strangers: Limiter<u128>,
}

impl Context {
    /// The context of a server over that service.
    pub fn new(service: Service) -> Self {
        Self { service, keys: Limiter::new(KEY_REQUESTS), strangers: Limiter::new(FAILED_REQUESTS) }
    }
}
