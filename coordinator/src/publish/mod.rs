//! What visitors are served, from memory: each document of a page is drawn once per change, kept compressed, and dropped
//! once nobody asks for it.
//!
//! A document is as new as the journal: before one is handed out, the events since the last look are read, and what they
//! concern is drawn again. What changes without an event (figures, the age of the newest check) is at most [`Paper`]'s
//! age old; where only that has passed, the old document is served, up to six times as old, while the new one is drawn.

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

/// The media type of what people look at.
pub const HTML: &str = "text/html; charset=utf-8";
/// Bytes that all documents may take.
const DOCUMENTS: usize = 48 << 20;
/// Bytes that the facts of all pages' badges may take.
const FACTS: usize = 4 << 20;
/// How often what nobody asks for is looked for.
const TIDY: Duration = Duration::from_secs(60);
/// Age of the facts that a page's picture is known by, in milliseconds: renewing them reads a whole board.
const PICTURE_AGE: i64 = 60 * SECOND;

/// One of the documents of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// The page itself, with strips of the range that its visitor chose, or of the one that its age fills.
    Page(Option<Range>),
    /// The status document.
    Status,
    /// A monitor's own page, with a strip and a chart of the range that was chosen, or of the one that its age fills.
    Monitor(MonitorId, Option<Range>),
    /// An incident's own page.
    Incident(IncidentId),
    /// The incidents of a year's month.
    Month(i32, u32),
    /// One of the documents that say how the page is in the shape of hosted status pages, by its name.
    Sheet(&'static str),
    /// The page in small, for frames of other people's pages; by the name of its theme.
    Embed(&'static str),
    /// Facts that badges show, which are never drawn themselves.
    Badges,
    /// Another, by its name: a feed, a calendar, a picture.
    Other(&'static str),
    /// One of these as Markdown.
    Note(Box<Self>),
}

impl Paper {
    /// How old it may be, in milliseconds, while nothing happens. Documents that renew themselves say theirs in `data-live`.
    fn age(&self) -> i64 {
        match self {
            // With what is handed out beyond its age (30 s), and the 30 s that others may keep a badge: a minute.
            Self::Badges => 5 * SECOND,
            Self::Page(_) | Self::Status | Self::Sheet(_) | Self::Embed(_) => 10 * SECOND,
            Self::Monitor(..) => 30 * SECOND,
            Self::Incident(_) | Self::Month(..) | Self::Other(_) => 60 * SECOND,
            Self::Note(paper) => paper.age(),
        }
    }
}

/// Whose document, by which of its addresses, and which.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    page: PageId,
    door: Door,
    paper: Paper,
}

/// The documents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Boards(Arc<Parts>);

/// Which of the shelves.
type OnShelf<T> = fn(&Parts) -> &Shelf<T>;
const DOCUMENTS_OF: OnShelf<Document> = |parts| &parts.documents;

#[derive(Debug)]
struct Parts {
    service: Service,
    documents: Shelf<Document>,
    /// What badges tell of. There are too many wishes to keep a badge for each, and drawing one costs less than finding it.
    facts: Shelf<Facts>,
    journal: Journal,
}

impl Boards {
    /// No document yet.
    pub fn new(service: Service) -> Self {
        let journal = Journal::new(&service);
        let (documents, facts) = (Shelf::new(DOCUMENTS), Shelf::new(FACTS));
        Self(Arc::new(Parts { service, documents, facts, journal }))
    }

    /// A page's own document, drawn where it has to be.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is not on the page.
    pub async fn get(&self, page: &Admitted, paper: Paper) -> Result<Arc<Document>> {
        let own = self.clone().own(page.clone(), paper.clone());
        let age = paper.age();
        self.held(DOCUMENTS_OF, page, (paper, age), || own).await
    }

    /// A page's own document, where one is at hand that may be handed out: nothing happened to its page since. Whoever
    /// finds it past its age has a new one drawn for those who come later.
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

    /// Whether something happened that was not read of yet.
    pub fn is_behind(&self) -> bool {
        self.0.journal.is_behind()
    }

    /// Any document of a page: the one that is kept, or what `draw` gives.
    ///
    /// # Errors
    /// Those of `draw`.
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

    /// What the badges of a page and its monitors tell.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn facts(&self, page: &Admitted) -> Result<Arc<Facts>> {
        self.facts_within(page, Paper::Badges.age()).await
    }

    /// The same facts, at most a minute old, for documents that only name the page's picture.
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

    /// A thing of a page: the one that is kept on that shelf and within that age, or what `draw` gives.
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
        // Whoever had the turn before has drawn it, and what happened since this one came concerns those who come later.
        if let Some(held) = slot.held()
            && held.is_good(changed)
            && (held.age(now, age) == Age::Fresh || (held.drawn > now && held.is_newer_than(before.as_ref())))
        {
            return Ok(held.thing);
        }
        self.redraw(shelf, page, &key, now, draw).await
    }

    /// Draws a thing anew whose turn it is, while others are served the one that is there.
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
                tracing::warn!(%error, "a document was not drawn again");
            }
            drop(turn);
        });
    }

    /// How often the page has changed, told as it changes.
    pub fn watch(&self, page: PageId) -> watch::Receiver<u64> {
        self.0.journal.watch(page)
    }

    /// Reads the journal as it grows, for those who watch, and drops what nobody asks for. Never ends by itself.
    pub async fn follow(self) {
        let mut news = self.0.service.news();
        let mut tidy = Instant::now() + TIDY;
        loop {
            match tokio::time::timeout_at(tidy, news.changed()).await {
                Ok(Ok(())) => {
                    if let Err(error) = self.catch_up().await {
                        tracing::error!(%error, "the journal can't be read for the public pages");
                        tokio::time::sleep(TIDY).await;
                    }
                }
                Ok(Err(_)) => return,
                Err(_) => {}
            }
            // Not after each event: it goes through all that is kept.
            if Instant::now() >= tidy {
                let now = self.0.service.now();
                self.0.documents.tidy(now);
                self.0.facts.tidy(now);
                self.0.journal.tidy(|| &self.0.documents.pages() | &self.0.facts.pages());
                tidy = Instant::now() + TIDY;
            }
        }
    }

    /// Bytes that all that is kept takes.
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
        // What happens from here on may or may not be in it: it will be drawn again.
        let upto = self.0.journal.read_upto();
        // What is drawn of a page as it was before an edit must not pass for what came after it.
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

    /// One of the documents that are a page's own, ready to be kept.
    async fn own(self, admitted: Admitted, paper: Paper) -> Result<Document> {
        let (drawn, until) = self.draw(&admitted, &paper).await?;
        Ok(pressed(HTML, drawn).await?.fit_until(until))
    }
}

/// Draws where it keeps nobody else waiting.
///
/// # Errors
/// [`Error::Internal`] with what `draw` says.
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
