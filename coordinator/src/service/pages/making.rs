//! Creation of pages by API keys that are not bound to a page.

use parallax_core::event::Edited;
use parallax_core::given::Given;
use parallax_core::id::{AccountId, PageId};
use parallax_core::page::Page;
use parallax_core::page::edit::{PageEdit, read_slug};
use parallax_core::plan::{self, PlanRefusal};
use parallax_core::refusal::Refusals;
use parallax_core::time::Timestamp;

use super::editing::{Settled, hashed};
use crate::service::destinations::owner::of_owner;
use crate::service::once::{Done, Once};
use crate::service::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is};

/// A new page: its slug, and the fields that can be edited later.
#[derive(Debug, Clone, Default)]
pub struct NewPage {
    /// The slug.
    pub slug: Given<String>,
    /// The other fields; the name is required.
    pub edit: PageEdit,
}

impl NewPage {
    fn settle(&self, service: &Service, account: AccountId) -> Result<Settled> {
        let mut faults = Refusals::none();
        let slug = self.slug.required("slug", None, &mut faults, |slug| read_slug(slug));
        if self.edit.name == Given::Absent {
            faults.add("name", "is required");
        }
        let slug = slug.unwrap_or_default();
        let settled = service.settled(&self.edit, &blank(account, String::new(), slug, service.now()));
        if let Err(Error::Invalid(more)) = &settled {
            more.iter().for_each(|fault| faults.add(fault.field.clone(), fault.rule.clone()));
        }
        if faults.is_empty() { settled } else { Err(faults.into()) }
    }
}

impl Service {
    /// Creates a page on the key's account.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::OnePage`] for a key that is bound to a page, [`Error::Invalid`], and
    /// [`Error::PlanLimit`] if the account has the maximum of pages of its plan.
    pub async fn add_page(
        &self,
        caller: &Caller,
        new: &NewPage,
        once: &Once<'_, Page>,
    ) -> Result<Done<Page>> {
        self.makes_pages(caller)?;
        if let Some(answer) = self.answered(once)? {
            return Ok(Done::Before(answer));
        }
        let id = caller.key.account;
        let Settled { mut page, ops } = new.settle(self, id)?;
        page.password = hashed(&new.edit).await?;
        // One at a time, so that a plan's last page is created once.
        let _making = self.0.making.lock().await;
        let (page, ops) = (&page, &ops);
        self.change(page.id.to_u128(), || async move {
            if let Some(answer) = self.answered(once)? {
                return Ok((Done::Before(answer), None));
            }
            let account = self.store().reader().account(id)?.ok_or(Error::NotFound)?;
            if self.store().reader().page_by_slug(&page.slug)?.is_some() {
                return Err(Refusals::one("slug", "is taken").into());
            }
            let (plan, pages) =
                (account.value.plan, self.store().read(move |store| store.pages_of(id)).await?);
            let limit = plan::pages(plan);
            if pages.len() >= limit {
                return Err(PlanRefusal::PagesFull { plan, limit }.into());
            }
            let mut batch = Batch::new();
            batch
                .expect(Expect::Account(id, Is::At(account.revision)))
                .expect(Expect::Page(page.id, Is::Absent));
            batch.write(page.clone()).write(of_owner(page.id, account.value.email, self.now()));
            batch.ops.extend(ops.iter().cloned());
            batch.event(self.page_event(page.id, Edited::Created));
            self.remember(once, page, &mut batch)?;
            Ok((Done::Now(page.clone()), Some(batch)))
        })
        .await
    }

    /// Checks that the key may create and delete pages.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] and [`Error::OnePage`].
    pub fn makes_pages(&self, caller: &Caller) -> Result<()> {
        caller.writes()?;
        if caller.key.page.is_none() { Ok(()) } else { Err(Error::OnePage) }
    }
}

/// A page with defaults for everything except its name and slug.
pub(super) fn blank(account: AccountId, name: String, slug: String, now: Timestamp) -> Page {
    Page { name, ..Page::blank(PageId::new(now, rand::random()), account, slug, now) }
}
