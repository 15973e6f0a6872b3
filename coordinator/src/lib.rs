//! The Parallax coordinator: ingests agents' results, confirms every failure from another network, stores the
//! history, and serves the API.
//!
//! Data flows one way through the pipeline: [`mesh`] turns frames into observations, [`engine`] judges them and commits
//! the results to [`storage`], and [`notify`] consumes the event journal there and sends the notifications.
//! [`service`] holds the operations that users and the operator call; [`http`] and [`admin`] expose it. [`app`] alone
//! depends on every module.

pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod console;
pub mod domain_verification;
mod drain;
pub mod engine;
pub mod guarded_client;
pub mod history;
pub mod http;
pub mod log_limit;
pub mod members;
pub mod mesh;
pub mod notify;
pub mod page_cache;
pub mod plain_text;
pub mod scheduler;
pub mod service;
pub mod storage;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
pub mod up;
pub mod views;
