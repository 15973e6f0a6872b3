//! Texts that users read, as they are rendered: none has a phrase of the project's former dialect.
//!
//! `language.rs` reads the sources; here the same list is applied to the help of both programs, to what a running
//! coordinator serves, and to the texts in string literals, which hold the catalogues of all languages and the errors.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use parallax_tests::api_client::http_client_builder;
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::{binary, output};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::language::banned_in_text;
use super::source::{files, literals, test_only};

/// Folders with the catalogues of pages, mails and shared texts; each has a file for every language.
const CATALOGUES: [&str; 3] =
    ["coordinator/core/src/locale/", "coordinator/i18n/src/page_messages/", "coordinator/i18n/src/mail_messages/"];
/// Languages, by the names of their files.
const LANGUAGES: [&str; 6] = ["de", "en", "es", "fr", "ja", "pt"];
/// Longest wait for a response.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn no_help_of_a_command_has_a_banned_phrase() {
    let (mut faults, mut commands) = (Vec::new(), 0);
    for program in ["parallax", "parallax-agent"] {
        let program = binary(program);
        let mut open = vec![Vec::new()];
        while let Some(words) = open.pop() {
            let help = help(&program, &words);
            commands += 1;
            let found = banned_in_text(&help).into_iter();
            faults.extend(found.map(|phrase| format!("{} {}: `{phrase}`", program.display(), words.join(" "))));
            open.extend(subcommands(&help).into_iter().map(|name| [words.clone(), vec![name]].concat()));
        }
    }
    assert!(commands > 35, "only {commands} commands have help");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_coordinator_serves_has_a_banned_phrase() {
    let folder = TempDir::new().unwrap();
    let (config, admin) = (folder.path().join("coordinator.toml"), format!("127.0.0.1:{}", free_port()));
    std::fs::write(&config, format!("[admin]\nlisten = \"{admin}\"\n")).unwrap();
    let coordinator = CoordinatorProcess::up(&["--region", "europe", "--config", &config.to_string_lossy()]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let http = http_client_builder(LIMIT).build().unwrap();
    let mut faults = Vec::new();
    // Each text by itself: the end of one and the begin of the next are no phrase.
    let mut check = |place: &str, texts: &[&str], least: usize| {
        let length: usize = texts.iter().map(|text| text.len()).sum();
        assert!(length >= least, "{place} has only {length} bytes: {texts:?}");
        let phrases = texts.iter().flat_map(|text| banned_in_text(text));
        faults.extend(phrases.map(|phrase| format!("{place}: `{phrase}`")));
    };

    let described = coordinator.api().get("/openapi.json").await.expect_status(200);
    check("the OpenAPI document", &texts(&described), 50_000);
    let page_mcp = format!("{}/mcp", coordinator.ready.page_url.clone().expect("the first start makes a page"));
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for (method, params, least) in [("initialize", hello, 200), ("tools/list", json!({}), 1_000)] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let reply = coordinator.api().with_key(Some(&key)).post("/mcp", &call).await.expect_status(200);
        check(&format!("MCP, {method}"), &texts(&reply["result"]), least);
        let request = http.post(&page_mcp).header("content-type", "application/json").body(call.to_string());
        let reply = request.send().await.unwrap().text().await.unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{method}: {reply}"));
        check(&format!("MCP of a page, {method}"), &texts(&reply["result"]), least);
    }
    let metrics = http.get(format!("http://{admin}/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("# HELP "), "{metrics}");
    check("the metrics page", &metrics.lines().collect::<Vec<_>>(), 5_000);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_text_in_a_literal_has_a_banned_phrase() {
    let sources = files(&[".rs"]);
    let tests = test_only(&sources);
    let (mut faults, mut catalogued) = (Vec::new(), [0; LANGUAGES.len()]);
    for source in sources.iter().filter(|source| !tests.contains(&source.path)) {
        let found = literals(&source.text);
        let below = CATALOGUES.iter().find_map(|folder| source.path.strip_prefix(folder)?.strip_suffix(".rs"));
        if let Some(language) = LANGUAGES.iter().position(|name| below == Some(name)) {
            catalogued[language] += found.len();
        }
        for (line, text) in found {
            let phrases = banned_in_text(&text).into_iter();
            faults.extend(phrases.map(|phrase| format!("{}:{line}: `{phrase}`", source.path)));
        }
    }
    assert!(catalogued.iter().all(|texts| *texts > 300), "too few texts of a language: {catalogued:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the help of a command.
fn help(program: &Path, words: &[String]) -> String {
    let mut command = Command::new(program);
    command.args(words).arg("--help");
    output(command).unwrap_or_else(|fault| panic!("{words:?}: {fault}"))
}

/// Returns the names of the subcommands that a help lists, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with("  "));
    let names = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Returns all texts in a value, and the names of its fields.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| [vec![name.as_str()], texts(value)].concat()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn subcommands_are_read_from_a_help() {
    let help =
        "Runs\n\nUsage: a <COMMAND>\n\nCommands:\n  up    Run\n          more\n  help  Print\n\nOptions:\n  -h  x\n";
    assert_eq!(subcommands(help), ["up"]);
}
