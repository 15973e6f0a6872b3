//! Shadow rounds: what a place in quarantine sees, compared with what the others say.

use parallax_core::event::Status;
use parallax_core::observation::{Observation, Outcome};
use parallax_core::place::Mesh;
use parallax_core::time::Timestamp;

use super::Machines;

impl Machines {
    /// What a place in quarantine saw, held against what the others say: true where it agrees, none where that can't
    /// be told.
    pub fn agrees(&self, slot: u32, seen: &Observation, (mesh, now): (&Mesh, Timestamp)) -> Option<bool> {
        let view = self.get(slot)?.machine.view(mesh, now);
        let down = match view.status {
            Status::Unknown => return None,
            Status::Up | Status::Slow => false,
            Status::Down if view.down_from.is_none_or(|from| from.contains(seen.region)) => true,
            // Where nobody else looks from its region, that region is up by its own word.
            Status::Down if mesh.fit().all(|place| place.region != seen.region) => return None,
            Status::Down => false,
        };
        match seen.outcome {
            Outcome::Passed(_) => Some(!down),
            Outcome::Failed(..) => Some(down),
            Outcome::Inconclusive(_) | Outcome::Pending => None,
        }
    }
}
