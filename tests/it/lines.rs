//! Results over bad lines and restarts: each arrives, none counts twice, and no monitor changes for it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, figure, holds};
use parallax_tests::installation::{Account, Agent, Coordinator};
use parallax_tests::relay::{Relay, Weather};
use parallax_tests::targets::Target;
use serde_json::{Value, json};

/// Rounds every five seconds, so that a short test has many.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 5\n";
const MONITORS: usize = 12;
/// The backlog of a cut is worked off in this time.
const DRAINED: Duration = Duration::from_secs(60);
/// A silent cut is noticed in this time.
const NOTICED: Duration = Duration::from_secs(20);

/// Two agents of one region, on two networks, each over a line of its own.
struct Scene {
    account: Account,
    agents: [Agent; 2],
    lines: [Relay; 2],
    before: Vec<Value>,
    _target: Target,
    coordinator: Coordinator,
}

impl Scene {
    async fn set(seed: u64) -> Self {
        let coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
        let mesh = coordinator.ready.mesh;
        let lines = [Relay::start(mesh, seed).await, Relay::start(mesh, seed + 1).await];
        let agents = [
            coordinator.agent_over(lines[0].address(), "one", "europe", "AS64500"),
            coordinator.agent_over(lines[1].address(), "two", "europe", "AS64501"),
        ];
        coordinator.connected(2).await;
        let account = coordinator.account("pro");
        let target = Target::start().await;
        for number in 0..MONITORS {
            let body = json!({"name": format!("m{number}"), "url": target.url()});
            account.client.create_monitor(&account.page, &body).await;
        }
        let mut scene = Self { account, agents, lines, before: Vec::new(), _target: target, coordinator };
        scene.before = eventually_every(API_PERIOD, "all are up", Duration::from_secs(60), async || {
            let states = scene.states().await;
            (states.len() == MONITORS && states.iter().all(|state| state[0] == "up")).then_some(states)
        })
        .await;
        scene
    }

    /// Status of each monitor, and since when.
    async fn states(&self) -> Vec<Value> {
        let monitors = self.account.client.monitors(&self.account.page).await;
        monitors.iter().map(|monitor| json!([monitor["status"], monitor["since"]])).collect()
    }

    /// Lets time pass in which nothing may change.
    async fn nothing_changes(&self, span: Duration) {
        holds(API_PERIOD, span, async || {
            let now = self.states().await;
            if now == self.before { Ok(()) } else { Err(format!("changed: {now:?}")) }
        })
        .await;
    }

    fn member(&self, agent: usize) -> Value {
        let name = ["one", "two"][agent];
        let found = self.coordinator.members().into_iter().find(|member| member["name"] == name);
        found.expect("it is a member")
    }

    /// Results of an agent that came, each counted once.
    fn came(&self, agent: usize) -> u64 {
        let member = self.member(agent);
        let figure = |name: &str| member[name].as_u64().unwrap_or_default();
        assert_eq!(figure("dropped"), 0, "nothing was dropped: {member}");
        figure("results") - figure("duplicates")
    }

    /// Results that an agent says to have made, and how many connections it has had.
    fn made(&self, agent: usize) -> (u64, u64) {
        let status = self.agents[agent].status().expect("it runs");
        let figure = |name: &str| status[name].as_u64().unwrap_or_default();
        (figure("passed") + figure("failed") + figure("inconclusive"), figure("connections"))
    }

    /// Waits until all that both agents have made by now has come, and checks that no more came than was made.
    async fn everything_comes_once(&self) {
        for agent in 0..2 {
            let (made, _) = self.made(agent);
            assert!(made > 0);
            let begun = Instant::now();
            let came = eventually(&format!("{made} results have come"), DRAINED, async || {
                Some(self.came(agent)).filter(|came| *came >= made)
            })
            .await;
            figure("results have come", begun.elapsed(), DRAINED);
            eventually(&format!("no more than {came} came twice"), Duration::from_secs(15), async || {
                (self.made(agent).0 >= came).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_loses_delays_doubles_reorders_and_damages_brings_every_result_once() {
    let scene = Scene::set(9).await;
    let storm = Weather {
        lost: 50,
        doubled: 20,
        reordered: 50,
        damaged: 10,
        delay_ms: 100,
        jitter_ms: 100,
        bits_per_second: 0,
    };
    scene.lines.iter().for_each(|line| line.set(storm));
    scene.nothing_changes(Duration::from_secs(60)).await;
    scene.everything_comes_once().await;
    let traffic = scene.lines[0].traffic();
    assert!(traffic.lost > 5, "the line was bad: {traffic:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_cut_is_noticed_and_what_was_seen_meanwhile_changes_nothing_later() {
    let scene = Scene::set(10).await;
    scene.lines[0].cut(true);
    let begun = Instant::now();
    eventually("the cut is noticed", NOTICED, async || (scene.member(0)["connected"] == false).then_some(()))
        .await;
    figure("a silent cut is noticed", begun.elapsed(), NOTICED);
    scene.nothing_changes(Duration::from_secs(30)).await;
    let (made, _) = scene.made(0);
    assert!(scene.came(0) < made, "it went on looking and kept what it saw");
    scene.lines[0].cut(false);
    scene.everything_comes_once().await;
    scene.nothing_changes(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_address_changes_stays_connected() {
    let scene = Scene::set(29).await;
    for _ in 0..4 {
        scene.lines.iter().for_each(Relay::rebind);
        scene.nothing_changes(Duration::from_secs(8)).await;
    }
    scene.everything_comes_once().await;
    for agent in 0..2 {
        let (_, connections) = scene.made(agent);
        assert!(connections <= 5, "at most one connection a change: {connections}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thin_line_is_enough() {
    let scene = Scene::set(28).await;
    let thin = Weather { bits_per_second: 64_000, delay_ms: 40, ..Weather::default() };
    scene.lines.iter().for_each(|line| line.set(thin));
    scene.nothing_changes(Duration::from_secs(30)).await;
    scene.everything_comes_once().await;
    assert_eq!([scene.made(0).1, scene.made(1).1], [1, 1], "no connection was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_saw_outlives_a_kill_of_both_ends() {
    let mut scene = Scene::set(7).await;
    scene.lines[0].cut(true);
    eventually("the cut is noticed", NOTICED, async || (scene.member(0)["connected"] == false).then_some(()))
        .await;
    let kept = eventually("results wait on the disk", Duration::from_secs(30), async || {
        let status = scene.agents[0].status()?;
        status["waitingDisk"].as_u64().filter(|waiting| *waiting >= 10)
    })
    .await;
    scene.agents[0].process().kill();
    scene.coordinator.process.kill();
    scene.coordinator.restart().await;
    scene.agents[0].run();
    scene.lines[0].cut(false);
    // The coordinator counts anew since its start; what the killed agent had on its disk comes before anything else.
    scene.coordinator.connected(2).await;
    eventually(&format!("{kept} results of the boot before come"), DRAINED, async || {
        (scene.came(0) >= kept).then_some(())
    })
    .await;
    scene.nothing_changes(Duration::from_secs(5)).await;
    let left = eventually("nothing old is left on the disk", DRAINED, async || {
        let status = scene.agents[0].status().filter(|status| status["connected"] == true)?;
        status["waitingDisk"].as_u64().filter(|waiting| *waiting < 3)
    })
    .await;
    assert!(left < 3);
}
