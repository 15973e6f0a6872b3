//! An account: who owns pages and on which plan.

use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::plan::Plan;
use crate::time::Timestamp;

/// Who owns pages, monitors and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Where alerts and sign-in links go.
    pub email: String,
    /// Its plan.
    pub plan: Plan,
    /// When it was made.
    pub created_at: Timestamp,
}
