//! What visitors are served, from memory: each document of a page is drawn once per change, kept compressed, and dropped
//! once nobody asks for it.
//!
//! A document is as new as the journal: before one is handed out, the events since the last look are read, and what they
//! concern is drawn again. What changes without an event (figures, the age of the newest check) is at most [`Paper`]'s
//! age old; where only that has passed, the old document is served once more while the new one is drawn.

mod live;
mod press;
mod shelf;

pub use press::Document;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parallax_core::board::{Board, Range};
use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::time::{SECOND, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::service::gate::{Admitted, Door};
use crate::service::{Error, Result, Service};
use crate::views::incident::{HistoryPage, IncidentPage};
use crate::views::monitor::{Close, MonitorPage};
use crate::views::page::StatusPage;
use crate::views::print;
use crate::views::share::Share;
use live::Journal;
use shelf::{Held, Shelf};

/// How often what nobody asks for is looked for.
const TIDY: Duration = Duration::from_secs(60);

/// One of the documents of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// The page itself, with strips of a range.
    Page(Range),
    /// The status document.
    Status,
    /// A monitor's own page, with a strip and a chart of a range.
    Monitor(MonitorId, Range),
    /// An incident's own page.
    Incident(IncidentId),
    /// The incidents of a year's month.
    Month(i32, u32),
    /// Another, by its name: a feed, a calendar, a badge.
    Other(&'static str),
    /// One of these as Markdown.
    Note(Box<Self>),
}

impl Paper {
    /// How old it may be, in milliseconds, while nothing happens.
    fn age(&self) -> i64 {
        match self {
            Self::Page(_) | Self::Status => 10 * SECOND,
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

#[derive(Debug)]
struct Parts {
    service: Service,
    shelf: Shelf,
    journal: Journal,
}

impl Boards {
    /// No document yet.
    pub fn new(service: Service) -> Self {
        let journal = Journal::new(&service);
        Self(Arc::new(Parts { service, shelf: Shelf::default(), journal }))
    }

    /// A page's own document, drawn where it has to be.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is not on the page.
    pub async fn get(&self, page: &Admitted, paper: Paper) -> Result<Arc<Document>> {
        let (boards, admitted, which) = (self.clone(), page.clone(), paper.clone());
        self.kept(page, paper, "text/html; charset=utf-8", move || async move {
            boards.draw(&admitted, &which).await
        })
        .await
    }

    /// A document of a page, where it is at hand: as new as it has to be, and nothing happened to its page since.
    pub fn at_hand(&self, page: &Admitted, paper: &Paper) -> Option<Arc<Document>> {
        if self.is_behind() {
            return None;
        }
        let now = self.0.service.now();
        let key = Key { page: page.page().id, door: page.door(), paper: paper.clone() };
        let held = self.0.shelf.asked(&key, now)?;
        let is_good = held.is_good(self.0.journal.changed(key.page)) && held.is_aged(now, paper.age());
        is_good.then_some(held.document)
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
        self.catch_up().await?;
        let now = self.0.service.now();
        let age = paper.age();
        let key = Key { page: page.page().id, door: page.door(), paper };
        let changed = self.0.journal.changed(key.page);
        let slot = self.0.shelf.slot(&key, now);
        let before = slot.held();
        match &before {
            Some(held) if held.is_good(changed) && held.is_aged(now, age) => {
                return Ok(Arc::clone(&held.document));
            }
            // Nothing happened: the next visitor will have a newer one.
            Some(held) if held.is_good(changed) && held.is_aged(now, 6 * age) => {
                if let Some(turn) = slot.try_turn() {
                    let (boards, page) = (self.clone(), page.clone());
                    tokio::spawn(async move {
                        if let Err(error) = boards.redraw(&page, &key, media, now, draw).await {
                            tracing::warn!(%error, "a document was not drawn again");
                        }
                        drop(turn);
                    });
                }
                return Ok(Arc::clone(&held.document));
            }
            Some(_) | None => {}
        }
        let _turn = slot.turn().await;
        // Whoever had the turn before has drawn it, and what happened since this one came concerns those who come later.
        if let Some(held) = slot.held()
            && held.is_good(changed)
            && (held.is_aged(now, age) || (held.drawn > now && held.is_newer_than(before.as_ref())))
        {
            return Ok(held.document);
        }
        self.redraw(page, &key, media, now, draw).await
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
                self.0.shelf.tidy(self.0.service.now());
                self.0.journal.tidy(|| self.0.shelf.pages());
                tidy = Instant::now() + TIDY;
            }
        }
    }

    /// Bytes that documents take.
    pub fn bytes(&self) -> usize {
        self.0.shelf.bytes()
    }

    async fn catch_up(&self) -> Result<()> {
        self.0.journal.catch_up(&self.0.service).await
    }

    async fn redraw<F, D>(
        &self,
        page: &Admitted,
        key: &Key,
        media: &'static str,
        now: Timestamp,
        draw: D,
    ) -> Result<Arc<Document>>
    where
        D: FnOnce() -> F + Send,
        F: Future<Output = Result<Vec<u8>>> + Send,
    {
        // What happens from here on may or may not be in it: it will be drawn again.
        let upto = self.0.journal.read_upto();
        // What is drawn of a page as it was before an edit must not pass for what came after it.
        let is_still = self.0.service.is_still(page)?;
        let drawn = draw().await;
        if drawn.is_err() {
            self.0.shelf.forget(key);
        }
        let bytes = drawn?;
        let pressed = tokio::task::spawn_blocking(move || Document::press(media, &bytes)).await;
        let document = Arc::new(pressed.map_err(|error| Error::Internal(error.to_string()))?);
        if !is_still {
            return Ok(document);
        }
        self.0.shelf.put(key, Held { document: Arc::clone(&document), drawn: now, upto });
        Ok(document)
    }

    async fn draw(&self, admitted: &Admitted, paper: &Paper) -> Result<Vec<u8>> {
        let (service, page, root) = (&self.0.service, admitted.page(), admitted.root());
        match paper {
            Paper::Page(range) => {
                let (board, root) = (service.board(admitted, *range).await?, root.to_owned());
                let address = service.page_url(page);
                off_the_runtime(move || {
                    print(&StatusPage::new(&board, &root).shared_as(Share::of(&board, &address)))
                })
                .await
            }
            Paper::Monitor(id, range) => {
                let closer = service.closer(admitted, *id, *range).await?;
                let root = root.to_owned();
                off_the_runtime(move || {
                    let is_stale = Board::none_looks(closer.regions, std::slice::from_ref(&closer.shown));
                    let close = Close {
                        page: &closer.page,
                        root: &root,
                        now: closer.now,
                        is_stale,
                        shown: &closer.shown,
                        range: closer.range,
                        notices: &closer.notices,
                        outages: &closer.outages,
                        deploys: &closer.deploys,
                    };
                    print(&MonitorPage::new(&close))
                })
                .await
            }
            Paper::Incident(id) => {
                let notice = service.notice(admitted, *id).await?;
                printed(print(&IncidentPage::new(page, root, &notice, service.now())))
            }
            Paper::Month(year, month) => {
                let notices = service.notices_in(admitted, *year, *month).await?;
                let months = service.months(admitted);
                let view = HistoryPage::new((page, root), (*year, *month), months, &notices, service.now());
                printed(print(&view))
            }
            Paper::Status | Paper::Other(_) | Paper::Note(_) => {
                Err(Error::Internal("it is drawn by whoever asks for it".to_owned()))
            }
        }
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

fn printed<T, E: std::fmt::Display>(drawn: std::result::Result<T, E>) -> Result<T> {
    drawn.map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests;
