//! Pages made by those whose key reaches all of an account.

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

/// What a new page is to be: its address label, and the fields that its owner may change later.
#[derive(Debug, Clone, Default)]
pub struct NewPage {
    /// The address label.
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
    /// Makes a page on the key's account.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::OnePage`] for a key that is bound to a page, [`Error::Invalid`], and
    /// [`Error::PlanLimit`] where the account has all the pages of its plan.
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
        // One at a time, so that the last page of a plan is made once.
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

    /// Whether the key may make and delete pages.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] and [`Error::OnePage`].
    pub fn makes_pages(&self, caller: &Caller) -> Result<()> {
        caller.writes()?;
        if caller.key.page.is_none() { Ok(()) } else { Err(Error::OnePage) }
    }
}

/// A page with nothing set but its name and address.
pub(super) fn blank(account: AccountId, name: String, slug: String, now: Timestamp) -> Page {
    Page { name, ..Page::blank(PageId::new(now, rand::random()), account, slug, now) }
}
