//! The coordinator: takes in what agents saw, has every failure confirmed from another network, keeps the history,
//! and serves the API.
//!
//! Data goes one way, and each step is a room: [`mesh`] turns frames into observations, [`flow`] judges them and
//! commits what came of it to [`storage`], [`react`] reads there what happened and [`deliver`] sends what is told of it.
//! [`service`] is what a person may ask for, and [`http`] and [`admin`] are
//! its doors. [`app`] alone knows every room.

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
