//! A full disk: no answer that something was written is false, reads go on, and everything recovers by itself.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually_every, holds};
use parallax_tests::installation::{Account, Coordinator};
use parallax_tests::mount::Tmpfs;
use parallax_tests::targets::Target;
use reqwest::Method;
use serde_json::{Value, json};

/// Rounds every ten seconds, so that a test sees several.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Longest time until everything is well again once there is space.
const RECOVERY: Duration = Duration::from_secs(30);

/// Writes to the API, and remembers what was answered well.
struct Writer {
    account: Account,
    made: Vec<Value>,
    sent: usize,
}

impl Writer {
    /// Makes a monitor; gives the status.
    async fn write(&mut self) -> u16 {
        let body = json!({"name": format!("m{}", self.sent), "url": "http://127.0.0.1:9/"});
        self.sent += 1;
        let path = format!("/pages/{}/monitors", self.account.page);
        let answer = self.account.client.attempt(Method::POST, &path, Some(&body)).await.expect("it answers");
        if answer.status == 201 {
            self.made.push(answer.json()["monitor"]["id"].clone());
        }
        answer.status
    }

    /// Reads the page's monitors, and finds all that were answered well.
    async fn check(&self) -> Result<(), String> {
        let there = self.account.client.monitors(&self.account.page).await;
        let lost = self.made.iter().find(|id| !there.iter().any(|monitor| monitor["id"] == **id));
        lost.map_or(Ok(()), |id| Err(format!("{id} was answered with 201 and is gone")))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_answered_and_recovers_by_itself() {
    let folder = tempfile::TempDir::new().unwrap();
    let test = "a_full_disk_loses_nothing_that_was_answered_and_recovers_by_itself";
    let Some(disk) = Tmpfs::mount(test, &folder.path().join("data"), 320) else { return };
    let mut coordinator = Coordinator::serve_in(folder, SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let _agents = [
        coordinator.agent("fra1", "europe", "AS64500", None),
        coordinator.agent("fra2", "europe", "AS64501", None),
    ];
    coordinator.connected(2).await;
    let account = coordinator.account("pro");
    let site = Target::start().await;
    let watched =
        account.client.create_monitor(&account.page, &json!({"name": "site", "url": site.url()})).await;
    let mut writer = Writer { account, made: vec![watched["id"].clone()], sent: 0 };
    for _ in 0..5 {
        assert_eq!(writer.write().await, 201);
    }
    let until_checked_after = async |writer: &Writer, last: Value, limit| {
        eventually_every(API_PERIOD, "a new round is there", limit, async || {
            let now =
                writer.account.client.monitor(&writer.account.page, &watched).await["lastCheck"]["at"].take();
            (!now.is_null() && now != last).then_some(now)
        })
        .await
    };
    until_checked_after(&writer, Value::Null, Duration::from_secs(40)).await;

    disk.fill();
    let mut refused = 0;
    holds(API_PERIOD, Duration::from_secs(12), async || {
        refused += usize::from(writer.write().await == 500);
        writer.check().await
    })
    .await;
    assert!(refused >= 5, "a full disk takes no writes: {refused} were refused");
    coordinator.process.says("nearly full", Duration::from_secs(10)).await;

    // Started again while full, by a kill and by a stop: it reads, and takes no writes.
    for kill in [true, false] {
        if kill {
            coordinator.process.kill();
        } else {
            coordinator.process.terminate();
            coordinator.process.ended(Duration::from_secs(40)).await;
        }
        coordinator.restart().await;
        writer.check().await.unwrap();
        assert_eq!(writer.write().await, 500);
    }

    let last = writer.account.client.monitor(&writer.account.page, &watched).await["lastCheck"]["at"].take();
    disk.empty();
    eventually_every(API_PERIOD, "writes are taken again", RECOVERY, async || {
        (writer.write().await == 201).then_some(())
    })
    .await;
    until_checked_after(&writer, last, RECOVERY).await;
    assert!(coordinator.data().join("store/BALLAST").exists(), "the ballast is back for the next time");
    coordinator.process.kill();
    coordinator.restart().await;
    writer.check().await.unwrap();
}
