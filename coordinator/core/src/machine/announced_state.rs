//! Announced state of a monitor, kept while a maintenance window covers it.

use serde::{Deserialize, Serialize};

use crate::observation::Failure;
use crate::time::Timestamp;

/// Announced state before a window began to cover the monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnnouncedState {
    /// Outage: start and reason.
    pub(super) outage: Option<(Timestamp, Failure)>,
    /// Time since which it is slow.
    pub(super) slow: Option<Timestamp>,
}
