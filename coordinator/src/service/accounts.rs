//! Accounts and their plans: the operator's calls.

use parallax_core::account::{self, Account};
use parallax_core::event::{Edited, Event, What};
use parallax_core::id::AccountId;
use parallax_core::plan::Plan;
use parallax_core::refusal::Refusals;

use super::{Error, Result, Service};
use crate::storage::{Batch, Expect, Is};

impl Service {
    /// The operator makes an account. Without a plan named, the first of an installation is Pro, later ones Free.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad or taken email address.
    pub async fn create_account(&self, email: &str, plan: Option<Plan>) -> Result<Account> {
        let email = account::email(email).map_err(|rule| Refusals::one("email", rule))?;
        // One at a time, so that an address is taken once and one account is the first.
        let _making = self.0.making.lock().await;
        let others = self.store().read(|store| store.accounts()).await?;
        if others.iter().any(|other| other.value.email.eq_ignore_ascii_case(&email)) {
            return Err(Refusals::one("email", "is taken").into());
        }
        let now = self.now();
        let standard = if others.is_empty() { Plan::Pro } else { Plan::Free };
        let account = Account {
            id: AccountId::new(now, rand::random()),
            email,
            plan: plan.unwrap_or(standard),
            created_at: now,
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Account(account.id, Is::Absent)).write(account.clone());
        self.store().commit(batch).await?;
        Ok(account)
    }

    /// The operator's list of accounts, oldest first.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
    pub async fn accounts(&self) -> Result<Vec<Account>> {
        let accounts = self.store().read(|store| store.accounts()).await?;
        let mut accounts: Vec<Account> = accounts.into_iter().map(|account| account.value).collect();
        accounts.sort_by_key(|account| (account.created_at, account.id));
        Ok(accounts)
    }

    /// The operator puts an account on another plan. Its pages count as changed, since their monitors' interval does.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an account that is not there.
    pub async fn set_plan(&self, id: AccountId, plan: Plan) -> Result<Account> {
        self.change(id.to_u128(), || async move {
            let account = self.store().reader().account(id)?.ok_or(Error::NotFound)?;
            if account.value.plan == plan {
                return Ok((account.value, None));
            }
            let pages = self.store().read(move |store| store.pages_of(id)).await?;
            let changed = Account { plan, ..account.value };
            let mut batch = Batch::new();
            batch.expect(Expect::Account(id, Is::At(account.revision))).write(changed.clone());
            for page in pages {
                batch.event(Event {
                    at: self.now(),
                    page: Some(page.value.id),
                    monitor: None,
                    what: What::PageEdited(Edited::Changed),
                });
            }
            Ok((changed, Some(batch)))
        })
        .await
    }
}
