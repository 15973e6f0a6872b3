//! Accounts of the installation for its operators.

use parallax_core::plan::Plan;
use parallax_template::template_file;

use super::frame::Frame;
use super::installation_accounts;
use crate::views::assets;

/// An account.
#[derive(Debug, Clone)]
pub(crate) struct AccountRow {
    /// Id.
    pub id: String,
    /// Address that makes a set-up link.
    pub link: String,
    /// Email address.
    pub email: String,
    /// Name of its plan.
    pub plan: &'static str,
    /// Pages: "2 of 5".
    pub pages: String,
    /// Monitors: "38 of 500".
    pub monitors: String,
    /// True if it has all the monitors of its plan.
    pub is_full: bool,
    /// Shortest interval of its checks; empty if its plan has none.
    pub interval: String,
}

/// Title of a plan.
pub(crate) const fn plan_title(plan: Plan) -> &'static str {
    match plan {
        Plan::Free => "Free",
        Plan::Hobby => "Hobby",
        Plan::Pro => "Pro",
    }
}

/// Plans: value and title.
pub(crate) fn plans() -> [(&'static str, &'static str); 3] {
    Plan::ALL.map(|plan| (plan.name(), plan_title(plan)))
}

/// Accounts of the installation.
#[template_file("dashboard/accounts.html")]
#[derive(Debug, Clone)]
pub(crate) struct AccountsScreen {
    /// Frame.
    pub frame: Frame,
    /// Accounts, oldest first.
    pub accounts: Vec<AccountRow>,
    /// Number of accounts that are not listed.
    pub more: usize,
    /// A set-up link that was just made, with the email address of its account.
    pub link: Option<(String, String)>,
    /// Key of a form's repetition.
    pub once: String,
}
