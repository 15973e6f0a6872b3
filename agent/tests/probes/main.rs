//! The probes against local servers: one module per probe, real sockets, all on loopback.

#![allow(clippy::unwrap_used)]

mod guard;
mod http;
mod https;
mod tcp;
mod world;
