//! What rounds tell of the places that looked: who goes into quarantine, and who comes out.

use parallax_core::event::{Event, Reason, What};
use parallax_core::observation::Observation;
use parallax_core::place::PlaceNo;
use parallax_core::quarantine::Word;

use super::{Channels, Driver};
use crate::flow::machines::Machines;

impl Driver {
    /// What rounds told of their first places may put one into quarantine.
    pub(super) fn judge_places(&mut self, channels: &Channels) {
        let now = self.clock.now();
        let told: Vec<(PlaceNo, Word, u64)> = self
            .harvest
            .events
            .iter()
            .skip(self.harvest.judged)
            .filter_map(|event| {
                let (place, disputed) = tells_of_place(&event.what)?;
                let word = if disputed { Word::Disputed } else { Word::Failed };
                Some((place, word, self.machines.host(event.monitor?)))
            })
            .collect();
        self.harvest.judged = self.harvest.events.len();
        let mut turned: Vec<Event> = told
            .into_iter()
            .filter_map(|(place, word, host)| self.places.hear(place, word, host, now))
            .collect();
        turned.append(&mut self.places.fire(now));
        self.turn_places(turned, channels);
    }

    /// A place in quarantine ran a shadow round: does it see what the others see?
    pub(super) fn hear_shadow(&mut self, slot: u32, seen: &Observation, channels: &Channels) {
        let now = self.clock.now();
        let Some(agrees) = self.machines.agrees(slot, seen, (self.places.mesh(), now)) else { return };
        let word = if agrees { Word::Agreed } else { Word::Disputed };
        let turned = self.places.hear(seen.place, word, u64::from(slot), now);
        self.turn_places(turned.into_iter().collect(), channels);
    }

    fn turn_places(&mut self, mut turned: Vec<Event>, channels: &Channels) {
        if turned.is_empty() {
            return;
        }
        self.harvest.events.append(&mut turned);
        self.harvest.judged = self.harvest.events.len();
        channels.quarantined.send_replace(self.places.quarantined());
        if self.places.lay() {
            self.with(Machines::mesh_changed);
        }
    }
}

/// Whether a round tells something of the place that looked first: it failed there, and a second place has spoken.
fn tells_of_place(what: &What) -> Option<(PlaceNo, bool)> {
    use parallax_core::observation::Word;
    let What::Round(report) = what else { return None };
    if report.reason == Reason::Confirm {
        return None;
    }
    match report.word {
        Word::Disputed => Some((report.first, true)),
        // While a region is down nobody else is asked: that says nothing of the place.
        Word::Failed => report.second.is_some().then_some((report.first, false)),
        Word::Passed | Word::Unconfirmed | Word::Inconclusive => None,
    }
}
