//! A disk that stalls or fails under the store: agents continue, reads work, and no write is acknowledged that is not
//! durable.

use std::time::{Duration, Instant};

use parallax_tests::agent_pair;
use parallax_tests::api_client::ApiClient;
use parallax_tests::eventually::{API_PERIOD, eventually_every, holds, print_figure};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::syscall_faults::SyscallFaults;
use parallax_tests::test_target::TestTarget;
use reqwest::Method;
use serde_json::{Value, json};

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\nmonitors = 100000\n";
/// Interval of the monitors.
const INTERVAL: Duration = Duration::from_secs(10);
/// Timeout of a write.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// Longest recovery.
const RECOVERY: Duration = Duration::from_secs(30);
/// Longest read, which is served from memory.
const READ: Duration = Duration::from_millis(500);

/// A coordinator with two agents on one site, and a client that writes.
struct Scene {
    coordinator: CoordinatorProcess,
    _agents: [AgentProcess; 2],
    site: TestTarget,
    account: TestAccount,
    client: ApiClient,
    watched: Value,
    made: Vec<Value>,
    sent: usize,
}

impl Scene {
    async fn set() -> Self {
        let (coordinator, agents, account) = agent_pair::start(CONFIG).await;
        let client = ApiClient::with_timeout(&coordinator.ready.base_url, Some(&account.key), GIVEN_UP * 3);
        let site = TestTarget::start().await;
        let watched = client.create_monitor(&account.page, &json!({"name": "site", "url": site.url()})).await;
        let made = vec![watched["id"].clone()];
        let scene = Self { coordinator, _agents: agents, site, account, client, watched, made, sent: 0 };
        scene.checked_after(&Value::Null).await;
        scene
    }

    /// Creates a monitor that no agent can run; returns the status, or `None` if the service went down.
    async fn write(&mut self) -> Option<u16> {
        let body = json!({"name": format!("m{}", self.sent), "url": "http://127.0.0.1:9/"});
        self.sent += 1;
        let path = format!("/pages/{}/monitors", self.account.page);
        let answer = self.client.try_request(Method::POST, &path, Some(&body)).await?;
        if answer.status == 201 {
            self.made.push(answer.json()["monitor"]["id"].clone());
        }
        Some(answer.status)
    }

    async fn check(&self) -> Result<(), String> {
        let there = self.client.monitors(&self.account.page).await;
        let lost = self.made.iter().find(|id| !there.iter().any(|monitor| monitor["id"] == **id));
        lost.map_or(Ok(()), |id| Err(format!("{id} was answered with 201 and is gone")))
    }

    async fn checked_after(&self, last: &Value) -> Value {
        eventually_every(API_PERIOD, "a new round is there", RECOVERY, async || {
            let now = self.client.monitor(&self.account.page, &self.watched).await["lastCheck"]["at"].take();
            (!now.is_null() && now != *last).then_some(now)
        })
        .await
    }
}

