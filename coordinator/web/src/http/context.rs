//! State shared by all HTTP handlers: the service, the page cache, rate limits and counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ::http::StatusCode;
use bytes::Bytes;
use parallax_core::id::PageId;
use parallax_core::login_session::LoginSessionId;
use parallax_core::rate_limit::KeyedRateLimit;
use parallax_service::{ActorId, Services};
use tokio::sync::{OnceCell, watch};

use super::server::login_throttle::LoginThrottle;
use super::server::response_index::ResponseIndex;
use super::server::response_memory::ResponseMemory;
use super::server::session_streams::SessionStreams;
use crate::page_cache::{CompressedDocument, PageCache};

/// MCP messages per minute for one public page.
const PAGE_MCP_LIMIT: u32 = 120;
/// Requests without a valid key per minute and address: generous, since many clients may share an address.
const FAILED_AUTH_LIMIT: u32 = 600;

/// Requests per minute of a signed-in browser.
const SESSION_LIMIT: u32 = 600;
/// Sign-in links per minute and address.
const SIGN_IN_LINK_LIMIT: u32 = 5;
/// Company sign-ins that begin per minute and address: a company's people may share one.
const COMPANY_SIGN_IN_LIMIT: u32 = 30;
/// Subscription requests per minute and address.
const SUBSCRIBE_LIMIT: u32 = 5;
/// Views of evidence links per minute and address: each may search thousands of events.
const EVIDENCE_LIMIT: u32 = 30;

/// Status classes, in order.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// State shared by all handlers.
#[derive(Debug)]
pub struct HttpContext {
    pub(super) service: Arc<Services>,
    /// Cache of rendered pages.
    pub(super) page_cache: PageCache,
    /// Index of cached responses by request, for the fast path.
    pub(super) response_index: ResponseIndex,
    /// True once the server shuts down; ends streaming responses.
    shutdown: watch::Sender<bool>,
    pub(super) key_limit: KeyedRateLimit<ActorId>,
    /// Requests of signed-in browsers.
    pub(super) session_limit: KeyedRateLimit<LoginSessionId>,
    pub(super) failed_auth_limit: KeyedRateLimit<u128>,
    /// Memory held by responses in flight.
    pub(super) response_memory: ResponseMemory,
    /// Responses sent, by status class.
    responses_by_class: [AtomicU64; STATUS_CLASSES.len()],
    pub(super) page_mcp_limit: KeyedRateLimit<PageId>,
    pub(super) subscribe_limit: KeyedRateLimit<u128>,
    /// Limits wrong page passwords.
    pub(super) login_throttle: LoginThrottle,
    pub(super) sign_in_link_limit: KeyedRateLimit<u128>,
    pub(super) company_sign_in_limit: KeyedRateLimit<u128>,
    pub(super) evidence_limit: KeyedRateLimit<u128>,
    /// Event streams of the dashboard.
    pub(super) session_streams: Arc<SessionStreams>,
    /// OpenAPI document and its ETag, rendered on first use.
    pub(super) openapi_document: OnceLock<(Bytes, String)>,
    /// API reference page, rendered on first use.
    pub(super) reference_page: OnceCell<CompressedDocument>,
}

impl HttpContext {
    /// Creates the context of a server, with a limit of requests per minute for each key.
    pub fn new(service: Arc<Services>, requests_per_minute: u32) -> Self {
        let page_cache = PageCache::new(service.clone());
        Self {
            response_index: ResponseIndex::new(service.clone(), page_cache.clone()),
            page_cache,
            service,
            shutdown: watch::Sender::new(false),
            key_limit: KeyedRateLimit::new(requests_per_minute),
            session_limit: KeyedRateLimit::new(SESSION_LIMIT),
            failed_auth_limit: KeyedRateLimit::new(FAILED_AUTH_LIMIT),
            response_memory: ResponseMemory::default(),
            responses_by_class: Default::default(),
            page_mcp_limit: KeyedRateLimit::new(PAGE_MCP_LIMIT),
            subscribe_limit: KeyedRateLimit::new(SUBSCRIBE_LIMIT),
            login_throttle: LoginThrottle::new(),
            sign_in_link_limit: KeyedRateLimit::new(SIGN_IN_LINK_LIMIT),
            company_sign_in_limit: KeyedRateLimit::new(COMPANY_SIGN_IN_LIMIT),
            evidence_limit: KeyedRateLimit::new(EVIDENCE_LIMIT),
            session_streams: Arc::default(),
            openapi_document: OnceLock::new(),
            reference_page: OnceCell::new(),
        }
    }

    /// Responses sent since the start, by status class.
    pub fn responses_by_class(&self) -> [(&'static str, u64); STATUS_CLASSES.len()] {
        let mut counts = self.responses_by_class.iter().map(|count| count.load(Ordering::Relaxed));
        STATUS_CLASSES.map(|class| (class, counts.next().unwrap_or(0)))
    }

    /// Cache of rendered pages; the caller that runs the server must keep it up to date with the journal.
    pub const fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// The service that the handlers call.
    pub fn service(&self) -> &Services {
        &self.service
    }

    /// Ends all streaming responses.
    pub(super) fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    /// Becomes true when the server shuts down.
    pub(super) fn shutdown_signal(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }

    pub(super) fn count_response(&self, status: StatusCode) {
        if let Some(count) = self.responses_by_class.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
