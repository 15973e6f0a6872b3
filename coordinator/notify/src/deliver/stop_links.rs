//! Links that stop alerts to a mailbox, built by a function of the service, which can also verify them.

use std::fmt;

use parallax_core::destination::Destination;

/// Function that builds a destination's stop link; `None` if it has none.
type LinkBuilder = Box<dyn Fn(&Destination) -> Option<String> + Send + Sync>;

/// Builder of stop links for destinations; the default builds none.
#[derive(Default)]
pub struct StopLinks(Option<LinkBuilder>);

impl StopLinks {
    /// Creates a builder from this function.
    pub fn new(build: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(build)))
    }

    /// Returns the stop link of a destination.
    pub(super) fn for_destination(&self, destination: &Destination) -> Option<String> {
        self.0.as_ref().and_then(|build| build(destination))
    }
}

impl fmt::Debug for StopLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopLinks")
    }
}
