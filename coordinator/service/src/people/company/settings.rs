//! Settings of company sign-in, which owners change after a confirmation: the provider, and what it is trusted for.

use parallax_core::account::Account;
use parallax_core::company_sign_in::{CompanyDomain, CompanySignIn, MAX_CLIENT_ID, MAX_CLIENT_SECRET, MAX_ISSUER};
use parallax_core::id::AccountId;
use parallax_core::person::AccountMember;
use parallax_core::role::Permission;
use parallax_core::validation::{Rule, ValidationErrors};
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};
use url::Url;

use super::super::{CurrentSession, PeopleService};
use super::provider::Provider;
use crate::{ServiceError, ServiceResult};

/// Tests of a provider and look-ups of domains by one account in a minute.
const TESTS_PER_MINUTE: u32 = 6;

/// Company sign-in of an account, as its owners see it: without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanySettings {
    /// Address of the provider; empty before it is set up.
    pub issuer: String,
    /// Id of this service at the provider.
    pub client_id: String,
    /// True if a secret is stored.
    pub has_secret: bool,
    /// Email domains, proved or not.
    pub domains: Vec<CompanyDomain>,
    /// True if members other than owners have no other way in.
    pub is_required: bool,
    /// True if the provider asks for a second factor.
    pub covers_second_factor: bool,
    /// True if the provider was seen to work with these settings.
    pub works: bool,
    /// Address to give the provider, to which it sends browsers back.
    pub callback: String,
    /// Address at which members begin.
    pub start: String,
}

/// Fields of the provider that an owner enters.
#[derive(Clone, Default)]
pub struct ProviderEdit {
    /// Address of the provider.
    pub issuer: String,
    /// Id of this service at the provider.
    pub client_id: String,
    /// Secret of this service at the provider; empty for the stored one.
    pub client_secret: String,
}

impl std::fmt::Debug for ProviderEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderEdit").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Trust of an account in its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompanyOptions {
    /// True if members other than owners have no other way in.
    pub is_required: bool,
    /// True if the provider asks for a second factor.
    pub covers_second_factor: bool,
}

impl PeopleService {
    /// Returns true if this installation reaches providers.
    pub const fn offers_company_sign_in(&self) -> bool {
        self.company.client.is_some()
    }

    /// Returns the company sign-in of the session's account.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`] for everyone but owners.
    pub fn company_settings(&self, current: &CurrentSession) -> ServiceResult<CompanySettings> {
        current.caller().require(Permission::ManageAccount)?;
        let account = current.session.account;
        let company = self.company(account)?.unwrap_or_else(|| none_yet(account));
        Ok(CompanySettings {
            issuer: company.issuer,
            client_id: company.client_id,
            has_secret: !company.client_secret.is_empty(),
            domains: company.domains,
            is_required: company.is_required,
            covers_second_factor: company.covers_second_factor,
            works: company.worked_at.is_some(),
            callback: self.company_callback(account),
            start: format!("{}/sign-in/oidc/{account}", self.context.base_url()),
        })
    }

    /// Sets the provider. Another one, or another client, begins without tests: it is not required, people are known to it
    /// by other subjects, and the sessions that began by the one before end.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::Invalid`], also for another
    /// provider at a session by company sign-in, which would end itself.
    pub async fn set_company_provider(&self, current: &CurrentSession, edit: &ProviderEdit) -> ServiceResult<()> {
        self.begin_member_change(current)?;
        let mut faults = ValidationErrors::new();
        let issuer = faults.record("issuer", self.read_issuer(&edit.issuer));
        let client_id = faults.record("clientId", bounded(&edit.client_id, MAX_CLIENT_ID));
        if edit.client_secret.len() > MAX_CLIENT_SECRET {
            faults.add("clientSecret", format!("must be at most {MAX_CLIENT_SECRET} bytes"));
        }
        let (Some(issuer), Some(client_id)) = (issuer, client_id) else { return Err(faults.into()) };
        if !faults.is_empty() {
            return Err(faults.into());
        }
        let (issuer, client_id) = (&issuer, &client_id);
        self.change_company(current, |mut company, batch| {
            let is_other = (&company.issuer, &company.client_id) != (issuer, client_id);
            let secret = edit.client_secret.trim();
            if is_other && secret.is_empty() && !company.client_secret.is_empty() {
                // The secret of one provider must not be sent to another.
                let rule = "must be entered again for another provider or client";
                return Err(ValidationErrors::single("clientSecret", rule).into());
            }
            if is_other {
                Self::require_own_sign_in(current)?;
                self.forget_subjects(company.account, batch)?;
                company.is_required = false;
            }
            if is_other || !secret.is_empty() {
                company.worked_at = None;
            }
            if !secret.is_empty() {
                secret.clone_into(&mut company.client_secret);
            }
            Ok(CompanySignIn { issuer: issuer.clone(), client_id: client_id.clone(), ..company })
        })
        .await
    }

