//! Tasks that stand for as long as the coordinator does, and what becomes of one that breaks off.
//!
//! One that can be begun anew is ([`Rooms::keep`]), after a pause, as long as that happens seldom: what it holds is in the
//! store or can be read again. One that breaks off again and again, one that can't be begun anew ([`Rooms::hold`]), and one
//! that just ends are lost, and without them the service would be wrong in silence: whoever waits at [`Watch::lost`] ends
//! the process, so that the host's service manager starts it anew. All of it is counted, and an ERROR line each.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Times that a room may break off within [`Times::span`] before it is lost.
const MOST: usize = 5;

/// How long things take.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Within which a room that breaks off [`MOST`] times is lost.
    span: Duration,
    /// Pause before a room is begun anew; each further one within the span is twice as long.
    pause: Duration,
    /// How long a room that broke off is news for the operator.
    lately: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            span: Duration::from_secs(10 * 60),
            pause: Duration::from_secs(1),
            lately: Duration::from_secs(60 * 60),
        }
    }
}

/// A room without which the service would be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It broke off too often.
    #[error("the room {room} broke off {times} times within ten minutes; the log says why")]
    Broken {
        /// Which.
        room: &'static str,
        /// How often.
        times: usize,
    },
    /// It broke off, and can't be begun anew.
    #[error("the room {room} broke off; the log says why")]
    Fallen {
        /// Which.
        room: &'static str,
    },
    /// It ended, which none does by itself.
    #[error("the room {room} ended by itself; the log says why")]
    Ended {
        /// Which.
        room: &'static str,
    },
}

/// What is known of all rooms of the process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    times: Times,
    /// Every room that was ever begun.
    rooms: Mutex<BTreeMap<&'static str, Broke>>,
    lost: watch::Sender<Option<Lost>>,
}

/// What is counted of one room.
#[derive(Debug, Clone, Copy, Default)]
struct Broke {
    times: u64,
    last: Option<Instant>,
}

impl Watch {
    /// Rooms that stand until they are stopped together.
    pub fn rooms(&self) -> Rooms {
        Rooms { watch: self.clone(), tasks: JoinSet::new(), may_end: Arc::default() }
    }

    /// Waits until a room is lost, and says which was the first.
    pub async fn lost(&self) -> Lost {
        let mut lost = self.0.lost.subscribe();
        loop {
            if let Some(lost) = *lost.borrow_and_update() {
                return lost;
            }
            if lost.changed().await.is_err() {
                // The sender lives as long as this does.
                std::future::pending::<()>().await;
            }
        }
    }

    /// How often each room that was ever begun has broken off since the start.
    pub fn broken(&self) -> Vec<(&'static str, u64)> {
        self.seen().iter().map(|(room, broke)| (*room, broke.times)).collect()
    }

    /// How many rooms broke off within the last hour.
    pub fn broken_lately(&self) -> u32 {
        let is_late = |broke: &&Broke| broke.last.is_some_and(|last| last.elapsed() < self.0.times.lately);
        u32::try_from(self.seen().values().filter(is_late).count()).unwrap_or(u32::MAX)
    }

    fn broke(&self, room: &'static str) {
        let mut seen = self.seen();
        let broke = seen.entry(room).or_default();
        broke.times = broke.times.saturating_add(1);
        broke.last = Some(Instant::now());
    }

