//! Entries of the audit log, derived from batches: each write of a record is compared with the record in the store.

use parallax_core::audit::{AuditAction, AuditEntry, AuditField, AuditItem, AuditSubject};
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::id::{AccountId, DestinationId, IncidentId, PageId, PersonId};
use parallax_core::incident::{Incident, IncidentKind};
use parallax_core::one_time_link::{LinkKind, OneTimeLink};
use parallax_core::page::Page;
use parallax_core::person::Person;
use parallax_core::role::Role;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Op, StoreRead};

use super::author::ChangeAuthor;
use super::changed_fields::ChangedFields;
use super::fields::LoggedRecord;
use crate::context::ServiceContext;
use crate::{Caller, ServiceResult};

impl ServiceContext {
    /// Adds to the batch the entry of the audit log that says what it changes; none if it changes nothing that is
    /// logged. Called once a batch is complete, before its answer is stored.
    ///
    /// # Errors
    /// `ServiceError::Internal` if the store can't be read.
    pub(crate) fn log_change(&self, author: impl Into<ChangeAuthor>, batch: &mut Batch) -> ServiceResult<()> {
        let (reader, now) = (self.store().reader(), self.now());
        let mut items = Vec::new();
        for op in &batch.ops {
            // Some batches write a record twice.
            items.extend(item_of(reader.as_ref(), op, now)?.filter(|item| !items.contains(item)));
        }
        let joins = |item: &AuditItem| (item.action, item.subject) == (AuditAction::Created, AuditSubject::Member);
        if items.iter().any(joins) {
            // An invitation that was used is not one that was revoked.
            items.retain(|item| item.subject != AuditSubject::Invitation);
            let new_name = batch.ops.iter().find_map(|op| match op {
                Op::PutPerson(person) => Some(person.display_name().to_owned()),
                _ => None,
            });
            for item in items.iter_mut().filter(|item| item.name.is_empty() && joins(item)) {
                item.name = new_name.clone().unwrap_or_default();
            }
        }
        if !items.is_empty() {
            batch.write(self.audit_entry(author, items));
        }
        Ok(())
    }

    /// Checks that a batch has an entry if it changes anything that is logged. Subscribers also change by their own hand.
    #[cfg(any(test, feature = "test-world"))]
    #[allow(clippy::expect_used, reason = "for tests only")]
    pub(crate) fn assert_logged(&self, batch: &Batch) {
        let (reader, now) = (self.store().reader(), self.now());
        let is_logged = batch.ops.iter().any(|op| matches!(op, Op::AppendAuditEntry(_)));
        let items = batch.ops.iter().filter_map(|op| item_of(reader.as_ref(), op, now).expect("the store can be read"));
        let mut unlogged = items.filter(|item| !is_logged && item.subject != AuditSubject::Subscriber);
        assert!(unlogged.next().is_none(), "not in the audit log: {:?}", batch.ops);
    }

    /// Adds to the batch the entry of a sign-in.
    pub(crate) fn log_sign_in(&self, account: AccountId, person: &Person, network: Option<String>, batch: &mut Batch) {
        let author = ChangeAuthor::person(account, person, network);
        batch.write(self.audit_entry(author, vec![item(sign_in_of(person), AuditAction::SignedIn)]));
    }

    /// Adds to the batch the entry of a company sign-in.
    pub(crate) fn log_company_sign_in(
        &self,
        account: AccountId,
        person: &Person,
        network: Option<String>,
        batch: &mut Batch,
    ) {
        let author = ChangeAuthor::person(account, person, network);
        let fields = vec![shown_field("Way", "company sign-in")];
        let item = AuditItem { fields, ..item(sign_in_of(person), AuditAction::SignedIn) };
        batch.write(self.audit_entry(author, vec![item]));
    }

