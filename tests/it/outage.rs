//! One failure is nothing, two that another network confirms are an outage: real processes on twelve spots.

use std::time::Duration;

use parallax_core::place::Region;
use parallax_tests::eventually::{API_PERIOD, eventually_every, figure, holds, wall_clock};
use parallax_tests::netns::{Cut, NETWORKS, World};
use parallax_tests::targets::Mode;
use serde_json::{Value, json};

use crate::identity::member;
use crate::stage::{Stage, moment};

/// Bounds of the promise, at an interval of 60 s and six regions.
const DOWN_REFUSED: Duration = Duration::from_secs(20);
const DOWN_SILENT: Duration = Duration::from_secs(35);
const UP_AGAIN: Duration = Duration::from_secs(12);
/// A promise is a figure; only what does not come at all is a fault, however busy the host.
const PATIENCE: Duration = Duration::from_secs(90);

/// Hobby checks once a minute.
const PLAN: &str = "hobby";

in_a_world!(a_target_that_refuses_everywhere_is_down_soon_and_up_again_soon, refused_everywhere);
in_a_world!(a_target_in_a_black_hole_is_down_and_up_again, black_hole);
in_a_world!(a_target_cut_off_from_one_network_is_disputed_and_no_outage, one_network_cut_off);
in_a_world!(an_agent_whose_network_dies_makes_no_outage_and_its_rounds_move, dead_agent);
in_a_world!(with_one_of_two_networks_broken_a_failure_is_shown_as_unconfirmed, one_network_breaks);
in_a_world!(with_one_network_nothing_is_ever_down_and_the_operator_is_told, one_network_only);

async fn refused_everywhere(world: World) {
    let mut stage = Stage::set(&world, &NETWORKS, PLAN, "", json!({})).await;
    let up_since = stage.monitor["since"].clone();
    let cut = wall_clock();
    stage.site.set(Mode::Refuse).await;

    let (took, checks) = stage.until("down", PATIENCE).await;
    figure("down after refusal", took, DOWN_REFUSED);
    let since = moment(&stage.monitor["since"]);
    let first_failed = checks.iter().find(|check| check["ok"] == false).map(|check| moment(&check["at"]));
    assert!(
        since >= cut && first_failed.is_none_or(|first| since <= first),
        "{since} since {cut}: {checks:?}"
    );
    assert_eq!(stage.monitor["downFrom"], Value::Null, "down everywhere");
    let reason = stage.monitor["lastCheck"]["error"].as_str().unwrap_or_default().to_lowercase();
    assert!(reason.contains("refused"), "the reason is the refusal: {reason}");

    // The outage goes on without a change.
    let down_since = stage.monitor["since"].clone();
    assert_ne!(down_since, up_since);
    holds(API_PERIOD, Duration::from_secs(10), async || {
        let now = stage.look().await;
        let same = now["status"] == "down" && now["since"] == down_since && now["downFrom"].is_null();
        if same { Ok(()) } else { Err(format!("the outage changed: {now}")) }
    })
    .await;

    stage.site.set(Mode::Pass).await;
    let (took, _) = stage.until("up", PATIENCE).await;
    figure("up again", took, UP_AGAIN);
    assert!(moment(&stage.monitor["since"]) > since);
}

async fn black_hole(world: World) {
    let mut stage = Stage::set(&world, &NETWORKS, PLAN, "", json!({})).await;
    let cut = wall_clock();
    world.cut_target_off(Cut::Silent);
    let (took, _) = stage.until("down", PATIENCE).await;
    figure("down after a black hole", took, DOWN_SILENT);
    // A round that was on its way at the cut may have begun just before it.
    assert!(moment(&stage.monitor["since"]) + 1000 >= cut, "{} since {cut}", stage.monitor["since"]);
    world.restore();
    let (took, _) = stage.until("up", PATIENCE).await;
    figure("up again", took, UP_AGAIN);
}

async fn one_network_cut_off(world: World) {
    let stage = Stage::set(&world, &NETWORKS, PLAN, "", json!({})).await;
    let since = stage.monitor["since"].clone();
    for region in Region::ALL {
        world.cut_target(world.spot(region, NETWORKS[0]), Cut::Refused);
    }
    let mut disputed = 0;
    // Long enough that both networks had their turn in every region.
    holds(API_PERIOD, Duration::from_secs(90), async || {
        let now = stage.look().await;
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

async fn dead_agent(world: World) {
    // Ten seconds between rounds of the pinned region, so that the two agents' turns come fast.
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let pinned = json!({"pinnedRegion": "europe"});
    let stage = Stage::set(&world, &NETWORKS, "pro", config, pinned).await;
    let since = stage.monitor["since"].clone();
    let dead = world.spot(Region::Europe, NETWORKS[0]);
    world.silence(dead);
    let steady = async || {
        let now = stage.look().await;
        let same = now["status"] == "up" && now["since"] == since;
        if same {
            Ok(moment(&now["lastCheck"]["at"]))
        } else {
            Err(format!("the agent's death showed: {now}"))
        }
    };
    // Its turns are run by the other agent once its death is noticed: from the next round on none is left out.
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

    world.restore();
    stage.coordinator.connected(stage.agents.len()).await;
}

async fn one_network_breaks(world: World) {
    let mut stage = Stage::set(&world, &NETWORKS, PLAN, "", json!({})).await;
    let process = &stage.coordinator.process;
    // As the agents connected one by one, it may have been so for a moment.
    let told = || process.log().to_lowercase().matches("only one network has working agents").count();
    let before = told();
    for region in Region::ALL {
        world.silence(world.spot(region, NETWORKS[1]));
    }
    eventually_every(API_PERIOD, "the operator reads of it", PATIENCE, async || {
        (told() > before).then_some(())
    })
    .await;
    stage.site.set(Mode::Refuse).await;
    let shown = eventually_every(API_PERIOD, "it fails from everywhere", PATIENCE, async || {
        let now = stage.look().await;
        now["unconfirmedFrom"].as_array().is_some_and(|from| from.len() == Region::ALL.len()).then_some(now)
    })
    .await;
    assert_eq!((&shown["status"], &shown["confirmable"]), (&json!("up"), &json!(false)), "{shown}");
    let reason = shown["lastCheck"]["error"].as_str().unwrap_or_default();
    assert!(
        reason.contains("refused") && reason.contains("failing from 6 regions, can't be confirmed"),
        "{reason}"
    );
    assert_eq!(told(), before + 1, "it is one matter: {}", process.log());

    world.restore();
    stage.coordinator.connected(stage.agents.len()).await;
    stage.until("down", PATIENCE).await;
    assert_eq!(stage.monitor["unconfirmedFrom"], Value::Null, "{}", stage.monitor);
}

async fn one_network_only(world: World) {
    let mut stage = Stage::set(&world, &NETWORKS[..1], PLAN, "", json!({})).await;
    stage.site.set(Mode::Refuse).await;
    eventually_every(API_PERIOD, "a failure is seen", Duration::from_secs(30), async || {
        (stage.look().await["lastCheck"]["ok"] == false).then_some(())
    })
    .await;
    holds(API_PERIOD, Duration::from_secs(45), async || {
        let now = stage.look().await;
        if now["status"] == "up" { Ok(()) } else { Err(format!("judged without a second network: {now}")) }
    })
    .await;
    let log = stage.coordinator.process.log().to_lowercase();
    assert!(log.contains("one network"), "the log says why outages cannot be confirmed");
}
