//! Audit log of an account: who changed what, when, and from where.
//!
//! An entry is one change, written in the batch that makes it, so that neither is in the store without the other. It
//! names its objects as they were then. Values of secrets are never in it: such a field has no values.

use serde::{Deserialize, Serialize};

use crate::acknowledgement::ActorName;
use crate::id::{AccountId, KeyId, PageId, PersonId};
use crate::time::{DAY, Timestamp};

/// Time for which an entry is kept, in milliseconds.
pub const AUDIT_RETENTION: i64 = 400 * DAY;
/// Entries of one account, at most: a further one evicts the oldest.
pub const MAX_AUDIT_ENTRIES: u64 = 20_000;
/// Objects of one entry, at most. Further ones are counted.
pub const MAX_ITEMS: usize = 50;
/// Changed fields of one object, at most. Further ones are left out.
pub const MAX_FIELDS: usize = 20;
/// Longest name or value, in characters. Longer ones are cut.
pub const MAX_VALUE: usize = 120;
/// Bytes of the names and values of one entry, at most. Objects beyond are counted.
const MAX_ENTRY_BYTES: usize = 8 * 1024;

/// One change of an account's settings or access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The account.
    pub account: AccountId,
    /// Time of the change.
    pub at: Timestamp,
    /// Its author.
    pub actor: AuditActor,
    /// Network that the request came from, such as `192.0.2.0/24`; none if unknown.
    pub network: Option<String>,
    /// The changed objects, at most [`MAX_ITEMS`].
    pub items: Vec<AuditItem>,
    /// Number of further objects that were changed.
    pub omitted: u32,
}

/// Originator of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuditActor {
    /// A person.
    Person {
        /// Their id.
        id: PersonId,
        /// Their name or email address, as it was then.
        name: ActorName,
    },
    /// An API key.
    Key {
        /// Its id.
        id: KeyId,
        /// Its name, as it was then.
        name: ActorName,
    },
    /// The operator of the installation, on the command line or on their screens.
    Operator,
    /// Someone who is not signed in, such as at a failed sign-in, or with a mailed link.
    Visitor,
    /// The service by itself, such as after the look-up of a domain.
    Service,
}

/// Kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AuditAction {
    /// The object was created, or restored by an undo.
    Created,
    /// Fields of the object were changed.
    Changed,
    /// The object was deleted, revoked or ended.
    Deleted,
    /// A person signed in.
    SignedIn,
    /// A sign-in failed.
    SignInFailed,
    /// The object's data was exported.
    Exported,
    /// The object's secrets were shown.
    Shown,
}

/// Kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AuditSubject {
    /// The account.
    Account,
    /// A status page.
    Page,
    /// A monitor.
    Monitor,
    /// An incident.
    Incident,
    /// A maintenance window.
    Maintenance,
    /// A series of maintenance windows.
    Series,
    /// A deploy marker.
    Deploy,
    /// An alert destination.
    Destination,
    /// A subscriber.
    Subscriber,
    /// A page's alert settings.
    AlertSettings,
    /// An API key.
    Key,
    /// A person's membership.
    Member,
    /// An invitation to the account.
    Invitation,
    /// A person's own sign-in: password and second factor.
    SignIn,
    /// The account's company sign-in.
    CompanySignIn,
}

/// One changed object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditItem {
    /// Kind of change.
    pub action: AuditAction,
    /// Its kind.
    pub subject: AuditSubject,
    /// Its id, as in its address; empty if it has none.
    pub id: String,
    /// Its name as it was then.
    pub name: String,
    /// The page that it belongs to.
    pub page: Option<PageId>,
    /// The changed fields, at most [`MAX_FIELDS`].
    pub fields: Vec<AuditField>,
}

/// One changed field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditField {
    /// Its name, in the words of the dashboard.
    pub name: String,
    /// The old and the new value, empty for none; none for secrets and for what has no short form.
    pub values: Option<(String, String)>,
}

impl AuditAction {
    /// Every action.
    pub const ALL: [Self; 7] =
        [Self::Created, Self::Changed, Self::Deleted, Self::SignedIn, Self::SignInFailed, Self::Exported, Self::Shown];

    /// Name in filters and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::SignedIn => "signed in",
            Self::SignInFailed => "sign-in failed",
            Self::Exported => "exported",
            Self::Shown => "secrets shown",
        }
    }
}

impl AuditSubject {
    /// Every kind of object.
    pub const ALL: [Self; 15] = [
        Self::Account,
        Self::Page,
        Self::Monitor,
        Self::Incident,
        Self::Maintenance,
        Self::Series,
        Self::Deploy,
        Self::Destination,
        Self::Subscriber,
        Self::AlertSettings,
        Self::Key,
        Self::Member,
        Self::Invitation,
        Self::SignIn,
        Self::CompanySignIn,
    ];

