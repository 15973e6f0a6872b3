//! Journal consumers: no event is skipped or handled twice, whatever fails between reading and writing.

mod bulletins;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::destination::Destination;
use parallax_core::event::{AlertKind, Event};
use parallax_core::id::MonitorId;
use parallax_store::memory::MemoryStore;
use parallax_store::samples::{at, destination, monitor_id, page_id};
use parallax_store::{CommitReceipt, Presence, StoreWrite};
use proptest::prelude::*;

use super::alerts::AlertConsumer;
use super::alerts::tests::{AlertBench, alert_event};
use super::*;

/// Failure of a commit.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Nothing was written.
    Before,
    /// Everything was written, but the commit reports an error.
    After,
}

/// A store engine whose next commit can be set to fail, and that records its batches.
#[derive(Debug)]
struct FaultyEngine {
    engine: MemoryStore,
    next_fault: Arc<Mutex<Option<Fault>>>,
    batches: Arc<Mutex<Vec<Batch>>>,
}

impl StoreWrite for FaultyEngine {
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>> {
        self.batches.lock().unwrap().extend_from_slice(group);
        let failed = || vec![Err(StoreError::Io("the disk is gone".to_owned())); group.len()];
        match self.next_fault.lock().unwrap().take() {
            None => self.engine.commit(group),
            Some(Fault::Before) => failed(),
            Some(Fault::After) => {
                self.engine.commit(group);
                failed()
            }
        }
    }

    fn clean_up(&mut self) -> Result<bool> {
        self.engine.clean_up()
    }
}

/// A page with three destinations and the alert consumer, on an engine that fails on demand.
struct FaultyBench {
    bench: AlertBench,
    next_fault: Arc<Mutex<Option<Fault>>>,
    batches: Arc<Mutex<Vec<Batch>>>,
}

impl FaultyBench {
    /// The first destination receives everything, the second outages, the third alerts of one monitor.
    async fn new() -> Self {
        let (next_fault, batches) = (Arc::default(), Arc::default());
        let engine = MemoryStore::new();
        let faulty =
            FaultyEngine { engine: engine.clone(), next_fault: Arc::clone(&next_fault), batches: Arc::clone(&batches) };
        let bench = AlertBench::new(Store::start(Arc::new(engine), Box::new(faulty)).unwrap()).await;
        bench.write(destination(1, 1)).await;
        let outages = Some(vec![AlertKind::WentDown, AlertKind::Recovered]);
        bench.write(Destination { events: outages, ..destination(2, 1) }).await;
        bench.write(Destination { monitors: Some(vec![monitor_id(2)]), ..destination(3, 1) }).await;
        Self { bench, next_fault, batches }
    }

    fn fail_next_commit(&self, fault: Option<Fault>) {
        *self.next_fault.lock().unwrap() = fault;
    }

    /// Deliveries by destination: event number, monitor and event name, in order.
    fn deliveries_by_destination(&self) -> BTreeMap<u128, Vec<(u64, MonitorId, String)>> {
        let mut deliveries: BTreeMap<u128, Vec<_>> = BTreeMap::new();
        for delivery in self.bench.deliveries() {
            let Recipient::Destination(to) = delivery.to else { panic!("{delivery:?}") };
            let monitor = delivery.monitor.unwrap();
            deliveries.entry(to.to_u128()).or_default().push((delivery.seq, monitor, delivery.event));
        }
        deliveries
    }
}

/// A consumer that sees all events and writes nothing, but whose first batch has a failing expectation.
#[derive(Debug, Default)]
struct ConflictingConsumer {
    seen: Mutex<Vec<u64>>,
    turns: AtomicUsize,
}

impl JournalConsumer for ConflictingConsumer {
    const NAME: &'static str = "conflicting";

    fn handle_events(&self, _: &dyn StoreRead, events: &[JournalEvent], _: Timestamp) -> Result<Batch> {
        self.seen.lock().unwrap().extend(events.iter().map(|event| event.seq));
        let mut batch = Batch::new();
        if self.turns.fetch_add(1, Ordering::SeqCst) == 0 {
            batch.expect(Expect::Page(page_id(1), Presence::Absent));
        }
        Ok(batch)
    }
}

#[tokio::test]
async fn deliveries_and_cursor_are_one_batch_that_expects_the_old_cursor() {
    let faulty = FaultyBench::new().await;
    let seq = faulty.bench.commit_events(vec![alert_event(AlertKind::WentDown, 2, 40_000)]).await;
    faulty.batches.lock().unwrap().clear();
    assert_eq!(faulty.bench.consume().await, Ok(ConsumerTurn::Wrote));
    let batches = faulty.batches.lock().unwrap().clone();
    let [batch] = batches.as_slice() else { panic!("{batches:?}") };
    assert_eq!(batch.expect, [Expect::Cursor(AlertConsumer::NAME.to_owned(), seq - 1)]);
    let puts = batch.ops.iter().filter(|op| matches!(op, Op::PutDelivery(_))).count();
    assert_eq!((puts, batch.ops.last()), (3, Some(&Op::SetCursor(AlertConsumer::NAME.to_owned(), seq))));
}

#[tokio::test]
async fn a_new_consumer_starts_with_future_events_and_an_old_one_resumes() {
    let faulty = FaultyBench::new().await;
    let store = &faulty.bench.store;
    let before = faulty.bench.commit_events(vec![alert_event(AlertKind::WentDown, 1, 40_000)]).await;
    init_cursor::<ConflictingConsumer>(store).await.unwrap();
    assert_eq!(store.reader().cursor(ConflictingConsumer::NAME), Ok(before), "old events are skipped");
    init_cursor::<AlertConsumer>(store).await.unwrap();
    assert_eq!(store.reader().cursor(AlertConsumer::NAME), Ok(before - 1), "an existing cursor stays");
    assert_eq!(faulty.bench.consume().await, Ok(ConsumerTurn::Wrote));
}

