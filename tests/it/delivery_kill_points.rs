//! kill -9 at each step between a change and the record of its delivery: nothing is lost or out of order for a
//! monitor, and at most one delivery per kill is repeated.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_core::delivery::Recipient;
use parallax_store::Store;
use parallax_store::disk::DiskOptions;
use parallax_tests::eventually::{eventually, print_note};
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use parallax_tests::syscall_faults::SyscallFaults;
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver};
use reqwest::Method;
use serde_json::json;

const CONFIG: &str = "[deliver]\nallow_private = true\n";
/// Jobs that alternate between failure and success: a failure reported by a job is a change at once, without agents.
const JOBS: usize = 3;
/// Longest wait for quick operations.
const SOON: Duration = Duration::from_secs(30);

/// Step at which the process is killed.
#[derive(Debug, Clone, Copy)]
enum KillPoint {
    /// The change was made, and nothing of it is durable.
    Change,
    /// The change is durable, and its effects are not.
    Flush,
    /// The delivery is durable, and nothing was sent.
    Send,
    /// The receiver accepted it, and its response was not read.
    Accepted,
    /// The response was read, and its record is not durable.
    Note,
}

const POINTS: [KillPoint; 5] =
    [KillPoint::Change, KillPoint::Flush, KillPoint::Send, KillPoint::Accepted, KillPoint::Note];

struct Scene {
    coordinator: CoordinatorProcess,
    receiver: WebhookReceiver,
    /// Recipient record of the receiver.
    hook: Recipient,
    /// Behaviour for the next request; `None` accepts it.
    next: Arc<Mutex<Option<ReceiverMode>>>,
    /// Ping paths of the jobs.
    jobs: Vec<String>,
    /// Changes of each job so far.
    changes: usize,
}

impl Scene {
    async fn set() -> Self {
        let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), CONFIG).await;
        let account = coordinator.create_account("pro");
        let next: Arc<Mutex<Option<ReceiverMode>>> = Arc::default();
        let told = Arc::clone(&next);
        let deciding = move |_: usize, _: &_| told.lock().unwrap().take().unwrap_or(ReceiverMode::Accept);
        let receiver = WebhookReceiver::start_with(deciding).await;
        let page = format!("/pages/{}", account.page);
        let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
        let made = account.client.post(&format!("{page}/destinations"), &hook).await.expect_status(201);
        let hook = Recipient::Destination(made["destination"]["id"].as_str().unwrap().parse().unwrap());
        account.client.patch(&format!("{page}/alerts"), &json!({"automaticIncidents": false})).await.expect_status(200);
        let mut jobs = Vec::new();
        for number in 0..JOBS {
            jobs.push(job(&coordinator, &account, number).await);
        }
        let scene = Self { coordinator, receiver, hook, next, jobs, changes: 0 };
        scene.ping_until_answered().await;
        scene
    }

    fn path(&self, job: usize) -> String {
        // The state before the first change is success.
        format!("{}/{}", self.jobs[job], self.changes % 2)
    }

    /// Sends one ping per job; failed pings are repeated later.
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

    /// Changes all jobs, and kills the process at `end`; returns true if it ended by itself.
    async fn change(&mut self, test: &str, end: Option<KillPoint>) -> Option<bool> {
        self.changes += 1;
        let mut ended = true;
        if let Some(point) = end {
            ended = self.ends(test, point).await?;
            self.coordinator.process.kill();
            self.next.lock().unwrap().take();
            self.coordinator.restart().await;
        }
        self.ping_until_answered().await;
        eventually("every change is received", SOON, async || {
            let (all, _) = self.receiver.events_by_monitor();
            (all.len() == JOBS && all.values().all(|events| events.len() >= self.changes)).then_some(())
        })
        .await;
        let (all, _) = self.receiver.events_by_monitor();
        let expected: Vec<&str> = ["went-down", "recovered"].into_iter().cycle().take(self.changes).collect();
        assert!(all.values().all(|events| *events == expected), "{end:?}: {all:?}");
        Some(ended)
    }

    async fn ends(&mut self, test: &str, point: KillPoint) -> Option<bool> {
        let rule = match point {
            KillPoint::Change => "fsync:signal=KILL:when=1",
            KillPoint::Flush => "fsync:signal=KILL:when=2",
            KillPoint::Send => "connect:signal=KILL:when=1",
            KillPoint::Accepted => {
                let process = self.coordinator.process.id();
                *self.next.lock().unwrap() = Some(ReceiverMode::AcceptAndKill(process));
                self.ping().await;
                return Some(self.ended().await);
            }
            KillPoint::Note => {
                self.receiver.pause();
                let before = self.receiver.count();
                self.ping().await;
                self.receiver.wait_for_count(before + 1, SOON).await;
                "fsync:signal=KILL:when=1"
            }
        };
        let faults = SyscallFaults::inject(test, &self.coordinator.process, rule).await;
        self.receiver.resume();
        let faults = faults?;
        if !matches!(point, KillPoint::Note) {
            self.ping().await;
        }
        let ended = self.ended().await;
        drop(faults);
        Some(ended)
    }

    async fn ended(&mut self) -> bool {
        let process = &mut self.coordinator.process;
        let ending = eventually("it ends", SOON, async || (!process.is_running()).then_some(()));
        tokio::time::timeout(Duration::from_secs(10), ending).await.is_ok()
    }
}

async fn job(coordinator: &CoordinatorProcess, account: &TestAccount, number: usize) -> String {
    let name = format!("Job {number}");
    let body = json!({"type": "heartbeat", "name": name, "periodMinutes": 60, "graceMinutes": 60});
    let monitor = account.client.create_monitor(&account.page, &body).await;
    let url = monitor["heartbeat"]["pingUrl"].as_str().unwrap();
    url.strip_prefix(coordinator.ready.base_url.as_str()).unwrap().to_owned()
}

/// Kills `times` times at each step.
async fn kills(test: &str, times: usize) {
    let mut scene = Scene::set().await;
    for _ in 0..4 {
        scene.change(test, None).await;
    }
    assert_eq!(scene.receiver.events_by_monitor().1, 0, "nothing is repeated without a kill");
    let mut missed = 0;
    for point in POINTS {
        let before = scene.receiver.events_by_monitor().1;
        for _ in 0..times {
            let Some(ended) = scene.change(test, Some(point)).await else { return };
            missed += usize::from(!ended);
        }
        let again = scene.receiver.events_by_monitor().1 - before;
        print_note(&format!("{times} kills at {point:?}: {again} of {} came again", times * JOBS));
        assert!(again <= times, "{point:?}: {again}");
    }
    assert!(missed * 10 <= POINTS.len() * times, "{missed} injected kills did not happen");
    scene.coordinator.process.terminate();
    assert!(scene.coordinator.process.wait_for_exit(SOON).await.success());
    let folder = scene.coordinator.data().join("store");
    let opening = tokio::task::spawn_blocking(move || Store::on_disk(&folder, DiskOptions::default()));
    // The owner's mails wait for a mail server, and stay queued.
    let waiting = opening.await.unwrap().unwrap().reader().waiting_deliveries().unwrap();
    assert!(waiting.iter().all(|it| it.ordering_key.to != scene.hook), "{waiting:?}");
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
