//! The demo's definitions: agents, monitors, and stored state.

use std::collections::BTreeSet;

use parallax_core::place::Region;
use parallax_core::time::Timestamp;

use super::*;

#[test]
fn every_region_has_two_places_on_two_networks() {
    for region in Region::ALL {
        let here: Vec<_> = PLACES.iter().filter(|place| place.region == region).collect();
        let networks: BTreeSet<&str> = here.iter().map(|place| place.network).collect();
        assert_eq!((here.len(), networks.len()), (2, 2), "{region}");
    }
    let addresses: BTreeSet<_> = PLACES.iter().map(places::Place::address).collect();
    let names: BTreeSet<_> = PLACES.iter().map(|place| place.name).collect();
    assert_eq!((addresses.len(), names.len()), (12, 12));
}

#[test]
fn every_monitor_of_the_demo_keeps_the_bounds() {
    let keys: BTreeSet<&str> = SPECS.iter().map(|spec| spec.key).collect();
    let names: BTreeSet<&str> = SPECS.iter().map(|spec| spec.name).collect();
    assert_eq!((keys.len(), names.len()), (SPECS.len(), SPECS.len()));
    for spec in SPECS {
        let settled = spec.edit(Some(8000)).settle(None, "token");
        assert!(settled.is_ok(), "{}: {}", spec.name, settled.unwrap_err());
    }
}

#[test]
fn ports_and_monitors_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Memory::read(folder.path()).unwrap(), Memory::default());
    let monitor = MonitorId::new(Timestamp::from_millis(1_790_000_000_000), [1; 10]);
    let mut memory = Memory::default();
    memory.note("website", Some(8000), monitor);
    memory.note("backup", None, monitor);
    memory.write(folder.path()).unwrap();
    assert_eq!(Memory::read(folder.path()).unwrap(), memory);
    std::fs::write(folder.path().join("demo.json"), "{\"website\": 1}").unwrap();
    let told = Memory::read(folder.path()).unwrap_err().to_string();
    assert!(told.contains("demo.json: "), "{told}");
}
