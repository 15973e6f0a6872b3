//! The demo's definitions: agents, monitors, and stored state.

use std::collections::BTreeSet;

use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;

use super::*;

#[test]
fn every_region_has_two_places_on_two_networks() {
    for region in Region::ALL {
        let here: Vec<_> = DEMO_AGENTS.iter().filter(|place| place.region == region).collect();
        let networks: BTreeSet<&str> = here.iter().map(|place| place.network).collect();
        assert_eq!((here.len(), networks.len()), (2, 2), "{region}");
    }
    let addresses: BTreeSet<_> = DEMO_AGENTS.iter().map(demo_agents::DemoAgent::address).collect();
    let names: BTreeSet<_> = DEMO_AGENTS.iter().map(|place| place.name).collect();
    assert_eq!((addresses.len(), names.len()), (12, 12));
}

#[test]
fn every_monitor_of_the_demo_keeps_the_bounds() {
    let keys: BTreeSet<&str> = SPECS.iter().map(|spec| spec.key).collect();
    let names: BTreeSet<&str> = SPECS.iter().map(|spec| spec.name).collect();
    assert_eq!((keys.len(), names.len()), (SPECS.len(), SPECS.len()));
    for spec in SPECS {
        let settled = spec.edit(Some(8000)).validate(None, "token");
        assert!(settled.is_ok(), "{}: {}", spec.name, settled.unwrap_err());
    }
}

#[test]
fn ports_and_monitors_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(DemoState::read(folder.path()).unwrap(), DemoState::default());
    let monitor = MonitorId::new(Timestamp::from_millis(1_790_000_000_000), [1; 10]);
    let mut memory = DemoState::default();
    memory.insert("website", Some(8000), monitor);
    memory.insert("backup", None, monitor);
    memory.write(folder.path()).unwrap();
    assert_eq!(DemoState::read(folder.path()).unwrap(), memory);
    std::fs::write(folder.path().join("demo.json"), "{\"website\": 1}").unwrap();
    let told = DemoState::read(folder.path()).unwrap_err().to_string();
    assert!(told.contains("demo.json: "), "{told}");
}