#[tokio::test]
async fn after_a_conflict_the_same_events_are_read_again() {
    let faulty = FaultyBench::new().await;
    let (store, clock) = (&faulty.bench.store, &faulty.bench.clock);
    init_cursor::<ConflictingConsumer>(store).await.unwrap();
    let reader = Arc::new(ConflictingConsumer::default());
    let events = vec![alert_event(AlertKind::WentDown, 1, 40_000), alert_event(AlertKind::Recovered, 1, 41_000)];
    let last = faulty.bench.commit_events(events).await;
    let first = consume_next(&reader, store, clock).await;
    assert!(matches!(first, Err(StoreError::Conflict(_))), "{first:?}");
    assert_eq!(consume_next(&reader, store, clock).await, Ok(ConsumerTurn::Skipped));
    assert_eq!(*reader.seen.lock().unwrap(), [last - 1, last, last - 1, last]);
    assert_eq!(consume_next(&reader, store, clock).await, Ok(ConsumerTurn::Idle));
}

#[tokio::test]
async fn a_running_consumer_retries_after_a_conflict_and_wakes_the_deliverer() {
    let faulty = FaultyBench::new().await;
    let (store, clock, wake) = (faulty.bench.store.clone(), faulty.bench.clock.clone(), Arc::default());
    let alerts = Arc::clone(&faulty.bench.alerts);
    // Two consumers of one name conflict: one of them is always too late.
    let runs = [(); 2]
        .map(|()| tokio::spawn(run_consumer(Arc::clone(&alerts), store.clone(), clock.clone(), Arc::clone(&wake))));
    for n in 0..20 {
        let kind = if n % 2 == 0 { AlertKind::WentDown } else { AlertKind::Recovered };
        let seq = faulty.bench.commit_events(vec![alert_event(kind, 2, 40_000 + n)]).await;
        while store.reader().cursor(AlertConsumer::NAME).unwrap() < seq {
            wake.notified().await;
        }
    }
    assert_eq!(faulty.deliveries_by_destination().values().map(Vec::len).collect::<Vec<_>>(), [20, 20, 20]);
    store.close().await;
    for run in runs {
        run.abort();
    }
}

/// Next alert of a monitor whose last alert was `last`.
fn next_alert(last: AlertKind, choice: u8) -> AlertKind {
    use AlertKind::{BackToNormal, Recovered, StillDown, WentDown, WentSlow};
    let choices: &[AlertKind] = match last {
        WentDown | StillDown => &[StillDown, Recovered],
        WentSlow => &[BackToNormal, WentDown],
        Recovered | BackToNormal => &[WentDown, WentSlow],
    };
    choices[usize::from(choice) % choices.len()]
}

async fn run_with_faults(steps: Vec<(u8, u8, u8)>) -> FaultyBench {
    let faulty = FaultyBench::new().await;
    let mut states = [AlertKind::Recovered; 2];
    let mut pending: Vec<Event> = Vec::new();
    let mut expected: BTreeMap<u128, Vec<(u64, MonitorId, String)>> = BTreeMap::new();
    let mut seq = faulty.bench.store.reader().last_event().unwrap();
    let mut turns = Vec::new();
    for (at_ms, (monitor, choice, step)) in (40_000..).zip(steps) {
        let monitor = usize::from(monitor % 2);
        let kind = next_alert(states[monitor], choice);
        states[monitor] = kind;
        let monitor_number = monitor as u128 + 1;
        pending.push(alert_event(kind, monitor_number, at_ms));
        seq += 1;
        let recipients =
            [(1, true), (2, matches!(kind, AlertKind::WentDown | AlertKind::Recovered)), (3, monitor_number == 2)];
        for (to, _) in recipients.iter().filter(|(_, receives)| *receives) {
            expected.entry(*to).or_default().push((seq, monitor_id(monitor_number), kind.name().to_owned()));
        }
        let fault = match step % 8 {
            0..=2 => continue,
            3 => Some(Fault::Before),
            4 => Some(Fault::After),
            _ => None,
        };
        faulty.bench.commit_events(std::mem::take(&mut pending)).await;
        faulty.fail_next_commit(fault);
        turns.push(faulty.bench.consume().await);
        faulty.fail_next_commit(None);
    }
    faulty.bench.commit_events(pending).await;
    while faulty.bench.consume().await != Ok(ConsumerTurn::Idle) {}
    assert_eq!(
        faulty.deliveries_by_destination(),
        expected,
        "each destination receives its alerts once, in order: {turns:?}"
    );
    faulty
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_destination_gets_its_alerts_exactly_once_and_in_legal_order_despite_failures(
        steps in prop::collection::vec(any::<(u8, u8, u8)>(), 1..300)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let faulty = runtime.block_on(run_with_faults(steps));
        for (to, deliveries) in faulty.deliveries_by_destination() {
            let mut down = BTreeSet::new();
            for (_, monitor, event) in deliveries {
                match event.as_str() {
                    "went-down" => prop_assert!(down.insert(monitor), "{to} received two outages of {monitor}"),
                    "still-down" => prop_assert!(down.contains(&monitor)),
                    "recovered" => prop_assert!(down.remove(&monitor), "{to} received a recovery without an outage"),
                    _ => prop_assert!(!down.contains(&monitor)),
                }
            }
        }
        let deliveries = faulty.bench.deliveries();
        let ids: BTreeSet<_> = deliveries.iter().map(|delivery| delivery.id).collect();
        prop_assert_eq!(ids.len(), deliveries.len(), "each delivery has a unique id");
        prop_assert!(deliveries.iter().all(|delivery| delivery.created_at == at(50_000)));
    }
}
