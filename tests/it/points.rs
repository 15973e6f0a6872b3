//! kill -9 at each point between a change and the note of its delivery: nothing is lost or out of order for a monitor, and
//! at most one delivery comes again for each kill.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_coordinator::storage::Store;
use parallax_coordinator::storage::disk::Options;
use parallax_core::delivery::Recipient;
use parallax_tests::eventually::{eventually, note};
use parallax_tests::installation::{Account, Coordinator};
use parallax_tests::receivers::{Manner, Receiver};
use parallax_tests::syscalls::Faults;
use reqwest::Method;
use serde_json::json;

const CONFIG: &str = "[deliver]\nallow_private = true\n";
/// Jobs that fail and succeed in turn: a failure that a job reports is a change at once, without agents.
const JOBS: usize = 3;
/// Longest wait for what should be quick.
const SOON: Duration = Duration::from_secs(30);

/// Where the process ends.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// The change was made, and nothing of it is on disk.
    Change,
    /// It is on disk, and what it leads to is not.
    Flush,
    /// Its delivery is on disk, and nothing of it has left.
    Send,
    /// The receiver took it, and its answer is not read.
    Taken,
    /// The answer was read, and its note is not on disk.
    Note,
}

const POINTS: [Point; 5] = [Point::Change, Point::Flush, Point::Send, Point::Taken, Point::Note];

struct Scene {
    coordinator: Coordinator,
    receiver: Receiver,
    /// The receiver, as the store knows it.
    hook: Recipient,
    /// How the next request is treated, where that is not by taking it.
    next: Arc<Mutex<Option<Manner>>>,
    /// Paths of the jobs' pings.
    jobs: Vec<String>,
    /// Changes of each job so far.
    changes: usize,
}

impl Scene {
    async fn set() -> Self {
        let coordinator = Coordinator::serve(([127, 0, 0, 1], 0).into(), CONFIG).await;
        let account = coordinator.account("pro");
        let next: Arc<Mutex<Option<Manner>>> = Arc::default();
        let told = Arc::clone(&next);
        let deciding = move |_: usize, _: &_| told.lock().unwrap().take().unwrap_or(Manner::Take);
        let receiver = Receiver::deciding(deciding).await;
        let page = format!("/pages/{}", account.page);
        let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
        let made = account.client.post(&format!("{page}/destinations"), &hook).await.is(201);
        let hook = Recipient::Destination(made["destination"]["id"].as_str().unwrap().parse().unwrap());
        account.client.patch(&format!("{page}/alerts"), &json!({"automaticIncidents": false})).await.is(200);
        let mut jobs = Vec::new();
        for number in 0..JOBS {
            jobs.push(job(&coordinator, &account, number).await);
        }
        let scene = Self { coordinator, receiver, hook, next, jobs, changes: 0 };
        scene.ping_until_answered().await;
        scene
    }

    fn path(&self, job: usize) -> String {
        // What they were before the first change is a success.
        format!("{}/{}", self.jobs[job], self.changes % 2)
    }

    /// One ping of each; what is not answered is sent again later.
    async fn ping(&self) {
        for job in 0..JOBS {
            let _ = self.coordinator.api().try_send(Method::GET, &self.path(job), None).await;
        }
    }

    async fn ping_until_answered(&self) {
        for job in 0..JOBS {
            let path = self.path(job);
            eventually("a ping is answered", SOON, async || {
                let answer = self.coordinator.api().try_send(Method::GET, &path, None).await;
                answer.is_ok_and(|answer| answer.status == 200).then_some(())
            })
            .await;
        }
    }

    /// All jobs change, and the process ends there; gives whether it ended by itself.
    async fn change(&mut self, test: &str, end: Option<Point>) -> Option<bool> {
        self.changes += 1;
        let mut ended = true;
        if let Some(point) = end {
            ended = self.ends(test, point).await?;
            self.coordinator.process.kill();
            self.next.lock().unwrap().take();
            self.coordinator.restart().await;
        }
        self.ping_until_answered().await;
        eventually("every change is heard of", SOON, async || {
            let (all, _) = self.receiver.by_monitor();
            (all.len() == JOBS && all.values().all(|events| events.len() >= self.changes)).then_some(())
        })
        .await;
        let (all, _) = self.receiver.by_monitor();
        let expected: Vec<&str> = ["went-down", "recovered"].into_iter().cycle().take(self.changes).collect();
        assert!(all.values().all(|events| *events == expected), "{end:?}: {all:?}");
        Some(ended)
    }

