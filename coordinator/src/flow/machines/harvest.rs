//! What a turn of the driver brings forth, until it is committed.

use std::collections::BTreeSet;

use parallax_core::event::Event;
use parallax_core::observation::Reading;

use crate::flow::Question;

/// What one turn of the driver brought forth and what must be committed together.
#[derive(Debug, Default)]
pub struct Harvest {
    /// Finished rounds.
    pub readings: Vec<Reading>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Numbers of machines whose state must be written.
    pub changed: BTreeSet<u32>,
    /// Questions for the mesh.
    pub questions: Vec<Question>,
    /// How many of the events have been looked at for what they tell of places.
    pub judged: usize,
}
