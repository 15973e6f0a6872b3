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
    async fn ping(&self, kind: PingKind) -> oneshot::Receiver<()> {
        let tokens = HeartbeatTokens::default();
        tokens.put(&heartbeat());
        let stored_ping = heartbeat::StoredPing {
            number: 0,
            at: START,
            kind,
            run: None,
            run_ms: None,
            method: "GET".to_owned(),
            client_ip: None,
            user_agent: String::new(),
            body: Vec::new(),
        };
        let (on_durable, receiver) = oneshot::channel();
        let ping = IncomingPing { heartbeat: tokens.find("secret").unwrap(), ping: stored_ping, on_durable };
        self.inbox.send(Arrival::Ping(Box::new(ping))).await.unwrap();
        receiver
    }

    /// Advances the clock to that time after the start, without a stall in between.
    async fn advance_to(&self, since_start: i64) {
        let until = START + since_start;
        while self.clock.now() < until {
            self.clock.set(until.min(self.clock.now() + 9 * SECOND));
            self.send(VantageNo(0), Vec::new()).await;
        }
    }
}

#[tokio::test]
async fn a_missing_ping_is_reported_at_the_deadline_and_not_before() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Unknown);
    driver.advance_to(2 * DUE).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Unknown, "nothing is late before the first");
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up);
    driver.advance_to(3 * DUE - 1).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up);
    driver.advance_to(3 * DUE).await;
    let down = driver.wait_for_status(MonitorStatus::Down).await;
    assert_eq!((down.since, down.down_from), (Some(START + 3 * DUE), None));
    assert_eq!(down.downtime.unwrap().uptime(START + 4 * DUE, &[]), Some(50.0));
    driver.advance_to(3 * DUE + MINUTE).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up);
    let alerts: Vec<_> = driver.changes().into_iter().map(|(_, alert)| alert).collect();
    assert_eq!(alerts, [None, Some(AlertKind::WentDown), Some(AlertKind::Recovered)]);
    driver.stop().await;
}

#[tokio::test]
async fn a_resumed_heartbeat_that_stays_silent_is_reported() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    let paused = edit_monitor(&store, |it| it.paused = true).await;
    assert_eq!(driver.view_after(paused).await.unwrap().status, MonitorStatus::Unknown);
    driver.advance_to(2 * DUE).await;
    let resumed = edit_monitor(&store, |it| it.paused = false).await;
    assert_eq!(driver.view_after(resumed).await.unwrap().status, MonitorStatus::Unknown);
    driver.advance_to(3 * DUE - SECOND).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Unknown);
    driver.advance_to(3 * DUE).await;
    let down = driver.wait_for_status(MonitorStatus::Down).await;
    assert_eq!(down.since, Some(START + 3 * DUE));
    assert_eq!(driver.changes().last(), Some(&(MonitorStatus::Down, Some(AlertKind::WentDown))));
    driver.stop().await;
}

#[tokio::test]
async fn coordinator_downtime_extends_a_deadline_by_one_period_at_most_and_records_it() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    driver.stop().await;
    // The deadline passes while the coordinator could not receive the ping.
    clock.set(START + 2 * DUE);
    let driver = TestDriver::start(&store, &clock).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up);
    let events = store.reader().events_after(0, 99).unwrap();
    let extended = events.iter().find_map(|recorded| match &recorded.event.kind {
        EventKind::DeadlineExtended(extended) => Some(extended.deadline),
        _ => None,
    });
    assert_eq!(extended, Some(START + 2 * DUE + PERIOD));
    driver.advance_to(2 * DUE + PERIOD - SECOND).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up);
    driver.advance_to(2 * DUE + PERIOD).await;
    assert_eq!(driver.wait_for_status(MonitorStatus::Down).await.since, Some(START + 2 * DUE + PERIOD));
    driver.stop().await;
}

#[tokio::test]
async fn a_stalled_coordinator_reports_no_job_late_that_it_could_not_hear() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    // The coordinator's host was suspended past the deadline, and the job's next ping is the first that arrives.
    clock.set(START + 2 * DUE);
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    clock.set(START + 4 * DUE);
    driver.send(VantageNo(0), Vec::new()).await;
    assert_eq!(driver.changes(), [(MonitorStatus::Up, None)]);
    driver.advance_to(4 * DUE + PERIOD).await;
    assert_eq!(driver.wait_for_status(MonitorStatus::Down).await.since, Some(START + 4 * DUE + PERIOD));
    driver.stop().await;
}

