//! Queries for persons: their accounts, sessions and one-time links.

use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::one_time_link::{LinkId, LinkOwner, OneTimeLink};
use parallax_core::person::{AccountMember, Person};

use super::{Result, VersionedValue};

/// Queries for persons; see [`StoreRead`](super::StoreRead) for what holds for all queries.
pub trait PeopleRead {
    /// The person.
    fn person(&self, id: PersonId) -> Result<Option<VersionedValue<Person>>>;
    /// The person with that email address in canonical form.
    fn person_by_email(&self, email: &str) -> Result<Option<VersionedValue<Person>>>;
    /// The person's membership of the account.
    fn account_member(&self, account: AccountId, person: PersonId) -> Result<Option<VersionedValue<AccountMember>>>;
    /// The account's members, by person.
    fn members_of(&self, account: AccountId) -> Result<Vec<VersionedValue<AccountMember>>>;
    /// The person's places in accounts, by account.
    fn memberships_of(&self, person: PersonId) -> Result<Vec<VersionedValue<AccountMember>>>;
    /// The account's company sign-in.
    fn company_sign_in(&self, account: AccountId) -> Result<Option<VersionedValue<CompanySignIn>>>;
    /// The company sign-in of the account that proved the email domain.
    fn company_of_domain(&self, domain: &str) -> Result<Option<VersionedValue<CompanySignIn>>>;
    /// The signed-in browser.
    fn login_session(&self, id: LoginSessionId) -> Result<Option<VersionedValue<LoginSession>>>;
    /// The person's signed-in browsers, expired ones too, by id.
    fn login_sessions_of(&self, person: PersonId) -> Result<Vec<VersionedValue<LoginSession>>>;
    /// Ids of signed-in browsers of anyone, expired ones too; up to `limit`.
    fn login_session_ids(&self, limit: usize) -> Result<Vec<LoginSessionId>>;
    /// The one-time link.
    fn one_time_link(&self, id: LinkId) -> Result<Option<VersionedValue<OneTimeLink>>>;
    /// The one-time links that count for an account or person, expired ones too, by id.
    fn one_time_links_of(&self, owner: LinkOwner) -> Result<Vec<VersionedValue<OneTimeLink>>>;
    /// Ids of one-time links of anyone, expired ones too; up to `limit`.
    fn one_time_link_ids(&self, limit: usize) -> Result<Vec<LinkId>>;
}
