//! The async interface of the store: one writer thread that groups batches, and queries outside the async runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use super::memory::MemoryStore;
use super::write_health::WriteHealth;
use super::{Batch, CommitReceipt, Result, StoreError, StoreRead, StoreWrite, disk};

/// Batches that may wait for the writer; more senders have to wait.
pub(crate) const QUEUE_DEPTH: usize = 1024;
/// Batches per flush, at most. The writer takes the batches that gathered during the last flush (a few
/// milliseconds) and never waits for more.
pub(crate) const MAX_GROUP: usize = 256;

/// The store. Cheap to clone; the writer ends with [`Store::close`] or with the last clone.
#[derive(Debug, Clone)]
pub struct Store {
    queue: mpsc::Sender<Job>,
    reader: Arc<dyn StoreRead>,
    events: watch::Receiver<u64>,
    edits: watch::Receiver<u64>,
    health: Arc<WriteHealth>,
}

#[derive(Debug)]
enum Job {
    Commit(Batch, oneshot::Sender<Result<CommitReceipt>>),
    Close(oneshot::Sender<()>),
}

impl Store {
    /// Starts the writer thread over the two sides of a storage engine. Fails if the engine can't read its newest
    /// event number, or the host can't start a thread.
    pub fn start(reader: Arc<dyn StoreRead>, writer: Box<dyn StoreWrite>) -> Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_DEPTH);
        let (last_event, events) = watch::channel(reader.last_event()?);
        let (last_edit, edits) = watch::channel(*events.borrow());
        let health = Arc::<WriteHealth>::default();
        let writer_health = Arc::clone(&health);
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                WriterThread { engine: writer, jobs, last_event, last_edit, health: writer_health, needs_cleanup: true }
                    .run()
            })
            .map_err(|error| StoreError::Io(error.to_string()))?;
        Ok(Self { queue, reader, events, edits, health })
    }

    /// Creates a store in memory, for tests.
    pub fn in_memory() -> Result<Self> {
        let memory = MemoryStore::new();
        Self::start(Arc::new(memory.clone()), Box::new(memory))
    }

    /// Opens the store in a folder, or creates one. Blocking; see [`disk::open`] for its errors.
    pub fn on_disk(folder: &Path, options: disk::DiskOptions) -> Result<Self> {
        let (reader, writer) = disk::open(folder, options)?;
        Self::start(reader, writer)
    }

    /// Commits a batch. It is durable when this returns; an error other than [`StoreError::Io`],
    /// [`StoreError::Damaged`] and [`StoreError::Closed`] means that nothing of it was written. Once queued, the
    /// batch is committed even if the future is dropped. Waits while `QUEUE_DEPTH` batches are queued.
    pub async fn commit(&self, batch: Batch) -> Result<CommitReceipt> {
        self.send(batch).await?.await.map_err(|_| StoreError::Closed)?
    }

    /// Queues a batch and returns a receiver of its result, so that a sender of many batches keeps their order
    /// without waiting for each.
    pub async fn send(&self, batch: Batch) -> Result<oneshot::Receiver<Result<CommitReceipt>>> {
        let (reply, committed) = oneshot::channel();
        self.queue.send(Job::Commit(batch, reply)).await.map_err(|_| StoreError::Closed)?;
        Ok(committed)
    }

    /// Returns the reader, for queries that are cheap enough for async code (see [`StoreRead`]).
    pub fn reader(&self) -> &Arc<dyn StoreRead> {
        &self.reader
    }

    /// Runs queries on a thread that may block.
    pub async fn read<T, F>(&self, query: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn StoreRead) -> Result<T> + Send + 'static,
    {
        let reader = Arc::clone(&self.reader);
        let result = tokio::task::spawn_blocking(move || query(reader.as_ref())).await;
        result.map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// Returns the reason why nothing can be written now; `None` if the last write succeeded.
    pub fn write_fault(&self) -> Option<StoreError> {
        self.health.fault()
    }

    /// Retries a write if the last one failed, so that a recovery is noticed even if nothing else writes.
    pub async fn retry_write(&self) {
        if self.write_fault().is_some() {
            // Its result is recorded and logged like that of any other write.
            let _ = self.commit(Batch::new()).await;
        }
    }

    /// Returns a receiver of the newest committed event's number, which changes when there are new events.
    pub fn subscribe_events(&self) -> watch::Receiver<u64> {
        self.events.clone()
    }

    /// Returns the same for commits with an edit of a monitor or page or a change of an incident, so that a
    /// follower of edits is not woken by every event.
    pub fn subscribe_edits(&self) -> watch::Receiver<u64> {
        self.edits.clone()
    }

    /// Commits the queue, then ends the writer. Later commits fail with [`StoreError::Closed`]; queries still work.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Job::Close(done)).await.is_ok() {
            // An error means that the writer has ended already.
            let _ = closed.await;
        }
    }
}