#[tokio::test]
async fn a_suspended_host_that_wakes_with_another_time_makes_no_job_late() {
    for jump in [-3 * SECOND, 3 * SECOND] {
        let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
        let driver = TestDriver::start(&store, &clock).await;
        driver.ping(PingKind::Succeeded).await.await.unwrap();
        // The driver runs only once both have happened.
        clock.set(START + 2 * DUE);
        clock.step(jump);
        driver.send(VantageNo(0), Vec::new()).await;
        assert_eq!(driver.changes(), [(MonitorStatus::Up, None)], "{jump} ms");
        assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up, "{jump} ms");
        driver.stop().await;
    }
}

#[tokio::test]
async fn a_window_that_began_during_a_stall_is_applied_before_deadlines_fire() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    // Stalled twice before the next ping: the second time its deadline does not move any more.
    clock.set(START + 2 * DUE);
    driver.send(VantageNo(0), Vec::new()).await;
    let window = parallax_store::samples::window(1, 5, 0, true);
    let (from, to) = (START + 2 * DUE + MINUTE, START + 4 * DUE);
    let window =
        Incident { page: PAGE, has_begun: false, affected: Vec::new(), started_at: from, ends_at: Some(to), ..window };
    let mut batch = storage::Batch::new();
    batch.write(window);
    store.commit(batch).await.unwrap();
    clock.set(START + 3 * DUE + MINUTE);
    driver.wait_for_status(MonitorStatus::Down).await;
    driver.send(VantageNo(0), Vec::new()).await;
    assert_eq!(driver.changes().last(), Some(&(MonitorStatus::Down, None)), "no notification in a window");
    driver.stop().await;
}

#[tokio::test]
async fn a_flood_of_pings_is_written_once_a_second_and_no_ping_is_lost() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    let written = || store.reader().pings(MONITOR).unwrap().len();
    assert_eq!(written(), 1);
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(driver.ping(PingKind::Succeeded).await);
    }
    // A ping sent after them is durable at once; they are not.
    driver.send(VantageNo(0), Vec::new()).await;
    assert_eq!((written(), waiting[0].try_recv().is_err()), (1, true));
    for receiver in waiting {
        receiver.await.unwrap();
    }
    assert_eq!((written(), driver.counters.pings.load(Ordering::Relaxed)), (6, 6));

    // A change of status writes the waiting ones too.
    let log_ping = driver.ping(PingKind::Log).await;
    driver.ping(PingKind::Failed(Some(1))).await.await.unwrap();
    assert_eq!((written(), driver.view().await.unwrap().status), (8, MonitorStatus::Down));
    log_ping.await.unwrap();
    // And so does a stop.
    let last = driver.ping(PingKind::Log).await;
    driver.send(VantageNo(0), Vec::new()).await;
    driver.stop().await;
    last.await.unwrap();
    assert_eq!(written(), 9);
}

#[tokio::test]
async fn an_outage_is_repeated_at_the_interval_of_the_page_also_after_a_restart() {
    let (store, clock) = (store_with_a_heartbeat().await, Clock::manual(START));
    let driver = TestDriver::start(&store, &clock).await;
    driver.ping(PingKind::Succeeded).await.await.unwrap();
    driver.advance_to(MINUTE).await;
    driver.ping(PingKind::Failed(None)).await.await.unwrap();
    driver.wait_for_status(MonitorStatus::Down).await;
    let alert_settings = AlertSettings { repeat_minutes: Some(5), ..AlertSettings::default() };
    let mut batch = storage::Batch::new();
    batch.write(storage::Op::PutAlertSettings(PAGE, alert_settings)).event(Event {
        at: clock.now(),
        page: Some(PAGE),
        monitor: None,
        kind: EventKind::PageEdited(EditKind::Changed),
    });
    store.commit(batch).await.unwrap();
    let still = |driver: &TestDriver| {
        let still_down = driver.changes().into_iter().filter(|(_, alert)| *alert == Some(AlertKind::StillDown));
        still_down.count()
    };
    driver.advance_to(6 * MINUTE - SECOND).await;
    assert_eq!(still(&driver), 0);
    driver.advance_to(11 * MINUTE).await;
    driver.advance_to(11 * MINUTE + SECOND).await;
    assert_eq!(still(&driver), 2);
    driver.stop().await;
    clock.set(START + 18 * MINUTE);
    let driver = TestDriver::start(&store, &clock).await;
    driver.advance_to(20 * MINUTE).await;
    assert_eq!(still(&driver), 2, "reminders missed during a stall are not sent later");
    driver.advance_to(21 * MINUTE).await;
    driver.advance_to(21 * MINUTE + SECOND).await;
    assert_eq!(still(&driver), 3);
    driver.stop().await;
}