    /// Sets what the provider is trusted for. Sessions of members that the account accepts no longer end at once.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::Invalid`] if company
    /// sign-in is to be required before it worked once, or shuts out members who need a second factor.
    pub async fn set_company_options(&self, current: &CurrentSession, options: CompanyOptions) -> ServiceResult<()> {
        let CompanyOptions { is_required, covers_second_factor } = options;
        self.change_company(current, |company, batch| {
            require_provider(&company)?;
            if is_required && !company.is_required {
                let missing = if company.proved_domains().next().is_none() {
                    Some("needs an email domain that is proved")
                } else if company.worked_at.is_none() {
                    Some("needs a test that passed, or a company sign-in that worked")
                } else {
                    None
                };
                if let Some(rule) = missing {
                    return Err(ValidationErrors::single("required", rule).into());
                }
            }
            let changed = CompanySignIn { is_required, covers_second_factor, ..company };
            let account = self.context.store().reader().account(changed.account)?.ok_or(ServiceError::NotFound)?;
            if shuts_members_out(&changed, &account.value) {
                let rule = "must be ticked if company sign-in is required: members of this account need a second factor, and \
                            company sign-in sets none up";
                return Err(ValidationErrors::single("covers", rule).into());
            }
            // Another owner may be asking for second factors now.
            batch.expect(Expect::Account(changed.account, Presence::At(account.revision)));
            Ok(changed)
        })
        .await
    }

    /// Reads the provider's documents, and returns the problem with them in words; none if a sign-in can work.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::TooManyTries`],
    /// [`ServiceError::Invalid`] before a provider is set.
    pub async fn test_company_provider(&self, current: &CurrentSession) -> ServiceResult<Option<String>> {
        let account = self.begin_member_change(current)?;
        let settings = self.company(account)?.unwrap_or_else(|| none_yet(account));
        require_provider(&settings)?;
        self.admit_company_test(account)?;
        let Some(client) = &self.company.client else {
            return Ok(Some("this installation reaches no providers".to_owned()));
        };
        let provider = Provider {
            step: client.step(),
            cache: &self.company.providers,
            settings: &settings,
            callback: self.company_callback(account),
            now: self.context.now(),
        };
        if let Err(problem) = provider.check().await {
            return Ok(Some(problem));
        }
        let now = self.context.now();
        let tested = (&settings.issuer, &settings.client_id, &settings.client_secret);
        self.change_company(current, |company, _| {
            let is_same = (&company.issuer, &company.client_id, &company.client_secret) == tested;
            Ok(if is_same { CompanySignIn { worked_at: Some(now), ..company } } else { company })
        })
        .await?;
        Ok(None)
    }

