//! Journal consumers: no event is skipped or handled twice, whatever fails between reading and writing.

mod news;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::destination::Destination;
use parallax_core::event::{AlertKind, Event};
use parallax_core::id::MonitorId;
use proptest::prelude::*;

use super::alerts::Alerts;
use super::alerts::tests::{Bench, told};
use super::*;
use crate::storage::contract::samples::{at, destination, monitor_id, page_id};
use crate::storage::memory::Memory;
use crate::storage::{Committed, Is, Write};

/// Failure of a commit.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Nothing was written.
    Before,
    /// Everything was written, but the commit reports an error.
    After,
}

/// A store engine whose next commit can be made to fail, and that records its batches.
#[derive(Debug)]
struct Faulty {
    engine: Memory,
    next: Arc<Mutex<Option<Fault>>>,
    written: Arc<Mutex<Vec<Batch>>>,
}

impl Write for Faulty {
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<Committed>> {
        self.written.lock().unwrap().extend_from_slice(group);
        let failed = || vec![Err(StoreError::Io("the disk is gone".to_owned())); group.len()];
        match self.next.lock().unwrap().take() {
            None => self.engine.commit(group),
            Some(Fault::Before) => failed(),
            Some(Fault::After) => {
                self.engine.commit(group);
                failed()
            }
        }
    }

    fn tidy(&mut self) -> Result<bool> {
        self.engine.tidy()
    }
}

/// Alerts of a page with three destinations, with an engine that fails.
struct Trial {
    bench: Bench,
    next: Arc<Mutex<Option<Fault>>>,
    written: Arc<Mutex<Vec<Batch>>>,
}

impl Trial {
    /// The first destination receives everything, the second outages, the third alerts of one monitor.
    async fn new() -> Self {
        let (next, written) = (Arc::default(), Arc::default());
        let engine = Memory::new();
        let faulty =
            Faulty { engine: engine.clone(), next: Arc::clone(&next), written: Arc::clone(&written) };
        let bench = Bench::new(Store::start(Arc::new(engine), Box::new(faulty)).unwrap()).await;
        bench.write(destination(1, 1)).await;
        let outages = Some(vec![AlertKind::WentDown, AlertKind::Recovered]);
        bench.write(Destination { events: outages, ..destination(2, 1) }).await;
        bench.write(Destination { monitors: Some(vec![monitor_id(2)]), ..destination(3, 1) }).await;
        Self { bench, next, written }
    }

    fn fails(&self, fault: Option<Fault>) {
        *self.next.lock().unwrap() = fault;
    }

    /// Deliveries by destination: event number, monitor and event name, in order.
    fn told(&self) -> BTreeMap<u128, Vec<(u64, MonitorId, String)>> {
        let mut told: BTreeMap<u128, Vec<_>> = BTreeMap::new();
        for delivery in self.bench.deliveries() {
            let Recipient::Destination(to) = delivery.to else { panic!("{delivery:?}") };
            let of = delivery.monitor.unwrap();
            told.entry(to.to_u128()).or_default().push((delivery.seq, of, delivery.event));
        }
        told
    }
}

/// A consumer that sees all events and writes nothing, but whose first batch has a failing expectation.
#[derive(Debug, Default)]
struct Hesitant {
    seen: Mutex<Vec<u64>>,
    turns: AtomicUsize,
}

impl Reaction for Hesitant {
    const NAME: &'static str = "hesitant";

    fn react(&self, _: &dyn Read, events: &[Recorded], _: Timestamp) -> Result<Batch> {
        self.seen.lock().unwrap().extend(events.iter().map(|event| event.seq));
        let mut batch = Batch::new();
        if self.turns.fetch_add(1, Ordering::SeqCst) == 0 {
            batch.expect(Expect::Page(page_id(1), Is::Absent));
        }
        Ok(batch)
    }
}

#[tokio::test]
async fn what_is_written_and_the_cursor_are_one_batch_that_expects_the_cursor() {
    let trial = Trial::new().await;
    let seq = trial.bench.happens(vec![told(AlertKind::WentDown, 2, 40_000)]).await;
    trial.written.lock().unwrap().clear();
    assert_eq!(trial.bench.turn().await, Ok(Turn::Wrote));
    let written = trial.written.lock().unwrap().clone();
    let [batch] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!(batch.expect, [Expect::Cursor(Alerts::NAME.to_owned(), seq - 1)]);
    let puts = batch.ops.iter().filter(|op| matches!(op, Op::PutDelivery(_))).count();
    assert_eq!((puts, batch.ops.last()), (3, Some(&Op::SetCursor(Alerts::NAME.to_owned(), seq))));
}

#[tokio::test]
async fn a_reader_that_has_never_run_begins_with_what_is_new_and_one_that_has_goes_on() {
    let trial = Trial::new().await;
    let store = &trial.bench.store;
    let before = trial.bench.happens(vec![told(AlertKind::WentDown, 1, 40_000)]).await;
    begin::<Hesitant>(store).await.unwrap();
    assert_eq!(store.reader().cursor(Hesitant::NAME), Ok(before), "old events are skipped");
    begin::<Alerts>(store).await.unwrap();
    assert_eq!(store.reader().cursor(Alerts::NAME), Ok(before - 1), "an existing cursor stays");
    assert_eq!(trial.bench.turn().await, Ok(Turn::Wrote));
}

