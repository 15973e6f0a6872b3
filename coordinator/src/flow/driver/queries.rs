//! Queries for machine state, answered between two arrivals and not before the edits they must reflect.

use std::time::Instant;

use super::Driver;
use crate::flow::Query;

/// Queries that wait for an edit, at most. Beyond that a query is answered with the current state.
const WAITING: usize = 1024;

impl Driver {
    /// Answers a query, or holds it until the edits it must reflect were read.
    pub(super) fn take_query(&mut self, query: Query) {
        if query.after <= self.cursor || self.waiting.len() >= WAITING {
            self.answer(query);
            return;
        }
        self.behind = Some(Instant::now());
        self.waiting.push(query);
    }

    /// Answers the queries whose edits were read. Those whose receiver is gone are dropped.
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
        // The requester may have disconnected.
        let _ = query.answer.send(views);
    }
}
