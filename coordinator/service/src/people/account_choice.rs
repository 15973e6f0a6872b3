//! Accounts of a person who is a member of several: listed, and chosen for a session.

use parallax_core::id::AccountId;
use parallax_core::role::Role;
use parallax_store::{Batch, Expect, Presence};

use super::{CurrentSession, PeopleService, SignInStep};
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
        let (person, shown, is_company) = (current.person.id, current.session.account, current.session.is_company);
        let choices = self.context.store().read(move |store| {
            let memberships = store.memberships_of(person)?.into_iter().map(|it| it.value);
            // A session by company sign-in is of its account alone.
            let mut memberships: Vec<_> = memberships.filter(|it| !is_company || it.account == shown).collect();
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

    /// Returns the number of accounts that a session can show.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn account_count(&self, current: &CurrentSession) -> ServiceResult<usize> {
        let person = current.person.id;
        if current.session.is_company {
            return Ok(1);
        }
        Ok(self.context.store().reader().memberships_of(person)?.len())
    }

    /// Shows another account of the person in this browser: its session gets a new id, and is no younger for it. The
    /// account logs it as a sign-in, once a day.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account of which they are no member, [`ServiceError::Invalid`] for a session by
    /// company sign-in.
    pub async fn choose_account(&self, current: &CurrentSession, account: AccountId) -> ServiceResult<SignInStep> {
        let person = current.person.id;
        Self::require_own_sign_in(current)?;
        // Going to and fro is no sign-in each time.
        let is_logged = self.log_limits.admits_switch(account, person, self.context.now());
        let session = self
            .context
            .commit_change(person.to_u128(), || async move {
                self.role_in(account, person)?.ok_or(ServiceError::NotFound)?;
                let mut batch = Batch::new();
                batch.expect(Expect::AccountMember(account, person, Presence::Present));
                if self.needs_company_after((account, person), &batch)? {
                    return Ok((SignInStep::Company(account), None));
                }
                Self::touch_person(self.person(person)?, &mut batch);
                let session = self.move_session(current, account, &mut batch)?;
                if is_logged {
                    let network = current.address.map(network_text);
                    self.context.log_sign_in(account, &current.person, network, &mut batch);
                }
                Ok((SignInStep::Complete(session), Some(batch)))
            })
            .await?;
        if matches!(session, SignInStep::Complete(_)) {
            self.uses.remove(&current.session.id);
            if is_logged {
                self.log_limits.count_switch(account, person, self.context.now());
            }
        }
        Ok(session)
    }
}
