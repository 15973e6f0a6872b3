//! Tests of heartbeats through the real driver with a manual clock.

use std::sync::atomic::Ordering;

use parallax_core::alert_settings::AlertSettings;
use parallax_core::check::HeartbeatCheck;
use parallax_core::heartbeat::{self, PingKind};
use parallax_core::incident::Incident;
use parallax_core::time::{MINUTE, SECOND};

use super::*;
use crate::{HeartbeatTokens, IncomingPing};

/// Milliseconds from a ping to the deadline of the next.
const DUE: i64 = 6 * MINUTE;
/// Milliseconds between two pings, which is also the most that a job gets after a stall of the coordinator.
const PERIOD: i64 = 5 * MINUTE;

/// Creates a store with one heartbeat of five minutes with a minute of grace.
async fn store_with_a_heartbeat() -> Store {
    let store = store_with_a_monitor().await;
    let mut batch = storage::Batch::new();
    batch.write(heartbeat());
    store.commit(batch).await.unwrap();
    store
}

fn heartbeat() -> Monitor {
    let check = HeartbeatCheck { period_seconds: 300, grace_seconds: 60, token: "secret".to_owned() };
    Monitor { check: Check::Heartbeat(check), ..monitor() }
}

impl TestDriver {
    /// Sends a ping. Returns the receiver that is notified once it is durable.
    async fn ping(&self, beat: PingKind) -> oneshot::Receiver<()> {
        let tokens = HeartbeatTokens::default();
        tokens.put(&heartbeat());
        let said = heartbeat::StoredPing {
            number: 0,
            at: START,
            kind: beat,
            run: None,
            run_ms: None,
            method: "GET".to_owned(),
            client_ip: None,
            user_agent: String::new(),
            body: Vec::new(),
        };
        let (durable, told) = oneshot::channel();
        let ping = IncomingPing { heartbeat: tokens.find("secret").unwrap(), ping: said, on_durable: durable };
        self.inbox.send(Arrival::Ping(Box::new(ping))).await.unwrap();
        told
    }

    /// Advances the clock to that time after the start, without a stall in between.
    async fn moment(&self, since_start: i64) {
        let until = START + since_start;
        while self.clock.now() < until {
            self.clock.set(until.min(self.clock.now() + 9 * SECOND));
            self.send(VantageNo(0), Vec::new()).await;
        }
    }
}

#[tokio::test]
async fn a_missing_ping_is_told_at_the_deadline_and_not_before() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Unknown);
    stream.moment(2 * DUE).await;
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Unknown, "nothing is late before the first");
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up);
    stream.moment(3 * DUE - 1).await;
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up);
    stream.moment(3 * DUE).await;
    let down = stream.becomes(MonitorStatus::Down).await;
    assert_eq!((down.since, down.down_from), (Some(START + 3 * DUE), None));
    assert_eq!(down.downtime.unwrap().uptime(START + 4 * DUE, &[]), Some(50.0));
    stream.moment(3 * DUE + MINUTE).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up);
    let told: Vec<_> = stream.changes().into_iter().map(|(_, alert)| alert).collect();
    assert_eq!(told, [None, Some(AlertKind::WentDown), Some(AlertKind::Recovered)]);
    stream.stop().await;
}

#[tokio::test]
async fn our_own_absence_gives_a_job_a_period_at_most_and_says_so() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    stream.stop().await;
    // The deadline passes while the coordinator could not receive the ping.
    clock.set(START + 2 * DUE);
    let stream = TestDriver::start(&store, &clock).await;
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up);
    let events = store.reader().events_after(0, 99).unwrap();
    let moved = events.iter().find_map(|recorded| match &recorded.event.kind {
        EventKind::DeadlineExtended(moved) => Some(moved.deadline),
        _ => None,
    });
    assert_eq!(moved, Some(START + 2 * DUE + PERIOD));
    stream.moment(2 * DUE + PERIOD - SECOND).await;
    assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up);
    stream.moment(2 * DUE + PERIOD).await;
    assert_eq!(stream.becomes(MonitorStatus::Down).await.since, Some(START + 2 * DUE + PERIOD));
    stream.stop().await;
}

#[tokio::test]
async fn a_coordinator_that_stood_still_tells_of_no_job_that_it_could_not_hear() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    // The coordinator's host was suspended past the deadline, and the job's next ping is the first that arrives.
    clock.set(START + 2 * DUE);
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    clock.set(START + 4 * DUE);
    stream.send(VantageNo(0), Vec::new()).await;
    assert_eq!(stream.changes(), [(MonitorStatus::Up, None)]);
    stream.moment(4 * DUE + PERIOD).await;
    assert_eq!(stream.becomes(MonitorStatus::Down).await.since, Some(START + 4 * DUE + PERIOD));
    stream.stop().await;
}

