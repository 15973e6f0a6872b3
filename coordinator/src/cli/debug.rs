//! `parallax debug`: prints the state that the running engine holds, for operators and developers.

use clap::Subcommand;
use serde_json::Value;

use super::CliError;
use super::command_request::{CommandTarget, value_text};
use crate::admin::{AdminCommand, CommandError, client};
use crate::console;

#[derive(Debug, Subcommand)]
pub(super) enum DebugCommand {
    /// Show a monitor's state in the engine: regions, newest rounds, reasons, deadlines, agents and settings
    Monitor {
        /// Id of the monitor
        monitor: String,
        #[command(flatten)]
        target: CommandTarget,
    },
}

/// Runs a command on the running coordinator and prints its result. The store alone can't answer: the state is the
/// engine's.
pub(super) async fn run(command: DebugCommand) -> Result<(), CliError> {
    let DebugCommand::Monitor { monitor, target } = command;
    let config = target.config()?;
    let command = AdminCommand::DebugMonitor { monitor };
    let Some(reply) = client::send_command(&config.data, &command).await? else {
        let text = format!("no coordinator runs on {}: start it, then try again", config.data.display());
        return Err(CommandError::new("not_running", text).into());
    };
    let state = reply?;
    let printed = if target.json { console::json(&state) } else { console::line(&monitor_text(&state)) };
    printed.map_err(CliError::Output)
}

/// Renders a monitor's state as text: sections of lines and tables.
fn monitor_text(state: &Value) -> String {
    let mut sections = vec![heading(state)];
    sections.push(titled("Why", state["why"].as_array().into_iter().flatten().map(cell).collect()));
    if let Some(heartbeat) = state["heartbeat"].as_object() {
        sections.push(titled(
            "Heartbeat",
            heartbeat.iter().map(|(name, value)| format!("{name}: {}", cell(value))).collect(),
        ));
    }
    let tables: [(&str, &str, &[&str]); 6] = [
        (
            "Regions",
            "regions",
            &["region", "status", "counts", "newestStartedAt", "staleAt", "nextCheckAt", "nextCheckBy"],
        ),
        (
            "Open rounds",
            "openRounds",
            &["startedAt", "region", "number", "reason", "first", "second", "third", "confirmingAgent"],
        ),
        (
            "Newest rounds",
            "recentRounds",
            &["startedAt", "region", "number", "reason", "outcome", "latencyMs", "first", "second", "third"],
        ),
        ("Failing", "failing", &["region", "firstFailureAt", "downSince", "disputedSince", "notPassed", "failure"]),
        ("Deadlines", "deadlines", &["at", "kind", "region"]),
        (
            "Agents",
            "agents",
            &["name", "region", "network", "nextRoundAt", "nextRound", "quarantined", "unfit", "shadow"],
        ),
    ];
    for (title, field, columns) in tables {
        let entries = match field {
            "failing" => failing_regions(state),
            _ => state[field].as_array().cloned().unwrap_or_default(),
        };
        if !entries.is_empty() {
            let row = |entry: &Value| columns.iter().map(|column| cell(&entry[*column])).collect();
            let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
            let table = console::render_table(columns, &rows);
            sections.push(titled(title, table.lines().map(str::to_owned).collect()));
        }
    }
    if let Some(omitted) = state["moreAgents"].as_u64().filter(|omitted| *omitted > 0) {
        sections.push(format!("Agents not listed: {omitted}"));
    }
    let settings = state["settings"].as_object().into_iter().flatten().filter(|(_, value)| !cell(value).is_empty());
    sections.push(titled("Settings", settings.map(|(name, value)| format!("{name}: {}", cell(value))).collect()));
    sections.join("\n\n")
}

/// Name, page and status.
fn heading(state: &Value) -> String {
    let text = |field: &str| cell(&state[field]);
    let mut lines = vec![
        format!("{} ({}), {} {}", text("name"), text("id"), text("type"), text("host")).trim_end().to_owned(),
        format!("Page {} ({}), account {}", text("pageName"), text("page"), text("account")),
    ];
    let since = state["since"].as_str().map_or_else(String::new, |since| format!(" since {since}"));
    let from = cell(&state["downFrom"]);
    let from = if from.is_empty() { from } else { format!(", from {from}") };
    lines.push(format!("Status: {}{since}{from}; read at {}", text("status"), text("at")));
    if let Some(suspicion) = state["suspicion"].as_object() {
        let field = |name: &str| suspicion.get(name).map(cell).unwrap_or_default();
        lines.push(format!("Suspicion since {}: {}", field("since"), field("failing")));
    }
    if let Some(flapping) = state["flapping"].as_object() {
        let field = |name: &str| flapping.get(name).map(cell).unwrap_or_default();
        lines.push(format!("Flapping since {}: {} changes", field("since"), field("changes")));
    }
    lines.extend(state["outageSince"].as_str().map(|since| format!("Outage since {since}")));
    if state["inMaintenance"] == true {
        lines.push("Covered by a maintenance window".to_owned());
    }
    lines.join("\n")
}

