//! Cache of rendered pages: each document of a page is rendered once per change, stored compressed, and
//! dropped when it is no longer requested.
//!
//! A document is never older than the journal: before one is served, new events are read, and documents that
//! they affect are rendered again. Content that changes without an event (figures, the time of the newest
//! check) is at most as old as [`DocumentKind`] allows. If only that age has passed, the stale document is served,
//! up to six times the age, while a new one is rendered (stale-while-revalidate).

mod cache;
mod change_tracker;
mod compression;
mod render;
pub use compression::CompressedDocument;
pub use render::monitor_detail;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::page_view::TimeRange;
use parallax_core::time::{SECOND, Timestamp};
use parallax_service::page_access::authorize::{AuthorizedPage, PageAddress};
use parallax_service::{ServiceError, ServiceResult, Services};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::views::badge::BadgeData;
use crate::views::frame::without_timestamp;
use cache::{BoundedCache, Cacheable, CachedValue, Freshness, RenderGuard};
use change_tracker::ChangeTracker;

/// Media type of pages for people.
pub const HTML: &str = "text/html; charset=utf-8";
/// Memory limit of all documents, in bytes.
const DOCUMENT_BYTES: usize = 48 << 20;
/// Memory limit of the badge data of all pages, in bytes.
const BADGE_DATA_BYTES: usize = 4 << 20;
/// Interval of the eviction of unused entries.
const EVICTION_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum age of the data for a page's preview image, in milliseconds: refreshing it reads the whole page.
const PREVIEW_IMAGE_AGE: i64 = 60 * SECOND;

