//! Rules for dependencies: no banned crate, only allowed licences, no clock in core.

use std::collections::BTreeSet;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::source::root;

/// Lowest versions without a published advisory that matters here. `cargo deny` knows all advisories; these hold
/// without it.
const LOWEST: &[(&str, [u64; 3])] =
    &[("quick-xml", [0, 42, 0]), ("quinn-proto", [0, 11, 14]), ("rustls-webpki", [0, 103, 13])];

/// Lists of `deny.toml`, the one place of these rules: `cargo deny` applies them too, where it is installed.
#[derive(Debug, Deserialize)]
struct DenyRules {
    licenses: LicenceRules,
    bans: CrateBans,
    sources: SourceRules,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    /// Allowed licences: an expression is allowed if these satisfy it.
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct CrateBans {
    deny: Vec<CrateBan>,
}

/// A crate that is banned, with any feature and on any platform, and the reason.
#[derive(Debug, Deserialize)]
struct CrateBan {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SourceRules {
    allow_registry: Vec<String>,
}

impl DenyRules {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is checked in");
        toml::from_str(&text).expect("deny.toml has the lists that are held here")
    }
}

#[test]
fn every_crate_comes_from_an_allowed_registry() {
    let (lock, rules) = (lock_file(), DenyRules::read());
    let allowed: Vec<String> = rules.sources.allow_registry.iter().map(|url| format!("registry+{url}")).collect();
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = \"")?.strip_suffix('"'));
    let faults: Vec<&str> = sources.filter(|source| !allowed.iter().any(|one| one == source)).collect();
    assert!(faults.is_empty(), "Cargo.lock: {}", faults.join("\n"));
}

#[test]
fn no_banned_crate_is_in_the_lock_file() {
    let faults = banned(&lock_file(), &DenyRules::read().bans.deny);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_crate_is_below_the_version_that_mended_an_advisory() {
    let faults = outdated(&lock_file());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_licence_in_the_tree_is_allowed() {
    let metadata: Value = serde_json::from_str(&cargo(&[
        "metadata",
        "--offline",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        &host(),
    ]))
    .expect("cargo writes JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let used: BTreeSet<String> =
        list(&metadata["resolve"]["nodes"]).iter().filter_map(|node| Some(node["id"].as_str()?.to_owned())).collect();
    let licences = DenyRules::read().licenses.allow;
    let mut faults = Vec::new();
    for package in list(&metadata["packages"]) {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        if used.contains(&text("id")) && !allowed(&text("license"), &licences) {
            faults.push(format!(
                "{} {}: licence `{}` is not on the list",
                text("name"),
                text("version"),
                text("license")
            ));
        }
    }
    assert!(used.len() > 50, "the tree has only {} packages", used.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn core_built_alone_has_no_clock_and_no_runtime() {
    let tree =
        cargo(&["tree", "--offline", "--locked", "-p", "parallax-core", "-e", "features,normal", "--prefix=none"]);
    assert!(tree.contains("chrono feature"), "the tree lists features");
    for absent in ["chrono feature \"clock\"", "chrono feature \"now\"", "tokio v", "sled v", "warp v", "rand v"] {
        assert!(!tree.lines().any(|line| line.starts_with(absent)), "core has {absent}: `now` is an argument");
    }
}

/// Returns the banned crates of a lock file.
fn banned(lock: &str, bans: &[CrateBan]) -> Vec<String> {
    let names: BTreeSet<&str> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    let found = bans.iter().filter(|ban| names.contains(ban.name.as_str()));
    let fault = |CrateBan { name, reason }: &CrateBan| {
        format!("Cargo.lock: has {name}: {reason}; `cargo tree -i {name}` shows which crate requires it")
    };
    found.map(fault).collect()
}

/// Returns the crates of a lock file that are below [`LOWEST`].
fn outdated(lock: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut name = "";
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        if let Some(found) = value("name") {
            name = found;
        }
        let Some(version) = value("version") else { continue };
        let numbers: Vec<u64> = version.split('.').filter_map(|part| part.parse().ok()).collect();
        let lowest = LOWEST.iter().find(|(one, _)| *one == name);
        if let Some((_, lowest)) = lowest.filter(|(_, lowest)| numbers.as_slice() < lowest.as_slice()) {
            faults.push(format!("Cargo.lock: {name} {version} has a published advisory: {lowest:?} at least"));
        }
    }
    faults
}

/// Returns true if the list satisfies a licence expression: all sides of an AND, one side of an OR. A slash is an old
/// form of OR.
fn allowed(expression: &str, licences: &[String]) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    !words.is_empty() && either(&words, &mut at, licences) && at == words.len()
}

fn either(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let mut met = both(words, at, licences);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, licences);
    }
    met
}

fn both(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let mut met = one(words, at, licences);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, licences);
    }
    met
}

fn one(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = either(words, at, licences);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && closed;
    }
    let mut name = (*word).to_owned();
    if let (Some(&"WITH"), Some(exception)) = (words.get(*at), words.get(*at + 1)) {
        name = format!("{name} WITH {exception}");
        *at += 2;
    }
    licences.contains(&name)
}

fn lock_file() -> String {
    std::fs::read_to_string(root().join("Cargo.lock")).expect("the lock file is checked in")
}

/// Returns the output of cargo.
fn cargo(args: &[&str]) -> String {
    run(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args)
}

/// Returns the compiler's host platform.
fn host() -> String {
    let version = run(&std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()), &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_owned()
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(root()).output().expect("program starts");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

mod checker {
    use super::*;

    #[test]
    fn a_banned_crate_is_found_and_a_longer_name_is_not() {
        let bans = DenyRules::read().bans.deny;
        assert_eq!(banned("[[package]]\nname = \"native-tls\"\n", &bans).len(), 1);
        assert_eq!(banned("[[package]]\nname = \"openssl-probe\"\n", &bans).len(), 0);
    }

    #[test]
    fn an_outdated_crate_is_found_and_a_newer_one_is_not() {
        for (version, faults) in [("0.11.13", 1), ("0.11.14", 0), ("0.12.0", 0), ("1.0.0", 0)] {
            let lock = format!("[[package]]\nname = \"quinn-proto\"\nversion = \"{version}\"\n");
            assert_eq!(outdated(&lock).len(), faults, "{version}");
        }
    }

    #[test]
    fn licence_expressions_are_read() {
        let licences = DenyRules::read().licenses.allow;
        for good in
            ["MIT", "MIT/GPL-3.0", "GPL-2.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 AND ISC"]
        {
            assert!(allowed(good, &licences), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-2.0) AND AGPL-3.0", "Apache-2.0 WITH Odd-exception"]
        {
            assert!(!allowed(bad, &licences), "{bad}");
        }
    }
}
