//! What handlers share: the service, and who has used how much of a minute.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ::http::StatusCode;
use bytes::Bytes;
use parallax_core::id::{KeyId, PageId};
use tokio::sync::{OnceCell, watch};

use super::answers::Answers;
use super::limit::Limiter;
use super::mcp::Tools;
use super::public::Front;
use super::tries::Tries;
use super::{openapi, reply};
use crate::publish::{Boards, Document};
use crate::service::Service;

/// Messages that a public page answers to agents in a minute.
const PAGE_MESSAGES: u32 = 120;
/// Requests without a good key that one address may make in a minute: generous, since many may share it.
const FAILED_REQUESTS: u32 = 600;

/// Links to sign in by that one address may ask for in a minute.
const LINKS: u32 = 5;
/// Wishes to subscribe that one address may send in a minute.
const WISHES: u32 = 5;

/// Classes of status, in their order.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// What handlers share.
#[derive(Debug)]
pub struct Context {
    pub(super) service: Service,
    /// What visitors are served.
    pub(super) boards: Boards,
    /// Requests of visitors that were answered before.
    pub(super) front: Front,
    /// Told once the server is to stop: answers without an end end then.
    stopping: watch::Sender<bool>,
    pub(super) keys: Limiter<KeyId>,
    pub(super) strangers: Limiter<u128>,
    /// Long answers that are not sent yet.
    pub(super) answers: Answers,
    /// Answers by class of their status.
    answered: [AtomicU64; CLASSES.len()],
    pub(super) pages: Limiter<PageId>,
    pub(super) wishes: Limiter<u128>,
    /// Tries of pages' passwords.
    pub(super) passwords: Tries,
    pub(super) links: Limiter<u128>,
    /// The operations as tools, made once they are asked for.
    tools: OnceLock<Tools>,
    /// The API's description, written once it is asked for.
    description: OnceLock<(Bytes, String)>,
    /// The API's reference for people, drawn once it is asked for.
    pub(super) reference: OnceCell<Document>,
}

impl Context {
    /// The context of a server over that service, where each key has so many requests in a minute.
    pub fn new(service: Service, requests_per_minute: u32) -> Self {
        Self {
            boards: Boards::new(service.clone()),
            front: Front::default(),
            service,
            stopping: watch::Sender::new(false),
            keys: Limiter::new(requests_per_minute),
            strangers: Limiter::new(FAILED_REQUESTS),
            answers: Answers::default(),
            answered: Default::default(),
            pages: Limiter::new(PAGE_MESSAGES),
            wishes: Limiter::new(WISHES),
            passwords: Tries::new(),
            links: Limiter::new(LINKS),
            tools: OnceLock::new(),
            description: OnceLock::new(),
            reference: OnceCell::new(),
        }
    }

    /// How many requests were answered since the start, by class of status.
    pub fn answered(&self) -> [(&'static str, u64); CLASSES.len()] {
        let mut counts = self.answered.iter().map(|count| count.load(Ordering::Relaxed));
        CLASSES.map(|class| (class, counts.next().unwrap_or(0)))
    }

    /// What visitors are served: whoever runs the server has it follow the journal.
    pub const fn boards(&self) -> &Boards {
        &self.boards
    }

    /// The service behind the handlers.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The API's description and its tag, as they are served: one copy for however many take it.
    pub(super) fn description(&self) -> &(Bytes, String) {
        self.description.get_or_init(|| {
            let written = openapi::written(self.service.base_url());
            let tag = reply::tag(&written);
            (written.into(), tag)
        })
    }

    /// The API's operations as tools for agents.
    pub(super) fn tools(&self) -> &Tools {
        self.tools.get_or_init(|| Tools::new(openapi::operations()))
    }

    /// Ends the answers that have no end of their own.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Told when the server is to stop.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(super) fn count(&self, status: StatusCode) {
        if let Some(count) = self.answered.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
