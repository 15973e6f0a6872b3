//! Queries for machine state, answered between two arrivals and not before the edits they must reflect.

use std::time::Instant;

use super::Driver;
use crate::{MachineCopyQuery, MachineQuery};

/// Queries that wait for an edit, at most. Beyond that a query is answered with the current state.
const MAX_WAITING: usize = 1024;

impl Driver {
    /// Answers a query, or queues it until the edits it must reflect were read.
    pub(super) fn handle_query(&mut self, query: MachineQuery) {
        if query.after_event <= self.cursor || self.waiting_queries.len() >= MAX_WAITING {
            self.answer_query(query);
            return;
        }
        self.read_edits_at = Some(Instant::now());
        self.waiting_queries.push(query);
    }

    /// Answers the queries whose edits were read. Those whose receiver is gone are dropped.
    pub(super) fn answer_waiting_queries(&mut self) {
        if self.waiting_queries.is_empty() {
            return;
        }
        for query in std::mem::take(&mut self.waiting_queries) {
            if query.after_event <= self.cursor {
                self.answer_query(query);
            } else if !query.reply.is_closed() {
                self.waiting_queries.push(query);
            }
        }
    }

    /// Answers with a copy of one machine.
    pub(super) fn answer_copy_query(&self, query: MachineCopyQuery) {
        let copy = self.machines.copy(query.monitor, self.mesh_view.mesh(), self.clock.now());
        // The requester may have disconnected.
        let _ = query.reply.send(copy);
    }

    fn answer_query(&self, query: MachineQuery) {
        let (mesh, now) = (self.mesh_view.mesh(), self.clock.now());
        let views = query.monitors.iter().map(|id| self.machines.view(*id, mesh, now)).collect();
        // The requester may have disconnected.
        let _ = query.reply.send(views);
    }
}
