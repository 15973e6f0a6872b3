//! Command lines and settings files: output, exit codes, and that every sample in `deploy/` loads.

use std::path::Path;
use std::process::{Command, Output};

use parallax_tests::process::binary;
use tempfile::TempDir;

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(binary(program)).args(words).env("NO_COLOR", "1").output().expect("the binary starts")
}

fn deploy(file: &str) -> String {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the tree");
    tree.join("deploy").join(file).to_string_lossy().into_owned()
}

#[test]
fn the_samples_of_the_operating_guide_load() {
    let output = run("parallax", &["check-config", "--config", &deploy("coordinator.toml")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("other-network"));
    let agent: toml::Table = std::fs::read_to_string(deploy("agent.toml")).unwrap().parse().expect("it is TOML");
    assert!(agent.contains_key("data") && agent.contains_key("coordinator"));
    // An unknown setting would be a usage error; an agent that has not joined reports that instead.
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("agent").to_string_lossy().into_owned();
    let output = run("parallax-agent", &["run", "--config", &deploy("agent.toml"), "--data", &data]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("join"), "{said}");
}

#[test]
fn a_wrong_setting_is_refused_with_its_place_and_the_nearest_name() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wrong.toml");
    let name = file.to_string_lossy().into_owned();
    for (text, expected) in [
        ("data = \"d\"\nlissten = \"127.0.0.1:1\"\n", ["lissten", "listen", "2"]),
        ("data = \"d\"\n\nconfirmation = \"perhaps\"\n", ["confirmation", "other-network", "3"]),
        ("data = \"d\"\nlisten = \"nowhere\"\n", ["listen", "nowhere", "2"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = run("parallax", &["check-config", "--config", &name]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(expected.iter().all(|words| said.contains(words)), "{text}: {said}");
    }
    std::fs::write(&file, "source = \"fra1\"\n").unwrap();
    let output = run("parallax-agent", &["run", "--config", &name]);
    assert_eq!(output.status.code(), Some(1), "a faulty file is a fault, of the agent too");
}

#[test]
fn a_setting_given_wrongly_with_the_command_is_wrong_usage() {
    let given = [
        ("parallax", ["check-config", "--listen", "nowhere"], None),
        ("parallax", ["check-config", "--data", "d"], Some(("PARALLAX_CONFIRMATION", "perhaps"))),
        ("parallax-agent", ["status", "--source", "fra1"], None),
        ("parallax-agent", ["status", "--data", "d"], Some(("PARALLAX_AGENT_CONCURRENCY", "0"))),
    ];
    for (program, words, variable) in given {
        let mut command = Command::new(binary(program));
        command.args(words).envs(variable);
        let output = command.output().expect("the binary starts");
        assert_eq!(output.status.code(), Some(2), "{program} {words:?} {variable:?}");
    }
}

#[test]
fn wrong_usage_ends_with_two_and_help_with_zero() {
    for program in ["parallax", "parallax-agent"] {
        assert_eq!(run(program, &["--help"]).status.code(), Some(0), "{program}");
        assert_eq!(run(program, &["--version"]).status.code(), Some(0), "{program}");
        assert_eq!(run(program, &["no-such-command"]).status.code(), Some(2), "{program}");
    }
}

#[test]
fn an_agent_checks_one_target_for_an_operator_and_keeps_to_public_addresses() {
    let output = run("parallax-agent", &["check", "http", "http://127.0.0.1:1/", "--json"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("not allowed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
