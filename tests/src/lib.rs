//! Harness of the tests of the whole service: real processes, worlds of network namespaces, an API client, and targets
//! that do as they are told.
//!
//! Everything here panics with a sentence when it cannot go on: that is how a test ends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

pub mod bench;
pub mod client;
pub mod clocks;
pub mod dns;
pub mod eventually;
pub mod installation;
pub mod issuer;
pub mod journal;
pub mod machine;
pub mod mount;
pub mod netns;
pub mod outside;
pub mod pair;
pub mod ports;
pub mod process;
pub mod receivers;
pub mod relay;
pub mod site;
pub mod stranger;
pub mod syscalls;
pub mod targets;
pub mod tools;
pub mod visits;

/// Makes ring the provider of this process's cryptography. Every test that speaks TLS, and every client, calls it first.
pub fn use_ring() {
    // The second caller of a process finds it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
