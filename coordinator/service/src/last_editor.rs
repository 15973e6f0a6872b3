//! Names of those who changed monitors last, kept as long as an earlier change can be undone: an undo that is refused
//! names them.

use parallax_core::id::MonitorId;
use parallax_core::undo::UNDO_WINDOW;
use parallax_store::{Batch, MAX_EXPIRED_PER_OP, Op, StoredResponse};

use crate::context::ServiceContext;
use crate::{Caller, ServiceResult};

impl ServiceContext {
    /// Adds to the batch that the caller changed or deleted its monitors.
    pub(crate) fn note_editor(&self, caller: &Caller, batch: &mut Batch) {
        let of_op = |op: &Op| match op {
            Op::PutMonitor(monitor) => Some(monitor.id),
            Op::DeleteMonitor(id) => Some(*id),
            _ => None,
        };
        let monitors: Vec<MonitorId> = batch.ops.iter().filter_map(of_op).collect();
        let editor = format!("{} {}", caller.limit_id(), caller.actor_name()).into_bytes();
        let now = self.now();
        for some in monitors.chunks(MAX_EXPIRED_PER_OP) {
            // As many that expired go as new ones come.
            batch.write(Op::DeleteExpiredResponses(now));
            for id in some {
                let note =
                    StoredResponse { fingerprint: [0; 32], response: editor.clone(), expires_at: now + UNDO_WINDOW };
                batch.write(Op::PutStoredResponse(note_key(*id), note));
            }
        }
    }

    /// Returns the name of the person or key that changed the monitor last, as the caller reads it; `None` if that is
    /// longer ago than anything can be undone.
    pub(crate) fn last_editor(&self, caller: &Caller, id: MonitorId) -> ServiceResult<Option<String>> {
        let Some(note) = self.store().reader().stored_response(&note_key(id))? else { return Ok(None) };
        let text = String::from_utf8(note.value.response).unwrap_or_default();
        let editor = text.split_once(' ');
        let own = caller.limit_id().to_string();
        Ok(editor.map(|(actor, name)| if actor == own { "you".to_owned() } else { name.to_owned() }))
    }
}

/// The name under which the last editor of a monitor is stored.
fn note_key(id: MonitorId) -> String {
    format!("editor/{id}")
}
