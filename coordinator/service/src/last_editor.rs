//! Names of those who changed monitors or their order last, kept as long as an earlier change can be undone: an undo
//! that is refused names them.

use parallax_core::id::{MonitorId, PageId};
use parallax_core::time::Timestamp;
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
        let now = self.now();
        let note = note_of(caller, now);
        for some in monitors.chunks(MAX_EXPIRED_PER_OP) {
            // As many that expired go as new ones come.
            batch.write(Op::DeleteExpiredResponses(now));
            for id in some {
                batch.write(Op::PutStoredResponse(note_key(*id), note.clone()));
            }
        }
    }

    /// Adds to the batch that the caller changed the order of a page's monitors.
    pub(crate) fn note_order_editor(&self, caller: &Caller, page: PageId, batch: &mut Batch) {
        batch.write(Op::PutStoredResponse(order_note_key(page), note_of(caller, self.now())));
    }

    /// Returns the name of the person or key that changed the monitor last, as the caller reads it; `None` if that is
    /// longer ago than anything can be undone.
    pub(crate) fn last_editor(&self, caller: &Caller, id: MonitorId) -> ServiceResult<Option<String>> {
        self.noted_editor(caller, &note_key(id))
    }

    /// Returns the same for the order of a page's monitors.
    pub(crate) fn last_order_editor(&self, caller: &Caller, page: PageId) -> ServiceResult<Option<String>> {
        self.noted_editor(caller, &order_note_key(page))
    }

    fn noted_editor(&self, caller: &Caller, key: &str) -> ServiceResult<Option<String>> {
        let Some(note) = self.store().reader().stored_response(key)? else { return Ok(None) };
        let text = String::from_utf8(note.value.response).unwrap_or_default();
        let editor = text.split_once(' ');
        let own = caller.limit_id().to_string();
        Ok(editor.map(|(actor, name)| if actor == own { "you".to_owned() } else { name.to_owned() }))
    }
}

fn note_of(caller: &Caller, now: Timestamp) -> StoredResponse {
    let editor = format!("{} {}", caller.limit_id(), caller.actor_name()).into_bytes();
    StoredResponse { fingerprint: [0; 32], response: editor, expires_at: now + UNDO_WINDOW }
}

/// The name under which the last editor of a monitor is stored.
fn note_key(id: MonitorId) -> String {
    format!("editor/{id}")
}

/// The name under which the last editor of the order of a page's monitors is stored.
fn order_note_key(page: PageId) -> String {
    format!("editor/order/{page}")
}
