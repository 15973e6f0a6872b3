//! Time until an outage that all regions see is reported, and its scope: forty monitors, twelve agents, real
//! processes.

use std::time::Duration;

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{eventually, eventually_every, print_figure, wall_clock};
use parallax_tests::netns::{NETWORKS, RouteCut, Topology};
use parallax_tests::test_target::TargetMode;
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver};
use serde_json::{Value, json};

use crate::scenario_setup::TopologyScene;

/// Monitors of one target; their rounds are spread over the interval.
const MONITORS: usize = 40;
/// Longest wait for the last alert.
const PATIENCE: Duration = Duration::from_secs(120);

in_a_world!(
    #[ignore = "takes minutes: `cargo test -p parallax-tests --test it forty_monitors -- --ignored`"]
    forty_monitors_report_server_errors,
    server_errors
);
in_a_world!(
    #[ignore = "takes minutes: `cargo test -p parallax-tests --test it forty_monitors -- --ignored`"]
    forty_monitors_report_a_black_hole,
    black_hole
);
in_a_world!(
    #[ignore = "takes minutes: `cargo test -p parallax-tests --test it forty_monitors -- --ignored`"]
    forty_monitors_report_the_whole_scope_at_short_intervals,
    short_intervals
);

async fn server_errors(world: Topology) {
    let mut scene = Scene::set(&world, 60).await;
    let cut = wall_clock();
    scene.stage.site.set(TargetMode::Status(503)).await;
    scene.reported("503", "went-down", cut, [12, 20]).await;
    let healed = wall_clock();
    scene.stage.site.set(TargetMode::Pass).await;
    scene.reported("after 503", "recovered", healed, [6, 20]).await;
}

/// At short intervals the neighbour's newest round is often from before the outage.
async fn short_intervals(world: Topology) {
    let mut scene = Scene::set(&world, 10).await;
    let cut = wall_clock();
    scene.stage.site.set(TargetMode::Status(503)).await;
    scene.reported("503 at 10 s", "went-down", cut, [12, 20]).await;
}

async fn black_hole(world: Topology) {
    let scene = Scene::set(&world, 60).await;
    let cut = wall_clock();
    world.cut_target_everywhere(RouteCut::Drop);
    scene.reported("black hole", "went-down", cut, [24, 29]).await;
    let healed = wall_clock();
    world.remove_cuts();
    scene.reported("after a black hole", "recovered", healed, [6, 20]).await;
}

struct Scene {
    stage: TopologyScene,
    receiver: WebhookReceiver,
}

impl Scene {
    /// Starts everything, with monitors at `interval` seconds, and waits until all are up.
    async fn set(world: &Topology, interval: u64) -> Self {
        // The receivers are on loopback.
        let config = format!("[plans.pro]\ninterval_seconds = {interval}\n\n[deliver]\nallow_private = true\n");
        let stage = TopologyScene::start(world, &NETWORKS, "pro", &config, json!({})).await;
        let receiver = WebhookReceiver::start(ReceiverMode::Accept).await;
        let (client, page) = (&stage.account.client, &stage.account.page);
        let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
        client.post(&format!("/pages/{page}/destinations"), &hook).await.expect_status(201);
        for number in 1..MONITORS {
            client.create_monitor(page, &json!({"name": format!("m{number}"), "url": stage.site.url()})).await;
        }
        let up = async || {
            let all = client.monitors(page).await;
            (all.len() == MONITORS && all.iter().all(|monitor| monitor["status"] == "up")).then_some(())
        };
        eventually_every(Duration::from_secs(2), "all monitors are up", PATIENCE, up).await;
        // Waits until every region has run a regular round: the first ones ran all at once.
        tokio::time::sleep(Duration::from_secs(interval + 5)).await;
        Self { stage, receiver }
    }

    /// Waits until every monitor has reported `event`, and prints how long that took; each report must have the scope
    /// of all regions.
    async fn reported(&self, name: &str, event: &str, from: Timestamp, [mean, worst]: [u64; 2]) {
        let of_event = || -> Vec<(Timestamp, Value)> {
            let bodies = self.receiver.received().into_iter().filter_map(|taken| {
                let body: Value = serde_json::from_slice(&taken.body).ok()?;
                (body["event"] == event).then_some((taken.at, body))
            });
            bodies.collect()
        };
        eventually(&format!("all monitors report {event}"), PATIENCE, async || {
            (of_event().len() >= MONITORS).then_some(())
        })
        .await;
        let delays: Vec<u64> = of_event().iter().map(|(at, _)| at.since(from).unsigned_abs()).collect();
        let total: u64 = delays.iter().sum();
        let slowest = delays.iter().max().copied().unwrap_or_default();
        let millis = Duration::from_millis;
        print_figure(&format!("{name}: {event}, mean"), millis(total / MONITORS as u64), Duration::from_secs(mean));
        print_figure(&format!("{name}: {event}, worst"), millis(slowest), Duration::from_secs(worst));
        if event == "went-down" {
            let partial: Vec<String> = of_event()
                .iter()
                .filter(|(_, body)| !body["downFrom"].is_null())
                .map(|(_, body)| format!("{}: {}", body["monitor"], body["downFrom"]))
                .collect();
            assert!(partial.is_empty(), "down everywhere, and reported as partial: {partial:?}");
        }
    }
}
