//! Roles of an account's members, and the permissions of roles and API keys.

use serde::{Deserialize, Serialize};

use crate::key::KeyAccess;
use crate::text;
use crate::validation::Rule;

/// Role of a person in an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// May do everything.
    Owner,
    /// May change monitors, incidents, maintenance, deploys and a page's look.
    Editor,
    /// May look at everything but secrets.
    Viewer,
}

impl Role {
    /// Every role, the most powerful first.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Editor, Self::Viewer];

    /// The name in forms and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
        }
    }

    /// The role of that name.
    ///
    /// # Errors
    /// The rule, which lists the names.
    pub fn read(name: &str) -> Result<Self, Rule> {
        text::one_of(name, &Self::ALL, Self::name)
    }

    /// Returns true if this role may do more than the other.
    pub const fn outranks(self, other: Self) -> bool {
        // In the order of their power, as in `ALL`.
        (self as u8) < (other as u8)
    }

    /// Returns true if members of this role have the permission.
    pub const fn allows(self, permission: Permission) -> bool {
        match self {
            Self::Owner => true,
            Self::Editor => matches!(permission, Permission::Edit),
            Self::Viewer => false,
        }
    }
}

/// Permission to change something. Everyone who reaches a page may read it, secrets excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Change monitors, incidents, maintenance, deploys, subscribers and a page's look; send test alerts.
    Edit,
    /// Change destinations; see and rotate their secrets.
    ManageAlerts,
    /// Create and delete pages; change their address and access.
    ManagePage,
    /// Export a page's subscribers.
    ExportSubscribers,
    /// Change keys, members and plan; read the audit log.
    ManageAccount,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Self; 5] =
        [Self::Edit, Self::ManageAlerts, Self::ManagePage, Self::ExportSubscribers, Self::ManageAccount];
}

impl KeyAccess {
    /// Returns true if keys of this access have the permission. No key manages its account.
    pub const fn allows(self, permission: Permission) -> bool {
        self.can_write() && !matches!(permission, Permission::ManageAccount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_outranks_those_after_it() {
        for (place, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(Role::read(role.name()), Ok(role));
            for (other_place, other) in Role::ALL.into_iter().enumerate() {
                assert_eq!(role.outranks(other), place < other_place, "{role:?} {other:?}");
            }
        }
        assert!(Role::read("admin").is_err());
    }

    #[test]
    fn permissions_follow_the_table_of_roles_and_keys() {
        use Permission::{Edit, ExportSubscribers, ManageAccount, ManageAlerts, ManagePage};
        // Permission, then: owner, editor, viewer, write key, read key.
        let table = [
            (Edit, [true, true, false, true, false]),
            (ManageAlerts, [true, false, false, true, false]),
            (ManagePage, [true, false, false, true, false]),
            (ExportSubscribers, [true, false, false, true, false]),
            (ManageAccount, [true, false, false, false, false]),
        ];
        assert_eq!(table.map(|(permission, _)| permission), Permission::ALL);
        for (permission, expected) in table {
            let [owner, editor, viewer] = Role::ALL.map(|role| role.allows(permission));
            let keys = [KeyAccess::Write, KeyAccess::Read].map(|access| access.allows(permission));
            assert_eq!([owner, editor, viewer, keys[0], keys[1]], expected, "{permission:?}");
        }
    }
}