    fn lose(&self, lost: Lost, may_end: &AtomicBool) {
        if may_end.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("{lost}");
        self.0.lost.send_if_modified(|first| first.replace(first.unwrap_or(lost)).is_none());
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<&'static str, Broke>> {
        self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rooms that are stopped together. Dropped, they end at their next pause.
#[derive(Debug)]
pub struct Rooms {
    watch: Watch,
    tasks: JoinSet<()>,
    /// Whether they were told to end, so that it is no news when one does.
    may_end: Arc<AtomicBool>,
}

impl Rooms {
    /// Keeps a room that can be begun as often as it has to be. Its name, such as `calendar`, is a label of the
    /// metrics.
    pub fn keep<B, F>(&mut self, room: &'static str, begin: B)
    where
        B: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        self.watch.seen().entry(room).or_default();
        let (watch, may_end) = (self.watch.clone(), Arc::clone(&self.may_end));
        self.tasks.spawn(async move {
            let lost = keep(&watch, room, begin).await;
            watch.lose(lost, &may_end);
        });
    }

    /// Keeps a room that can't be begun anew: with it goes what only it holds, so it is lost once it breaks off.
    pub fn hold(&mut self, room: &'static str, standing: impl Future<Output = ()> + Send + 'static) {
        self.watch.seen().entry(room).or_default();
        let (watch, may_end) = (self.watch.clone(), Arc::clone(&self.may_end));
        self.tasks.spawn(async move {
            let lost = match AssertUnwindSafe(standing).catch_unwind().await {
                Ok(()) => Lost::Ended { room },
                Err(panic) => {
                    tracing::error!(room, why = why(panic.as_ref()), "a part of the coordinator broke off");
                    watch.broke(room);
                    Lost::Fallen { room }
                }
            };
            watch.lose(lost, &may_end);
        });
    }

    /// They are about to be stopped, and what they wait for is about to go: none is lost any more.
    pub fn let_end(&self) {
        self.may_end.store(true, Ordering::Relaxed);
    }

    /// Ends them all where they are, and waits until they have let go of what they hold.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Begins a room as often as it may be; how it was lost.
async fn keep<B, F>(watch: &Watch, room: &'static str, mut begin: B) -> Lost
where
    B: FnMut() -> F,
    F: Future<Output = ()>,
{
    let mut breaks = VecDeque::new();
    loop {
        let standing = async { begin().await };
        let Err(panic) = AssertUnwindSafe(standing).catch_unwind().await else {
            return Lost::Ended { room };
        };
        watch.broke(room);
        breaks.retain(|at: &Instant| at.elapsed() < watch.0.times.span);
        breaks.push_back(Instant::now());
        let (times, why) = (breaks.len(), why(panic.as_ref()));
        if times >= MOST {
            tracing::error!(room, why, times, "a part of the coordinator broke off, too often by now");
            return Lost::Broken { room, times };
        }
        let pause = watch.0.times.pause * (1 << (times - 1));
        tracing::error!(room, why, times, ?pause, "a part of the coordinator broke off and is begun anew");
        sleep(pause).await;
    }
}

/// What a panic said.
fn why(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::mpsc;

    use super::*;

    const ROOM: &str = "calendar";
    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(3600);

    /// Seen by these times.
    fn watch(span: Duration, lately: Duration) -> Watch {
        let times = Times { span, pause: Duration::from_millis(2), lately };
        Watch(Arc::new(Seen { times, ..Seen::default() }))
    }

    /// A room that tells each time when it is begun, and breaks off at once.
    fn break_off(rooms: &mut Rooms) -> mpsc::UnboundedReceiver<Instant> {
        let (begun, begins) = mpsc::unbounded_channel();
        rooms.keep(ROOM, move || {
            begun.send(Instant::now()).unwrap();
            async { panic!("on purpose") }
        });
        begins
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_is_begun_anew_after_pauses_that_grow_until_it_is_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let mut begins = break_off(&mut rooms);
        let mut last = begins.recv().await.unwrap();
        for pause in [2, 4, 8, 16] {
            let next = begins.recv().await.unwrap();
            assert!(next - last >= Duration::from_millis(pause), "{:?}", next - last);
            last = next;
        }
        let lost = watch.lost().await;
        assert_eq!(lost, Lost::Broken { room: ROOM, times: MOST });
        assert_eq!(
            lost.to_string(),
            "the room calendar broke off 5 times within ten minutes; the log says why"
        );
        assert_eq!((watch.broken(), watch.broken_lately()), (vec![(ROOM, 5)], 1));
        assert_eq!(begins.recv().await, None, "it is not begun any more");
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_seldom_stands_for_ever_and_is_news_for_a_while() {
        let watch = watch(Duration::ZERO, Duration::ZERO);
        let mut rooms = watch.rooms();
        let mut begins = break_off(&mut rooms);
        for _ in 0..4 * MOST {
            begins.recv().await.unwrap();
        }
        rooms.stop().await;
        assert!(watch.lost().now_or_never().is_none());
        assert!(watch.broken()[0].1 >= 4 * MOST as u64 - 1);
        assert_eq!(watch.broken_lately(), 0);
    }

    #[tokio::test]
    async fn what_breaks_off_while_it_is_begun_is_begun_anew_too() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let (begun, mut begins) = mpsc::unbounded_channel();
        rooms.keep(ROOM, move || {
            begun.send(()).unwrap();
            assert!(begun.is_closed(), "on purpose");
            pending()
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        assert_eq!(watch.broken_lately(), 1);
    }

    #[tokio::test]
    async fn one_that_ends_or_can_not_be_begun_anew_is_lost_and_the_first_is_told() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        rooms.keep("guest", || async {});
        assert_eq!(watch.lost().await, Lost::Ended { room: "guest" });
        rooms.hold("river", async { panic!("on purpose") });
        while rooms.tasks.join_next().await.is_some() {}
        assert_eq!(watch.lost().await, Lost::Ended { room: "guest" });
        assert_eq!(watch.broken(), [("guest", 0), ("river", 1)]);
        let other = Watch::default();
        let mut rooms = other.rooms();
        rooms.hold("river", async { panic!("on purpose") });
        assert_eq!(other.lost().await, Lost::Fallen { room: "river" });
    }

    #[tokio::test]
    async fn rooms_that_are_stopped_let_go_of_what_they_hold_and_are_not_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let (held, mut begins) = mpsc::unbounded_channel();
        let holding = held.clone();
        rooms.keep(ROOM, move || {
            held.send(()).unwrap();
            pending()
        });
        rooms.hold("river", async move {
            holding.send(()).unwrap();
            pending().await
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        rooms.let_end();
        rooms.hold("guest", async {});
        rooms.stop().await;
        assert_eq!(begins.recv().await, None, "both are gone");
        assert!(watch.lost().now_or_never().is_none());
    }
}
