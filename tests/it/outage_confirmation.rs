//! Outage detection: one failure is no outage, two confirmed by another network are. Real processes on twelve hosts.

use std::time::Duration;

use parallax_core::vantage::Region;
use parallax_tests::eventually::{API_PERIOD, eventually_every, holds, print_figure, wall_clock};
use parallax_tests::netns::{NETWORKS, RouteCut, Topology};
use parallax_tests::test_target::TargetMode;
use serde_json::{Value, json};

use crate::agent_identity::member;
use crate::scenario_setup::{TopologyScene, parse_time};

/// Promised bounds, at an interval of 60 s and six regions.
const DOWN_REFUSED: Duration = Duration::from_secs(20);
const DOWN_SILENT: Duration = Duration::from_secs(35);
const UP_AGAIN: Duration = Duration::from_secs(12);
/// The promised bounds are printed; on a busy host the test fails only after this time.
const PATIENCE: Duration = Duration::from_secs(90);

/// Hobby checks once a minute.
const PLAN: &str = "hobby";

in_a_world!(a_target_that_refuses_everywhere_is_down_soon_and_up_again_soon, refused_everywhere);
in_a_world!(a_target_in_a_black_hole_is_down_and_up_again, black_hole);
in_a_world!(a_target_cut_off_from_one_network_is_disputed_and_no_outage, one_network_cut_off);
in_a_world!(an_agent_whose_network_dies_makes_no_outage_and_its_rounds_move, dead_agent);
in_a_world!(with_one_of_two_networks_broken_a_failure_is_shown_as_unconfirmed, one_network_breaks);
in_a_world!(with_one_network_nothing_is_ever_down_and_the_operator_is_told, one_network_only);

async fn refused_everywhere(world: Topology) {
    let mut stage = TopologyScene::start(&world, &NETWORKS, PLAN, "", json!({})).await;
    let up_since = stage.monitor["since"].clone();
    let cut = wall_clock();
    stage.site.set(TargetMode::Refuse).await;

    let (took, checks) = stage.wait_for_status("down", PATIENCE).await;
    print_figure("down after refusal", took, DOWN_REFUSED);
    let since = parse_time(&stage.monitor["since"]);
    let first_failed = checks.iter().find(|check| check["ok"] == false).map(|check| parse_time(&check["at"]));
    assert!(since >= cut && first_failed.is_none_or(|first| since <= first), "{since} since {cut}: {checks:?}");
    assert_eq!(stage.monitor["downFrom"], Value::Null, "down everywhere");
    let reason = stage.monitor["lastCheck"]["error"].as_str().unwrap_or_default().to_lowercase();
    assert!(reason.contains("refused"), "the reason is the refusal: {reason}");

    // The outage continues without changes.
    let down_since = stage.monitor["since"].clone();
    assert_ne!(down_since, up_since);
    holds(API_PERIOD, Duration::from_secs(10), async || {
        let now = stage.monitor().await;
        let same = now["status"] == "down" && now["since"] == down_since && now["downFrom"].is_null();
        if same { Ok(()) } else { Err(format!("the outage changed: {now}")) }
    })
    .await;

    stage.site.set(TargetMode::Pass).await;
    let (took, _) = stage.wait_for_status("up", PATIENCE).await;
    print_figure("up again", took, UP_AGAIN);
    assert!(parse_time(&stage.monitor["since"]) > since);
}

async fn black_hole(world: Topology) {
    let mut stage = TopologyScene::start(&world, &NETWORKS, PLAN, "", json!({})).await;
    let cut = wall_clock();
    world.cut_target_everywhere(RouteCut::Drop);
    let (took, _) = stage.wait_for_status("down", PATIENCE).await;
    print_figure("down after a black hole", took, DOWN_SILENT);
    // A round in flight at the cut may have begun just before it.
    assert!(parse_time(&stage.monitor["since"]) + 1000 >= cut, "{} since {cut}", stage.monitor["since"]);
    world.remove_cuts();
    let (took, _) = stage.wait_for_status("up", PATIENCE).await;
    print_figure("up again", took, UP_AGAIN);
}

