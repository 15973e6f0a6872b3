//! Test harness for the whole service: real processes, topologies of network namespaces, an API client, and
//! configurable check targets.
//!
//! The harness panics with a message if it cannot continue, which fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue panics")]

pub mod acme_authority;
pub mod agent_pair;
pub mod api_client;
pub mod bench;
pub mod curl;
pub mod dashboard_browser;
pub mod eventually;
pub mod external_tools;
pub mod fake_clock;
pub mod free_ports;
pub mod installation;
pub mod journal_check;
pub mod name_server;
pub mod namespace_site;
pub mod netns;
pub mod process;
pub mod reference_servers;
pub mod syscall_faults;
pub mod systemd_container;
pub mod test_disk;
pub mod test_target;
pub mod udp_relay;
pub mod untrusted_peer;
pub mod webhook_receiver;

/// Installs ring as this process's cryptography provider. Every test that uses TLS, and every client, calls it first.
pub fn use_ring() {
    // A later call in the same process finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