    /// Logs a refused company sign-in, in the background, with the email address that the provider named.
    pub(crate) fn log_failed_company_sign_in(
        &self,
        account: AccountId,
        (email, reason): (&str, &str),
        network: Option<&str>,
    ) {
        let author = ChangeAuthor::visitor(account, network.map(str::to_owned));
        let named = (AuditSubject::SignIn, String::new(), email.to_owned(), None);
        let fields = vec![shown_field("Way", "company sign-in"), shown_field("Reason", reason)];
        self.log_in_background(author, AuditItem { fields, ..item(named, AuditAction::SignInFailed) });
    }

    /// Logs a failed sign-in of a person. In the background: nobody waits longer for being known.
    pub(crate) fn log_failed_sign_in(&self, account: AccountId, person: &Person, network: Option<String>) {
        let author = ChangeAuthor::visitor(account, network);
        self.log_in_background(author, item(sign_in_of(person), AuditAction::SignInFailed));
    }

    fn log_in_background(&self, author: ChangeAuthor, item: AuditItem) {
        let mut batch = Batch::new();
        batch.write(self.audit_entry(author, vec![item]));
        let store = self.store().clone();
        tokio::spawn(async move {
            if let Err(error) = store.commit(batch).await {
                error.log_retry("a failed sign-in was not logged");
            }
        });
    }

    /// Writes the entry of an export, before its first part: what can't be logged is not exported.
    ///
    /// # Errors
    /// `ServiceError::Internal` if the store can't be written.
    pub(crate) async fn commit_export(&self, caller: &Caller, exported: Named) -> ServiceResult<()> {
        let mut batch = Batch::new();
        batch.write(self.audit_entry(caller, vec![item(exported, AuditAction::Exported)]));
        Ok(self.commit(Some(batch)).await?)
    }

    /// Writes the entry of a destination whose secrets are shown, before they are.
    ///
    /// # Errors
    /// `ServiceError::Internal` if the store can't be written.
    pub(crate) async fn commit_shown_secrets(
        &self,
        caller: &Caller,
        (page, id, name): (PageId, DestinationId, String),
    ) -> ServiceResult<()> {
        let (named, mut batch) = ((AuditSubject::Destination, id.to_string(), name, Some(page)), Batch::new());
        batch.write(self.audit_entry(caller, vec![item(named, AuditAction::Shown)]));
        Ok(self.commit(Some(batch)).await?)
    }

    /// Adds to the batch the entry of a person who ended that many other sessions of theirs.
    pub(crate) fn log_ended_sessions(
        &self,
        author: impl Into<ChangeAuthor>,
        (person, count): (&Person, usize),
        batch: &mut Batch,
    ) {
        if count > 0 {
            let fields = vec![shown_field("Sessions ended", &count.to_string())];
            let item = AuditItem { fields, ..item(sign_in_of(person), AuditAction::Changed) };
            batch.write(self.audit_entry(author, vec![item]));
        }
    }

    /// Creates an entry of these objects.
    pub(crate) fn audit_entry(&self, author: impl Into<ChangeAuthor>, items: Vec<AuditItem>) -> AuditEntry {
        let ChangeAuthor { account, actor, network } = author.into();
        AuditEntry::new(account, self.now(), (actor, network), items)
    }
}

/// An object as the log names it: kind, id, name and page.
pub(crate) type Named = (AuditSubject, String, String, Option<PageId>);

fn item((subject, id, name, page): Named, action: AuditAction) -> AuditItem {
    AuditItem { action, subject, id, name, page, fields: Vec::new() }
}

/// The item of a write: a new record, or one with changed fields; none if no logged field changed.
fn written<T: LoggedRecord>(named: Named, old: Option<&T>, new: &T) -> Option<AuditItem> {
    let Some(old) = old else { return Some(created(named, new.grant())) };
    let mut changed = ChangedFields::default();
    old.changes(new, &mut changed);
    let fields = changed.into_fields();
    (!fields.is_empty()).then(|| AuditItem { fields, ..item(named, AuditAction::Changed) })
}

fn shown_field(name: &str, value: &str) -> AuditField {
    AuditField { name: name.to_owned(), values: Some((String::new(), value.to_owned())) }
}

