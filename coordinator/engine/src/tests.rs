//! Tests of the driver on a store in memory, with a simulated mesh and a manual clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::check::{Check, TcpCheck};
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{AlertKind, EditKind, Event, EventKind, MonitorStatus, ProbeReason, ProbeResponse};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::machine::MachineView;
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, NetworkNo, Region, Vantage, VantageNo};
use parallax_runtime::clock::Clock;
use parallax_store::{self as storage, Store};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::counters::EngineCounters;
use super::driver::{Driver, DriverChannels};
use super::machines::{Cx, Machines, PendingCommit};
use super::restore::VerdictSettings;
use super::shard::Shard;
use super::{Arrival, DriverQuery, MachineQuery, MonitorSchedule, ObservationBatch, ProbeDispatch, ScheduleReceiver};
use crate::history::History;

mod check_now;
mod dns_failures;
mod edits;
mod heartbeats;
mod machine_copy;
mod revisions;
mod trimmed_journal;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// The first round after it of a monitor that is checked every minute.
const ROUND: u64 = 30_000_000;
const MONITOR: MonitorId = MonitorId::from_u128(77);
const PAGE: PageId = PageId::from_u128(5);

/// A driver on a store, with both ends of its channels.
struct TestDriver {
    clock: Clock,
    store: Store,
    inbox: mpsc::Sender<Arrival>,
    queries: mpsc::Sender<DriverQuery>,
    probes: mpsc::Receiver<ProbeDispatch>,
    schedule: ScheduleReceiver,
    counters: Arc<EngineCounters>,
    stop: watch::Sender<bool>,
    driver: JoinHandle<()>,
}

impl TestDriver {
    async fn start(store: &Store, clock: &Clock) -> Self {
        let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
        let driver = Driver::start(clock.clone(), store.clone(), history, VerdictSettings::default(), Shard::WHOLE)
            .await
            .unwrap();
        let (inbox, arrivals) = mpsc::channel(16);
        let (queries, query_receiver) = mpsc::channel(16);
        let (probe_sender, probes) = mpsc::channel(64);
        let (schedules, schedule) = watch::channel(MonitorSchedule::default());
        let (suspects, _) = watch::channel(Arc::default());
        let (stop, shutdown) = watch::channel(false);
        let channels = DriverChannels {
            inbox: arrivals,
            queries: query_receiver,
            probes: probe_sender,
            schedules,
            suspects,
            shutdown,
        };
        let counters = driver.counters();
        let driver = tokio::spawn(driver.run(channels));
        let (clock, store) = (clock.clone(), store.clone());
        let test_driver = Self { clock, store, inbox, queries, probes, schedule, counters, stop, driver };
        test_driver.inbox.send(Arrival::MeshChanged(Arc::new(mesh()))).await.unwrap();
        test_driver.send(VantageNo(0), Vec::new()).await;
        test_driver
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.driver.await.unwrap();
    }

    async fn view(&self) -> Option<MachineView> {
        self.view_after(0).await
    }

    /// Returns the view as of an event of the journal, or a later one.
    async fn view_after(&self, after_event: u64) -> Option<MachineView> {
        let (reply, views) = oneshot::channel();
        let query = MachineQuery { monitors: vec![MONITOR], after_event, reply };
        self.queries.send(query.into()).await.unwrap();
        views.await.unwrap().remove(0)
    }

    /// Sends one scheduled result and waits until it is durable.
    async fn result(&self, vantage: u16, round: u64, outcome: ProbeOutcome) {
        self.send(VantageNo(vantage), vec![(0, self.observation(vantage, Some(round), outcome))]).await;
    }

    /// Sends results and waits until they, and everything sent before, are processed and durable.
    async fn send(&self, vantage: VantageNo, observations: Vec<(u32, Observation)>) {
        let (on_durable, receiver) = oneshot::channel();
        self.inbox.send(Arrival::Results(ObservationBatch { vantage, observations, on_durable })).await.unwrap();
        receiver.await.unwrap();
    }

    /// Responds to every probe request with a refused connection, `step` milliseconds apart, until the monitor is
    /// down. Returns the reasons of the requests.
    async fn refuse_until_down(&mut self, step: i64) -> BTreeMap<ProbeReason, usize> {
        let mut reasons = BTreeMap::new();
        while self.view().await.is_some_and(|view| view.status != MonitorStatus::Down) {
            while let Ok(probe) = self.probes.try_recv() {
                *reasons.entry(probe.request.reason).or_default() += 1;
                self.respond(&probe, refused()).await;
            }
            self.send(VantageNo(0), Vec::new()).await;
            if self.probes.is_empty() {
                self.clock.set(self.clock.now() + step);
            }
        }
        reasons
    }