#[tokio::test]
async fn a_host_that_slept_and_woke_with_another_time_makes_no_job_late() {
    for jump in [-3 * SECOND, 3 * SECOND] {
        let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
        let stream = TestDriver::start(&store, &clock).await;
        stream.ping(PingKind::Succeeded).await.await.unwrap();
        // The driver runs only once both have happened.
        clock.set(START + 2 * DUE);
        clock.step(jump);
        stream.send(VantageNo(0), Vec::new()).await;
        assert_eq!(stream.changes(), [(MonitorStatus::Up, None)], "{jump} ms");
        assert_eq!(stream.view().await.unwrap().status, MonitorStatus::Up, "{jump} ms");
        stream.stop().await;
    }
}

#[tokio::test]
async fn a_window_that_began_while_the_coordinator_stood_still_covers_what_is_judged_first() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    // Stalled twice before the next ping: the second time its deadline does not move any more.
    clock.set(START + 2 * DUE);
    stream.send(VantageNo(0), Vec::new()).await;
    let window = parallax_store::samples::window(1, 5, 0, true);
    let (from, to) = (START + 2 * DUE + MINUTE, START + 4 * DUE);
    let window =
        Incident { page: PAGE, has_begun: false, affected: Vec::new(), started_at: from, ends_at: Some(to), ..window };
    let mut batch = storage::Batch::new();
    batch.write(window);
    store.commit(batch).await.unwrap();
    clock.set(START + 3 * DUE + MINUTE);
    stream.becomes(MonitorStatus::Down).await;
    stream.send(VantageNo(0), Vec::new()).await;
    assert_eq!(stream.changes().last(), Some(&(MonitorStatus::Down, None)), "no notification in a window");
    stream.stop().await;
}

#[tokio::test]
async fn a_flood_of_pings_is_written_once_a_second_and_every_one_is_kept() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    let written = || store.reader().pings(MONITOR).unwrap().len();
    assert_eq!(written(), 1);
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(stream.ping(PingKind::Succeeded).await);
    }
    // A ping sent after them is durable at once; they are not.
    stream.send(VantageNo(0), Vec::new()).await;
    assert_eq!((written(), waiting[0].try_recv().is_err()), (1, true));
    for told in waiting {
        told.await.unwrap();
    }
    assert_eq!((written(), stream.counters.pings.load(Ordering::Relaxed)), (6, 6));

    // A change of status writes the waiting ones too.
    let noted = stream.ping(PingKind::Log).await;
    stream.ping(PingKind::Failed(Some(1))).await.await.unwrap();
    assert_eq!((written(), stream.view().await.unwrap().status), (8, MonitorStatus::Down));
    noted.await.unwrap();
    // And so does a stop.
    let last = stream.ping(PingKind::Log).await;
    stream.send(VantageNo(0), Vec::new()).await;
    stream.stop().await;
    last.await.unwrap();
    assert_eq!(written(), 9);
}

#[tokio::test]
async fn an_outage_is_said_again_by_the_page_s_interval_also_after_a_restart() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let stream = TestDriver::start(&store, &clock).await;
    stream.ping(PingKind::Succeeded).await.await.unwrap();
    stream.moment(MINUTE).await;
    stream.ping(PingKind::Failed(None)).await.await.unwrap();
    stream.becomes(MonitorStatus::Down).await;
    let telling = AlertSettings { repeat_minutes: Some(5), ..AlertSettings::default() };
    let mut batch = storage::Batch::new();
    batch.write(storage::Op::PutAlertSettings(PAGE, telling)).event(Event {
        at: clock.now(),
        page: Some(PAGE),
        monitor: None,
        kind: EventKind::PageEdited(EditKind::Changed),
    });
    store.commit(batch).await.unwrap();
    let still = |stream: &TestDriver| {
        let told = stream.changes().into_iter().filter(|(_, alert)| *alert == Some(AlertKind::StillDown));
        told.count()
    };
    stream.moment(6 * MINUTE - SECOND).await;
    assert_eq!(still(&stream), 0);
    stream.moment(11 * MINUTE).await;
    stream.moment(11 * MINUTE + SECOND).await;
    assert_eq!(still(&stream), 2);
    stream.stop().await;
    clock.set(START + 18 * MINUTE);
    let stream = TestDriver::start(&store, &clock).await;
    stream.moment(20 * MINUTE).await;
    assert_eq!(still(&stream), 2, "reminders missed during a stall are not sent later");
    stream.moment(21 * MINUTE).await;
    stream.moment(21 * MINUTE + SECOND).await;
    assert_eq!(still(&stream), 3);
    stream.stop().await;
}
