//! What handlers share: the service, and who has used how much of a minute.

use std::sync::atomic::{AtomicU64, Ordering};

use ::http::StatusCode;
use parallax_core::id::KeyId;

use super::limit::Limiter;
use crate::service::Service;

/// Requests a key may make in a minute.
const KEY_REQUESTS: u32 = 120;
/// Requests without a good key that one address may make in a minute: generous, since many may share it.
const FAILED_REQUESTS: u32 = 600;

/// Classes of status, in their order.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// What handlers share.
#[derive(Debug)]
pub struct Context {
    pub(super) service: Service,
    pub(super) keys: Limiter<KeyId>,
    pub(super) strangers: Limiter<u128>,
    /// Answers by class of their status.
    answered: [AtomicU64; CLASSES.len()],
}

impl Context {
    /// The context of a server over that service.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            keys: Limiter::new(KEY_REQUESTS),
            strangers: Limiter::new(FAILED_REQUESTS),
            answered: Default::default(),
        }
    }

    /// How many requests were answered since the start, by class of status.
    pub fn answered(&self) -> [(&'static str, u64); CLASSES.len()] {
        let mut counts = self.answered.iter().map(|count| count.load(Ordering::Relaxed));
        CLASSES.map(|class| (class, counts.next().unwrap_or(0)))
    }

    /// The service behind the handlers.
    pub fn service(&self) -> &Service {
        &self.service
    }

    pub(super) fn count(&self, status: StatusCode) {
        if let Some(count) = self.answered.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