/// The item of a new object, with what it grants.
fn created(named: Named, grant: Option<(&str, &str)>) -> AuditItem {
    AuditItem {
        fields: grant.map(|(name, value)| shown_field(name, value)).into_iter().collect(),
        ..item(named, AuditAction::Created)
    }
}

fn deleted(named: Option<Named>) -> Option<AuditItem> {
    named.map(|named| item(named, AuditAction::Deleted))
}

/// Returns what the log says of one write; none for what is not logged: answers, undo records, deliveries, states.
fn item_of(reader: &dyn StoreRead, op: &Op, now: Timestamp) -> ServiceResult<Option<AuditItem>> {
    Ok(match op {
        Op::PutAccount(new) => {
            let named = (AuditSubject::Account, new.id.to_string(), new.email.clone(), None);
            written(named, reader.account(new.id)?.map(|it| it.value).as_ref(), &**new)
        }
        Op::PutPage(new) => {
            let old = reader.page(new.id)?.map(|it| it.value);
            match &old {
                // Marked as deleted: it belongs to no account any more.
                Some(old) if old.account != new.account => deleted(Some(of_page(old))),
                _ => written(of_page(new), old.as_ref(), new),
            }
        }
        Op::DeletePage(id) => deleted(reader.page(*id)?.map(|it| of_page(&it.value))),
        Op::PutMonitor(new) => {
            let old = reader.monitor(new.id)?.map(|it| it.value);
            let named = (AuditSubject::Monitor, new.id.to_string(), new.name.clone(), Some(new.page));
            written(named, old.as_ref(), new)
        }
        Op::DeleteMonitor(id) => deleted(
            reader.monitor(*id)?.map(|it| (AuditSubject::Monitor, id.to_string(), it.value.name, Some(it.value.page))),
        ),
        Op::PutIncident(new) => {
            let old = reader.incident(new.id)?.map(|it| it.value);
            written(of_incident(new), old.as_ref(), new)
        }
        Op::DeleteIncident(id) => deleted(named_incident(reader, *id)?),
        Op::PutSeries(new) => {
            let old = reader.series(new.id)?.map(|it| it.value);
            let named = (AuditSubject::Series, new.id.to_string(), new.title.clone(), Some(new.page));
            written(named, old.as_ref(), &**new)
        }
        Op::PutDeploy(new) => {
            let named = (AuditSubject::Deploy, new.id.to_string(), new.version.clone(), Some(new.page));
            reader.deploy(new.id)?.is_none().then(|| item(named, AuditAction::Created))
        }
        Op::DeleteDeploy(id) => deleted(
            reader.deploy(*id)?.map(|it| (AuditSubject::Deploy, id.to_string(), it.value.version, Some(it.value.page))),
        ),
        _ => return access_item(reader, op, now),
    })
}

