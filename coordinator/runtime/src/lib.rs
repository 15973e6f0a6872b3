//! Shared parts of the coordinator: the wall clock, supervised tasks, limits on log lines, requests to addresses that
//! customers choose, and Markdown.

pub mod clock;
pub mod guarded_client;
pub mod log_limit;
pub mod markdown;
pub mod supervisor;
