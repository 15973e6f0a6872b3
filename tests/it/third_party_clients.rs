//! The API and the mesh port as third-party programs see them: reference clients, linters, and an API fuzzer.

use std::process::Command;
use std::time::Duration;

use parallax_tests::external_tools::{ExternalTools, ToolOutput, run};
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::CoordinatorProcess;
use serde_json::Value;
use tempfile::TempDir;

/// Longest run of a program that sends a few requests.
const SHORT: Duration = Duration::from_secs(60);
/// Longest run of the fuzzer.
const LONG: Duration = Duration::from_secs(400);
/// Longest run of the fuzzer with a chosen number of examples.
const BY_COMMAND: Duration = Duration::from_secs(6 * 3600);

struct Service {
    coordinator: CoordinatorProcess,
    key: String,
    page: String,
    /// File with the OpenAPI document.
    description: String,
    /// URL of its metrics.
    metrics: String,
    folder: TempDir,
}

async fn service() -> Service {
    let folder = TempDir::new().unwrap();
    // The fuzzer sends as many requests as it can.
    let config = folder.path().join("coordinator.toml");
    let admin = format!("127.0.0.1:{}", free_port());
    let settings = format!("requests_per_minute = 1000000\n[admin]\nlisten = \"{admin}\"\n");
    std::fs::write(&config, settings).unwrap();
    let coordinator = CoordinatorProcess::up(&["--region", "europe", "--config", &config.to_string_lossy()]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let page = coordinator.ready.page_id.clone().expect("the first start makes a page");
    let described = coordinator.api().get("/openapi.json").await.expect_status(200);
    let description = folder.path().join("openapi.json");
    std::fs::write(&description, serde_json::to_vec_pretty(&described).unwrap()).unwrap();
    let description = description.to_string_lossy().into_owned();
    Service { coordinator, key, page, description, metrics: format!("http://{admin}/metrics"), folder }
}

impl Service {
    async fn run(&self, name: &str, command: Command, limit: Duration) -> ToolOutput {
        run(name, command, self.folder.path(), limit).await
    }

    /// Creates a read-only key of the same account.
    fn read_key(&self) -> String {
        let accounts = self.coordinator.run_command(&["account", "list"]).unwrap_or_else(|fault| panic!("{fault}"));
        let account = accounts.pointer("/0/id").or_else(|| accounts.pointer("/accounts/0/id"));
        let account = account.and_then(Value::as_str).unwrap_or_else(|| panic!("{accounts}"));
        self.coordinator.create_key(account, "read")
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.coordinator.ready.base_url)
    }
}

