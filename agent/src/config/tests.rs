//! Tests of settings from file, environment and flags.

use super::*;

fn load(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<AgentConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, file).unwrap();
    let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let flags = flags.iter().map(|(name, value)| (*name, value.to_string()));
    AgentConfig::load(Some(&path), environment, flags).map_err(|error| error.to_string())
}

#[test]
fn flags_override_environment_and_environment_the_file() {
    let file = "data = \"a\"\nspool_bytes = 2000000\nallow_private = true\ndeny = [\"10.0.0.0/8\", \"192.0.2.1\"]";
    let config = load(
        file,
        &[("PARALLAX_AGENT_DATA", "b"), ("PARALLAX_AGENT_RESOLVERS", "9.9.9.9, [::1]:5353"), ("HOME", "/")],
        &[("data", "c")],
    )
    .unwrap();
    assert_eq!(config.data, Path::new("c"));
    assert_eq!((config.spool_bytes, config.allow_private, config.deny.len()), (2_000_000, true, 2));
    let servers = ["9.9.9.9:53".parse().unwrap(), "[::1]:5353".parse().unwrap()];
    assert_eq!(config.resolvers, NameServers::Servers(servers.to_vec()));
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_known_one() {
    let error = load("alow_privat = true", &[], &[]).unwrap_err();
    assert_eq!(error, "alow_privat: is unknown; did you mean allow_private?");
    let error = load("", &[("PARALLAX_AGENT_SPOOL", "1")], &[]).unwrap_err();
    assert!(error.starts_with("PARALLAX_AGENT_SPOOL: is unknown"), "{error}");
}

#[test]
fn a_broken_rule_names_setting_and_rule() {
    for (file, error) in [
        ("source = \"fra1\"", "source: must be an IP address"),
        ("spool_bytes = 5", "spool_bytes: must be a number of bytes, at least 1048576"),
        ("concurrency = 0", "concurrency: must be a number from 1 to 20000"),
        ("coordinator = \"host\"", "coordinator: must be HOST:PORT"),
        ("nat64 = \"yes\"", "nat64: must be true or false"),
        ("allow_own_host = 1", "allow_own_host: must be true or false"),
        ("resolvers = \"sytem\"", "resolvers: sytem is not an address of a name server, \"public\", or \"system\""),
        ("resolver_zones = [\"192.0.2.1\"]", "resolver_zones: 192.0.2.1 is not a zone"),
        ("deny = [\"x\"]", "deny: x is not an address or prefix"),
        ("data = 1.5", "data: must be a text, a number, true or false, or a list"),
    ] {
        assert_eq!(load(file, &[], &[]).unwrap_err(), error);
    }
    assert_eq!(load("", &[], &[("source", "x")]).unwrap_err(), "--source: must be an IP address");
}

#[test]
fn distance_counts_edits() {
    assert_eq!(distance("source", "source"), 0);
    assert_eq!(distance("source", "sauces"), 3);
    assert_eq!(distance("", "abc"), 3);
}

#[test]
fn this_host_is_blocked_unless_its_own_setting_allows_it() {
    let policy = |file: &str| load(file, &[], &[]).unwrap().policy();
    assert!(!policy("").allow_own_host);
    assert!(!policy("allow_private = true").allow_own_host);
    assert!(policy("allow_own_host = true").allow_own_host);
}

#[test]
fn dns_monitors_query_public_name_servers_by_default() {
    let hides = |file: &str| load(file, &[], &[]).unwrap().uses_public_record_resolvers();
    assert!(hides(""));
    assert!(!hides("allow_private = true"));
    for servers in ["\"public\"", "\"system\"", "[\"192.0.2.1\"]"] {
        assert!(!hides(&format!("resolvers = {servers}")), "{servers}");
    }
}
