//! Set-up of an account by a one-time link: its bearer becomes the owner.

use parallax_core::account::Account;
use parallax_core::destination::{Channel, Destination};
use parallax_core::id::{AccountId, PersonId};
use parallax_core::one_time_link::{LinkKind, LinkOwner, OneTimeLink};
use parallax_core::page::access::normalize_email;
use parallax_core::person::{AccountMember, MAX_MEMBERS, MAX_MEMBERSHIPS, Person, check_password};
use parallax_core::plan::{Plan, PlanLimitError};
use parallax_core::role::Role;
use parallax_core::text;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::first_site::FirstSite;
use super::members::MAX_NAME;
use super::{BrowserInfo, PeopleService, SignInStep};
use crate::audit::ChangeAuthor;
use crate::page_access::password;
use crate::{ServiceError, ServiceResult, secret_text};

/// End of the email address of an account whose owner has not given theirs: no such domain exists (RFC 2606).
const PLACEHOLDER: &str = ".invalid";

/// Rule that an address breaks whose person keeps a passkey: who has it would get in without the link.
const PASSKEY_STAYS: &str = "belongs to a person whose passkey is the second factor that an account needs: ask the \
                             operator to remove it first with `parallax account factor --email ADDRESS off`";

/// Fields that an account's new owner enters.
#[derive(Clone, Default)]
pub struct SetUpDetails {
    /// Their email address; ignored if the account has one.
    pub email: String,
    /// Their password.
    pub password: String,
    /// Their name; may be empty.
    pub name: String,
    /// First site to monitor; ignored unless the account [asks for it](SetUpAccount::asks_for_site).
    pub site: FirstSite,
}

impl std::fmt::Debug for SetUpDetails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetUpDetails").field("email", &self.email).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The account that a set-up link is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpAccount {
    /// Its email address; none if its owner chooses one.
    pub email: Option<String>,
    /// True if nobody uses it yet: the first monitor and its page are made with the owner.
    pub asks_for_site: bool,
    /// Its id, which the bearer of the link may act for.
    pub(crate) id: AccountId,
}

/// A set-up link with its parts.
struct SetUpLink {
    link: VersionedValue<OneTimeLink>,
    account: AccountId,
    is_operator: bool,
}

impl PeopleService {
    /// Makes a link that makes its bearer the account's owner, and returns its address; called by the operator. It
    /// works once, for a day. If the owner has a password already, it lets them choose another. With `is_operator` the
    /// owner operates the installation, too.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that does not exist.
    pub async fn create_set_up_link(&self, account: AccountId, is_operator: bool) -> ServiceResult<String> {
        let token = &secret_text::random_token(rand::random());
        // Under the account's lock: a set-up that ends its links misses none.
        self.context
            .commit_change(account.to_u128(), || async move {
                self.context.store().reader().account(account)?.ok_or(ServiceError::NotFound)?;
                let mut batch = Batch::new();
                self.add_link(token, (LinkKind::SetUp { account, is_operator }, false), &mut batch).await?;
                Ok((format!("{}/setup/{token}", self.context.base_url()), Some(batch)))
            })
            .await
    }

