//! Tests of the probes against local servers: one module per probe, real sockets, all on loopback.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod certificate;
mod coded;
mod component;
mod dns;
mod domain;
mod guard;
mod http;
mod https;
mod legacy;
mod lenient;
mod ping;
mod tcp;
mod world;
mod zone;
