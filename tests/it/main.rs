//! Integration tests of the whole service: one binary, one module per topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue panics")]

/// Defines a test that plays a scenario (an async function of a `World`) inside network namespaces.
macro_rules! in_a_world {
    ($(#[$attribute:meta])* $name:ident, $scenario:path) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            // The test's full name without the binary's name, by which the inner run selects it.
            let path = concat!(module_path!(), "::", stringify!($name));
            let (_, test) = path.split_once("::").expect("a module lies in the binary");
            parallax_tests::netns::run(test, $scenario);
        }
    };
}
mod acme;
mod address_guard;
mod agent_identity;
mod alerts;
mod api;
mod api_extensions;
mod bomb_payloads;
mod browser_visits;
mod cloned_identity;
mod command_lines;
mod command_output;
mod company_sign_in;
mod crash_durability;
mod dashboard;
mod dashboard_kills;
mod debug_monitor;
mod deliveries;
mod delivery_kill_points;
mod demo;
mod detection_latency;
mod failing_resolver;
mod feeds;
mod flapping_monitors;
mod floods;
mod forged_results;
mod full_disk;
mod heartbeat;
mod hostile_targets;
mod http2_floods;
mod incidents;
mod intercepting_proxy;
mod join;
mod large_pages;
mod legacy;
mod lossy_network;
mod mail;
mod maintenance_windows;
mod namespace_topology;
mod operator_alerts;
mod operator_logs;
mod outage_confirmation;
mod own_host;
mod protected_pages;
mod real_server_checks;
mod response_bombs;
mod restart;
mod reverse_proxy;
mod revoked_agents;
mod scenario_setup;
mod secrets_at_rest;
mod service_manager;
mod slot_sharing;
mod stalled_disk;
mod store_damage;
mod subscribers;
mod systemd_units;
mod third_party_clients;
mod tidy;
mod tls;
mod tls_floods;
mod wrong_clocks;
