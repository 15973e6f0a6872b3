//! How soon an outage that everybody sees is reported, and with which scope: forty monitors, twelve agents, real processes.

use std::time::Duration;

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{eventually, eventually_every, figure, wall_clock};
use parallax_tests::netns::{Cut, NETWORKS, World};
use parallax_tests::receivers::{Manner, Receiver};
use parallax_tests::targets::Mode;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Monitors of the one target; their rounds are spread over the interval.
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

async fn server_errors(world: World) {
    let mut scene = Scene::set(&world, 60).await;
    let cut = wall_clock();
    scene.stage.site.set(Mode::Status(503)).await;
    scene.reported("503", "went-down", cut, [12, 20]).await;
    let healed = wall_clock();
    scene.stage.site.set(Mode::Pass).await;
    scene.reported("after 503", "recovered", healed, [6, 20]).await;
}

/// At these the neighbour's newest round is often one from before the outage.
async fn short_intervals(world: World) {
    let mut scene = Scene::set(&world, 10).await;
    let cut = wall_clock();
    scene.stage.site.set(Mode::Status(503)).await;
    scene.reported("503 at 10 s", "went-down", cut, [12, 20]).await;
}

async fn black_hole(world: World) {
    let scene = Scene::set(&world, 60).await;
    let cut = wall_clock();
    world.cut_target_off(Cut::Silent);
    scene.reported("black hole", "went-down", cut, [24, 29]).await;
    let healed = wall_clock();
    world.restore();
    scene.reported("after a black hole", "recovered", healed, [6, 20]).await;
}

struct Scene {
    stage: Stage,
    receiver: Receiver,
}

impl Scene {
    /// Everything is up, and checked once in so many seconds.
    async fn set(world: &World, interval: u64) -> Self {
        // Receivers are on loopback.
        let config =
            format!("[plans.pro]\ninterval_seconds = {interval}\n\n[deliver]\nallow_private = true\n");
        let stage = Stage::set(world, &NETWORKS, "pro", &config, json!({})).await;
        let receiver = Receiver::start(Manner::Take).await;
        let (client, page) = (&stage.account.client, &stage.account.page);
        let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
        client.post(&format!("/pages/{page}/destinations"), &hook).await.is(201);
        for number in 1..MONITORS {
            client
                .create_monitor(page, &json!({"name": format!("m{number}"), "url": stage.site.url()}))
                .await;
        }
        let up = async || {
            let all = client.monitors(page).await;
            (all.len() == MONITORS && all.iter().all(|monitor| monitor["status"] == "up")).then_some(())
        };
        eventually_every(Duration::from_secs(2), "all monitors are up", PATIENCE, up).await;
        // Every region's regular round has to be older than the outage: the first ones were all asked at once.
        tokio::time::sleep(Duration::from_secs(interval + 5)).await;
        Self { stage, receiver }
    }

    /// Waits until every monitor has reported `event`, and prints how long that took; each says that all regions see it.
    async fn reported(&self, name: &str, event: &str, from: Timestamp, [mean, worst]: [u64; 2]) {
        let of_event = || -> Vec<(Timestamp, Value)> {
            let bodies = self.receiver.taken().into_iter().filter_map(|taken| {
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
        figure(&format!("{name}: {event}, mean"), millis(total / MONITORS as u64), Duration::from_secs(mean));
        figure(&format!("{name}: {event}, worst"), millis(slowest), Duration::from_secs(worst));
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