/// The same for who is notified, and who may do what.
fn access_item(reader: &dyn StoreRead, op: &Op, now: Timestamp) -> ServiceResult<Option<AuditItem>> {
    Ok(match op {
        Op::PutDestination(new) => {
            let old = reader.destination(new.id)?.map(|it| it.value);
            let named = (AuditSubject::Destination, new.id.to_string(), new.name.clone(), Some(new.page));
            written(named, old.as_ref(), &**new)
        }
        Op::DeleteDestination(id) => deleted(
            reader
                .destination(*id)?
                .map(|it| (AuditSubject::Destination, id.to_string(), it.value.name, Some(it.value.page))),
        ),
        Op::PutSubscriber(new) => {
            let old = reader.subscriber(new.id)?.map(|it| it.value);
            written(of_subscriber(new), old.as_ref(), &**new)
        }
        Op::DeleteSubscriber(id) => deleted(reader.subscriber(*id)?.map(|it| of_subscriber(&it.value))),
        Op::PutAlertSettings(page, new) => {
            let old = reader.alert_settings(*page)?.map(|it| it.value).unwrap_or_default();
            let name = reader.page(*page)?.map(|it| it.value.name).unwrap_or_default();
            written((AuditSubject::AlertSettings, page.to_string(), name, Some(*page)), Some(&old), new)
        }
        Op::PutKey(new) => {
            let named = (AuditSubject::Key, new.id.to_string(), new.name.clone(), new.page);
            written(named, reader.key(new.id)?.map(|it| it.value).as_ref(), &**new)
        }
        Op::DeleteKey(id) => {
            deleted(reader.key(*id)?.map(|it| (AuditSubject::Key, id.to_string(), it.value.name, it.value.page)))
        }
        Op::PutAccountMember(new) => {
            let old = reader.account_member(new.account, new.person)?.map(|it| it.value);
            let name = person_name(reader, new.person)?;
            written((AuditSubject::Member, new.person.to_string(), name, None), old.as_ref(), &**new)
        }
        Op::DeleteAccountMember(_, person) => {
            deleted(Some((AuditSubject::Member, person.to_string(), person_name(reader, *person)?, None)))
        }
        Op::PutCompanySignIn(new) => {
            let old = reader.company_sign_in(new.account)?.map(|it| it.value);
            written(of_company(new), old.as_ref(), &**new)
        }
        Op::DeleteCompanySignIn(account) => deleted(reader.company_sign_in(*account)?.map(|it| of_company(&it.value))),
        Op::PutPerson(new) => {
            let old = reader.person(new.id)?.map(|it| it.value);
            // A new person is logged as a member.
            old.and_then(|old| written(sign_in_of(new), Some(&old), &**new))
        }
        Op::PutOneTimeLink(new) => invited(new).map(|(named, role)| created(named, Some(("Role", role.name())))),
        Op::DeleteOneTimeLink(id) => {
            // Expired ones make room for others: nobody revoked them.
            let link = reader.one_time_link(*id)?.filter(|it| it.value.is_valid(now));
            deleted(link.and_then(|it| invited(&it.value)).map(|(named, _)| named))
        }
        _ => None,
    })
}

fn of_page(page: &Page) -> Named {
    (AuditSubject::Page, page.id.to_string(), page.name.clone(), Some(page.id))
}

fn of_incident(incident: &Incident) -> Named {
    let subject = match incident.kind {
        IncidentKind::Incident => AuditSubject::Incident,
        IncidentKind::Maintenance => AuditSubject::Maintenance,
    };
    (subject, incident.id.to_string(), incident.title.clone(), Some(incident.page))
}

fn named_incident(reader: &dyn StoreRead, id: IncidentId) -> ServiceResult<Option<Named>> {
    Ok(reader.incident(id)?.map(|it| of_incident(&it.value)))
}

/// Masked: the log outlives the subscriber, who may have asked to be forgotten.
fn of_subscriber(subscriber: &Subscriber) -> Named {
    let name = match subscriber.clone().masked().contact {
        Contact::Email(email) => email,
        Contact::Webhook { url, .. } => url,
    };
    (AuditSubject::Subscriber, subscriber.id.to_string(), name, Some(subscriber.page))
}

fn of_company(company: &CompanySignIn) -> Named {
    (AuditSubject::CompanySignIn, String::new(), company.issuer.clone(), None)
}

fn sign_in_of(person: &Person) -> Named {
    (AuditSubject::SignIn, person.id.to_string(), person.display_name().to_owned(), None)
}

fn person_name(reader: &dyn StoreRead, id: PersonId) -> ServiceResult<String> {
    Ok(reader.person(id)?.map(|it| it.value.display_name().to_owned()).unwrap_or_default())
}

/// An invitation with its role; none for other links.
fn invited(link: &OneTimeLink) -> Option<(Named, Role)> {
    match &link.kind {
        LinkKind::Invitation { email, role, .. } => {
            Some(((AuditSubject::Invitation, link.id.short(), email.clone(), None), *role))
        }
        LinkKind::SetUp { .. } | LinkKind::SignIn { .. } | LinkKind::PasswordReset { .. } => None,
    }
}