    /// Name in filters and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Page => "page",
            Self::Monitor => "monitor",
            Self::Incident => "incident",
            Self::Maintenance => "maintenance",
            Self::Series => "maintenance series",
            Self::Deploy => "deploy",
            Self::Destination => "destination",
            Self::Subscriber => "subscriber",
            Self::AlertSettings => "alert settings",
            Self::Key => "key",
            Self::Member => "member",
            Self::Invitation => "invitation",
            Self::SignIn => "sign-in",
            Self::CompanySignIn => "company sign-in",
        }
    }
}

impl AuditEntry {
    /// Creates an entry of these objects, cut to the limits of an entry.
    pub fn new(
        account: AccountId,
        at: Timestamp,
        (actor, network): (AuditActor, Option<String>),
        items: Vec<AuditItem>,
    ) -> Self {
        let (mut kept, mut bytes, total) = (Vec::new(), 0, items.len());
        for item in items.into_iter().take(MAX_ITEMS) {
            let item = item.cut();
            bytes += item.bytes();
            if bytes > MAX_ENTRY_BYTES && !kept.is_empty() {
                break;
            }
            kept.push(item);
        }
        let omitted = u32::try_from(total - kept.len()).unwrap_or(u32::MAX);
        Self { account, at, actor, network, items: kept, omitted }
    }

    /// Returns true once the entry is no longer kept.
    pub const fn is_expired(&self, now: Timestamp) -> bool {
        now.since(self.at) >= AUDIT_RETENTION
    }
}

impl AuditItem {
    fn cut(mut self) -> Self {
        self.name = cut(&self.name);
        self.fields.truncate(MAX_FIELDS);
        for field in &mut self.fields {
            if let Some((old, new)) = &mut field.values {
                (*old, *new) = (cut(old), cut(new));
            }
        }
        self
    }

    fn bytes(&self) -> usize {
        let of_field =
            |field: &AuditField| field.name.len() + field.values.as_ref().map_or(0, |(old, new)| old.len() + new.len());
        self.id.len() + self.name.len() + self.fields.iter().map(of_field).sum::<usize>()
    }
}

/// Cuts a text to [`MAX_VALUE`] characters, with an ellipsis where something is left out.
fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_VALUE {
        return text.to_owned();
    }
    text.chars().take(MAX_VALUE - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn item(name: &str, values: usize) -> AuditItem {
        let field = |_| AuditField { name: "Name".to_owned(), values: Some(("ö".repeat(500), String::new())) };
        AuditItem {
            action: AuditAction::Changed,
            subject: AuditSubject::Monitor,
            id: "mon_1".to_owned(),
            name: name.to_owned(),
            page: None,
            fields: (0..values).map(field).collect(),
        }
    }

    fn entry(items: Vec<AuditItem>) -> AuditEntry {
        let actor = (AuditActor::Operator, None);
        AuditEntry::new(AccountId::from_u128(1), Timestamp::from_millis(0), actor, items)
    }

    #[test]
    fn an_entry_is_bounded_in_objects_fields_values_and_bytes() {
        let many = entry(vec![item("a", 0); MAX_ITEMS + 7]);
        assert_eq!((many.items.len(), many.omitted), (MAX_ITEMS, 7));
        let wide = entry(vec![item(&"n".repeat(MAX_VALUE + 1), MAX_FIELDS + 1)]);
        let only = &wide.items[0];
        assert_eq!(only.name.chars().count(), MAX_VALUE);
        assert!(only.name.ends_with("n…"));
        assert_eq!(only.fields.len(), MAX_FIELDS);
        assert_eq!(only.fields[0].values.as_ref().unwrap().0.chars().count(), MAX_VALUE);
        // 20 values of 120 characters of two bytes are over half of the bytes: one object fits.
        let heavy = entry(vec![item("a", MAX_FIELDS); 3]);
        assert_eq!((heavy.items.len(), heavy.omitted), (1, 2));
    }

    #[test]
    fn an_entry_is_kept_for_400_days() {
        let entry = entry(Vec::new());
        assert!(!entry.is_expired(Timestamp::from_millis(400 * DAY - 1)));
        assert!(entry.is_expired(Timestamp::from_millis(400 * DAY)));
        // The clock was set back.
        assert!(!entry.is_expired(Timestamp::from_millis(-DAY)));
    }

    #[test]
    fn names_are_unique() {
        let subjects: BTreeSet<_> = AuditSubject::ALL.iter().map(|it| it.name()).collect();
        let actions: BTreeSet<_> = AuditAction::ALL.iter().map(|it| it.name()).collect();
        assert_eq!((subjects.len(), actions.len()), (AuditSubject::ALL.len(), AuditAction::ALL.len()));
    }
}
