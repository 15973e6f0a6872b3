//! Creation of pages by API keys that are not bound to a page.

use parallax_core::event::EditKind;
use parallax_core::id::{AccountId, PageId};
use parallax_core::page::Page;
use parallax_core::page::edit::{PageEdit, read_name, read_slug};
use parallax_core::patch::PatchField;
use parallax_core::plan::{self, PlanLimitError};
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence};

use super::PageService;
use super::editing::{EditedPage, hash_new_password};
use crate::audit::ChangeAuthor;
use crate::destinations::default_destination::default_destination;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceError, ServiceResult};

/// A new page: its slug, and the fields that can be edited later.
#[derive(Debug, Clone, Default)]
pub struct NewPage {
    /// The slug.
    pub slug: PatchField<String>,
    /// The other fields; the name is required.
    pub edit: PageEdit,
}

impl NewPage {
    fn validate(&self, service: &PageService, account: AccountId) -> ServiceResult<EditedPage> {
        let mut faults = ValidationErrors::new();
        let slug = self.slug.required("slug", None, &mut faults, |slug| read_slug(slug));
        if self.edit.name == PatchField::Absent {
            faults.add("name", "is required");
        }
        let slug = slug.unwrap_or_default();
        let checked = service.apply_edit(&self.edit, &blank_page(account, String::new(), slug, service.context.now()));
        if let Err(ServiceError::Invalid(field_errors)) = &checked {
            field_errors.iter().for_each(|fault| faults.add(fault.field.clone(), fault.rule.clone()));
        }
        if faults.is_empty() { checked } else { Err(faults.into()) }
    }
}

impl PageService {
    /// Creates a page on the caller's account.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::KeyBoundToPage`] for a key that is bound to a page,
    /// [`ServiceError::Invalid`], and [`ServiceError::PlanLimit`] if the account has the maximum of pages of its plan.
    pub async fn create(
        &self,
        caller: &Caller,
        new: &NewPage,
        once: &IdempotentRequest<'_, Page>,
    ) -> ServiceResult<RequestOutcome<Page>> {
        self.require_admin(caller)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let id = caller.account;
        let EditedPage { mut page, ops } = new.validate(self, id)?;
        page.password_hash = hash_new_password(&new.edit).await?;
        // One at a time, so that a plan's last page is created once.
        let _making = self.context.create_lock.lock().await;
        let (page, ops) = (&page, &ops);
        self.context
            .commit_change(page.id.to_u128(), || async move {
                if let Some(answer) = self.context.replayed_answer(once)? {
                    return Ok((RequestOutcome::Replayed(answer), None));
                }
                let account = self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?;
                if self.context.store().reader().page_by_slug(&page.slug)?.is_some() {
                    return Err(ValidationErrors::single("slug", "is taken").into());
                }
                let (plan, pages) =
                    (account.value.plan, self.context.store().read(move |store| store.pages_of(id)).await?);
                let limit = plan::max_pages(plan);
                if pages.len() >= limit {
                    return Err(PlanLimitError::PagesFull { plan, limit }.into());
                }
                let mut batch = Batch::new();
                batch
                    .expect(Expect::Account(id, Presence::At(account.revision)))
                    .expect(Expect::Page(page.id, Presence::Absent));
                batch.write(page.clone()).write(default_destination(page.id, account.value.email, self.context.now()));
                batch.ops.extend(ops.iter().cloned());
                batch.event(self.context.page_event(page.id, EditKind::Created));
                self.context.log_change(caller, &mut batch)?;
                self.context.store_answer(once, page, &mut batch)?;
                Ok((RequestOutcome::Fresh(page.clone()), Some(batch)))
            })
            .await
    }

    /// Checks that the caller may create and delete pages.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::RoleForbids`] and [`ServiceError::KeyBoundToPage`].
    pub fn require_admin(&self, caller: &Caller) -> ServiceResult<()> {
        caller.require(Permission::ManagePage)?;
        if caller.page.is_none() { Ok(()) } else { Err(ServiceError::KeyBoundToPage) }
    }

    /// Creates a page; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that does not exist, [`ServiceError::Invalid`] for an invalid name or
    /// an invalid, reserved or taken slug.
    pub async fn create_as_operator(&self, account: AccountId, name: &str, slug: &str) -> ServiceResult<Page> {
        let mut faults = ValidationErrors::new();
        let name = faults.record("name", read_name(name));
        let slug = faults.record("slug", read_slug(slug));
        let (Some(name), Some(slug)) = (name, slug) else { return Err(faults.into()) };
        let page = blank_page(account, name, slug, self.context.now());
        let page = &page;
        self.context
            .commit_change(page.id.to_u128(), || async move {
                let owner = self.context.store().reader().account(account)?.ok_or(ServiceError::NotFound)?.value;
                if self.context.store().reader().page_by_slug(&page.slug)?.is_some() {
                    return Err(ValidationErrors::single("slug", "is taken").into());
                }
                let mut batch = Batch::new();
                batch
                    .expect(Expect::Account(account, Presence::Present))
                    .expect(Expect::Page(page.id, Presence::Absent));
                batch.write(page.clone()).write(default_destination(page.id, owner.email, self.context.now()));
                batch.event(self.context.page_event(page.id, EditKind::Created));
                self.context.log_change(ChangeAuthor::operator(account), &mut batch)?;
                Ok((page.clone(), Some(batch)))
            })
            .await
    }
}

/// A page with defaults for everything except its name and slug.
pub(super) fn blank_page(account: AccountId, name: String, slug: String, now: Timestamp) -> Page {
    Page { name, ..Page::blank(PageId::new(now, rand::random()), account, slug, now) }
}
