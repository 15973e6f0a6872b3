//! The audit log: entries are derived from the batch that makes a change, so none can be forgotten or made up.

mod author;
mod changed_fields;
mod entries;
mod fields;

use std::sync::Arc;

use parallax_core::audit::{AuditAction, AuditActor, AuditEntry, AuditItem, AuditSubject};
use parallax_core::role::Permission;
use parallax_store::NumberedAuditEntry;

pub(crate) use self::author::ChangeAuthor;
use crate::context::ServiceContext;
use crate::{Caller, ServiceResult};

/// Entries of one part of the list.
pub const AUDIT_PART: usize = 50;
/// Entries read to fill one part of a filtered list, at most: the rest is in the next part.
const MAX_SCANNED: usize = 5_000;
/// Entries read at a time.
const SLICE: usize = 500;

/// Reads the audit logs of accounts.
#[derive(Debug)]
pub struct AuditService {
    context: Arc<ServiceContext>,
}

/// Choice of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries with an object of this kind.
    pub subject: Option<AuditSubject>,
    /// Only entries with this action.
    pub action: Option<AuditAction>,
    /// Only entries of which the name or id of the actor or of an object contains this, without regard to case; empty for all.
    pub text: String,
}

/// A part of an audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPart {
    /// Entries, newest first.
    pub entries: Vec<NumberedAuditEntry>,
    /// Number before which the next part begins; none at the end.
    pub next: Option<u64>,
}

impl AuditFilter {
    fn passes(&self, entry: &AuditEntry) -> bool {
        let text = self.text.to_lowercase();
        let has = |value: &str| value.to_lowercase().contains(&text);
        let of_actor = || match &entry.actor {
            AuditActor::Person { id, name } => has(&name.to_string()) || has(&id.to_string()),
            AuditActor::Key { id, name } => has(&name.to_string()) || has(&id.to_string()),
            AuditActor::Operator | AuditActor::Visitor | AuditActor::Service => false,
        };
        let passes = |item: &AuditItem| {
            self.subject.is_none_or(|subject| item.subject == subject)
                && self.action.is_none_or(|action| item.action == action)
                && (text.is_empty() || has(&item.name) || has(&item.id) || of_actor())
        };
        entry.items.iter().any(passes)
    }
}

impl AuditService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Returns the entries of the caller's account with a number below `before`, or the newest: [`AUDIT_PART`] at most.
    ///
    /// # Errors
    /// `ServiceError::RoleForbids` for everyone but owners.
    pub async fn list(&self, caller: &Caller, filter: &AuditFilter, before: Option<u64>) -> ServiceResult<AuditPart> {
        caller.require(Permission::ManageAccount)?;
        let (account, now, filter) = (caller.account, self.context.now(), filter.clone());
        // Without a filter one more than is shown: it says if there is a next part.
        let at_once = if filter == AuditFilter::default() { AUDIT_PART + 1 } else { SLICE };
        let read = self.context.store().read(move |store| {
            let (mut entries, mut before, mut scanned) = (Vec::new(), before, 0);
            loop {
                let slice = store.audit_entries(account, before, at_once)?;
                scanned += slice.len();
                let is_last = slice.len() < at_once;
                for it in slice {
                    if it.entry.is_expired(now) {
                        return Ok(AuditPart { entries, next: None });
                    }
                    if entries.len() == AUDIT_PART {
                        return Ok(AuditPart { entries, next: before });
                    }
                    before = Some(it.number);
                    if filter.passes(&it.entry) {
                        entries.push(it);
                    }
                }
                if is_last || scanned >= MAX_SCANNED {
                    return Ok(AuditPart { entries, next: if is_last { None } else { before } });
                }
            }
        });
        Ok(read.await?)
    }

    /// Logs the export of the caller's own log.
    ///
    /// # Errors
    /// `ServiceError::RoleForbids` for everyone but owners, and if the store can't be written: then nothing is exported.
    pub async fn log_export(&self, caller: &Caller) -> ServiceResult<()> {
        caller.require(Permission::ManageAccount)?;
        let (id, name) = (caller.account.to_string(), "this account".to_owned());
        self.context.commit_export(caller, (AuditSubject::Account, id, name, None)).await
    }
}