#[tokio::test]
async fn after_a_conflict_the_same_events_are_read_again() {
    let trial = Trial::new().await;
    let (store, clock) = (&trial.bench.store, &trial.bench.clock);
    begin::<Hesitant>(store).await.unwrap();
    let reader = Arc::new(Hesitant::default());
    let events = vec![told(AlertKind::WentDown, 1, 40_000), told(AlertKind::Recovered, 1, 41_000)];
    let last = trial.bench.happens(events).await;
    let first = turn(&reader, store, clock).await;
    assert!(matches!(first, Err(StoreError::Conflict(_))), "{first:?}");
    assert_eq!(turn(&reader, store, clock).await, Ok(Turn::Passed));
    assert_eq!(*reader.seen.lock().unwrap(), [last - 1, last, last - 1, last]);
    assert_eq!(turn(&reader, store, clock).await, Ok(Turn::Rests));
}

#[tokio::test]
async fn a_running_reader_goes_on_after_a_conflict_and_wakes_whoever_sends() {
    let trial = Trial::new().await;
    let (store, clock, wake) = (trial.bench.store.clone(), trial.bench.clock.clone(), Arc::default());
    let alerts = Arc::clone(&trial.bench.alerts);
    // Two consumers of one name conflict: one of them is always too late.
    let runs = [(); 2]
        .map(|()| tokio::spawn(run(Arc::clone(&alerts), store.clone(), clock.clone(), Arc::clone(&wake))));
    for n in 0..20 {
        let kind = if n % 2 == 0 { AlertKind::WentDown } else { AlertKind::Recovered };
        let seq = trial.bench.happens(vec![told(kind, 2, 40_000 + n)]).await;
        while store.reader().cursor(Alerts::NAME).unwrap() < seq {
            wake.notified().await;
        }
    }
    assert_eq!(trial.told().values().map(Vec::len).collect::<Vec<_>>(), [20, 20, 20]);
    store.close().await;
    for run in runs {
        run.abort();
    }
}

/// Next alert of a monitor whose last alert was `state`.
fn next(state: AlertKind, choice: u8) -> AlertKind {
    use AlertKind::{BackToNormal, Recovered, StillDown, WentDown, WentSlow};
    let choices: &[AlertKind] = match state {
        WentDown | StillDown => &[StillDown, Recovered],
        WentSlow => &[BackToNormal, WentDown],
        Recovered | BackToNormal => &[WentDown, WentSlow],
    };
    choices[usize::from(choice) % choices.len()]
}

async fn lives_through(acts: Vec<(u8, u8, u8)>) -> Trial {
    let trial = Trial::new().await;
    let mut states = [AlertKind::Recovered; 2];
    let mut pending: Vec<Event> = Vec::new();
    let mut expected: BTreeMap<u128, Vec<(u64, MonitorId, String)>> = BTreeMap::new();
    let mut seq = trial.bench.store.reader().last_event().unwrap();
    let mut turns = Vec::new();
    for (moment, (of, choice, act)) in (40_000..).zip(acts) {
        let of = usize::from(of % 2);
        let kind = next(states[of], choice);
        states[of] = kind;
        let number = of as u128 + 1;
        pending.push(told(kind, number, moment));
        seq += 1;
        let heard =
            [(1, true), (2, matches!(kind, AlertKind::WentDown | AlertKind::Recovered)), (3, number == 2)];
        for (to, _) in heard.iter().filter(|(_, hears)| *hears) {
            expected.entry(*to).or_default().push((seq, monitor_id(number), kind.name().to_owned()));
        }
        let fault = match act % 8 {
            0..=2 => continue,
            3 => Some(Fault::Before),
            4 => Some(Fault::After),
            _ => None,
        };
        trial.bench.happens(std::mem::take(&mut pending)).await;
        trial.fails(fault);
        turns.push(trial.bench.turn().await);
        trial.fails(None);
    }
    trial.bench.happens(pending).await;
    while trial.bench.turn().await != Ok(Turn::Rests) {}
    assert_eq!(trial.told(), expected, "each destination receives its alerts once, in order: {turns:?}");
    trial
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_destination_gets_legal_pairs_exactly_once_whatever_fails(
        acts in prop::collection::vec(any::<(u8, u8, u8)>(), 1..300)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let trial = runtime.block_on(lives_through(acts));
        for (to, told) in trial.told() {
            let mut down = BTreeSet::new();
            for (_, of, event) in told {
                match event.as_str() {
                    "went-down" => prop_assert!(down.insert(of), "{to} received two outages of {of}"),
                    "still-down" => prop_assert!(down.contains(&of)),
                    "recovered" => prop_assert!(down.remove(&of), "{to} received a recovery without an outage"),
                    _ => prop_assert!(!down.contains(&of)),
                }
            }
        }
        let deliveries = trial.bench.deliveries();
        let ids: BTreeSet<_> = deliveries.iter().map(|delivery| delivery.id).collect();
        prop_assert_eq!(ids.len(), deliveries.len(), "each delivery has a unique id");
        prop_assert!(deliveries.iter().all(|delivery| delivery.created_at == at(50_000)));
    }
}
