//! An intercepting proxy in front of one of three agents, answering for every site: real processes in namespaces.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::event::{AlertKind, EventKind};
use parallax_core::id::MonitorId;
use parallax_core::vantage::Region;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::namespace_site::{NamespaceNameServer, NamespaceSite, request_site};
use parallax_tests::netns::{COORDINATOR, NETWORKS, RouteCut, TARGET, Topology};
use parallax_tests::test_target::TargetMode;
use serde_json::json;

use crate::agent_identity::member;

/// Longest wait for an expected event on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
/// Monitored sites, each with its own hostname.
const SITES: [&str; 8] = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test", "h.test"];

in_a_world!(an_agent_behind_an_intercepting_proxy_hides_no_outage_and_is_put_in_quarantine, one_of_three);

async fn one_of_three(world: Topology) {
    let mut site = NamespaceSite::start(&world).await;
    let _proxy = NamespaceSite::intercepting(&world).await;
    let _names = NamespaceNameServer::start(&world, &SITES.map(|name| (name, TARGET))).await;
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from((COORDINATOR, 7443)), "").await;
    let place = |region| world.agent_host(region, NETWORKS[0]);
    let _agents = [
        ("fra1", Region::Europe, "AS64500"),
        ("nyc1", Region::NorthAmerica, "AS64501"),
        ("portal", Region::Asia, "AS64502"),
    ]
    .map(|(name, region, network)| coordinator.start_agent(name, region.name(), network, Some(&place(region).netns)));
    coordinator.wait_for_agents(3).await;
    let account = coordinator.create_account("pro");
    for name in SITES {
        let monitor = json!({"name": name, "url": format!("http://{name}/")});
        account.client.create_monitor(&account.page, &monitor).await;
    }
    let all = async |status: &str| {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == status).then_some(())
    };
    eventually_every(API_PERIOD, "all are up", PATIENCE, async || all("up").await).await;

    world.cut_target(place(Region::Asia), RouteCut::Reject);
    site.set(TargetMode::Refuse).await;
    let met = [Region::Europe, Region::NorthAmerica, Region::Asia].map(|region| request_site(&place(region).netns));
    assert_eq!(met, ["refused", "refused", "answered"]);
    eventually_every(API_PERIOD, "all are down", PATIENCE, async || all("down").await).await;
    let portal = eventually("the liar is in quarantine", PATIENCE, async || {
        Some(member(&coordinator, "portal")).filter(|member| member["quarantined"] == true)
    })
    .await;
    let note = portal["note"].as_str().unwrap_or_default();
    assert!(note.contains("by fra1 (AS64500)") && note.contains("by nyc1 (AS64501)"), "{note}");
    coordinator
        .process
        .wait_for_log("an agent is in quarantine: others contradict it agent=\"portal\"", PATIENCE)
        .await;
    for honest in ["fra1", "nyc1"] {
        assert_eq!(member(&coordinator, honest)["quarantined"], false);
    }
    coordinator.process.kill();

    let journal = StoredJournal::read(&coordinator.data()).await;
    let mut alerts: BTreeMap<MonitorId, Vec<AlertKind>> = BTreeMap::new();
    let mut quarantined = Vec::new();
    for event in journal.events.iter().map(|recorded| &recorded.event) {
        match &event.kind {
            EventKind::StatusChanged(change) => {
                alerts.entry(event.monitor.unwrap()).or_default().extend(change.alert);
            }
            EventKind::QuarantineChanged(place, begins, found) => quarantined.push((place.0, *begins, found.by.len())),
            _ => {}
        }
    }
    assert!(alerts.len() == SITES.len(), "{alerts:?}");
    assert!(alerts.values().all(|told| *told == [AlertKind::WentDown]), "once each: {alerts:?}");
    let [(_, true, 2)] = quarantined.as_slice() else { panic!("the liar alone: {quarantined:?}") };
}