#[derive(Debug)]
struct WriterThread {
    engine: Box<dyn StoreWrite>,
    jobs: mpsc::Receiver<Job>,
    last_event: watch::Sender<u64>,
    last_edit: watch::Sender<u64>,
    health: Arc<WriteHealth>,
    needs_cleanup: bool,
}

impl WriterThread {
    fn run(mut self) {
        let mut closing = Vec::new();
        while let Some(first) = self.next() {
            let mut group = Vec::new();
            let mut replies = Vec::new();
            let mut job = Some(first);
            while let Some(next_job) = job.take() {
                match next_job {
                    Job::Commit(batch, reply) => {
                        group.push(batch);
                        replies.push(reply);
                    }
                    Job::Close(done) => {
                        self.jobs.close();
                        closing.push(done);
                    }
                }
                if group.len() < MAX_GROUP {
                    job = self.jobs.try_recv().ok();
                }
            }
            self.commit(&group, replies);
        }
        // The engine is dropped first, so that the caller can open the store again.
        drop(self.engine);
        for done in closing {
            // The caller may have stopped waiting.
            let _ = done.send(());
        }
    }

    /// Returns the next job; `None` once the store is closed and the queue is empty. While the queue is empty, the
    /// engine does clean-up work.
    fn next(&mut self) -> Option<Job> {
        while self.needs_cleanup {
            match self.jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) => {
                    // Failed clean-up is retried after the next commit.
                    self.needs_cleanup = catch_panic(|| self.engine.clean_up()).unwrap_or(false);
                }
            }
        }
        self.jobs.blocking_recv()
    }

    fn commit(&mut self, group: &[Batch], replies: Vec<oneshot::Sender<Result<CommitReceipt>>>) {
        if group.is_empty() {
            return;
        }
        self.needs_cleanup = true;
        let results = catch_panic(|| Ok(self.engine.commit(group)))
            .unwrap_or_else(|error| group.iter().map(|_| Err(error.clone())).collect());
        self.health.record(&results);
        let newest = results.iter().flatten().map(|committed| committed.last_event).max();
        if let Some(newest) = newest {
            self.last_event.send_if_modified(|current| std::mem::replace(current, newest) != newest);
            if group.iter().flat_map(|batch| &batch.events).any(|event| event.kind.is_edit()) {
                self.last_edit.send_if_modified(|current| std::mem::replace(current, newest) != newest);
            }
        }
        for (reply, result) in replies.into_iter().zip(results) {
            // The caller may have stopped waiting.
            let _ = reply.send(result);
        }
    }
}

