//! Links that stop alerts to a mailbox, made by a function of the service, which can also verify them.

use std::fmt;

use parallax_core::destination::Destination;

/// Function that makes a destination's stop link; `None` if it has none.
type LinkBuilder = Box<dyn Fn(&Destination) -> Option<String> + Send + Sync>;

/// Maker of stop links for destinations; the default makes none.
#[derive(Default)]
pub struct StopLinks(Option<LinkBuilder>);

impl StopLinks {
    /// Links that this function makes.
    pub fn new(make: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(make)))
    }

    /// Returns the stop link of a destination.
    pub(super) fn for_destination(&self, destination: &Destination) -> Option<String> {
        self.0.as_ref().and_then(|make| make(destination))
    }
}

impl fmt::Debug for StopLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopLinks")
    }
}