    async fn respond(&self, probe: &ProbeDispatch, outcome: ProbeOutcome) {
        let observation = self.observation(probe.request.vantage.0, None, outcome);
        let response = Arrival::ProbeResponse {
            slot: probe.slot,
            number: probe.request.number,
            response: ProbeResponse::Observed(observation),
        };
        self.inbox.send(response).await.unwrap();
    }

    fn observation(&self, vantage: u16, round: Option<u64>, outcome: ProbeOutcome) -> Observation {
        let now = self.clock.now();
        Observation {
            revision: 1,
            region: region(vantage),
            vantage: VantageNo(vantage),
            network: NetworkNo(vantage),
            round,
            started: now,
            ended: now,
            outcome,
        }
    }

    async fn next_probe(&mut self) -> ProbeDispatch {
        self.probes.recv().await.unwrap()
    }

    /// Waits until the monitor has that status.
    async fn wait_for_status(&self, status: MonitorStatus) -> MachineView {
        loop {
            if let Some(view) = self.view().await
                && view.status == status
            {
                return view;
            }
            tokio::task::yield_now().await;
        }
    }

    fn changes(&self) -> Vec<(MonitorStatus, Option<AlertKind>)> {
        let events = self.store.reader().events_after(0, 1000).unwrap();
        events
            .into_iter()
            .filter_map(|entry| match entry.event.kind {
                EventKind::StatusChanged(change) => Some((change.to, change.alert)),
                _ => None,
            })
            .collect()
    }
}

fn region(vantage: u16) -> Region {
    if vantage < 2 { Region::Europe } else { Region::Asia }
}

fn mesh() -> Mesh {
    Mesh::new((0..4).map(|no| Vantage {
        no: VantageNo(no),
        region: region(no),
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    }))
}

fn passed() -> ProbeOutcome {
    ProbeOutcome::Passed(Measurements { latency_ms: Some(40), ..Measurements::default() })
}

fn refused() -> ProbeOutcome {
    ProbeOutcome::Failed(Measurements::default(), Failure::Refused)
}

async fn store_with_a_monitor() -> Store {
    let (store, account) = (Store::in_memory().unwrap(), AccountId::from_u128(1));
    let mut batch = storage::Batch::new();
    batch
        .write(Account {
            id: account,
            email: "owner@example.com".to_owned(),
            plan: Plan::Hobby,
            created_at: START,
            plan_since: None,
            is_set_up_dismissed: false,
            set_up_done: 0,
            factor_needed_since: None,
        })
        .write(Page { name: "Example".to_owned(), ..Page::blank(PAGE, account, "example".to_owned(), START) })
        .write(monitor())
        .event(Event {
            at: START,
            page: Some(PAGE),
            monitor: Some(MONITOR),
            kind: EventKind::MonitorEdited(EditKind::Created),
        });
    store.commit(batch).await.unwrap();
    store
}

/// Edits the monitor; returns the number of the event.
async fn edit_monitor(store: &Store, change: impl FnOnce(&mut Monitor)) -> u64 {
    let mut monitor = store.reader().monitor(MONITOR).unwrap().unwrap().value;
    change(&mut monitor);
    let mut batch = storage::Batch::new();
    batch.write(monitor).event(Event {
        at: START,
        page: Some(PAGE),
        monitor: Some(MONITOR),
        kind: EventKind::MonitorEdited(EditKind::Changed),
    });
    store.commit(batch).await.unwrap().last_event
}

fn monitor() -> Monitor {
    Monitor {
        id: MONITOR,
        page: PAGE,
        slot: 0,
        revision: 1,
        name: "Shop".to_owned(),
        group: None,
        check: Check::Tcp(TcpCheck { host: "shop.example.com".to_owned(), port: 443 }),
        slow_threshold_ms: None,
        slow_thresholds: None,
        latency_regions: None,
        pinned_region: None,
        position: 0,
        paused: false,
        created_at: START,
        acknowledgement: None,
    }
}

/// Brings a new monitor up with its first rounds.
async fn bring_up(driver: &mut TestDriver) {
    for _ in 0..2 {
        let probe = driver.next_probe().await;
        assert_eq!(probe.request.reason, ProbeReason::First);
        driver.respond(&probe, passed()).await;
    }
    driver.wait_for_status(MonitorStatus::Up).await;
}

#[tokio::test]
async fn a_new_monitor_is_probed_at_once_and_scheduled() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    assert_eq!(driver.schedule.borrow().len(), 1);
    driver.stop().await;
}