async fn one_network_cut_off(world: Topology) {
    let stage = TopologyScene::start(&world, &NETWORKS, PLAN, "", json!({})).await;
    let since = stage.monitor["since"].clone();
    for region in Region::ALL {
        world.cut_target(world.agent_host(region, NETWORKS[0]), RouteCut::Reject);
    }
    let mut disputed = 0;
    // Long enough for both networks to have a turn in every region.
    holds(API_PERIOD, Duration::from_secs(90), async || {
        let now = stage.monitor().await;
        let check = &now["lastCheck"];
        if check["ok"] == true && check["latencyMs"].is_null() {
            disputed += 1;
        }
        let same = now["status"] == "up" && now["since"] == since && check["ok"] == true;
        if same { Ok(()) } else { Err(format!("one network's failure showed: {now}")) }
    })
    .await;
    assert!(disputed > 0, "no round was disputed: nothing was tried");
}

async fn dead_agent(world: Topology) {
    // Ten seconds between rounds of the pinned region, so that the two agents alternate quickly.
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let pinned = json!({"pinnedRegion": "europe"});
    let stage = TopologyScene::start(&world, &NETWORKS, "pro", config, pinned).await;
    let since = stage.monitor["since"].clone();
    let dead = world.agent_host(Region::Europe, NETWORKS[0]);
    world.isolate(dead);
    let steady = async || {
        let now = stage.monitor().await;
        let same = now["status"] == "up" && now["since"] == since;
        if same { Ok(parse_time(&now["lastCheck"]["at"])) } else { Err(format!("the agent's death showed: {now}")) }
    };
    // Once its death is noticed, the other agent takes over its turns: from then on no round is skipped.
    eventually_every(API_PERIOD, "its death is noticed", PATIENCE, async || {
        steady().await.expect("up");
        (member(&stage.coordinator, &dead.name)["connected"] == false).then_some(())
    })
    .await;
    let before = steady().await.expect("up");
    let next = eventually_every(API_PERIOD, "the next round", Duration::from_secs(30), async || {
        steady().await.ok().filter(|at| *at != before)
    });
    let mut rounds = vec![next.await];
    holds(API_PERIOD, Duration::from_secs(40), async || {
        let at = steady().await?;
        if rounds.last() != Some(&at) {
            rounds.push(at);
        }
        Ok(())
    })
    .await;
    let gaps: Vec<i64> = rounds.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 3 && gaps.iter().all(|gap| *gap < 19_000), "ms between rounds: {gaps:?}");

    world.remove_cuts();
    stage.coordinator.wait_for_agents(stage.agents.len()).await;
}

async fn one_network_breaks(world: Topology) {
    let mut stage = TopologyScene::start(&world, &NETWORKS, PLAN, "", json!({})).await;
    let process = &stage.coordinator.process;
    // While the agents connected one by one, this may have been true for a moment.
    let told = || process.log().to_lowercase().matches("only one network has working agents").count();
    let before = told();
    for region in Region::ALL {
        world.isolate(world.agent_host(region, NETWORKS[1]));
    }
    eventually_every(API_PERIOD, "the operator reads of it", PATIENCE, async || (told() > before).then_some(())).await;
    stage.site.set(TargetMode::Refuse).await;
    let shown = eventually_every(API_PERIOD, "it fails from everywhere", PATIENCE, async || {
        let now = stage.monitor().await;
        now["unconfirmedFrom"].as_array().is_some_and(|from| from.len() == Region::ALL.len()).then_some(now)
    })
    .await;
    assert_eq!((&shown["status"], &shown["confirmable"]), (&json!("up"), &json!(false)), "{shown}");
    let reason = shown["lastCheck"]["error"].as_str().unwrap_or_default();
    assert!(reason.contains("refused") && reason.contains("failing from 6 regions, can't be confirmed"), "{reason}");
    assert_eq!(told(), before + 1, "it is one matter: {}", process.log());

    world.remove_cuts();
    stage.coordinator.wait_for_agents(stage.agents.len()).await;
    stage.wait_for_status("down", PATIENCE).await;
    assert_eq!(stage.monitor["unconfirmedFrom"], Value::Null, "{}", stage.monitor);
}

async fn one_network_only(world: Topology) {
    let mut stage = TopologyScene::start(&world, &NETWORKS[..1], PLAN, "", json!({})).await;
    stage.site.set(TargetMode::Refuse).await;
    eventually_every(API_PERIOD, "a failure is seen", Duration::from_secs(30), async || {
        (stage.monitor().await["lastCheck"]["ok"] == false).then_some(())
    })
    .await;
    holds(API_PERIOD, Duration::from_secs(45), async || {
        let now = stage.monitor().await;
        if now["status"] == "up" { Ok(()) } else { Err(format!("judged without a second network: {now}")) }
    })
    .await;
    let log = stage.coordinator.process.log().to_lowercase();
    assert!(log.contains("one network"), "the log says why outages cannot be confirmed");
}
