//! Results over lossy networks and restarts: each arrives, none counts twice, and no monitor changes status.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{
    API_PERIOD, eventually, eventually_every, holds, print_figure, print_note, wall_clock,
};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::test_target::TestTarget;
use parallax_tests::udp_relay::{LineConditions, UdpRelay};
use serde_json::{Value, json};

/// Interval of five seconds, so that a short test has many rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 5\n";
const MONITORS: usize = 12;
/// Longest time to send the backlog of a cut.
const DRAINED: Duration = Duration::from_secs(60);
/// Longest time until a silent cut is noticed on a host that is not busy; also the longest wait for it.
const NOTICED: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time until a result is durable and acknowledged, for 99 in 100, however bad the line; the second is for a
/// busy host.
const ACKNOWLEDGED: Duration = Duration::from_secs(3);
const ACKNOWLEDGED_AT_ALL: Duration = Duration::from_secs(10);

/// Kind of a cut.
#[derive(Clone, Copy)]
enum Cut {
    /// All packets are dropped.
    Silent,
    /// Nobody listens: senders get ICMP port unreachable.
    Refused,
}

/// Way to restore a cut line.
enum LineRestore {
    Repair,
    Listen(SocketAddr),
}

/// Two agents of one region, on two networks, each over its own relay.
struct Scene {
    account: TestAccount,
    agents: [AgentProcess; 2],
    lines: Vec<UdpRelay>,
    before: Vec<Value>,
    _target: TestTarget,
    coordinator: CoordinatorProcess,
}

