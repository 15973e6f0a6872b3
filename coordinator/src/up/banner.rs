//! The welcome text of `parallax up`.

use std::fmt::Write;

use parallax_core::effective::ConfirmationPolicy;

use super::UpMode;
use super::first_start::FirstStart;
use crate::app::RunningCoordinator;
use crate::config::CoordinatorConfig;
use crate::console;

/// Builds the welcome with next steps.
pub(super) fn welcome(
    kind: &UpMode,
    config: &CoordinatorConfig,
    running: &RunningCoordinator,
    first: &FirstStart,
    inbox: Option<u16>,
) -> String {
    let page = running.service.pages.url(&first.page);
    let (data, program) = (console::shell_quoted(&config.data), console::program_path());
    // If the data folder is not the default, the agent's folder is named too.
    let folder = if config.data == CoordinatorConfig::default().data { "" } else { " --data FOLDER" };
    let mut text = String::from("Parallax is up. Ctrl-C stops it.\n\n");
    let mut fact = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  {name:<8} {value}");
    };
    fact("API", &format!("{}/api/v1", running.base_url));
    fact("Page", &format!("{page}  ({}, id {})", first.page.name, first.page.id));
    match &first.key {
        Some(key) => fact("API key", &format!("{}  (read and write; shown only once)", key.reveal())),
        None => fact(
            "API key",
            &format!(
                "shown at the first start; create another: {program} key create --name NAME --access write --data \
                 {data}"
            ),
        ),
    }
    match (&first.set_up_url, kind) {
        (Some(url), UpMode::Single { .. }) => fact("Set up", &format!("{url}  (works once, for a day)")),
        (Some(url), UpMode::Demo) => fact("Dashboard", &format!("{url}  (works once, for a day)")),
        (None, _) => fact("Sign in", &format!("{}/sign-in", running.base_url)),
    }
    if let Some(viewer) = &first.viewer {
        let (email, password) = (viewer.email, &viewer.password);
        fact("Viewer", &format!("{email}, password {password}  (signs in and changes nothing; shown only once)"));
    }
    fact("Mesh", &format!("{} (UDP)", running.mesh_addr));
    if let Some(port) = inbox {
        fact("Webhooks", &format!("http://127.0.0.1:{port}/ shows the alerts and updates sent to the demo's receiver"));
    }
    if let Some(folder) = &config.mail.folder {
        fact("Mails", &format!("written to {}, because no mail server is set", folder.display()));
    }
    fact("Data", &data);
    match kind {
        UpMode::Single { region, network } => {
            fact("Agent", &format!("local-{region}, in {region}, on network {network}"));
            text.push_str(&single_network_notice(config));
            let _ = write!(
                text,
                "\n\nAdd an agent on another network:\n  \
                 {program} agent invite --name fra1 --region europe --network AS64500 --data {data}\n\
                 and on its host:\n  \
                 parallax-agent join --coordinator THIS-HOST:{} --token TOKEN{folder}\n  parallax-agent run{folder}",
                running.mesh_addr.port(),
            );
        }
        UpMode::Demo => {
            fact("Agents", "twelve: six regions, two networks in each, all in this process");
            fact(
                "History",
                "90 days before the first start, simulated: outages, incidents, deploys, alerts, subscribers",
            );
            text.push_str(
                "\nWithin two minutes the page's monitors show every state: up, slow (from Oceania), down, and down \
                 from Asia only.",
            );
        }
    }
    let key = first.key.as_ref().map_or("YOUR-KEY", |key| key.reveal());
    let monitors = format!("{}/api/v1/pages/{}/monitors", running.base_url, first.page.id);
    let _ = write!(
        text,
        "\n\nTry:\n  export KEY={key}\n  \
         curl -s -H \"Authorization: Bearer $KEY\" {monitors}\n  \
         curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' \\\n    \
         -d '{{\"name\": \"Example\", \"url\": \"https://example.com/\"}}' {monitors}\n  \
         curl -s -H \"Authorization: Bearer $KEY\" {}/api/v1/pages/{}/status\n  \
         {program} agent list --data {data}\n",
        running.base_url, first.page.id,
    );
    text
}

/// Explains what one network alone can and can't confirm.
fn single_network_notice(config: &CoordinatorConfig) -> String {
    let how = match config.confirmation {
        ConfirmationPolicy::Repeat => {
            "a failure is repeated after 5 s by the same network instead, until a second network has \
             joined."
        }
        ConfirmationPolicy::OtherNetwork => "confirmation is \"other-network\", so no monitor is ever marked down.",
    };
    format!("\nWhile all agents are on one network, no other network can confirm an outage: {how}")
}
