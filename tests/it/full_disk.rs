//! A full disk: no write is acknowledged that is not durable, reads continue, and everything recovers without
//! intervention.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_core::time::Timestamp;
use parallax_tests::agent_pair;
use parallax_tests::api_client::ApiClient;
use parallax_tests::eventually::{
    API_PERIOD, eventually, eventually_every, holds, print_figure, print_note, wall_clock,
};
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_disk::Tmpfs;
use parallax_tests::test_target::TestTarget;
use reqwest::Method;
use serde_json::{Value, json};

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Longest recovery once there is space.
const RECOVERY: Duration = Duration::from_secs(30);

/// Writes to the API and sends pings, and remembers the successful ones.
struct Writer {
    account: TestAccount,
    made: Vec<Value>,
    /// A heartbeat monitor, and the path of its pings.
    job: Value,
    ping: String,
    /// Time of the last successful ping.
    pinged: Option<Timestamp>,
    sent: usize,
}

impl Writer {
    /// Creates a monitor; returns the status.
    async fn write(&mut self) -> u16 {
        let body = json!({"name": format!("m{}", self.sent), "url": "http://127.0.0.1:9/"});
        self.sent += 1;
        let path = format!("/pages/{}/monitors", self.account.page);
        let answer = self.account.client.try_request(Method::POST, &path, Some(&body)).await.expect("it answers");
        if answer.status == 201 {
            self.made.push(answer.json()["monitor"]["id"].clone());
        }
        answer.status
    }

    /// Sends a ping; returns the status.
    async fn ping(&mut self) -> u16 {
        let now = wall_clock();
        let status = self.account.client.send(Method::GET, &self.ping, None).await.status;
        if status == 200 {
            self.pinged = Some(now);
        }
        status
    }

    /// Reads the page's monitors and the page, and verifies that they contain all successful writes.
    async fn check(&self) -> Result<(), String> {
        let there = self.account.client.monitors(&self.account.page).await;
        let lost = self.made.iter().find(|id| !there.iter().any(|monitor| monitor["id"] == **id));
        if let Some(id) = lost {
            return Err(format!("{id} was answered with 201 and is gone"));
        }
        let page = self.account.client.send(Method::GET, &format!("/p/{}", self.account.slug), None).await;
        let job = there.iter().find(|monitor| monitor["id"] == self.job["id"]).expect("it was found");
        let last = job["heartbeat"]["lastPingAt"].as_str().and_then(Timestamp::parse_iso);
        if self.pinged.is_some() && last < self.pinged {
            return Err(format!("a ping at {:?} was answered with 200, and the last is of {last:?}", self.pinged));
        }
        (page.status == 200).then_some(()).ok_or_else(|| format!("the page is answered with {}", page.status))
    }
}

/// Returns the number of rounds of a monitor once none is missing between the first and the last: agents send their
/// backlog after current results.
async fn rounds_in_a_row(account: &TestAccount, monitor: &Value) -> usize {
    let id = monitor["id"].as_str().expect("a monitor has an id");
    let path = format!("/pages/{}/monitors/{id}/checks?limit=100", account.page);
    eventually_every(API_PERIOD, "no round is missing", RECOVERY, async || {
        let checks = account.client.get(&path).await.expect_status(200)["checks"].take();
        let checks = checks.as_array().expect("a list").iter();
        let mut rounds: Vec<u64> = checks.map(|check| check["round"].as_u64().expect("a number")).collect();
        rounds.sort_unstable();
        rounds.windows(2).all(|two| two[1] == two[0] + 1).then_some(rounds.len())
    })
    .await
}