    /// Removes company sign-in. The sessions that began by it end; its domains are free.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::Invalid`] at a session by
    /// company sign-in, which would end itself.
    pub async fn remove_company(&self, current: &CurrentSession) -> ServiceResult<()> {
        let account = self.begin_member_change(current)?;
        Self::require_own_sign_in(current)?;
        self.context
            .commit_change(account.to_u128(), || async move {
                let Some(stored) = self.context.store().reader().company_sign_in(account)? else {
                    return Ok(((), None));
                };
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                batch.expect(Expect::CompanySignIn(account, Presence::At(stored.revision)));
                self.forget_subjects(account, &mut batch)?;
                batch.write(Op::DeleteCompanySignIn(account));
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await?;
        tracing::info!(%account, by = %current.person.id, "company sign-in was removed");
        Ok(())
    }

    /// Counts a test of a provider, or a look-up of a domain.
    pub(super) fn admit_company_test(&self, account: AccountId) -> ServiceResult<()> {
        let limited = self.context.check_rate(&self.company.test_limit, TESTS_PER_MINUTE, &account);
        limited.map_err(|exceeded| ServiceError::TooManyTries { seconds: exceeded.seconds })
    }

    /// Changes the company sign-in of the session's account, and logs it.
    pub(super) async fn change_company(
        &self,
        current: &CurrentSession,
        change: impl Fn(CompanySignIn, &mut Batch) -> ServiceResult<CompanySignIn>,
    ) -> ServiceResult<()> {
        let (account, change) = (self.begin_member_change(current)?, &change);
        self.context
            .commit_change(account.to_u128(), || async move {
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                let stored = self.context.store().reader().company_sign_in(account)?;
                let (presence, company) = match stored {
                    Some(VersionedValue { revision, value }) => (Presence::At(revision), value),
                    None => (Presence::Absent, none_yet(account)),
                };
                batch.expect(Expect::Account(account, Presence::Present));
                let changed = change(company.clone(), &mut batch)?;
                if changed == company {
                    return Ok(((), None));
                }
                batch.expect(Expect::CompanySignIn(account, presence)).write(changed);
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await
    }

    /// Forgets who the members are at the provider, and ends the sessions that began by it, in a batch. Those who enter by
    /// it alone still do.
    fn forget_subjects(&self, account: AccountId, batch: &mut Batch) -> ServiceResult<()> {
        let reader = self.context.store().reader();
        for member in reader.members_of(account)? {
            if member.value.company_subject.is_none() {
                continue;
            }
            let (person, revision) = (member.value.person, member.revision);
            batch.expect(Expect::AccountMember(account, person, Presence::At(revision)));
            batch.write(AccountMember { company_subject: None, ..member.value });
            // A session that begins now writes its person. One that is missed is accepted nowhere: it has a subject that
            // no member has, until they sign in by the same provider again.
            let Some(stored) = reader.person(person)? else { continue };
            batch.expect(Expect::Person(person, Presence::At(stored.revision)));
            let sessions = reader.login_sessions_of(person)?.into_iter().map(|it| it.value);
            for session in sessions.filter(|it| it.account == account && it.is_company) {
                batch.write(Op::DeleteLoginSession(session.id));
                self.uses.remove(&session.id);
            }
        }
        Ok(())
    }

    fn read_issuer(&self, typed: &str) -> std::result::Result<String, Rule> {
        let typed = bounded(typed, MAX_ISSUER)?;
        let rule = || "must be an https address such as https://id.example.com".to_owned();
        let url = Url::parse(&typed).map_err(|_| rule())?;
        let is_allowed = match &self.company.client {
            Some(client) => client.is_allowed(&url),
            None => url.scheme() == "https",
        };
        if !is_allowed {
            return Err(rule());
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err("must have no user, query or fragment".to_owned());
        }
        if typed.ends_with("/.well-known/openid-configuration") {
            return Err("must be the issuer, without /.well-known/openid-configuration".to_owned());
        }
        Ok(typed)
    }
}

/// Returns true if these settings shut members out who need a second factor: with company sign-in required they have no
/// session that may set one up, and the provider's own does not count.
pub(in crate::people) const fn shuts_members_out(company: &CompanySignIn, account: &Account) -> bool {
    company.is_required && !company.covers_second_factor && account.factor_needed_since.is_some()
}

/// Checks that a provider is set.
pub(super) fn require_provider(company: &CompanySignIn) -> ServiceResult<()> {
    if company.issuer.is_empty() {
        return Err(ValidationErrors::single("issuer", "must be saved first").into());
    }
    Ok(())
}

fn none_yet(account: AccountId) -> CompanySignIn {
    CompanySignIn {
        account,
        issuer: String::new(),
        client_id: String::new(),
        client_secret: String::new(),
        domains: Vec::new(),
        is_required: false,
        covers_second_factor: false,
        worked_at: None,
    }
}

fn bounded(typed: &str, max: usize) -> std::result::Result<String, Rule> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err("is required".to_owned());
    }
    if typed.len() > max || typed.chars().any(|sign| sign.is_control() || sign.is_whitespace()) {
        return Err(format!("must be at most {max} bytes without spaces"));
    }
    Ok(typed.to_owned())
}
