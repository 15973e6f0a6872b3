//! The whole service under test: one binary, one mod per topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod tidy;
