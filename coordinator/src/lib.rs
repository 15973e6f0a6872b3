//! The program `parallax`: it assembles the crates of the coordinator, reads settings and command lines, and serves the
//! operator.
//!
//! Data flows one way through the pipeline: [`parallax_mesh`] turns frames into observations, [`parallax_engine`] judges
//! them and commits the results to [`parallax_store`], and [`parallax_notify`] consumes the event journal there and sends
//! the notifications. [`parallax_service`] holds the operations that users and the operator call; [`parallax_web`] and
//! the operator's socket expose it. Begin with [`app::start`], which starts all of them.

mod admin;
pub mod app;
pub mod cli;
pub mod config;
mod console;
mod shutdown;
mod telemetry;
mod up;
