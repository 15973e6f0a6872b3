//! Shared parts of the coordinator, which know none of its crates: the wall clock, supervised tasks, and limits on log
//! lines. Begin with [`supervisor`].

pub mod clock;
pub mod log_limit;
pub mod supervisor;