    /// Returns the account that a set-up link is for; none for an invalid link.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn set_up_account(&self, token: &str) -> ServiceResult<Option<SetUpAccount>> {
        let Some(link) = self.set_up_link(token)? else { return Ok(None) };
        let Some(account) = self.context.store().reader().account(link.account)? else { return Ok(None) };
        let asks_for_site = self.first_page(link.account)?.is_some();
        Ok(Some(SetUpAccount { email: known_email(&account.value), asks_for_site, id: link.account }))
    }

    /// Uses a set-up link: the account gets an owner with that password, who is signed in. A person who had a second
    /// factor keeps it, and is asked for it; passkeys that no account needs as one are removed. An account that nobody uses
    /// yet gets its first page and monitor, too. All of it is one batch: a refusal leaves nothing behind, and the link still
    /// works.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid link, which is checked first; [`ServiceError::Invalid`] for a field that
    /// breaks a rule, a taken email address or a taken slug, [`ServiceError::PlanLimit`] if the account is full,
    /// [`ServiceError::Busy`].
    pub async fn set_up(
        &self,
        token: &str,
        details: &SetUpDetails,
        browser: &BrowserInfo,
    ) -> ServiceResult<SignInStep> {
        let target = self.set_up_account(token)?.ok_or(ServiceError::NotFound)?;
        let account = self.set_up_link(token)?.ok_or(ServiceError::NotFound)?.account;
        let mut faults = ValidationErrors::new();
        let email = faults.record("email", normalize_email(target.email.as_ref().unwrap_or(&details.email)));
        faults.record("password", check_password(&details.password));
        let name = faults.record("name", text::optional_line(&details.name, MAX_NAME)).flatten();
        let site = &if target.asks_for_site { details.site.validate(&mut faults) } else { None };
        if let (Some(site), Some(place)) = (site, self.first_page(account)?)
            && let Some(rule) = self.taken_slug_rule(site, &place)?
        {
            faults.add("slug", rule);
        }
        let Some(email) = email.filter(|_| faults.is_empty()) else { return Err(faults.into()) };
        let hash = password::hash(&details.password).await?;
        let owner = &NewOwner { email, name, hash };
        // One at a time, since an email address is taken once.
        let _making = self.context.create_lock.lock().await;
        self.context
            .commit_change(account.to_u128(), || async move {
                let SetUpLink { link, is_operator, .. } = self.set_up_link(token)?.ok_or(ServiceError::NotFound)?;
                let place = self.first_page(account)?;
                let mut batch = Batch::new();
                batch.expect(Expect::OneTimeLink(link.value.id, Presence::At(link.revision)));
                // The account's other set-up links end with this one: each would make its bearer the owner.
                let is_set_up = |link: &OneTimeLink| matches!(link.kind, LinkKind::SetUp { .. });
                self.end_links(LinkOwner::Account(account), is_set_up, &mut batch).await?;
                let plan = self.give_email(account, &owner.email, &mut batch).await?;
                if let (Some(site), Some(place)) = (site, place) {
                    self.add_first_site((account, plan, &owner.email), site, place, &mut batch)?;
                }
                let person = self.make_owner(account, owner, is_operator, &mut batch).await?;
                let author = ChangeAuthor::person(account, &person, browser.network.clone());
                self.context.log_change(author, &mut batch)?;
                let step = self.next_step(&person, account.into(), (false, browser), &mut batch).await?;
                Ok((step, Some(batch)))
            })
            .await
    }

    /// Gives an account without an email address the one of its new owner, and its alerts, too. Returns its plan.
    async fn give_email(&self, id: AccountId, email: &str, batch: &mut Batch) -> ServiceResult<Plan> {
        let reader = self.context.store().reader();
        let VersionedValue { revision, value: account } = reader.account(id)?.ok_or(ServiceError::NotFound)?;
        batch.expect(Expect::Account(id, Presence::At(revision)));
        let plan = account.plan;
        if known_email(&account).is_some() {
            return Ok(plan);
        }
        let accounts = self.context.store().read(|store| store.accounts()).await?;
        let is_taken = accounts.iter().any(|other| other.value.email.eq_ignore_ascii_case(email));
        if is_taken || reader.person_by_email(email)?.is_some() {
            return Err(ValidationErrors::single("email", "is taken").into());
        }
        for page in self.context.store().read(move |store| store.pages_of(id)).await? {
            let page = page.value.id;
            for destination in self.context.store().read(move |store| store.destinations_of(page)).await? {
                if destination.value.mailbox() == Some(&account.email) {
                    // Edits of a destination don't take the account's lock.
                    batch.expect(Expect::Destination(destination.value.id, Presence::At(destination.revision)));
                    let channel = Channel::Email { to: email.to_owned() };
                    batch.write(Destination { channel, ..destination.value });
                }
            }
        }
        batch.write(Account { email: email.to_owned(), ..account });
        Ok(plan)
    }

    /// Makes an owner of the account in a batch: a new person, or one whose sessions and links end.
    async fn make_owner(
        &self,
        account: AccountId,
        owner: &NewOwner,
        is_operator: bool,
        batch: &mut Batch,
    ) -> ServiceResult<Person> {
        let (now, reader) = (self.context.now(), self.context.store().reader());
        let password_hash = Some(owner.hash.clone());
        let members = self.context.store().read(move |store| store.members_of(account)).await?;
        let person = match reader.person_by_email(&owner.email)? {
            Some(VersionedValue { revision, value }) => {
                batch.expect(Expect::Person(value.id, Presence::At(revision)));
                self.end_sessions_of(value.id, |_| true, batch).await?;
                self.end_links(LinkOwner::Person(value.id), |_| true, batch).await?;
                let is_owner =
                    |it: &AccountMember| it.person == value.id && it.role == Role::Owner && !it.is_company_only;
                let gets_more = !members.iter().any(|it| is_owner(&it.value)) || (is_operator && !value.is_operator);
                let (name, is_operator) = (owner.name.clone().or(value.name), value.is_operator || is_operator);
                let mut person = Person { password_hash, name, is_operator, ..value };
                person.second_factor.forget_pending();
                if self.drop_passkeys(&mut person)? && gets_more {
                    // Who has the passkey would get in without the link, and without the new password.
                    return Err(ValidationErrors::single("email", PASSKEY_STAYS).into());
                }
                person
            }
            None => {
                let id = PersonId::new(now, rand::random());
                batch.expect(Expect::Person(id, Presence::Absent));
                let person = Person::new((id, owner.email.clone()), owner.name.clone(), password_hash, now);
                Person { is_operator, ..person }
            }
        };
        let id = person.id;
        let joined_at = members.iter().find(|it| it.value.person == id).map(|it| it.value.joined_at);
        let is_full = members.len() >= MAX_MEMBERS || reader.memberships_of(id)?.len() >= MAX_MEMBERSHIPS;
        if joined_at.is_none() && is_full {
            return Err(PlanLimitError::MembersFull.into());
        }
        let joined_at = joined_at.unwrap_or(now);
        batch.write(person.clone()).write(AccountMember::new((account, id), Role::Owner, joined_at));
        Ok(person)
    }

    fn set_up_link(&self, token: &str) -> ServiceResult<Option<SetUpLink>> {
        let link = self.valid_link(token)?;
        Ok(link.and_then(|link| match link.value.kind {
            LinkKind::SetUp { account, is_operator } => Some(SetUpLink { link, account, is_operator }),
            _ => None,
        }))
    }
}

/// An owner, validated.
struct NewOwner {
    email: String,
    name: Option<String>,
    hash: String,
}

/// Returns the account's email address; none if it is a placeholder.
fn known_email(account: &Account) -> Option<String> {
    Some(account.email.clone()).filter(|email| !email.ends_with(PLACEHOLDER))
}
