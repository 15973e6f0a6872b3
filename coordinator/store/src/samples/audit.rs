//! Sample entries of the audit log.

use parallax_core::acknowledgement::ActorName;
use parallax_core::audit::{AuditAction, AuditActor, AuditEntry, AuditField, AuditItem, AuditSubject};
use parallax_core::time::Timestamp;

use super::{account_id, person_id};

/// An entry of the account, made at that millisecond.
pub fn audit_entry(account: u128, millis: i64) -> AuditEntry {
    let item = AuditItem {
        action: AuditAction::Changed,
        subject: AuditSubject::Monitor,
        id: "mon_1".to_owned(),
        name: "Website".to_owned(),
        page: None,
        fields: vec![AuditField {
            name: "Slow above".to_owned(),
            values: Some(("250".to_owned(), millis.to_string())),
        }],
    };
    let actor = AuditActor::Person { id: person_id(1), name: ActorName::new("Ann") };
    let network = Some("192.0.2.0/24".to_owned());
    AuditEntry::new(account_id(account), Timestamp::from_millis(millis), (actor, network), vec![item])
}