fn well(ran: ToolOutput) -> String {
    assert!(ran.success, "{}", ran.output);
    ran.output
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_pleases_its_linters() {
    let Some(tools) = ExternalTools::find("the_description_pleases_its_linters") else { return };
    let service = service().await;
    let mut validator = tools.python("openapi-spec-validator");
    validator.arg(&service.description);
    well(service.run("validator", validator, SHORT).await);
    let mut redocly = tools.node("@redocly/cli", "bin/cli.js");
    redocly.args(["lint", &service.description, "--format", "stylish"]);
    well(service.run("redocly", redocly, SHORT).await);
    let mut spectral = tools.node("@stoplight/spectral-cli", "dist/index.js");
    spectral.args(["lint", &service.description, "--fail-severity", "warn", "--ruleset"]);
    spectral.arg(ExternalTools::file("spectral.yaml"));
    well(service.run("spectral", spectral, SHORT).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prober_finds_no_answer_that_is_not_described() {
    let Some(tools) = ExternalTools::find("a_prober_finds_no_answer_that_is_not_described") else { return };
    let service = service().await;
    // By default a few examples of every operation with both keys; environment variables select more examples,
    // operations, or one key.
    let wanted = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let examples = wanted("PARALLAX_EXAMPLES");
    let limit = if examples.is_some() { BY_COMMAND } else { LONG };
    let part = wanted("PARALLAX_OPERATIONS");
    let only = wanted("PARALLAX_PROBER");
    for (name, key) in [("writer", service.key.clone()), ("reader", service.read_key())] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut prober = tools.python("schemathesis");
        prober.arg("--config-file").arg(ExternalTools::file("schemathesis.toml"));
        prober.args(["run", &service.description, "--url", &service.at("/api/v1"), "--no-color"]);
        prober.args(["-n", examples.as_deref().unwrap_or("12"), "-H", &format!("Authorization: Bearer {key}")]);
        // Default runs are reproducible; runs with a chosen number of examples are random.
        if examples.is_none() {
            prober.args(["--seed", "1"]);
        }
        if let Some(part) = &part {
            prober.args(["--include-operation-id-regex", part]);
        }
        prober.current_dir(service.folder.path());
        well(service.run(name, prober, limit).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_described_webhook_is_signed_as_receivers_check_it() {
    let Some(tools) = ExternalTools::find("a_described_webhook_is_signed_as_receivers_check_it") else {
        return;
    };
    let service = service().await;
    let mut receiver = tools.python("python");
    receiver.arg(ExternalTools::file("webhook.py")).arg(&service.description);
    let said = well(service.run("receiver", receiver, SHORT).await);
    assert!(said.contains("both signatures hold"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scraper_reads_the_metrics_in_both_formats() {
    let Some(tools) = ExternalTools::find("a_scraper_reads_the_metrics_in_both_formats") else { return };
    let service = service().await;
    let mut scraper = tools.python("python");
    scraper.arg(ExternalTools::file("metrics.py")).arg(&service.metrics);
    let said = well(service.run("scraper", scraper, SHORT).await);
    assert!(said.contains("both formats are read alike"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_client_makes_a_monitor_and_an_incident() {
    let Some(tools) = ExternalTools::find("a_generated_client_makes_a_monitor_and_an_incident") else {
        return;
    };
    let service = service().await;
    let folder = service.folder.path().join("generated");
    let mut generator = tools.python("openapi-generator-cli");
    generator.args(["generate", "-q", "-g", "python", "--package-name", "parallax_client"]);
    generator.args(["-i", &service.description, "-o", &folder.to_string_lossy()]);
    well(service.run("generator", generator, LONG).await);
    let mut client = tools.python("python");
    client.arg(ExternalTools::file("generated_client.py")).arg(&folder);
    client.args([&service.at("/api/v1"), &service.key, &service.page]);
    let said = well(service.run("generated", client, SHORT).await);
    let line = said.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let seen: Value = serde_json::from_str(line).unwrap();
    assert!(seen["listed"].as_array().unwrap().contains(&seen["made"]), "{seen}");
    assert_eq!((&seen["slowThresholdMs"], &seen["missing"]), (&900.into(), &404.into()), "{seen}");
    assert_eq!(seen["affected"][0], seen["made"], "{seen}");
    assert_eq!(seen["open"][0], seen["opened"], "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_client_uses_the_tools_in_both_manners() {
    let Some(tools) = ExternalTools::find("the_reference_client_uses_the_tools_in_both_manners") else {
        return;
    };
    let service = service().await;
    for (manner, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let mut client = tools.python("python");
        client.arg(ExternalTools::file("mcp_client.py"));
        client.args([&service.at("/api/v1/mcp"), &service.key, &service.page, manner]);
        let said = well(service.run(manner, client, SHORT).await);
        let line = said.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
        let seen: Value = serde_json::from_str(line).unwrap();
        assert_eq!(seen["revision"], revision);
        let tools = seen["tools"].as_array().unwrap();
        assert!(tools.contains(&"create_monitor".into()) && tools.contains(&"list_monitors".into()), "{seen}");
        let made = &seen["made"]["monitor"];
        let listed = seen["listed"]["monitors"].as_array().unwrap();
        assert!(listed.iter().any(|monitor| monitor["id"] == made["id"]), "{seen}");
        assert_eq!(seen["wrong"]["isError"], true);
        assert!(seen["wrong"]["text"].as_str().unwrap().starts_with("not_found"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_lists_and_calls() {
    let Some(tools) = ExternalTools::find("the_inspector_lists_and_calls") else { return };
    let service = service().await;
    let inspect = |key: &str, more: &[&str]| {
        let mut inspector = tools.node("@modelcontextprotocol/inspector", "clients/launcher/build/index.js");
        inspector.args(["--cli", &service.at("/api/v1/mcp"), "--transport", "http", "--format", "json"]);
        inspector.args(["--header", &format!("Authorization: Bearer {key}")]).args(more);
        inspector
    };
    let listed = inspect(&service.key, &["--method", "tools/list"]);
    let listed = well(service.run("list", listed, SHORT).await);
    assert!(listed.contains("\"list_monitors\""), "{listed}");
    let called = inspect(&service.key, &["--method", "tools/call", "--tool-name", "list_pages"]);
    let called = well(service.run("call", called, SHORT).await);
    assert!(called.contains(&service.page), "{called}");
    let refused = service.run("refused", inspect("plx_nobody", &["--method", "tools/list"]), SHORT).await;
    assert!(!refused.success, "{}", refused.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protocols_own_conformance_checks_pass() {
    let Some(tools) = ExternalTools::find("the_protocols_own_conformance_checks_pass") else { return };
    let service = service().await;
    let public = format!("{}/mcp", service.coordinator.ready.page_url.clone().expect("the first start makes a page"));
    for (revision, scenarios) in [
        ("2025-11-25", &["server-initialize", "ping", "tools-list", "dns-rebinding-protection"][..]),
        ("2026-07-28", &["tools-list", "dns-rebinding-protection", "http-header-validation"]),
    ] {
        for scenario in scenarios {
            let mut checks = tools.node("@modelcontextprotocol/conformance", "dist/index.js");
            checks.args(["server", "--url", &public, "--scenario", scenario, "--spec-version", revision, "-o", "out"]);
            checks.current_dir(service.folder.path());
            let said = well(service.run(scenario, checks, SHORT).await);
            assert!(said.contains(" 0 failed"), "{scenario} of {revision}: {said}");
        }
    }
}
