//! The Parallax coordinator: ingests agents' results, confirms every failure from another network, stores the
//! history, and serves the API.
//!
//! Data flows one way through the pipeline: [`mesh`] turns frames into observations, [`flow`] judges them and commits
//! the results to [`storage`], [`react`] consumes the event journal there, and [`deliver`] sends the notifications.
//! [`service`] holds the operations that users and the operator call; [`http`] and [`admin`] expose it. [`app`] alone
//! depends on every module.

pub mod admin;
pub mod app;
pub mod calendar;
pub mod cli;
pub mod clock;
pub mod config;
pub mod deliver;
pub mod domains;
mod drain;
pub mod flow;
pub mod history;
pub mod http;
pub mod letters;
pub mod log_limit;
pub mod members;
pub mod mesh;
pub mod out;
pub mod plain_text;
pub mod publish;
pub mod react;
pub mod service;
pub mod storage;
pub mod supervise;
pub mod telemetry;
pub mod tls;
pub mod up;
pub mod views;
