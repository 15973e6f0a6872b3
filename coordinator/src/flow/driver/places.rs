//! Quarantine decisions by the driver: judges vantages by the rounds they took part in.

use parallax_core::event::What;
use parallax_core::observation::Observation;
use parallax_core::place::PlaceNo;
use parallax_core::quarantine::Turn;

use super::{Channels, Driver};
use crate::flow::machines::Machines;
use crate::flow::places::turned;

impl Driver {
    /// Judges the vantages that took part in rounds since the last call. One may go into quarantine.
    pub(super) fn judge_places(&mut self, channels: &Channels) {
        let now = self.clock.now();
        let mut turns = Vec::new();
        for event in self.harvest.events.iter().skip(self.harvest.judged) {
            if let (What::Round(report), Some(monitor)) = (&event.what, event.monitor) {
                let Some(target) = self.machines.target_of(monitor) else { continue };
                turns.append(&mut self.places.hear_round(report, target, now));
            }
        }
        self.harvest.judged = self.harvest.events.len();
        self.places.log_notices(now);
        let mut released = self.places.fire(now);
        if let Some(released) = &mut released {
            turns.append(released);
        }
        if !turns.is_empty() || released.is_some() {
            self.turn_places(turns, channels);
        }
    }

    /// Compares a shadow round of a quarantined vantage with the results of the others.
    pub(super) fn hear_shadow(&mut self, slot: u32, seen: &Observation, channels: &Channels) {
        let now = self.clock.now();
        let Some(agrees) = self.machines.agrees(slot, seen, (self.places.mesh(), now)) else { return };
        let Some(target) = self.machines.target_in(slot) else { return };
        if let Some(turn) = self.places.hear_shadow(seen, agrees, target, now) {
            self.turn_places(vec![(seen.place, turn)], channels);
        }
    }

    fn turn_places(&mut self, turns: Vec<(PlaceNo, Turn)>, channels: &Channels) {
        let now = self.clock.now();
        self.harvest.events.extend(turns.into_iter().filter_map(|(place, turn)| turned(place, turn, now)));
        self.harvest.judged = self.harvest.events.len();
        channels.suspects.send_replace(self.places.suspects());
        if self.places.lay() {
            self.with(Machines::mesh_changed);
        }
    }
}