/// No fsync completes for `span`.
async fn stalled(test: &str, span: Duration) {
    let mut scene = Scene::set().await;
    for _ in 0..3 {
        assert_eq!(scene.write().await, Some(201));
    }
    let seen = scene.site.requests();
    let rule = "fsync,fdatasync:delay_enter=600000000";
    let Some(faults) = SyscallFaults::inject(test, &scene.coordinator.process, rule).await else { return };
    let begun = Instant::now();
    let writing = async {
        let path = format!("/pages/{}/monitors", scene.account.page);
        let body = json!({"name": "stalled", "url": "http://127.0.0.1:9/"});
        let answer = scene.client.try_request(Method::POST, &path, Some(&body)).await;
        (answer.map(|answer| answer.status), begun.elapsed())
    };
    let mut slowest = Duration::ZERO;
    let reading = holds(API_PERIOD, span, async || {
        let asked = Instant::now();
        scene.check().await?;
        slowest = slowest.max(asked.elapsed());
        Ok(())
    });
    let ((status, took), ()) = tokio::join!(writing, reading);
    drop(faults);
    assert_eq!(status, Some(500), "a write that can't be made durable is never acknowledged");
    assert!(took >= GIVEN_UP, "it is waited for: {took:?}");
    print_figure("a write is given up", took, GIVEN_UP + Duration::from_secs(2));
    assert!(took < GIVEN_UP + Duration::from_secs(15), "{took:?}");
    print_figure("slowest read while the disk stalls", slowest, READ);
    let rounds = scene.site.requests() - seen;
    let wanted = u64::from(span.as_secs() >= 1) * (span.as_secs() / INTERVAL.as_secs());
    assert!(rounds >= wanted.saturating_sub(1), "agents go on: {rounds} rounds of {wanted}");

    let begun = Instant::now();
    eventually_every(API_PERIOD, "writes are taken again", RECOVERY, async || {
        (scene.write().await == Some(201)).then_some(())
    })
    .await;
    print_figure("writes are taken again", begun.elapsed(), RECOVERY);
    scene.check().await.unwrap();
    let last = scene.client.monitor(&scene.account.page, &scene.watched).await["lastCheck"]["at"].take();
    scene.checked_after(&last).await;
    assert!(scene.coordinator.process.is_running());
    scene.coordinator.process.kill();
    let journal = StoredJournal::read(&scene.coordinator.data()).await;
    journal.check().unwrap();
    let slot = journal.readings.first().map(|reading| reading.slot);
    let mut rounds: Vec<u64> =
        journal.readings.iter().filter(|reading| Some(reading.slot) == slot).map(|reading| reading.round).collect();
    rounds.sort_unstable();
    assert!(rounds.windows(2).all(|two| two[1] == two[0] + 1), "no round is lost or there twice: {rounds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_stalls_for_fifteen_seconds_loses_no_round_and_fools_nobody() {
    let test = "a_disk_that_stalls_for_fifteen_seconds_loses_no_round_and_fools_nobody";
    stalled(test, Duration::from_secs(15)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it stalls -- --ignored`"]
async fn a_disk_that_stalls_for_a_minute_loses_no_round_and_fools_nobody() {
    let test = "a_disk_that_stalls_for_a_minute_loses_no_round_and_fools_nobody";
    stalled(test, Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_a_disk_that_stalls_for_four_seconds() {
    let test = "a_write_waits_for_a_disk_that_stalls_for_four_seconds";
    let mut scene = Scene::set().await;
    let rule = "fsync,fdatasync:delay_enter=600000000";
    let Some(faults) = SyscallFaults::inject(test, &scene.coordinator.process, rule).await else { return };
    let begun = Instant::now();
    let reader = scene.client.clone();
    let (status, ()) = tokio::join!(scene.write(), async {
        holds(API_PERIOD, Duration::from_secs(4), async || {
            reader.get("/me").await.expect_status(200);
            Ok(())
        })
        .await;
        drop(faults);
    });
    let took = begun.elapsed();
    assert_eq!(status, Some(201));
    assert!((Duration::from_secs(3)..GIVEN_UP).contains(&took), "{took:?}");
    scene.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_ends_the_coordinator_and_loses_nothing_that_was_answered() {
    let test = "a_disk_that_fails_ends_the_coordinator_and_loses_nothing_that_was_answered";
    let mut scene = Scene::set().await;
    for rule in [
        "fsync:error=EIO",
        "fdatasync:error=EIO:when=2+",
        "sync_file_range:error=EIO",
        "pwrite64:error=EIO:when=3+",
        "pwrite64:error=ENOSPC:when=2+",
        "pwrite64:retval=7:when=4+",
        "pread64,pwrite64:error=EIO:when=7+7",
    ] {
        let Some(faults) = SyscallFaults::inject(test, &scene.coordinator.process, rule).await else {
            return;
        };
        let begun = Instant::now();
        // Its own commits end it too, but only after many acknowledged writes.
        while begun.elapsed() < RECOVERY && scene.write().await == Some(201) {}
        let status = scene.coordinator.process.wait_for_exit(RECOVERY).await;
        assert_eq!(status.code(), Some(1), "{rule}: {}", scene.coordinator.process.log());
        drop(faults);
        scene.coordinator.restart().await;
        scene.check().await.unwrap_or_else(|lost| panic!("{rule}: {lost}"));
        assert_eq!(scene.write().await, Some(201), "{rule}");
    }
    scene.coordinator.process.kill();
    StoredJournal::read(&scene.coordinator.data()).await.check().unwrap();
}