/// Fills the disk for `span`.
async fn fill(test: &str, span: Duration) {
    let folder = tempfile::TempDir::new().unwrap();
    // The coordinator leaves 64 MiB of a disk free, and accepts writes again once 128 MiB are free: on a smaller disk
    // it never would.
    let Some(disk) = Tmpfs::mount(test, &folder.path().join("data"), 320) else { return };
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let config = format!("[admin]\nlisten = \"{admin}\"\n{CONFIG}");
    let mut coordinator = CoordinatorProcess::serve_in(folder, SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let _agents = agent_pair::join(&coordinator).await;
    let account = coordinator.create_account("pro");
    let site = TestTarget::start().await;
    let client = &account.client;
    let watched = client.create_monitor(&account.page, &json!({"name": "site", "url": site.url()})).await;
    let job = json!({"name": "job", "type": "heartbeat", "periodMinutes": 60});
    let job = client.create_monitor(&account.page, &job).await;
    let ping = job["heartbeat"]["pingUrl"].as_str().expect("a write key sees it");
    let ping = ping.strip_prefix(&coordinator.ready.base_url).expect("it is here").to_owned();
    let made = vec![watched["id"].clone(), job["id"].clone()];
    let mut writer = Writer { account, made, job, ping, pinged: None, sent: 0 };
    for _ in 0..5 {
        assert_eq!((writer.write().await, writer.ping().await), (201, 200));
    }
    let until_checked_after = async |writer: &Writer, last: Value, limit| {
        eventually_every(API_PERIOD, "a new round is there", limit, async || {
            let now = writer.account.client.monitor(&writer.account.page, &watched).await["lastCheck"]["at"].take();
            (!now.is_null() && now != last).then_some(now)
        })
        .await
    };
    until_checked_after(&writer, Value::Null, Duration::from_secs(40)).await;

    disk.fill();
    let (mut refused, mut rounds, mut pings) = (0, 0, 0);
    let (pinger, path) = (ApiClient::with_timeout(&coordinator.ready.base_url, None, RECOVERY), writer.ping.clone());
    let pinging = holds(API_PERIOD, span, async || {
        pings += 1;
        let status = pinger.send(Method::GET, &path, None).await.status;
        (status == 500).then_some(()).ok_or_else(|| format!("a ping that can't be kept was answered with {status}"))
    });
    let writing = holds(API_PERIOD * 2, span, async || {
        refused += usize::from(writer.write().await == 500);
        rounds += 1;
        writer.check().await
    });
    tokio::join!(pinging, writing);
    assert!(refused * 2 >= rounds, "a full disk takes no writes: {refused} of {rounds} were refused");
    coordinator.process.wait_for_log("nearly full", Duration::from_secs(10)).await;
    let lines = coordinator.process.log().lines().filter(|line| line.contains("nearly full")).count();
    assert_eq!(lines, 1, "a full disk is logged once, and not each second");
    let admin = ApiClient::new(&format!("http://{admin}"), None);
    let ready = admin.send(Method::GET, "/readyz", None).await;
    assert!(ready.status == 503 && ready.text.contains("nearly full"), "{} {}", ready.status, ready.text);
    assert_eq!(admin.send(Method::GET, "/healthz", None).await.status, 200);
    assert!(coordinator.process.is_running());
    print_note(&format!(
        "{span:?} full: {refused} of {rounds} writes and all of {pings} pings refused, every read answered"
    ));

    // Restarted on the full disk, by a kill and by a stop: reads work, writes are refused.
    for kill in [true, false] {
        if kill {
            coordinator.process.kill();
        } else {
            coordinator.process.terminate();
            coordinator.process.wait_for_exit(Duration::from_secs(40)).await;
        }
        let said = coordinator.process.log().len();
        coordinator.restart().await;
        eventually("it says so", Duration::from_secs(10), async || {
            coordinator.process.log().get(said..)?.contains("nearly full").then_some(())
        })
        .await;
        writer.check().await.unwrap();
        assert_eq!(writer.write().await, 500);
    }

    let last = writer.account.client.monitor(&writer.account.page, &watched).await["lastCheck"]["at"].take();
    let begun = Instant::now();
    disk.free();
    eventually_every(API_PERIOD, "writes are taken again", RECOVERY, async || {
        (writer.write().await == 201 && writer.ping().await == 200).then_some(())
    })
    .await;
    print_figure("writes after a full disk", begun.elapsed(), RECOVERY);
    until_checked_after(&writer, last, RECOVERY).await;
    coordinator.process.wait_for_log("the disk has space again: writes continue", RECOVERY).await;
    assert_eq!(admin.send(Method::GET, "/readyz", None).await.status, 200);
    print_figure("a new round after a full disk", begun.elapsed(), RECOVERY);
    assert!(coordinator.data().join("store/BALLAST").exists(), "the ballast is back for the next time");
    coordinator.process.kill();
    coordinator.restart().await;
    writer.check().await.unwrap();
    print_note(&format!("{} rounds in a row, none lost", rounds_in_a_row(&writer.account, &watched).await));
    coordinator.process.kill();
    StoredJournal::read(&coordinator.data()).await.check().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_answered_and_recovers_by_itself() {
    let test = "a_full_disk_loses_nothing_that_was_answered_and_recovers_by_itself";
    fill(test, Duration::from_secs(12)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it five_minutes -- --ignored`"]
async fn a_disk_full_for_five_minutes_loses_nothing_that_was_answered_and_recovers_by_itself() {
    let test = "a_disk_full_for_five_minutes_loses_nothing_that_was_answered_and_recovers_by_itself";
    fill(test, Duration::from_secs(300)).await;
}