#[tokio::test]
async fn two_confirmed_failures_are_one_outage_in_the_journal() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    clock.set(START + 60_000);
    driver.result(0, ROUND, refused()).await;
    let reasons = driver.refuse_until_down(1000).await;
    let view = driver.wait_for_status(MonitorStatus::Down).await;
    assert_eq!(view.since, Some(START + 60_000), "the first failed round");
    assert_eq!(view.down_from, None);
    assert_eq!(reasons, [(ProbeReason::Confirm, 4), (ProbeReason::Second, 2), (ProbeReason::Sweep, 1)].into());
    assert_eq!(driver.changes().last(), Some(&(MonitorStatus::Down, Some(AlertKind::WentDown))));
    driver.stop().await;
}

#[tokio::test]
async fn a_restart_keeps_the_status_and_notifies_nothing_twice() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    driver.result(0, ROUND, passed()).await;
    let before = driver.changes();
    driver.stop().await;
    clock.set(START + 30_000);
    let driver = TestDriver::start(&store, &clock).await;
    let view = driver.view().await.unwrap();
    assert_eq!((view.status, view.since), (MonitorStatus::Up, Some(START)));
    driver.result(0, ROUND, passed()).await;
    assert_eq!(driver.changes(), before, "the same round again is dropped");
    driver.stop().await;
}

#[tokio::test]
async fn a_probe_request_open_at_the_stop_is_sent_again_after_the_start() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    clock.set(START + 60_000);
    driver.result(0, ROUND, refused()).await;
    assert_eq!(driver.next_probe().await.request.reason, ProbeReason::Confirm);
    driver.stop().await;
    let mut driver = TestDriver::start(&store, &clock).await;
    // Agents reconnect one by one after a start: the machine looks for a vantage to probe every second.
    clock.set(clock.now() + 1000);
    driver.view().await;
    let repeated = driver.next_probe().await;
    assert_eq!(repeated.request.reason, ProbeReason::Confirm);
    driver.respond(&repeated, passed()).await;
    driver.view().await;
    let changes = driver.changes();
    assert_eq!(changes, [(MonitorStatus::Up, None)], "it was disputed");
    driver.stop().await;
}

#[tokio::test]
async fn a_clock_set_forward_and_back_makes_no_round_late() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    clock.set(START + 3_600_000);
    driver.result(0, ROUND + 60, passed()).await;
    clock.set(START + 60_000);
    driver.result(0, ROUND + 1, refused()).await;
    assert_eq!(driver.next_probe().await.request.reason, ProbeReason::Confirm);
    driver.stop().await;
}

#[tokio::test]
async fn a_deleted_monitor_is_no_longer_known_nor_scheduled() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let mut batch = storage::Batch::new();
    batch.write(storage::Op::DeleteMonitor(MONITOR)).event(Event {
        at: START,
        page: Some(PAGE),
        monitor: Some(MONITOR),
        kind: EventKind::MonitorEdited(EditKind::Deleted),
    });
    store.commit(batch).await.unwrap();
    driver.schedule.wait_for(|schedule| schedule.is_empty()).await.unwrap();
    assert_eq!(driver.view().await, None);
    driver.stop().await;
}

#[tokio::test]
async fn a_driver_owns_only_the_monitors_of_its_shard() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    for (index, owned) in [(0, 1), (1, 0)] {
        let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
        let shard = Shard::new(index, 2).unwrap();
        let starting = Driver::start(clock.clone(), store.clone(), history, VerdictSettings::default(), shard);
        assert_eq!(starting.await.unwrap().schedule().len(), owned, "shard {index}");
    }
}

#[tokio::test]
async fn a_page_edit_updates_only_the_monitors_that_it_changes() {
    let store = store_with_a_monitor().await;
    let monitor = store.reader().monitor(MONITOR).unwrap().unwrap().value;
    let page = store.reader().page(PAGE).unwrap().unwrap().value;
    let settings =
        EffectiveSettings::new(&monitor, &page, Plan::Free, &PlanLimits::default(), ConfirmationPolicy::default());
    let (mesh, mut pending, mut machines) = (mesh(), PendingCommit::default(), Machines::default());
    let mut cx = Cx { now: START, mesh: &mesh, pending: &mut pending };
    machines.upsert(&monitor, settings.clone(), &mut cx);
    *cx.pending = PendingCommit::default();
    let version = machines.schedule().version();
    machines.upsert(&monitor, settings.clone(), &mut cx);
    assert_eq!((cx.pending.changed.len(), machines.schedule().version()), (0, version));
    machines.upsert(&monitor, EffectiveSettings { interval_ms: 30_000, ..settings }, &mut cx);
    assert_eq!((cx.pending.changed.len(), machines.schedule().version()), (1, version + 1));
}
