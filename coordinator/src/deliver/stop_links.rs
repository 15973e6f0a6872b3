//! The links by which readers of mailboxes stop alerts: made by a function of the service, which alone can verify them.

use std::fmt;
use std::sync::OnceLock;

use parallax_core::destination::Destination;

/// Function that makes a destination's link; none for one that has none.
type Make = Box<dyn Fn(&Destination) -> Option<String> + Send + Sync>;

/// Links of destinations, once their maker is known.
#[derive(Default)]
pub(super) struct StopLinks(OnceLock<Make>);

impl StopLinks {
    /// Has that function make the links; the first stays.
    pub(super) fn set(&self, make: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(make));
    }

    /// The link of a destination.
    pub(super) fn of(&self, destination: &Destination) -> Option<String> {
        self.0.get().and_then(|make| make(destination))
    }
}

impl fmt::Debug for StopLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopLinks")
    }
}
