//! The exact bytes of every message, compared with `tests/golden/*.hex`.
//!
//! A difference means that the wire format of a released version has changed: add a new version instead.
//! `PARALLAX_BLESS=1` adds new variants to the files; it never rewrites an existing line.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

mod common;

use common::GoldenSample;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn to_coordinator_is_as_released() {
    compare("to-coordinator", common::to_coordinator());
}

#[test]
fn to_agent_is_as_released() {
    compare("to-agent", common::to_agent());
}

#[test]
fn results_are_as_released() {
    compare("results", common::results());
}

#[test]
fn check_now_is_as_released() {
    compare("check-now", common::check_now());
}

#[test]
fn join_is_as_released() {
    compare("join", common::join());
}

fn compare(file: &str, samples: Vec<GoldenSample>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{file}.hex"));
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let released: BTreeMap<&str, &str> = stored.lines().filter_map(|line| line.split_once(": ")).collect();
    let mut added = String::new();
    for (name, bytes) in &samples {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match released.get(name.as_str()) {
            Some(released) => assert_eq!(*released, hex, "{file}: {name}"),
            None => writeln!(added, "{name}: {hex}").unwrap(),
        }
    }
    for name in released.keys() {
        assert!(samples.iter().any(|(sample, _)| sample == name), "{file}: {name} no longer has a sample");
    }
    if !added.is_empty() {
        assert!(std::env::var_os("PARALLAX_BLESS").is_some(), "{file}: not yet in the golden file:\n{added}");
        std::fs::write(&path, stored + &added).unwrap();
    }
}