/// Regions with a failure, a dispute or a round that did not pass.
fn failing_regions(state: &Value) -> Vec<Value> {
    let fields = ["firstFailureAt", "downSince", "disputedSince", "notPassed", "failure"];
    let is_failing = |region: &&Value| fields.iter().any(|field| !region[*field].is_null());
    state["regions"].as_array().into_iter().flatten().filter(is_failing).cloned().collect()
}

fn titled(title: &str, lines: Vec<String>) -> String {
    lines.iter().fold(title.to_owned(), |text, line| format!("{text}\n  {line}"))
}

/// Text of a value: lists in one line, an agent's outcome with the agent's name.
fn cell(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.contains_key("agent") => outcome(value),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name} {}", cell(value))).collect::<Vec<_>>().join(", ")
        }
        Value::Null | Value::String(_) | Value::Number(_) => value_text(value),
    }
}

/// `fra1 (AS64500): failed, connection refused`.
fn outcome(outcome: &Value) -> String {
    let mut text = cell(&outcome["agent"]);
    if let Some(network) = outcome["network"].as_str() {
        text = format!("{text} ({network})");
    }
    for (field, separator) in [("outcome", ": "), ("detail", ", ")] {
        if let Some(label) = outcome[field].as_str() {
            text = format!("{text}{separator}{label}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome_json(agent: &str, outcome: &str, detail: &str) -> Value {
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        json!({"agent": agent, "network": "AS1", "outcome": outcome, "detail": detail})
    }

    #[test]
    fn a_state_is_printed_in_sections_and_empty_ones_are_left_out() {
        let round = json!({
            "startedAt": "12:47", "region": "asia", "number": 7, "reason": "sweep", "outcome": "failed",
            "latencyMs": 9, "first": outcome_json("fra1", "failed", "reset"),
            "second": outcome_json("fra2", "passed", ""), "third": null,
        });
        let state = json!({
            "id": "mon_1", "name": "Shop", "type": "http", "host": "shop.example", "page": "pg_1", "pageName": "Status",
            "account": "acc_1", "at": "12:48", "status": "down", "since": "12:40", "downFrom": ["europe", "asia"],
            "outageSince": "12:40", "why": ["It is down.", "An outage is open."], "inMaintenance": true,
            "flapping": null, "suspicion": null, "heartbeat": null,
            "regions": [{"region": "europe", "status": "up", "counts": true, "failure": null}],
            "openRounds": [], "recentRounds": [round], "deadlines": [{"at": "12:50", "kind": "stale", "region": null}],
            "agents": [], "moreAgents": 0,
            "settings": {"intervalMs": 60000, "pinnedRegion": null, "slowThresholds": {"asia": 900}, "paused": false},
        });
        let expected = "\
Shop (mon_1), http shop.example
Page Status (pg_1), account acc_1
Status: down since 12:40, from europe, asia; read at 12:48
Outage since 12:40
Covered by a maintenance window

Why
  It is down.
  An outage is open.

Regions
  REGION  STATUS  COUNTS  NEWEST STARTED AT  STALE AT  NEXT CHECK AT  NEXT CHECK BY
  europe  up      yes

Newest rounds
  STARTED AT  REGION  NUMBER  REASON  OUTCOME  LATENCY MS  FIRST                      SECOND              THIRD
  12:47       asia    7       sweep   failed   9           fra1 (AS1): failed, reset  fra2 (AS1): passed

Deadlines
  AT     KIND   REGION
  12:50  stale

Settings
  intervalMs: 60000
  slowThresholds: asia 900
  paused: no";
        assert_eq!(monitor_text(&state), expected);
    }

    #[test]
    fn a_region_that_fails_has_a_line_with_the_reason() {
        let region = json!({"region": "asia", "status": "up", "firstFailureAt": "12:47", "failure": "timeout"});
        let text = monitor_text(&json!({"name": "Shop", "regions": [region]}));
        assert!(text.contains("\nFailing\n  REGION  FIRST FAILURE AT"), "{text}");
        assert!(text.contains("\n  asia    12:47"), "{text}");
    }
}
