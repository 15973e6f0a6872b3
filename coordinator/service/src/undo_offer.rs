//! Offer to undo a change: the token that the person gets, and if the change recorded it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::secret_text::random_token;

/// Offer to undo one change. It holds once the change has recorded its inverse: a change of nothing has none.
pub struct UndoOffer {
    token: String,
    is_recorded: AtomicBool,
}

impl fmt::Debug for UndoOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOffer").field("is_recorded", &self.is_recorded).finish_non_exhaustive()
    }
}

impl Default for UndoOffer {
    fn default() -> Self {
        Self { token: random_token(rand::random()), is_recorded: AtomicBool::new(false) }
    }
}

impl UndoOffer {
    /// The token; `None` if the change has no inverse.
    pub fn token(&self) -> Option<&str> {
        self.is_recorded.load(Ordering::Relaxed).then_some(self.token.as_str())
    }

    /// The token, for its record.
    pub(crate) fn new_token(&self) -> &str {
        &self.token
    }

    /// Sets if the change recorded its inverse. A change that is decided again after a conflict sets it again.
    pub(crate) fn set_recorded(&self, is_recorded: bool) {
        self.is_recorded.store(is_recorded, Ordering::Relaxed);
    }
}
