//! Links that stop alerts to a mailbox, made by a function of the service, which can also verify them.

use std::fmt;
use std::sync::OnceLock;

use parallax_core::destination::Destination;

/// Function that makes a destination's stop link; `None` if it has none.
type LinkBuilder = Box<dyn Fn(&Destination) -> Option<String> + Send + Sync>;

/// Stop links of destinations, once their function is set.
#[derive(Default)]
pub(super) struct StopLinks(OnceLock<LinkBuilder>);

impl StopLinks {
    /// Sets the function that makes the links; later calls have no effect.
    pub(super) fn set(&self, make: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(make));
    }

    /// Returns the stop link of a destination.
    pub(super) fn for_destination(&self, destination: &Destination) -> Option<String> {
        self.0.get().and_then(|make| make(destination))
    }
}

impl fmt::Debug for StopLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopLinks")
    }
}