/// Runs the engine's work. A panic in it becomes [`StoreError::Damaged`], and the writer stays alive to report it.
fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(StoreError::Damaged("the engine panicked during its work".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::samples::*;
    use crate::{Expect, Presence};

    #[tokio::test]
    async fn a_commit_is_visible_once_it_is_acknowledged() {
        let store = Store::in_memory().unwrap();
        let mut events = store.subscribe_events();
        assert_eq!(*events.borrow_and_update(), 0);
        let committed = store.commit(Batch::new().write(account(1)).event(event(1, None)).clone()).await.unwrap();
        assert_eq!((committed.revision, committed.last_event), (1, 1));
        events.changed().await.unwrap();
        assert_eq!(*events.borrow_and_update(), 1);
        let accounts = store.read(|reader| reader.accounts()).await.unwrap();
        assert_eq!(accounts.len(), 1);
        store.commit(Batch::new().write(account(2)).clone()).await.unwrap();
        assert!(!events.has_changed().unwrap(), "no event, no news");
    }

    #[tokio::test]
    async fn each_of_many_concurrent_writers_gets_its_own_result() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::on_disk(folder.path(), small_options()).unwrap();
        let claim = |n: u128| {
            let store = store.clone();
            let mut batch = Batch::new();
            batch.expect(Expect::Account(account_id(n / 2), Presence::Absent)).write(account(n / 2));
            tokio::spawn(async move { store.commit(batch).await })
        };
        let mut committed_count = 0;
        for task in (0..600).map(claim).collect::<Vec<_>>() {
            match task.await.unwrap() {
                Ok(_) => committed_count += 1,
                Err(error) => assert!(matches!(error, StoreError::Conflict(_)), "{error}"),
            }
        }
        assert_eq!((committed_count, store.reader().accounts().unwrap().len()), (300, 300));
    }

    #[tokio::test]
    async fn closing_commits_the_queue_and_refuses_later_commits() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::on_disk(folder.path(), small_options()).unwrap();
        let mut replies = Vec::new();
        for n in 0..50 {
            replies.push(store.send(Batch::new().write(account(n)).clone()).await.unwrap());
        }
        store.close().await;
        for reply in replies {
            assert!(reply.await.unwrap().is_ok());
        }
        assert_eq!(store.commit(Batch::new()).await, Err(StoreError::Closed));
        assert_eq!(store.reader().accounts().unwrap().len(), 50);
        store.close().await;
        drop(store);
        assert!(Store::on_disk(folder.path(), small_options()).is_ok());
    }

    #[derive(Debug)]
    struct Broken;

    impl StoreWrite for Broken {
        fn commit(&mut self, _: &[Batch]) -> Vec<Result<CommitReceipt>> {
            panic!("this engine breaks")
        }

        fn clean_up(&mut self) -> Result<bool> {
            Ok(false)
        }
    }

    /// An engine that reports a full disk while the flag is set.
    #[derive(Debug)]
    struct Filling(MemoryStore, Arc<AtomicBool>);

    impl StoreWrite for Filling {
        fn commit(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>> {
            if self.1.load(Ordering::Relaxed) {
                return group.iter().map(|_| Err(StoreError::Full)).collect();
            }
            self.0.commit(group)
        }

        fn clean_up(&mut self) -> Result<bool> {
            Ok(false)
        }
    }

    #[tokio::test]
    async fn a_recovery_is_noticed_although_nothing_is_written() {
        let (memory, full) = (MemoryStore::new(), Arc::new(AtomicBool::new(false)));
        let filling = Filling(memory.clone(), Arc::clone(&full));
        let store = Store::start(Arc::new(memory), Box::new(filling)).unwrap();
        store.retry_write().await;
        let first = store.commit(Batch::new()).await.unwrap();
        assert_eq!(first.revision, 1, "nothing is written where there is no fault");
        full.store(true, Ordering::Relaxed);
        store.commit(Batch::new()).await.unwrap_err();
        store.retry_write().await;
        assert_eq!(store.write_fault(), Some(StoreError::Full));
        full.store(false, Ordering::Relaxed);
        store.retry_write().await;
        assert_eq!(store.write_fault(), None);
    }

    #[tokio::test]
    async fn a_panicking_engine_is_reported_as_damaged_and_the_writer_continues() {
        let store = Store::start(Arc::new(MemoryStore::new()), Box::new(Broken)).unwrap();
        for _ in 0..2 {
            assert!(matches!(store.commit(Batch::new()).await, Err(StoreError::Damaged(_))));
        }
    }
}