    async fn ends(&mut self, test: &str, point: Point) -> Option<bool> {
        let rule = match point {
            Point::Change => "fsync:signal=KILL:when=1",
            Point::Flush => "fsync:signal=KILL:when=2",
            Point::Send => "connect:signal=KILL:when=1",
            Point::Taken => {
                let process = self.coordinator.process.id();
                *self.next.lock().unwrap() = Some(Manner::TakeAndKill(process));
                self.ping().await;
                return Some(self.ended().await);
            }
            Point::Note => {
                self.receiver.hold();
                let before = self.receiver.count();
                self.ping().await;
                self.receiver.has(before + 1, SOON).await;
                "fsync:signal=KILL:when=1"
            }
        };
        let faults = Faults::inject(test, &self.coordinator.process, rule).await;
        self.receiver.go_on();
        let faults = faults?;
        if !matches!(point, Point::Note) {
            self.ping().await;
        }
        let ended = self.ended().await;
        drop(faults);
        Some(ended)
    }

    async fn ended(&mut self) -> bool {
        let process = &mut self.coordinator.process;
        let ending = eventually("it ends", SOON, async || (!process.running()).then_some(()));
        tokio::time::timeout(Duration::from_secs(10), ending).await.is_ok()
    }
}

async fn job(coordinator: &Coordinator, account: &Account, number: usize) -> String {
    let name = format!("Job {number}");
    let body = json!({"type": "heartbeat", "name": name, "periodMinutes": 60, "graceMinutes": 60});
    let monitor = account.client.create_monitor(&account.page, &body).await;
    let url = monitor["heartbeat"]["pingUrl"].as_str().unwrap();
    url.strip_prefix(coordinator.ready.base_url.as_str()).unwrap().to_owned()
}

/// So many kills at each point.
async fn kills(test: &str, times: usize) {
    let mut scene = Scene::set().await;
    for _ in 0..4 {
        scene.change(test, None).await;
    }
    assert_eq!(scene.receiver.by_monitor().1, 0, "nothing comes again without a kill");
    let mut missed = 0;
    for point in POINTS {
        let before = scene.receiver.by_monitor().1;
        for _ in 0..times {
            let Some(ended) = scene.change(test, Some(point)).await else { return };
            missed += usize::from(!ended);
        }
        let again = scene.receiver.by_monitor().1 - before;
        note(&format!("{times} kills at {point:?}: {again} of {} came again", times * JOBS));
        assert!(again <= times, "{point:?}: {again}");
    }
    assert!(missed * 10 <= POINTS.len() * times, "{missed} kills did not come by themselves");
    scene.coordinator.process.terminate();
    assert!(scene.coordinator.process.ended(SOON).await.success());
    let folder = scene.coordinator.data().join("store");
    let opening = tokio::task::spawn_blocking(move || Store::on_disk(&folder, Options::default()));
    // The owner's mails wait for a mail server.
    let waiting = opening.await.unwrap().unwrap().reader().waiting().unwrap();
    assert!(waiting.iter().all(|it| it.lane.to != scene.hook), "{waiting:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_at_each_point_of_a_delivery_lose_nothing_and_repeat_one_each_at_most() {
    kills("five_kills_at_each_point_of_a_delivery_lose_nothing_and_repeat_one_each_at_most", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it fifty_kills -- --ignored`"]
async fn fifty_kills_at_each_point_of_a_delivery_lose_nothing_and_repeat_one_each_at_most() {
    kills("fifty_kills_at_each_point_of_a_delivery_lose_nothing_and_repeat_one_each_at_most", 50).await;
}
