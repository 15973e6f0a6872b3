//! Failures to resolve a name that are nobody's but ours are no word on what was checked.

use parallax_core::names::{domain_of, resolution};
use parallax_core::observation::{Observation, Outcome, OwnFault};

use super::Driver;

impl Driver {
    /// Hears how the name of that monitor's target was resolved. Where nearly all names fail at once at all places, this
    /// failure says nothing of the target.
    pub(super) fn mind_names(&mut self, slot: u32, seen: &mut Observation) {
        let Some(failed) = resolution(&seen.outcome).filter(|failed| *failed || !self.names.is_calm()) else {
            return;
        };
        let Some(domain) = self.machines.check(slot).and_then(domain_of) else { return };
        let (ours, is_news) = self.names.hear(domain, seen.place, failed, self.clock.now());
        if ours {
            seen.outcome = Outcome::Inconclusive(OwnFault::ResolverDead);
        }
        if is_news {
            self.places.set_names_fail(ours);
        }
    }

    /// Ends what was not seen for a while.
    pub(super) fn expire_names(&mut self) {
        if self.names.expire(self.clock.now()) {
            self.places.set_names_fail(false);
        }
    }
}
