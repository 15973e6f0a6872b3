//! kill -9 and power cuts under load at any moment: what the API answered well is there afterwards, and nothing that
//! nobody asked for.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_tests::client::Client;
use parallax_tests::eventually::{eventually, figure, note};
use parallax_tests::installation::{Account, Coordinator};
use parallax_tests::journal::Journal;
use parallax_tests::mount::Image;
use reqwest::Method;
use serde_json::json;
use tokio::sync::mpsc;

/// Room for every monitor that the load makes.
const CONFIG: &str = "[plans.pro]\nmonitors = 100000\n";
/// Writers at once, each with a key of its own: a key may ask 120 times a minute.
const WRITERS: usize = 4;
/// Writes of one writer between two kills.
const WRITES: usize = 40;
/// Longest start after a kill.
const START: Duration = Duration::from_secs(3);

/// What became of one write.
enum Word {
    /// About to be sent.
    Sent(String),
    /// Answered with 201.
    Made(String),
    /// The monitor was asked to go away.
    Leaving(String),
    /// Answered with 204.
    Gone(String),
}

/// What must be, and what may be.
#[derive(Default)]
struct Ledger {
    must: BTreeSet<String>,
    may: BTreeSet<String>,
    acknowledged: usize,
}

impl Ledger {
    fn note(&mut self, word: Word) {
        match word {
            Word::Sent(name) => drop(self.may.insert(name)),
            Word::Made(name) => {
                self.may.remove(&name);
                self.must.insert(name);
                self.acknowledged += 1;
            }
            Word::Leaving(name) => {
                self.must.remove(&name);
                self.may.insert(name);
            }
            Word::Gone(name) => {
                self.may.remove(&name);
                self.acknowledged += 1;
            }
        }
    }

    /// Holds what is there against it, and takes that for what must be from now on.
    fn settle(&mut self, round: usize, there: Vec<String>) {
        let names: BTreeSet<String> = there.iter().cloned().collect();
        assert_eq!(names.len(), there.len(), "round {round}: nothing is there twice");
        let lost: Vec<_> = self.must.difference(&names).collect();
        assert!(lost.is_empty(), "round {round}: answered well and lost: {lost:?}");
        let invented: Vec<_> =
            names.iter().filter(|name| !self.must.contains(*name) && !self.may.contains(*name)).collect();
        assert!(invented.is_empty(), "round {round}: gone or never asked for, and there: {invented:?}");
        self.may.clear();
        self.must = names;
    }
}

/// Makes monitors and takes some away again, until the service goes away.
async fn write(client: Client, page: String, prefix: String, told: mpsc::UnboundedSender<Word>) {
    for number in 0..WRITES {
        let name = format!("{prefix}-{number}");
        let _ = told.send(Word::Sent(name.clone()));
        let body = json!({"name": name, "url": "http://site.test/"});
        let Some(answer) =
            client.attempt(Method::POST, &format!("/pages/{page}/monitors"), Some(&body)).await
        else {
            return;
        };
        let id = answer.is(201)["monitor"]["id"].as_str().unwrap().to_owned();
        let _ = told.send(Word::Made(name.clone()));
        if number % 3 == 0 {
            let _ = told.send(Word::Leaving(name.clone()));
            let path = format!("/pages/{page}/monitors/{id}");
            let Some(answer) = client.attempt(Method::DELETE, &path, None).await else { return };
            answer.is(204);
            let _ = told.send(Word::Gone(name));
        }
    }
}

async fn names(coordinator: &Coordinator, account: &Account) -> Vec<String> {
    // A key of its own, so that looking never meets the limit of the writers' keys.
    let client = coordinator.api().with_key(Some(&coordinator.key(&account.account, "read")));
    let monitors = client.monitors(&account.page).await;
    monitors.iter().map(|monitor| monitor["name"].as_str().unwrap().to_owned()).collect()
}

/// Writers at work, and what they tell.
struct Load {
    writers: tokio::task::JoinSet<()>,
    words: mpsc::UnboundedReceiver<Word>,
}

impl Load {
    /// Starts them, and waits until another moment in each round: after so many words, wherever each writer then is.
    async fn until_a_moment(
        coordinator: &Coordinator,
        account: &Account,
        round: usize,
        ledger: &mut Ledger,
    ) -> Self {
        let (told, mut words) = mpsc::unbounded_channel();
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..WRITERS {
            let client = coordinator.api().with_key(Some(&coordinator.key(&account.account, "write")));
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

    /// Notes the rest, once the service is gone.
    async fn end(mut self, ledger: &mut Ledger) {
        while let Some(ended) = self.writers.join_next().await {
            ended.unwrap();
        }
        while let Some(word) = self.words.recv().await {
            ledger.note(word);
        }
    }
}

/// Kills, or cuts the power of the disk where there is one, so often.
async fn kills(rounds: usize, mut coordinator: Coordinator, disk: Option<&Image>) {
    let account = coordinator.account("pro");
    let mut ledger = Ledger::default();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let load = Load::until_a_moment(&coordinator, &account, round, &mut ledger).await;
        if let Some(disk) = disk {
            coordinator.process.freeze();
            disk.copy();
        }
        coordinator.process.kill();
        load.end(&mut ledger).await;
        if let Some(disk) = disk {
            disk.set_back();
        }
        let begun = Instant::now();
        coordinator.restart().await;
        slowest = slowest.max(begun.elapsed());
        ledger.settle(round, names(&coordinator, &account).await);
    }
    assert!(ledger.acknowledged > rounds * 10, "only {} writes were answered", ledger.acknowledged);
    figure("start after a kill", slowest, START);
    eventually("it still answers", START, async || Some(names(&coordinator, &account).await)).await;
    coordinator.process.kill();
    let right = Journal::read(&coordinator.data()).await.check().unwrap();
    note(&format!("{rounds} rounds, {} writes acknowledged, {right:?}", ledger.acknowledged));
}

async fn on_this_disk() -> Coordinator {
    Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await
}

async fn cuts(test: &str, rounds: usize) {
    let folder = tempfile::TempDir::new().unwrap();
    let Some(disk) = Image::make(test, &folder.path().join("disk"), &folder.path().join("data"), 512) else {
        return;
    };
    let coordinator = Coordinator::serve_in(folder, SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
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
