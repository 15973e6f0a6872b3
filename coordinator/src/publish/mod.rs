//! Cache of rendered pages: each document of a page is rendered once per change, stored compressed, and
//! dropped when it is no longer requested.
//!
//! A document is never older than the journal: before one is served, new events are read, and documents that
//! they affect are rendered again. Content that changes without an event (figures, the time of the newest
//! check) is at most as old as [`Paper`] allows. If only that age has passed, the stale document is served,
//! up to six times the age, while a new one is rendered (stale-while-revalidate).

mod draw;
mod live;
mod press;
mod shelf;

pub use draw::close;
pub use press::Document;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parallax_core::board::Range;
use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::time::{SECOND, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::service::gate::{Admitted, Door};
use crate::service::{Error, Result, Service};
use crate::views::badge::Facts;
use crate::views::page::undated;
use live::Journal;
use shelf::{Age, Held, Shelf, Thing, Turn};

/// Media type of pages for people.
pub const HTML: &str = "text/html; charset=utf-8";
/// Memory limit of all documents, in bytes.
const DOCUMENTS: usize = 48 << 20;
/// Memory limit of the badge data of all pages, in bytes.
const FACTS: usize = 4 << 20;
/// Interval of the eviction of unused entries.
const TIDY: Duration = Duration::from_secs(60);
/// Maximum age of the data for a page's preview image, in milliseconds: refreshing it reads the whole page.
const PICTURE_AGE: i64 = 60 * SECOND;

/// A kind of document of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// The page itself, with uptime bars of the range chosen by the visitor, or of the default range.
    Page(Option<Range>),
    /// The status document (JSON).
    Status,
    /// A monitor's own page, with uptime bars and a chart of the chosen or the default range.
    Monitor(MonitorId, Option<Range>),
    /// An incident's own page.
    Incident(IncidentId),
    /// The incidents of a month (year, month).
    Month(i32, u32),
    /// A status document in the format of hosted status pages, by name.
    Sheet(&'static str),
    /// The compact page for embedding in frames, by the name of its theme.
    Embed(&'static str),
    /// The data shown by badges; badges themselves are rendered for each request.
    Badges,
    /// Another document by name: a feed, a calendar, an image.
    Other(&'static str),
    /// A document of these as Markdown.
    Note(Box<Self>),
}

impl Paper {
    /// Maximum age in milliseconds while nothing happens. Documents that refresh themselves declare theirs in
    /// `data-live`.
    fn age(&self) -> i64 {
        match self {
            // Together with stale serving (30 s) and the 30 s for which others may cache a badge: a minute.
            Self::Badges => 5 * SECOND,
            Self::Page(_) | Self::Status | Self::Sheet(_) | Self::Embed(_) => 10 * SECOND,
            Self::Monitor(..) => 30 * SECOND,
            Self::Incident(_) | Self::Month(..) | Self::Other(_) => 60 * SECOND,
            Self::Note(paper) => paper.age(),
        }
    }
}

/// Cache key: the page, the address that it is visited by, and the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    page: PageId,
    door: Door,
    paper: Paper,
}

/// The page cache. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Boards(Arc<Parts>);

/// Selects one of the caches.
type OnShelf<T> = fn(&Parts) -> &Shelf<T>;
const DOCUMENTS_OF: OnShelf<Document> = |parts| &parts.documents;

#[derive(Debug)]
struct Parts {
    service: Service,
    documents: Shelf<Document>,
    /// Badge data. The badges themselves have too many variants to cache, and rendering one is cheaper than
    /// finding it.
    facts: Shelf<Facts>,
    journal: Journal,
}

impl Boards {
    /// Creates an empty cache.
    pub fn new(service: Service) -> Self {
        let journal = Journal::new(&service);
        let (documents, facts) = (Shelf::new(DOCUMENTS), Shelf::new(FACTS));
        Self(Arc::new(Parts { service, documents, facts, journal }))
    }

    /// Returns one of a page's HTML documents, rendered if necessary.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an object that is not on the page.
    pub async fn get(&self, page: &Admitted, paper: Paper) -> Result<Arc<Document>> {
        let own = self.clone().own(page.clone(), paper.clone());
        let age = paper.age();
        self.held(DOCUMENTS_OF, page, (paper, age), || own).await
    }

    /// Returns a cached document that may be served without waiting: its page has not changed since. If it is
    /// past its age, a new one is rendered in the background for later requests.
    pub fn at_hand(&self, page: &Admitted, paper: &Paper) -> Option<Arc<Document>> {
        if self.is_behind() {
            return None;
        }
        let now = self.0.service.now();
        let key = Key { page: page.page().id, door: page.door(), paper: paper.clone() };
        let slot = self.0.documents.known(&key, now)?;
        let held = slot.held().filter(|held| held.is_good(self.0.journal.changed(key.page)))?;
        match held.age(now, paper.age()) {
            Age::Fresh => {}
            Age::Past => {
                if let Some(turn) = slot.try_turn() {
                    let own = self.clone().own(page.clone(), paper.clone());
                    self.renew(DOCUMENTS_OF, turn, (page.clone(), key, now), || own);
                }
            }
            Age::Unfit => return None,
        }
        Some(held.thing)
    }

    /// Returns true if there are unread events.
    pub fn is_behind(&self) -> bool {
        self.0.journal.is_behind()
    }

    /// Returns any document of a page: the cached one, or the result of `draw`.
    ///
    /// # Errors
    /// The errors of `draw`.
    pub async fn kept<F, D>(
        &self,
        page: &Admitted,
        paper: Paper,
        media: &'static str,
        draw: D,
    ) -> Result<Arc<Document>>
    where
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<Vec<u8>>> + Send + 'static,
    {
        let age = paper.age();
        self.held(
            DOCUMENTS_OF,
            page,
            (paper, age),
            move || async move { pressed(media, draw().await?).await },
        )
        .await
    }

    /// Returns the badge data of a page and its monitors.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn facts(&self, page: &Admitted) -> Result<Arc<Facts>> {
        self.facts_within(page, Paper::Badges.age()).await
    }

    /// Returns the badge data at most a minute old, for documents that only refer to the page's preview
    /// image.
    async fn picture_facts(&self, page: &Admitted) -> Result<Arc<Facts>> {
        self.facts_within(page, PICTURE_AGE).await
    }

    async fn facts_within(&self, page: &Admitted, age: i64) -> Result<Arc<Facts>> {
        let (service, admitted) = (self.0.service.clone(), page.clone());
        let draw = move || async move {
            let board = service.board(&admitted, Some(Range::Quarter)).await?;
            off_the_runtime(move || Ok::<_, Infallible>(Facts::of(&board))).await
        };
        self.held(|parts| &parts.facts, page, (Paper::Badges, age), draw).await
    }

    /// Returns an entry of that cache within that age, or the result of `draw`.
    async fn held<T, F, D>(
        &self,
        shelf: OnShelf<T>,
        page: &Admitted,
        (paper, age): (Paper, i64),
        draw: D,
    ) -> Result<Arc<T>>
    where
        T: Thing + Send + Sync + 'static,
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.catch_up().await?;
        let now = self.0.service.now();
        let key = Key { page: page.page().id, door: page.door(), paper };
        let changed = self.0.journal.changed(key.page);
        let slot = shelf(&self.0).slot(&key, now);
        let before = slot.held();
        if let Some(held) = before.as_ref().filter(|held| held.is_good(changed)) {
            match held.age(now, age) {
                Age::Fresh => return Ok(Arc::clone(&held.thing)),
                Age::Past => {
                    if let Some(turn) = slot.try_turn() {
                        self.renew(shelf, turn, (page.clone(), key, now), draw);
                    }
                    return Ok(Arc::clone(&held.thing));
                }
                Age::Unfit => {}
            }
        }
        let _turn = slot.turn().await;
        // The previous holder of the lock has rendered it; events since this request arrived concern later
        // requests.
        if let Some(held) = slot.held()
            && held.is_good(changed)
            && (held.age(now, age) == Age::Fresh || (held.drawn > now && held.is_newer_than(before.as_ref())))
        {
            return Ok(held.thing);
        }
        self.redraw(shelf, page, &key, now, draw).await
    }

    /// Renders an entry in the background, while others are served the stale one.
    fn renew<T, F, D>(
        &self,
        shelf: OnShelf<T>,
        turn: Turn,
        (page, key, now): (Admitted, Key, Timestamp),
        draw: D,
    ) where
        T: Thing + Send + Sync + 'static,
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let boards = self.clone();
        tokio::spawn(async move {
            if let Err(error) = boards.redraw(shelf, &page, &key, now, draw).await {
                tracing::warn!(%error, "failed to refresh a cached document");
            }
            drop(turn);
        });
    }

    /// Returns a receiver that gets each change of the page.
    pub fn watch(&self, page: PageId) -> watch::Receiver<u64> {
        self.0.journal.watch(page)
    }

    /// Follows the journal for watchers, and evicts unused entries. Runs for the life of the process.
    pub async fn follow(self) {
        let mut news = self.0.service.news();
        let mut tidy = Instant::now() + TIDY;
        loop {
            match tokio::time::timeout_at(tidy, news.changed()).await {
                Ok(Ok(())) => {
                    if let Err(error) = self.catch_up().await {
                        tracing::error!(%error, "failed to read the journal for public pages; retrying in a minute");
                        tokio::time::sleep(TIDY).await;
                    }
                }
                Ok(Err(_)) => return,
                Err(_) => {}
            }
            // Not after each event: it walks all entries.
            if Instant::now() >= tidy {
                let now = self.0.service.now();
                self.0.documents.tidy(now);
                self.0.facts.tidy(now);
                self.0.journal.tidy(|| &self.0.documents.pages() | &self.0.facts.pages());
                tidy = Instant::now() + TIDY;
            }
        }
    }

    /// Memory used by all entries, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.documents.bytes() + self.0.facts.bytes()
    }

    async fn catch_up(&self) -> Result<()> {
        self.0.journal.catch_up(&self.0.service).await
    }

    async fn redraw<T, F, D>(
        &self,
        shelf: OnShelf<T>,
        page: &Admitted,
        key: &Key,
        now: Timestamp,
        draw: D,
    ) -> Result<Arc<T>>
    where
        T: Thing + Send + Sync,
        D: FnOnce() -> F + Send,
        F: Future<Output = Result<T>> + Send,
    {
        // Events from here on may or may not be included: they cause another rendering.
        let upto = self.0.journal.read_upto();
        // A rendering of a page from before an edit must not be cached as newer than the edit.
        let is_still = self.0.service.is_still(page)?;
        let drawn = draw().await;
        if matches!(drawn, Err(Error::NotFound)) {
            shelf(&self.0).forget(key);
        }
        let thing = Arc::new(drawn?);
        if is_still {
            shelf(&self.0).put(key, Held { thing: Arc::clone(&thing), drawn: now, upto });
        }
        Ok(thing)
    }

    /// Renders one of a page's HTML documents for the cache.
    async fn own(self, admitted: Admitted, paper: Paper) -> Result<Document> {
        let (drawn, until) = self.draw(&admitted, &paper).await?;
        Ok(pressed(HTML, drawn).await?.fit_until(until))
    }
}

/// Runs `draw` on a blocking thread.
///
/// # Errors
/// [`Error::Internal`] with the message of `draw`.
pub async fn off_the_runtime<T, E>(
    draw: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> Result<T>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let drawn = tokio::task::spawn_blocking(draw).await;
    printed(drawn.map_err(|error| Error::Internal(error.to_string()))?)
}

async fn pressed(media: &'static str, bytes: Vec<u8>) -> Result<Document> {
    let press = move || {
        let document = Document::press(media, &bytes);
        Ok::<_, Infallible>(if media == HTML { document.known_by(&undated(&bytes)) } else { document })
    };
    off_the_runtime(press).await
}

fn printed<T, E: std::fmt::Display>(drawn: std::result::Result<T, E>) -> Result<T> {
    drawn.map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests;
