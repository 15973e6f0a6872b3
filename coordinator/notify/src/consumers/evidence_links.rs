//! Links to the evidence of an outage, built by a function of the service, which can also verify them.

use std::fmt;

use parallax_core::id::MonitorId;
use parallax_core::time::Timestamp;

/// Function that builds the link of a monitor's event, as of now.
type LinkBuilder = Box<dyn Fn(MonitorId, u64, Timestamp) -> String + Send + Sync>;

/// Builder of evidence links; the default builds none.
#[derive(Default)]
pub struct EvidenceLinks(Option<LinkBuilder>);

impl EvidenceLinks {
    /// Creates a builder from this function.
    pub fn new(build: impl Fn(MonitorId, u64, Timestamp) -> String + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(build)))
    }

    /// Returns the link of a monitor's event.
    pub(super) fn for_event(&self, monitor: MonitorId, seq: u64, now: Timestamp) -> Option<String> {
        self.0.as_ref().map(|build| build(monitor, seq, now))
    }
}

impl fmt::Debug for EvidenceLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvidenceLinks")
    }
}
