//! The demo's definitions: agents, monitors, and stored state.

use std::collections::BTreeSet;

use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;

use super::*;

#[test]
fn every_region_has_two_agents_on_two_networks() {
    for region in Region::ALL {
        let agents: Vec<_> = DEMO_AGENTS.iter().filter(|agent| agent.region == region).collect();
        let networks: BTreeSet<&str> = agents.iter().map(|agent| agent.network).collect();
        assert_eq!((agents.len(), networks.len()), (2, 2), "{region}");
    }
    let addresses: BTreeSet<_> = DEMO_AGENTS.iter().map(demo_agents::DemoAgent::address).collect();
    let names: BTreeSet<_> = DEMO_AGENTS.iter().map(|agent| agent.name).collect();
    assert_eq!((addresses.len(), names.len()), (12, 12));
}

#[test]
fn every_monitor_of_the_demo_is_valid() {
    let keys: BTreeSet<&str> = SPECS.iter().map(|spec| spec.key).collect();
    let names: BTreeSet<&str> = SPECS.iter().map(|spec| spec.name).collect();
    assert_eq!((keys.len(), names.len()), (SPECS.len(), SPECS.len()));
    for spec in SPECS {
        let validated = spec.edit(Some(8000)).validate(None, "token");
        assert!(validated.is_ok(), "{}: {}", spec.name, validated.unwrap_err());
    }
}

#[test]
fn ports_and_monitors_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(DemoState::read(folder.path()).unwrap(), DemoState::default());
    let monitor = MonitorId::new(Timestamp::from_millis(1_790_000_000_000), [1; 10]);
    let mut state = DemoState::default();
    state.insert("website", Some(8000), monitor);
    state.insert("backup", None, monitor);
    state.write(folder.path()).unwrap();
    assert_eq!(DemoState::read(folder.path()).unwrap(), state);
    std::fs::write(folder.path().join("demo.json"), "{\"website\": 1}").unwrap();
    let fault = DemoState::read(folder.path()).unwrap_err().to_string();
    assert!(fault.contains("demo.json: "), "{fault}");
}
