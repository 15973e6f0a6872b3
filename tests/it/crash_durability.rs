//! kill -9 and power cuts under load at any moment: acknowledged writes are there afterwards, and nothing that was not
//! requested.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_tests::api_client::ApiClient;
use parallax_tests::eventually::{eventually, print_figure, print_note};
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_disk::DiskImage;
use reqwest::Method;
use serde_json::json;
use tokio::sync::mpsc;

/// A limit above the number of monitors that the load creates.
const CONFIG: &str = "[plans.pro]\nmonitors = 100000\n";
/// Concurrent writers, each with its own key: a key may send 120 requests a minute.
const WRITERS: usize = 4;
/// Writes of one writer between two kills.
const WRITES: usize = 40;
/// Longest start after a kill.
const START: Duration = Duration::from_secs(3);

/// Progress of one write.
enum WriteProgress {
    /// A creation, about to be sent.
    Creating(String),
    /// A creation, answered with 201.
    Created(String),
    /// A deletion, about to be sent.
    Deleting(String),
    /// A deletion, answered with 204.
    Deleted(String),
}

/// Monitors that must exist, and that may exist.
#[derive(Default)]
struct Ledger {
    must: BTreeSet<String>,
    may: BTreeSet<String>,
    acknowledged: usize,
}

impl Ledger {
    fn note(&mut self, word: WriteProgress) {
        match word {
            WriteProgress::Creating(name) => drop(self.may.insert(name)),
            WriteProgress::Created(name) => {
                self.may.remove(&name);
                self.must.insert(name);
                self.acknowledged += 1;
            }
            WriteProgress::Deleting(name) => {
                self.must.remove(&name);
                self.may.insert(name);
            }
            WriteProgress::Deleted(name) => {
                self.may.remove(&name);
                self.acknowledged += 1;
            }
        }
    }

    /// Compares the monitors with the ledger, and takes them as the state that must persist from now on.
    fn settle(&mut self, round: usize, there: Vec<String>) {
        let names: BTreeSet<String> = there.iter().cloned().collect();
        assert_eq!(names.len(), there.len(), "round {round}: nothing is there twice");
        let lost: Vec<_> = self.must.difference(&names).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged and lost: {lost:?}");
        let invented: Vec<_> =
            names.iter().filter(|name| !self.must.contains(*name) && !self.may.contains(*name)).collect();
        assert!(invented.is_empty(), "round {round}: gone or never asked for, and there: {invented:?}");
        self.may.clear();
        self.must = names;
    }
}

/// Creates monitors and deletes some, until the service is down.
async fn write(client: ApiClient, page: String, prefix: String, told: mpsc::UnboundedSender<WriteProgress>) {
    for number in 0..WRITES {
        let name = format!("{prefix}-{number}");
        let _ = told.send(WriteProgress::Creating(name.clone()));
        let body = json!({"name": name, "url": "http://site.test/"});
        let Some(answer) = client.try_request(Method::POST, &format!("/pages/{page}/monitors"), Some(&body)).await
        else {
            return;
        };
        let id = answer.expect_status(201)["monitor"]["id"].as_str().unwrap().to_owned();
        let _ = told.send(WriteProgress::Created(name.clone()));
        if number % 3 == 0 {
            let _ = told.send(WriteProgress::Deleting(name.clone()));
            let path = format!("/pages/{page}/monitors/{id}");
            let Some(answer) = client.try_request(Method::DELETE, &path, None).await else { return };
            answer.expect_status(204);
            let _ = told.send(WriteProgress::Deleted(name));
        }
    }
}

async fn names(coordinator: &CoordinatorProcess, account: &TestAccount) -> Vec<String> {
    // A separate key, so that reads are not limited by the writers' keys.
    let client = coordinator.api().with_key(Some(&coordinator.create_key(&account.account, "read")));
    let monitors = client.monitors(&account.page).await;
    monitors.iter().map(|monitor| monitor["name"].as_str().unwrap().to_owned()).collect()
}

/// Running writers, and their reports.
struct Load {
    writers: tokio::task::JoinSet<()>,
    words: mpsc::UnboundedReceiver<WriteProgress>,
}

impl Load {
    /// Starts the writers, and waits for a given number of reports, another one in each round, wherever each writer
    /// then is.
    async fn until_a_moment(
        coordinator: &CoordinatorProcess,
        account: &TestAccount,
        round: usize,
        ledger: &mut Ledger,
    ) -> Self {
        let (told, mut words) = mpsc::unbounded_channel();
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..WRITERS {
            let client = coordinator.api().with_key(Some(&coordinator.create_key(&account.account, "write")));
            writers.spawn(write(client, account.page.clone(), format!("{round}-{number}"), told.clone()));
        }
        let moment = 1 + round * 37 % (WRITERS * WRITES);
        for _ in 0..moment {
            match words.recv().await {
                Some(word) => ledger.note(word),
                None => break,
            }
        }
        Self { writers, words }
    }

    /// Records the remaining reports, once the service is down.
    async fn end(mut self, ledger: &mut Ledger) {
        while let Some(ended) = self.writers.join_next().await {
            ended.unwrap();
        }
        while let Some(word) = self.words.recv().await {
            ledger.note(word);
        }
    }
}

/// Kills the coordinator, or cuts the power of its disk if there is one, `rounds` times.
async fn kills(rounds: usize, mut coordinator: CoordinatorProcess, disk: Option<&DiskImage>) {
    let account = coordinator.create_account("pro");
    let mut ledger = Ledger::default();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let load = Load::until_a_moment(&coordinator, &account, round, &mut ledger).await;
        if let Some(disk) = disk {
            coordinator.process.freeze();
            disk.take_copy();
        }
        coordinator.process.kill();
        load.end(&mut ledger).await;
        if let Some(disk) = disk {
            disk.restore_copy();
        }
        let begun = Instant::now();
        coordinator.restart().await;
        slowest = slowest.max(begun.elapsed());
        ledger.settle(round, names(&coordinator, &account).await);
    }
    assert!(ledger.acknowledged > rounds * 10, "only {} writes were answered", ledger.acknowledged);
    print_figure("start after a kill", slowest, START);
    eventually("it still answers", START, async || Some(names(&coordinator, &account).await)).await;
    coordinator.process.kill();
    let right = StoredJournal::read(&coordinator.data()).await.check().unwrap();
    print_note(&format!("{rounds} rounds, {} writes acknowledged, {right:?}", ledger.acknowledged));
}

async fn on_this_disk() -> CoordinatorProcess {
    CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await
}

async fn cuts(test: &str, rounds: usize) {
    let folder = tempfile::TempDir::new().unwrap();
    let Some(disk) = DiskImage::make(test, &folder.path().join("disk"), &folder.path().join("data"), 512) else {
        return;
    };
    let coordinator = CoordinatorProcess::serve_in(folder, SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    kills(rounds, coordinator, Some(&disk)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_kills_under_load_lose_nothing_that_was_answered() {
    kills(15, on_this_disk().await, None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it two_hundred -- --ignored`"]
async fn two_hundred_kills_under_load_lose_nothing_that_was_answered() {
    kills(200, on_this_disk().await, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_power_cuts_under_load_lose_nothing_that_was_answered() {
    cuts("five_power_cuts_under_load_lose_nothing_that_was_answered", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it thirty -- --ignored`"]
async fn thirty_power_cuts_under_load_lose_nothing_that_was_answered() {
    cuts("thirty_power_cuts_under_load_lose_nothing_that_was_answered", 30).await;
}
