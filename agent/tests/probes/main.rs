//! Tests of the probes against local servers: one module per probe, real sockets, all on loopback.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod certificate;
mod component;
mod content_codings;
mod dns;
mod domain;
mod guard;
mod harness;
mod http;
mod https;
mod legacy_tls;
mod lenient_http;
mod ping;
mod scripted_zone;
mod tcp;
