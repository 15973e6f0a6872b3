//! State shared by all HTTP handlers: the service, the page cache, rate limits and counters.

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

/// MCP messages per minute for one public page.
const PAGE_MESSAGES: u32 = 120;
/// Requests without a valid key per minute and address: generous, since many clients may share an address.
const FAILED_REQUESTS: u32 = 600;

/// Sign-in links per minute and address.
const LINKS: u32 = 5;
/// Subscription requests per minute and address.
const WISHES: u32 = 5;

/// Status classes, in order.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// State shared by all handlers.
#[derive(Debug)]
pub struct Context {
    pub(super) service: Service,
    /// Cache of rendered pages.
    pub(super) boards: Boards,
    /// Index of cached responses by request, for the fast path.
    pub(super) front: Front,
    /// True once the server shuts down; ends streaming responses.
    stopping: watch::Sender<bool>,
    pub(super) keys: Limiter<KeyId>,
    pub(super) strangers: Limiter<u128>,
    /// Memory held by responses in flight.
    pub(super) answers: Answers,
    /// Responses sent, by status class.
    answered: [AtomicU64; CLASSES.len()],
    pub(super) pages: Limiter<PageId>,
    pub(super) wishes: Limiter<u128>,
    /// Limits wrong page passwords.
    pub(super) passwords: Tries,
    pub(super) links: Limiter<u128>,
    /// MCP tools, built on first use.
    tools: OnceLock<Tools>,
    /// OpenAPI document and its ETag, rendered on first use.
    description: OnceLock<(Bytes, String)>,
    /// API reference page, rendered on first use.
    pub(super) reference: OnceCell<Document>,
}

impl Context {
    /// Creates the context of a server, with a limit of requests per minute for each key.
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

    /// Responses sent since the start, by status class.
    pub fn answered(&self) -> [(&'static str, u64); CLASSES.len()] {
        let mut counts = self.answered.iter().map(|count| count.load(Ordering::Relaxed));
        CLASSES.map(|class| (class, counts.next().unwrap_or(0)))
    }

    /// Cache of rendered pages; the caller that runs the server must keep it up to date with the journal.
    pub const fn boards(&self) -> &Boards {
        &self.boards
    }

    /// The service that the handlers call.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// OpenAPI document and its ETag: one copy shared by all responses.
    pub(super) fn description(&self) -> &(Bytes, String) {
        self.description.get_or_init(|| {
            let written = openapi::written(self.service.base_url());
            let tag = reply::tag(&written);
            (written.into(), tag)
        })
    }

    /// The API's operations as MCP tools.
    pub(super) fn tools(&self) -> &Tools {
        self.tools.get_or_init(|| Tools::new(openapi::operations()))
    }

    /// Ends all streaming responses.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Becomes true when the server shuts down.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(super) fn count(&self, status: StatusCode) {
        if let Some(count) = self.answered.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
