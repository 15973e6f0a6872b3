//! Pure building blocks that several crates share: bit streams, hosts parsed strictly, and log filters.
//!
//! Stored blocks and batches on the wire are written with the same [`bits`]; the rules and the address guard read
//! customers' [`host`]s with the same parser, so that what one accepts the other can't read differently. No IO, no
//! clock, and no crate of the workspace.

pub mod bits;
pub mod host;
pub mod log_filter;
