//! Accounts: the owners of pages, each on a plan.

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::AccountId;
use crate::plan::Plan;
use crate::time::Timestamp;

/// An account: the owner of pages, monitors and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Address for alerts and sign-in links.
    pub email: String,
    /// Its plan.
    pub plan: Plan,
    /// Creation time.
    pub created_at: Timestamp,
    /// Start of the present plan; none while the account is on its first. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub plan_since: Option<Timestamp>,
    /// True once an owner dismissed the list of what is next after the set-up.
    #[serde(deserialize_with = "compat::or_default")]
    pub is_set_up_dismissed: bool,
    /// Steps of that list that were done once, as bits: what is done stays done.
    #[serde(deserialize_with = "compat::or_default")]
    pub set_up_done: u8,
    /// Time since which its members need a second factor; none if they need none.
    #[serde(deserialize_with = "compat::or_default")]
    pub factor_needed_since: Option<Timestamp>,
}
