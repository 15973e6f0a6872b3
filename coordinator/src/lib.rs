//! The Parallax coordinator: ingests agents' results, confirms every failure from another network, stores the
//! history, and serves the API.
//!
//! Data flows one way through the pipeline: [`parallax_mesh`] turns frames into observations, [`parallax_engine`] judges
//! them and commits the results to [`parallax_store`], and [`parallax_notify`] consumes the event journal there and sends
//! the notifications. [`parallax_service`] holds the operations that users and the operator call; [`parallax_web`] and
//! [`admin`] expose it. [`app`] alone depends on every crate.

pub mod admin;
pub mod app;
pub mod cli;
pub mod config;
pub mod console;
mod shutdown;
pub mod telemetry;
pub mod up;
