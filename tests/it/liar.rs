//! One agent of three stands behind an intercepting proxy that answers for every site: real processes in namespaces.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::event::{AlertKind, What};
use parallax_core::id::MonitorId;
use parallax_core::place::Region;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every};
use parallax_tests::installation::Coordinator;
use parallax_tests::journal::Journal;
use parallax_tests::netns::{COORDINATOR, Cut, NETWORKS, TARGET, World};
use parallax_tests::site::{Names, Site, ask};
use parallax_tests::targets::Mode;
use serde_json::json;

use crate::identity::member;

/// Longest wait for what must come about, however busy the host.
const PATIENCE: Duration = Duration::from_secs(120);
/// Sites that are checked, each by a name of its own.
const SITES: [&str; 8] = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test", "h.test"];

in_a_world!(an_agent_behind_an_intercepting_proxy_hides_no_outage_and_is_put_in_quarantine, one_of_three);

async fn one_of_three(world: World) {
    let mut site = Site::start(&world).await;
    let _proxy = Site::intercepting(&world).await;
    let _names = Names::start(&world, &SITES.map(|name| (name, TARGET))).await;
    let mut coordinator = Coordinator::serve(SocketAddr::from((COORDINATOR, 7443)), "").await;
    let place = |region| world.spot(region, NETWORKS[0]);
    let _agents = [
        ("fra1", Region::Europe, "AS64500"),
        ("nyc1", Region::NorthAmerica, "AS64501"),
        ("portal", Region::Asia, "AS64502"),
    ]
    .map(|(name, region, network)| {
        coordinator.agent(name, region.name(), network, Some(&place(region).netns))
    });
    coordinator.connected(3).await;
    let account = coordinator.account("pro");
    for name in SITES {
        let monitor = json!({"name": name, "url": format!("http://{name}/")});
        account.client.create_monitor(&account.page, &monitor).await;
    }
    let all = async |status: &str| {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == status).then_some(())
    };
    eventually_every(API_PERIOD, "all are up", PATIENCE, async || all("up").await).await;

    world.cut_target(place(Region::Asia), Cut::Refused);
    site.set(Mode::Refuse).await;
    let met = [Region::Europe, Region::NorthAmerica, Region::Asia].map(|region| ask(&place(region).netns));
    assert_eq!(met, ["refused", "refused", "answered"]);
    eventually_every(API_PERIOD, "all are down", PATIENCE, async || all("down").await).await;
    let portal = eventually("the liar is in quarantine", PATIENCE, async || {
        Some(member(&coordinator, "portal")).filter(|member| member["quarantined"] == true)
    })
    .await;
    let note = portal["note"].as_str().unwrap_or_default();
    assert!(note.contains("by fra1 (AS64500)") && note.contains("by nyc1 (AS64501)"), "{note}");
    coordinator.process.says("an agent is in quarantine: others contradict it agent=portal", PATIENCE).await;
    for honest in ["fra1", "nyc1"] {
        assert_eq!(member(&coordinator, honest)["quarantined"], false);
    }
    coordinator.process.kill();

    let journal = Journal::read(&coordinator.data()).await;
    let mut alerts: BTreeMap<MonitorId, Vec<AlertKind>> = BTreeMap::new();
    let mut quarantined = Vec::new();
    for event in journal.events.iter().map(|recorded| &recorded.event) {
        match &event.what {
            What::Changed(change) => {
                alerts.entry(event.monitor.unwrap()).or_default().extend(change.alert);
            }
            What::Quarantine(place, begins, found) => quarantined.push((place.0, *begins, found.by.len())),
            _ => {}
        }
    }
    assert!(alerts.len() == SITES.len(), "{alerts:?}");
    assert!(alerts.values().all(|told| *told == [AlertKind::WentDown]), "once each: {alerts:?}");
    let [(_, true, 2)] = quarantined.as_slice() else { panic!("the liar alone: {quarantined:?}") };
}
