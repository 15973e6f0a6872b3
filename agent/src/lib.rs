//! Runs checks from one place and streams their results to the coordinator.

pub mod probe;