/// A kind of document of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// The page itself, with uptime bars of the range chosen by the visitor, or of the default range.
    Page(Option<TimeRange>),
    /// The status document (JSON).
    Status,
    /// A monitor's own page, with uptime bars and a chart of the chosen or the default range.
    Monitor(MonitorId, Option<TimeRange>),
    /// An incident's own page.
    Incident(IncidentId),
    /// The incidents of a month (year, month).
    Month(i32, u32),
    /// A status document in the format of hosted status pages, by name.
    StatusFeed(&'static str),
    /// The compact page for embedding in frames, by the name of its theme.
    Embed(&'static str),
    /// The data shown by badges; badges themselves are rendered for each request.
    BadgeData,
    /// Another document by name: a feed, a calendar, an image.
    Other(&'static str),
    /// A document of these as Markdown.
    Markdown(Box<Self>),
}

impl DocumentKind {
    /// Maximum age in milliseconds while nothing happens. Documents that refresh themselves declare it in
    /// `data-live`.
    fn max_age(&self) -> i64 {
        match self {
            // Together with stale serving (30 s) and the 30 s for which others may cache a badge: a minute.
            Self::BadgeData => 5 * SECOND,
            Self::Page(_) | Self::Status | Self::StatusFeed(_) | Self::Embed(_) => 10 * SECOND,
            Self::Monitor(..) => 30 * SECOND,
            Self::Incident(_) | Self::Month(..) | Self::Other(_) => 60 * SECOND,
            Self::Markdown(kind) => kind.max_age(),
        }
    }
}

/// Cache key: the page, the address that it is visited by, and the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DocumentKey {
    page: PageId,
    address: PageAddress,
    kind: DocumentKind,
}

/// The page cache. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PageCache(Arc<Inner>);

/// Selects one of the caches.
type CacheSelector<T> = fn(&Inner) -> &BoundedCache<T>;
const DOCUMENT_CACHE: CacheSelector<CompressedDocument> = |inner| &inner.documents;

#[derive(Debug)]
struct Inner {
    service: Arc<Services>,
    documents: BoundedCache<CompressedDocument>,
    /// Badge data. The badges themselves have too many variants to cache, and rendering one is cheaper than
    /// finding it.
    badge_data: BoundedCache<BadgeData>,
    changes: ChangeTracker,
}

impl PageCache {
    /// Creates an empty cache.
    pub fn new(service: Arc<Services>) -> Self {
        let changes = ChangeTracker::new(&service);
        let (documents, badge_data) = (BoundedCache::new(DOCUMENT_BYTES), BoundedCache::new(BADGE_DATA_BYTES));
        Self(Arc::new(Inner { service, documents, badge_data, changes }))
    }

    /// Returns one of a page's HTML documents, rendered if necessary.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an object that is not on the page.
    pub async fn get(&self, page: &AuthorizedPage, kind: DocumentKind) -> ServiceResult<Arc<CompressedDocument>> {
        let render = self.clone().render_own(page.clone(), kind.clone());
        let age = kind.max_age();
        self.get_or_insert(DOCUMENT_CACHE, page, (kind, age), || render).await
    }

    /// Returns a cached document that may be served without waiting: its page has not changed since. If it is
    /// past its age, a new one is rendered in the background for later requests.
    pub(crate) fn get_cached(&self, page: &AuthorizedPage, kind: &DocumentKind) -> Option<Arc<CompressedDocument>> {
        if self.is_behind() {
            return None;
        }
        let now = self.0.service.now();
        let key = DocumentKey { page: page.page().id, address: page.address(), kind: kind.clone() };
        let entry = self.0.documents.get(&key, now)?;
        let cached = entry.value().filter(|cached| cached.is_current(self.0.changes.last_change(key.page)))?;
        match cached.freshness(now, kind.max_age()) {
            Freshness::Fresh => {}
            Freshness::Stale => {
                if let Some(guard) = entry.try_lock_for_render() {
                    let render = self.clone().render_own(page.clone(), kind.clone());
                    self.refresh_in_background(DOCUMENT_CACHE, guard, (page.clone(), key, now), || render);
                }
            }
            Freshness::Expired => return None,
        }
        Some(cached.value)
    }

    /// Returns true if there are unread events.
    pub fn is_behind(&self) -> bool {
        self.0.changes.is_behind()
    }

    /// Returns any document of a page: the cached one, or the result of `render`.
    ///
    /// # Errors
    /// The errors of `render`.
    pub(crate) async fn get_or_render<F, D>(
        &self,
        page: &AuthorizedPage,
        kind: DocumentKind,
        media: &'static str,
        render: D,
    ) -> ServiceResult<Arc<CompressedDocument>>
    where
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = ServiceResult<Vec<u8>>> + Send + 'static,
    {
        let age = kind.max_age();
        self.get_or_insert(DOCUMENT_CACHE, page, (kind, age), move || async move {
            compressed(media, render().await?).await
        })
        .await
    }

    /// Returns the badge data of a page and its monitors.
    ///
    /// # Errors
    /// An error of the store.
    pub(crate) async fn badge_data(&self, page: &AuthorizedPage) -> ServiceResult<Arc<BadgeData>> {
        self.badge_data_within(page, DocumentKind::BadgeData.max_age()).await
    }

    /// Returns the badge data at most a minute old, for documents that only refer to the page's preview
    /// image.
    async fn image_badge_data(&self, page: &AuthorizedPage) -> ServiceResult<Arc<BadgeData>> {
        self.badge_data_within(page, PREVIEW_IMAGE_AGE).await
    }

    async fn badge_data_within(&self, page: &AuthorizedPage, age: i64) -> ServiceResult<Arc<BadgeData>> {
        let (service, authorized) = (self.0.service.clone(), page.clone());
        let render = move || async move {
            let page_view = service.public_pages.view(&authorized, Some(TimeRange::Quarter)).await?;
            run_blocking(move || Ok::<_, Infallible>(BadgeData::from_page(&page_view))).await
        };
        self.get_or_insert(|inner| &inner.badge_data, page, (DocumentKind::BadgeData, age), render).await
    }

    /// Returns an entry of that cache within that age, or the result of `render`.
    async fn get_or_insert<T, F, D>(
        &self,
        select_cache: CacheSelector<T>,
        page: &AuthorizedPage,
        (kind, age): (DocumentKind, i64),
        render: D,
    ) -> ServiceResult<Arc<T>>
    where
        T: Cacheable + Send + Sync + 'static,
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = ServiceResult<T>> + Send + 'static,
    {
        self.catch_up().await?;
        let now = self.0.service.now();
        let key = DocumentKey { page: page.page().id, address: page.address(), kind };
        let last_change = self.0.changes.last_change(key.page);
        let entry = select_cache(&self.0).entry(&key, now);
        let previous = entry.value();
        if let Some(cached) = previous.as_ref().filter(|cached| cached.is_current(last_change)) {
            match cached.freshness(now, age) {
                Freshness::Fresh => return Ok(Arc::clone(&cached.value)),
                Freshness::Stale => {
                    if let Some(guard) = entry.try_lock_for_render() {
                        self.refresh_in_background(select_cache, guard, (page.clone(), key, now), render);
                    }
                    return Ok(Arc::clone(&cached.value));
                }
                Freshness::Expired => {}
            }
        }
        let _guard = entry.lock_for_render().await;
        // The previous holder of the lock has rendered it; events since this request arrived concern later
        // requests.
        if let Some(cached) = entry.value()
            && cached.is_current(last_change)
            && (cached.freshness(now, age) == Freshness::Fresh
                || (cached.rendered_at > now && cached.is_newer_than(previous.as_ref())))
        {
            return Ok(cached.value);
        }
        self.render_and_store(select_cache, page, &key, now, render).await
    }

    /// Renders an entry in the background, while others are served the stale one.
    fn refresh_in_background<T, F, D>(
        &self,
        select_cache: CacheSelector<T>,
        guard: RenderGuard,
        (page, key, now): (AuthorizedPage, DocumentKey, Timestamp),
        render: D,
    ) where
        T: Cacheable + Send + Sync + 'static,
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = ServiceResult<T>> + Send + 'static,
    {
        let cache = self.clone();
        tokio::spawn(async move {
            if let Err(error) = cache.render_and_store(select_cache, &page, &key, now, render).await {
                tracing::warn!(%error, "failed to refresh a cached document");
            }
            drop(guard);
        });
    }

    /// Returns a receiver that gets each change of the page.
    pub fn watch(&self, page: PageId) -> watch::Receiver<u64> {
        self.0.changes.watch(page)
    }

    /// Follows the journal for watchers, and evicts unused entries. Runs for the life of the process.
    pub async fn run(self) {
        let mut events = self.0.service.watch_events();
        let mut next_eviction = Instant::now() + EVICTION_INTERVAL;
        loop {
            match tokio::time::timeout_at(next_eviction, events.changed()).await {
                Ok(Ok(())) => {
                    if let Err(error) = self.catch_up().await {
                        tracing::error!(%error, "failed to read the journal for public pages; retrying in a minute");
                        tokio::time::sleep(EVICTION_INTERVAL).await;
                    }
                }
                Ok(Err(_)) => return,
                Err(_) => {}
            }
            // Not after each event: it walks all entries.
            if Instant::now() >= next_eviction {
                let now = self.0.service.now();
                self.0.documents.evict_unused(now);
                self.0.badge_data.evict_unused(now);
                self.0.changes.prune(|| &self.0.documents.pages() | &self.0.badge_data.pages());
                next_eviction = Instant::now() + EVICTION_INTERVAL;
            }
        }
    }

    /// Memory used by all entries, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.documents.bytes() + self.0.badge_data.bytes()
    }

    async fn catch_up(&self) -> ServiceResult<()> {
        self.0.changes.catch_up(&self.0.service).await
    }

    async fn render_and_store<T, F, D>(
        &self,
        select_cache: CacheSelector<T>,
        page: &AuthorizedPage,
        key: &DocumentKey,
        now: Timestamp,
        render: D,
    ) -> ServiceResult<Arc<T>>
    where
        T: Cacheable + Send + Sync,
        D: FnOnce() -> F + Send,
        F: Future<Output = ServiceResult<T>> + Send,
    {
        // Events from here on may or may not be included: they cause another rendering.
        let up_to_event = self.0.changes.last_read();
        // A rendering of a page from before an edit must not be cached as newer than the edit.
        let is_current = self.0.service.page_access.is_current(page)?;
        let rendered = render().await;
        if matches!(rendered, Err(ServiceError::NotFound)) {
            select_cache(&self.0).remove(key);
        }
        let value = Arc::new(rendered?);
        if is_current {
            select_cache(&self.0).insert(key, CachedValue { value: Arc::clone(&value), rendered_at: now, up_to_event });
        }
        Ok(value)
    }

    /// Renders one of a page's HTML documents for the cache.
    async fn render_own(self, authorized: AuthorizedPage, kind: DocumentKind) -> ServiceResult<CompressedDocument> {
        let (rendered, expires_at) = self.render(&authorized, &kind).await?;
        Ok(compressed(HTML, rendered).await?.expiring_at(expires_at))
    }
}

/// Runs `render` on a blocking thread.
///
/// # Errors
/// [`ServiceError::Internal`] with the message of `render`.
pub async fn run_blocking<T, E>(render: impl FnOnce() -> std::result::Result<T, E> + Send + 'static) -> ServiceResult<T>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let rendered = tokio::task::spawn_blocking(render).await;
    or_internal_error(rendered.map_err(|error| ServiceError::Internal(error.to_string()))?)
}

async fn compressed(media: &'static str, bytes: Vec<u8>) -> ServiceResult<CompressedDocument> {
    let compress = move || {
        let document = CompressedDocument::compress(media, &bytes);
        Ok::<_, Infallible>(if media == HTML { document.with_tag_of(&without_timestamp(&bytes)) } else { document })
    };
    run_blocking(compress).await
}

fn or_internal_error<T, E: std::fmt::Display>(rendered: std::result::Result<T, E>) -> ServiceResult<T> {
    rendered.map_err(|error| ServiceError::Internal(error.to_string()))
}

#[cfg(test)]
mod tests;