impl Scene {
    async fn set(seed: u64) -> Self {
        let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
        let mesh = coordinator.ready.mesh;
        let lines = vec![UdpRelay::start(mesh, seed).await, UdpRelay::start(mesh, seed + 1).await];
        let agents = [
            coordinator.start_agent_over(lines[0].address(), "one", "europe", "AS64500"),
            coordinator.start_agent_over(lines[1].address(), "two", "europe", "AS64501"),
        ];
        coordinator.wait_for_agents(2).await;
        let account = coordinator.create_account("pro");
        let target = TestTarget::start().await;
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

    /// Returns the status of each monitor, and since when.
    async fn states(&self) -> Vec<Value> {
        let monitors = self.account.client.monitors(&self.account.page).await;
        monitors.iter().map(|monitor| json!([monitor["status"], monitor["since"]])).collect()
    }

    /// Lets time pass in which no status may change.
    async fn nothing_changes(&self, span: Duration) {
        holds(API_PERIOD, span, async || {
            let now = self.states().await;
            if now == self.before { Ok(()) } else { Err(format!("changed: {now:?}")) }
        })
        .await;
    }

    /// As [`Scene::nothing_changes`]; returns the age of a monitor's newest check each time a newer one appeared, in
    /// ascending order. A check appears once it is durable, up to one polling interval later.
    async fn ages_while_nothing_changes(&self, span: Duration) -> Vec<Duration> {
        let (mut seen, mut ages) = (BTreeMap::new(), Vec::new());
        holds(API_PERIOD, span, async || {
            let monitors = self.account.client.monitors(&self.account.page).await;
            let now = wall_clock();
            for monitor in &monitors {
                let at = monitor["lastCheck"]["at"].as_str().map(str::to_owned).ok_or("no check")?;
                let before = seen.insert(monitor["id"].to_string(), at.clone());
                if before.is_some_and(|before| before != at) {
                    let at = Timestamp::parse_iso(&at).ok_or("no moment")?;
                    ages.push(Duration::from_millis(now.since(at).unsigned_abs()));
                }
            }
            let states: Vec<Value> =
                monitors.iter().map(|monitor| json!([monitor["status"], monitor["since"]])).collect();
            if states == self.before { Ok(()) } else { Err(format!("changed: {states:?}")) }
        })
        .await;
        ages.sort();
        ages
    }

    /// Cuts the first agent's line, and returns the way to restore it.
    fn cut(&mut self, how: Cut) -> LineRestore {
        match how {
            Cut::Silent => {
                self.lines[0].cut(true);
                LineRestore::Repair
            }
            Cut::Refused => LineRestore::Listen(self.lines.remove(0).address()),
        }
    }

    async fn mend(&mut self, how: LineRestore) {
        match how {
            LineRestore::Repair => self.lines[0].cut(false),
            LineRestore::Listen(address) => {
                let line = UdpRelay::start_at(address, self.coordinator.ready.mesh, 3).await;
                self.lines.insert(0, line);
            }
        }
    }

    fn member(&self, agent: usize) -> Value {
        let name = ["one", "two"][agent];
        let found = self.coordinator.members().into_iter().find(|member| member["name"] == name);
        found.expect("it is a member")
    }

    /// Returns the results that arrived from an agent, each counted once.
    fn came(&self, agent: usize) -> u64 {
        let member = self.member(agent);
        let figure = |name: &str| member[name].as_u64().unwrap_or_default();
        assert_eq!(figure("dropped"), 0, "nothing was dropped: {member}");
        figure("results") - figure("duplicates")
    }

    /// Returns the results that an agent reports to have made, and the number of its connections.
    fn made(&self, agent: usize) -> (u64, u64) {
        let status = self.agents[agent].status().expect("it runs");
        let figure = |name: &str| status[name].as_u64().unwrap_or_default();
        (figure("passed") + figure("failed") + figure("inconclusive"), figure("connections"))
    }

    /// Waits until all results made by both agents so far have arrived, and checks that no more arrived than were
    /// made.
    async fn everything_comes_once(&self) {
        for agent in 0..2 {
            let (made, _) = self.made(agent);
            assert!(made > 0);
            let begun = Instant::now();
            let came = eventually(&format!("{made} results have come"), DRAINED, async || {
                Some(self.came(agent)).filter(|came| *came >= made)
            })
            .await;
            print_figure("results have come", begun.elapsed(), DRAINED);
            eventually(&format!("no more than {came} came twice"), Duration::from_secs(15), async || {
                (self.made(agent).0 >= came).then_some(())
            })
            .await;
        }
    }
}

/// Returns bad line conditions: the given delay, and up to `jitter_ms` more.
fn storm(delay_ms: u64, jitter_ms: u64) -> LineConditions {
    LineConditions { dropped: 50, duplicated: 20, reordered: 50, damaged: 10, delay_ms, jitter_ms, bits_per_second: 0 }
}

/// Both lines are bad for `span`.
async fn every_result_comes_once_over(seed: u64, weather: LineConditions, span: Duration) {
    let scene = Scene::set(seed).await;
    scene.lines.iter().for_each(|line| line.set(weather));
    let ages = scene.ages_while_nothing_changes(span).await;
    scene.everything_comes_once().await;
    let traffic = scene.lines[0].traffic();
    assert!(traffic.lost > 5, "the line was bad: {traffic:?}");
    let most = ages[(ages.len() * 99 / 100).min(ages.len() - 1)];
    print_note(&format!(
        "{} checks seen; half within {:?}, all within {:?}",
        ages.len(),
        ages[ages.len() / 2],
        ages.last()
    ));
    // The acknowledgement crosses the line once more.
    let acknowledged = most + Duration::from_millis(weather.delay_ms + weather.jitter_ms);
    print_figure("results acknowledged, 99 in 100", acknowledged, ACKNOWLEDGED);
    assert!(acknowledged <= ACKNOWLEDGED_AT_ALL, "{acknowledged:?}");
}

/// Cuts off one of two agents for `span`.
async fn a_cut_changes_nothing(seed: u64, how: Cut, span: Duration) {
    let mut scene = Scene::set(seed).await;
    let mend = scene.cut(how);
    let begun = Instant::now();
    eventually("the cut is noticed", PATIENCE, async || (scene.member(0)["connected"] == false).then_some(())).await;
    print_figure("a cut is noticed", begun.elapsed(), NOTICED);
    scene.nothing_changes(span).await;
    let ((made, _), came) = (scene.made(0), scene.came(0));
    assert!(came < made, "it continued to check and kept the results");
    print_note(&format!("{} results wait", made - came));
    scene.mend(mend).await;
    scene.everything_comes_once().await;
    scene.nothing_changes(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_loses_delays_doubles_reorders_and_damages_brings_every_result_once() {
    every_result_comes_once_over(9, storm(100, 100), Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it ten_minutes -- --ignored`"]
async fn a_line_that_is_as_bad_as_lines_get_for_ten_minutes_brings_every_result_once() {
    every_result_comes_once_over(90, storm(200, 200), Duration::from_secs(600)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_cut_is_noticed_and_what_was_seen_meanwhile_changes_nothing_later() {
    a_cut_changes_nothing(10, Cut::Silent, Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_is_told_of_by_icmp_is_no_worse_than_a_silent_one() {
    a_cut_changes_nothing(12, Cut::Refused, Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour: `cargo test -p parallax-tests --test it half_an_hour -- --ignored`"]
async fn an_agent_cut_off_silently_for_half_an_hour_changes_nothing() {
    a_cut_changes_nothing(100, Cut::Silent, Duration::from_secs(1_800)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour: `cargo test -p parallax-tests --test it half_an_hour -- --ignored`"]
async fn an_agent_cut_off_by_refusal_for_half_an_hour_changes_nothing() {
    a_cut_changes_nothing(102, Cut::Refused, Duration::from_secs(1_800)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_address_changes_stays_connected() {
    let scene = Scene::set(29).await;
    for _ in 0..4 {
        scene.lines.iter().for_each(UdpRelay::rebind);
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
    let thin = LineConditions { bits_per_second: 64_000, delay_ms: 40, ..LineConditions::default() };
    scene.lines.iter().for_each(|line| line.set(thin));
    scene.nothing_changes(Duration::from_secs(30)).await;
    scene.everything_comes_once().await;
    assert_eq!([scene.made(0).1, scene.made(1).1], [1, 1], "no connection was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_saw_outlives_a_kill_of_both_ends() {
    let mut scene = Scene::set(7).await;
    scene.lines[0].cut(true);
    eventually("the cut is noticed", PATIENCE, async || (scene.member(0)["connected"] == false).then_some(())).await;
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
    // The coordinator's counter starts at zero after a restart; the killed agent first sends the results on its disk.
    scene.coordinator.wait_for_agents(2).await;
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
