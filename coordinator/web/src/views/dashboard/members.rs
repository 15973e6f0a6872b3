//! Members of the account and its open invitations, and the accounts of a person.

use parallax_core::person::MAX_OPEN_INVITATIONS;
use parallax_core::role::Role;
use parallax_template::template_file;

use super::account::{MEMBERS, SWITCH, tabs};
use super::frame::Frame;
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Members and invitations.
#[template_file("dashboard/members.html")]
#[derive(Debug, Clone)]
pub(crate) struct MembersScreen {
    /// The frame.
    pub frame: Frame,
    /// Members, oldest first.
    pub members: Vec<MemberRow>,
    /// Open invitations, the last sent first.
    pub invitations: Vec<InvitationRow>,
    /// True if invitations can be mailed.
    pub sends_mail: bool,
    /// True if members need a second factor.
    pub is_factor_needed: bool,
    /// Reason why a change was refused; empty if there is none.
    pub problem: String,
    /// Beginning of the keys by which a repetition is not done twice.
    pub once: String,
}

/// A member in the list.
#[derive(Debug, Clone)]
pub(crate) struct MemberRow {
    /// Id.
    pub id: String,
    /// Name, or the email address if they have none.
    pub name: String,
    /// Email address, where the name is another text.
    pub email: Option<String>,
    /// Role.
    pub role: Role,
    /// True for the person who looks.
    pub is_you: bool,
    /// True if they have a second factor.
    pub has_factor: bool,
    /// Time at which they joined.
    pub joined: FormattedTime,
    /// Time of their last use of the account, if they are signed in.
    pub last_seen: Option<FormattedTime>,
}

impl MemberRow {
    const fn role_name(&self) -> &'static str {
        role_name(self.role)
    }

    /// Roles as choices: value, text, and true for the present one.
    fn roles(&self) -> [(&'static str, &'static str, bool); Role::ALL.len()] {
        Role::ALL.map(|role| (role.name(), role_name(role), role == self.role))
    }
}

/// An open invitation in the list.
#[derive(Debug, Clone)]
pub(crate) struct InvitationRow {
    /// Id.
    pub id: String,
    /// Email address.
    pub email: String,
    /// Role.
    pub role: Role,
    /// Time at which it was sent.
    pub sent: FormattedTime,
    /// Time at which its link ends.
    pub ends: FormattedTime,
}

impl InvitationRow {
    const fn role_name(&self) -> &'static str {
        role_name(self.role)
    }
}

impl MembersScreen {
    fn tabs(&self) -> Vec<(&'static str, &'static str, bool)> {
        tabs(&self.frame, MEMBERS)
    }

    fn count(&self) -> String {
        words::count(self.members.len(), "member", "members")
    }
}

/// Form that invites a person.
#[template_file("dashboard/member_invite.html")]
#[derive(Debug, Clone)]
pub(crate) struct InviteScreen {
    /// The frame.
    pub frame: Frame,
    /// Email address that was entered.
    pub email: String,
    /// Fault of the email address; empty if there is none.
    pub email_fault: String,
    /// Name of the chosen role.
    pub role: String,
    /// Reason why the form was refused as a whole; empty if there is none.
    pub problem: String,
    /// Key by which a repetition sends no second mail.
    pub idempotency_key: String,
}

impl InviteScreen {
    /// Choices of roles: value, name and permissions.
    fn roles() -> [(&'static str, &'static str, &'static str); Role::ALL.len()] {
        Role::ALL.map(|role| (role.name(), role_name(role), role_text(role)))
    }

    const fn most() -> usize {
        MAX_OPEN_INVITATIONS
    }
}

/// Accounts of the person, to choose from.
#[template_file("dashboard/account_switch.html")]
#[derive(Debug, Clone)]
pub(crate) struct AccountSwitchScreen {
    /// The frame.
    pub frame: Frame,
    /// Accounts, the one that they joined first on top.
    pub accounts: Vec<AccountLine>,
    /// Key by which a repetition is not done twice.
    pub once: String,
}

/// An account in the list.
#[derive(Debug, Clone)]
pub(crate) struct AccountLine {
    /// Id.
    pub id: String,
    /// Email address.
    pub email: String,
    /// The person's role.
    pub role: Role,
    /// Names of its first pages.
    pub pages: Vec<String>,
    /// Number of its other pages.
    pub more: usize,
    /// True for the one that is shown.
    pub is_current: bool,
}

impl AccountSwitchScreen {
    fn tabs(&self) -> Vec<(&'static str, &'static str, bool)> {
        tabs(&self.frame, SWITCH)
    }
}

impl AccountLine {
    /// Role and pages in words.
    fn facts(&self) -> String {
        let mut facts = vec![role_name(self.role).to_owned()];
        facts.extend(self.pages.iter().cloned());
        if self.more > 0 {
            let (one, many) = if self.pages.is_empty() { ("page", "pages") } else { ("more page", "more pages") };
            facts.push(words::count(self.more, one, many));
        }
        facts.join(", ")
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "Owner",
        Role::Editor => "Editor",
        Role::Viewer => "Viewer",
    }
}

/// Permissions of a role in words.
pub(super) const fn role_text(role: Role) -> &'static str {
    match role {
        Role::Owner => "Sees and changes everything, members and keys too.",
        Role::Editor => {
            "Sees everything but secrets. Changes monitors, incidents, maintenance, deploys and the page’s look."
        }
        Role::Viewer => "Sees everything but secrets. Changes nothing.",
    }
}
