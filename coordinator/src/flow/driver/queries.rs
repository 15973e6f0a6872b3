//! Looks at the machines, answered between two arrivals: none before the driver has read the edits that it is to show.

use std::time::Instant;

use super::Driver;
use crate::flow::Query;

/// Looks that wait for an edit at most; one more is answered with what is known.
const WAITING: usize = 1024;

impl Driver {
    /// Answers a look, or keeps it until the edits that it asks for were read.
    pub(super) fn take_query(&mut self, query: Query) {
        if query.after <= self.cursor || self.waiting.len() >= WAITING {
            self.answer(query);
            return;
        }
        self.behind = Some(Instant::now());
        self.waiting.push(query);
    }

    /// Answers the looks whose edits were read; those that nobody waits for any longer are dropped.
    pub(super) fn answer_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        for query in std::mem::take(&mut self.waiting) {
            if query.after <= self.cursor {
                self.answer(query);
            } else if !query.answer.is_closed() {
                self.waiting.push(query);
            }
        }
    }

    fn answer(&self, query: Query) {
        let (mesh, now) = (self.places.mesh(), self.clock.now());
        let views = query.monitors.iter().map(|id| self.machines.view(*id, mesh, now)).collect();
        // Who asked may have gone away.
        let _ = query.answer.send(views);
    }
}
