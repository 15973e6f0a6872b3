//! Accounts of a person who is a member of several: listed, and chosen for a session.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::role::Role;
use parallax_store::{Batch, Expect, Presence};

use super::{CurrentSession, NewSession, PeopleService};
use crate::client_network::network_text;
use crate::{ServiceError, ServiceResult};

/// Names of pages that describe an account.
const SHOWN_PAGES: usize = 3;

/// An account that a person may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountChoice {
    /// The account.
    pub id: AccountId,
    /// Its email address.
    pub email: String,
    /// Names of its first pages.
    pub pages: Vec<String>,
    /// Number of its pages.
    pub page_count: usize,
    /// The person's role in it.
    pub role: Role,
    /// True for the one that the session shows.
    pub is_current: bool,
}

impl PeopleService {
    /// Lists the accounts of the session's person, the one that they joined first on top.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn accounts(&self, current: &CurrentSession) -> ServiceResult<Vec<AccountChoice>> {
        let (person, shown) = (current.person.id, current.session.account);
        let choices = self.context.store().read(move |store| {
            let mut memberships: Vec<_> = store.memberships_of(person)?.into_iter().map(|it| it.value).collect();
            memberships.sort_by_key(|it| (it.joined_at, it.account));
            let mut choices = Vec::new();
            for member in memberships {
                let Some(account) = store.account(member.account)? else { continue };
                let mut pages: Vec<String> =
                    store.pages_of(member.account)?.into_iter().map(|page| page.value.name).collect();
                let page_count = pages.len();
                pages.sort();
                pages.truncate(SHOWN_PAGES);
                let (id, email, role) = (member.account, account.value.email, member.role);
                choices.push(AccountChoice { id, email, pages, page_count, role, is_current: id == shown });
            }
            Ok(choices)
        });
        Ok(choices.await?)
    }

    /// Returns the number of a person's accounts.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn account_count(&self, person: PersonId) -> ServiceResult<usize> {
        Ok(self.context.store().reader().memberships_of(person)?.len())
    }

    /// Shows another account of the person in this browser: its session gets a new id, and is no younger for it.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account of which they are no member.
    pub async fn choose_account(&self, current: &CurrentSession, account: AccountId) -> ServiceResult<NewSession> {
        let person = current.person.id;
        let session = self
            .context
            .commit_change(person.to_u128(), || async move {
                self.role_in(account, person)?.ok_or(ServiceError::NotFound)?;
                let mut batch = Batch::new();
                batch.expect(Expect::AccountMember(account, person, Presence::Present));
                Self::touch_person(self.person(person)?, &mut batch);
                let session = self.move_session(current, account, &mut batch)?;
                let network = current.address.map(network_text);
                self.context.log_sign_in(account, &current.person, network, &mut batch);
                Ok((session, Some(batch)))
            })
            .await?;
        self.uses.remove(&current.session.id);
        Ok(session)
    }
}
