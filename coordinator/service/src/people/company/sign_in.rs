//! Company sign-in of a person: to the provider and back.

use parallax_core::company_sign_in::{CompanySignIn, email_domain};
use parallax_core::id::{AccountId, PersonId};
use parallax_core::one_time_link::{LinkKind, LinkOwner, OneTimeLink};
use parallax_core::page::access::normalize_email;
use parallax_core::person::{AccountMember, MAX_MEMBERS, MAX_MEMBERSHIPS, Person};
use parallax_core::role::Role;
use parallax_core::text;
use parallax_store::{Batch, Expect, Presence, VersionedValue};
use sha2::{Digest, Sha256};
use url::Url;

use super::super::invitations::is_to;
use super::super::members::MAX_NAME;
use super::super::second_factor::SignInTarget;
use super::super::{BrowserInfo, PeopleService, SignInStep};
use super::CompanyProof;
use super::pending::{PendingCompanySignIn, browser_hash};
use super::provider::{ProvedPerson, Provider};
use super::provider_client::ProviderClient;
use super::refusal::CompanyRefusal;
use crate::audit::ChangeAuthor;
use crate::page_access::sign_in::BrowserId;
use crate::{ServiceResult, secret_text};

/// Longest `state` and code that are read, in bytes.
const MAX_PARAMETER: usize = 4096;
/// Longest error code of a provider that is shown, in characters.
const MAX_ERROR: usize = 40;

/// The provider of an account, as someone who is not signed in sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyProvider {
    /// The account.
    pub account: AccountId,
    /// Host of the provider.
    pub host: String,
}

/// A browser that begins a company sign-in.
#[derive(Clone)]
pub struct CompanySignInStart {
    /// The browser, in which alone it works.
    pub browser: BrowserId,
    /// Its address block, if known.
    pub network: Option<u128>,
    /// The email address that was entered; may be empty.
    pub email: String,
    /// Path to go to afterwards.
    pub next: String,
    /// True with "Keep me signed in".
    pub is_kept: bool,
    /// True if the person is signed in already, and proves again that it is them.
    pub is_confirmation: bool,
}

impl std::fmt::Debug for CompanySignInStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the browser: with its identifier the sign-in works elsewhere.
        f.debug_struct("CompanySignInStart").field("email", &self.email).finish_non_exhaustive()
    }
}

/// Answer of the provider, which the browser brings.
#[derive(Clone, Default)]
pub struct CompanyAnswer {
    /// The `state`.
    pub state: String,
    /// The code, if it succeeded.
    pub code: String,
    /// The error code, if it failed.
    pub error: String,
    /// The provider, if it names itself (RFC 9207).
    pub issuer: String,
}

impl std::fmt::Debug for CompanyAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompanyAnswer").field("error", &self.error).finish_non_exhaustive()
    }
}

type Refused<T> = std::result::Result<T, CompanyRefusal>;

impl PeopleService {
    /// Returns the provider of the company that has proved the domain of an email address. It says the same for everyone
    /// of that domain.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub fn company_of_email(&self, email: &str) -> ServiceResult<Option<CompanyProvider>> {
        let Some(domain) = email_domain(email) else { return Ok(None) };
        let company = self.context.store().reader().company_of_domain(&domain)?;
        Ok(company.map(|company| provider_of(&company.value)))
    }

    /// Returns the provider of an account.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub fn company_provider(&self, account: AccountId) -> ServiceResult<Option<CompanyProvider>> {
        Ok(self.company(account)?.map(|company| provider_of(&company)))
    }

    /// Returns the address to which an account's provider sends browsers back.
    pub(super) fn company_callback(&self, account: AccountId) -> String {
        format!("{}/sign-in/oidc/{account}/callback", self.context.base_url())
    }

    /// Begins a sign-in, and returns the address at the provider where the person goes.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn begin_company_sign_in(
        &self,
        account: AccountId,
        start: &CompanySignInStart,
    ) -> ServiceResult<Refused<String>> {
        let Some(settings) = self.company(account)? else { return Ok(Err(CompanyRefusal::NotSetUp)) };
        let Some(client) = &self.company.client else { return Ok(Err(no_client())) };
        let secret = || secret_text::random_token(rand::random());
        let (state, nonce, code_verifier) = (secret(), secret(), secret());
        let provider = self.provider(&settings, client);
        // Only as a hint for the provider's form, which may not get what is no address.
        let email = normalize_email(&start.email).unwrap_or_default();
        let url = provider.sign_in_url((&state, &nonce, &code_verifier), &email, start.is_confirmation).await;
        let url = match url {
            Ok(url) => url,
            Err(refusal) => return Ok(Err(self.refuse(account, refusal, None))),
        };
        let now = self.context.now();
        let pending = PendingCompanySignIn {
            account,
            issuer: settings.issuer,
            client_id: settings.client_id,
            nonce,
            code_verifier,
            browser: browser_hash(&start.browser),
            network: start.network,
            next: start.next.clone(),
            is_kept: start.is_kept,
            is_confirmation: start.is_confirmation,
            began_at: now,
        };
        self.company.pending.add(&state, pending);
        Ok(Ok(url))
    }

    /// Completes a sign-in with the provider's answer: the person becomes a viewer of the account if they are no member.
    /// Returns the next step and the path to go to.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read or written.
    pub async fn finish_company_sign_in(
        &self,
        account: AccountId,
        answer: &CompanyAnswer,
        (browser_id, browser): (Option<&BrowserId>, &BrowserInfo),
    ) -> ServiceResult<Refused<(SignInStep, String)>> {
        let network = browser.network.as_deref();
        if answer.state.len() > MAX_PARAMETER || answer.code.len() > MAX_PARAMETER {
            return Ok(Err(CompanyRefusal::Unknown));
        }
        let pending = self.company.pending.take((account, &answer.state), browser_id, self.context.now());
        // Not logged: strangers can make these without end.
        let Some(pending) = pending else { return Ok(Err(CompanyRefusal::Unknown)) };
        let proved = self.proved_person(&pending, answer).await?;
        let (settings, person) = match proved {
            Ok(proved) => proved,
            Err(refusal) => return Ok(Err(self.refuse(account, refusal, network))),
        };
        match self.admit_company_person(&settings, &person, pending.is_kept, browser).await? {
            Ok(step) => Ok(Ok((step, pending.next))),
            Err(refusal) => Ok(Err(self.refuse(account, refusal, network))),
        }
    }

    /// Asks the provider for its proof. Nothing is locked meanwhile.
    async fn proved_person(
        &self,
        pending: &PendingCompanySignIn,
        answer: &CompanyAnswer,
    ) -> ServiceResult<Refused<(CompanySignIn, ProvedPerson)>> {
        let Some(settings) = self.company(pending.account)? else { return Ok(Err(CompanyRefusal::NotSetUp)) };
        let Some(client) = &self.company.client else { return Ok(Err(no_client())) };
        if (&settings.issuer, &settings.client_id) != (&pending.issuer, &pending.client_id) {
            return Ok(Err(CompanyRefusal::Unknown));
        }
        if !answer.issuer.is_empty() && answer.issuer != settings.issuer {
            return Ok(Err(CompanyRefusal::InvalidProof("The answer is from another provider")));
        }
        if !answer.error.is_empty() {
            let is_sign = |sign: &char| sign.is_ascii_alphanumeric() || *sign == '_';
            let code: String = answer.error.chars().filter(is_sign).take(MAX_ERROR).collect();
            let is_cancelled = code == "access_denied";
            return Ok(Err(if is_cancelled { CompanyRefusal::Cancelled } else { CompanyRefusal::ProviderError(code) }));
        }
        let proved = self.provider(&settings, client).prove(pending, &answer.code).await;
        // A provider that says no time is believed: it was asked to sign the person in again.
        let is_asked = |person: &ProvedPerson| person.authenticated_at.is_none_or(|at| at >= pending.asked_since());
        match proved {
            Ok(person) if pending.is_confirmation && !is_asked(&person) => Ok(Err(CompanyRefusal::NotAskedAgain)),
            proved => Ok(proved.map(|person| (settings, person))),
        }
    }

    fn provider<'a>(&'a self, settings: &'a CompanySignIn, client: &'a ProviderClient) -> Provider<'a> {
        Provider {
            step: client.step(),
            cache: &self.company.providers,
            callback: self.company_callback(settings.account),
            settings,
            now: self.context.now(),
        }
    }

    /// Signs in a person whom the provider proved, as a member of the account and in it alone.
    async fn admit_company_person(
        &self,
        used: &CompanySignIn,
        proved: &ProvedPerson,
        is_kept: bool,
        browser: &BrowserInfo,
    ) -> ServiceResult<Refused<SignInStep>> {
        let account = used.account;
        let Ok(email) = &normalize_email(&proved.email) else { return Ok(Err(CompanyRefusal::NoEmail)) };
        // One at a time, since an email address is taken once, and a person joins several accounts.
        let _making = self.context.create_lock.lock().await;
        self.context
            .commit_change(account.to_u128(), || async move {
                let (now, mut batch) = (self.context.now(), Batch::new());
                let stored = self.context.store().reader().company_sign_in(account)?;
                let Some(VersionedValue { revision, value: company }) = stored else {
                    return Ok((Err(CompanyRefusal::NotSetUp), None));
                };
                if (&company.issuer, &company.client_id) != (&used.issuer, &used.client_id) {
                    return Ok((Err(CompanyRefusal::Unknown), None));
                }
                if !company.covers_email(email) {
                    return Ok((Err(CompanyRefusal::ForeignDomain(email.clone())), None));
                }
                batch.expect(Expect::CompanySignIn(account, Presence::At(revision)));
                let subject = subject_hash(&company.issuer, &proved.subject);
                let person = match self.company_person(account, (email, proved), subject, &mut batch).await? {
                    Ok(person) => person,
                    Err(refusal) => return Ok((Err(refusal), None)),
                };
                let covers_second_factor = company.covers_second_factor;
                if company.worked_at.is_none() {
                    batch.write(CompanySignIn { worked_at: Some(now), ..company });
                }
                let author = ChangeAuthor::person(account, &person, browser.network.clone());
                self.context.log_change(author, &mut batch)?;
                // A provider that remembers the person proves what it saw then.
                let confirmed_at = proved.authenticated_at.map_or(now, |at| at.min(now));
                let company = Some(CompanyProof { subject, covers_second_factor, confirmed_at });
                let target = SignInTarget { account, invitation: None, company };
                let step = self.next_step(&person, target, (is_kept, browser), &mut batch).await?;
                Ok((Ok(step), Some(batch)))
            })
            .await
    }

    /// Writes the person and their membership in a batch: both may be new.
    async fn company_person(
        &self,
        account: AccountId,
        (email, proved): (&str, &ProvedPerson),
        subject: [u8; 32],
        batch: &mut Batch,
    ) -> ServiceResult<Refused<Person>> {
        let (now, reader) = (self.context.now(), self.context.store().reader());
        let members = self.context.store().read(move |store| store.members_of(account)).await?;
        let known = reader.person_by_email(email)?;
        // The person who chose that password or passkey may be another than the provider means.
        let has_own_way_in = |person: &Person| person.password_hash.is_some() || !person.passkeys.all().is_empty();
        let is_company_only = known.as_ref().is_some_and(|it| has_own_way_in(&it.value));
        let person = match known {
            Some(stored) => {
                batch.expect(Expect::Person(stored.value.id, Presence::At(stored.revision)));
                stored.value
            }
            None => {
                let id = PersonId::new(now, rand::random());
                batch.expect(Expect::Person(id, Presence::Absent));
                let name = proved.name.as_deref().and_then(|name| text::optional_line(name, MAX_NAME).ok().flatten());
                Person::new((id, email.to_owned()), name, None, now)
            }
        };
        if members.iter().any(|it| it.value.company_subject == Some(subject) && it.value.person != person.id) {
            return Ok(Err(CompanyRefusal::OtherEmail));
        }
        let id = person.id;
        let company_subject = Some(subject);
        match members.iter().find(|it| it.value.person == id) {
            Some(VersionedValue { revision, value }) => {
                if value.company_subject.is_some_and(|bound| bound != subject) {
                    return Ok(Err(CompanyRefusal::OtherSubject(person.email)));
                }
                batch.expect(Expect::AccountMember(account, id, Presence::At(*revision)));
                if value.company_subject.is_none() {
                    batch.write(AccountMember { company_subject, ..*value });
                }
            }
            None => {
                if members.len() >= MAX_MEMBERS || reader.memberships_of(id)?.len() >= MAX_MEMBERSHIPS {
                    return Ok(Err(CompanyRefusal::Full));
                }
                batch.expect(Expect::AccountMember(account, id, Presence::Absent));
                let role = self.invited_role(account, (email, is_company_only), batch).await?;
                let member = AccountMember::new((account, id), role, now);
                // Written unchanged if they exist: what ends all their sessions at the same time conflicts.
                batch.write(person.clone()).write(AccountMember { company_subject, is_company_only, ..member });
            }
        }
        Ok(Ok(person))
    }

    /// Returns the role of a newcomer: that of an open invitation to their address, or else a viewer's. The invitation
    /// ends in the batch, except for those who enter by company sign-in alone, which they end by accepting it.
    async fn invited_role(
        &self,
        account: AccountId,
        (email, is_company_only): (&str, bool),
        batch: &mut Batch,
    ) -> ServiceResult<Role> {
        let open = self.open_invitations(account).await?;
        let invitation = open.iter().find(|link| is_to(link, email));
        let Some(OneTimeLink { id, kind: LinkKind::Invitation { role, .. }, .. }) = invitation else {
            return Ok(Role::Viewer);
        };
        batch.expect(Expect::OneTimeLink(*id, Presence::Present));
        if !is_company_only {
            self.end_links(LinkOwner::Account(account), |link| is_to(link, email), batch).await?;
        }
        Ok(*role)
    }

    /// Logs a refused sign-in; in the account once the provider proved somebody: strangers must not use up the number of
    /// failures that an account logs.
    fn refuse(&self, account: AccountId, refusal: CompanyRefusal, network: Option<&str>) -> CompanyRefusal {
        tracing::info!(%account, reason = refusal.reason(), "a company sign-in was refused");
        if refusal.is_of_proved_person() && self.may_log_failure(account) {
            self.context.log_failed_company_sign_in(account, (refusal.email(), refusal.reason()), network);
        }
        refusal
    }
}

fn no_client() -> CompanyRefusal {
    CompanyRefusal::Unreachable("This installation reaches no providers".to_owned())
}

fn provider_of(company: &CompanySignIn) -> CompanyProvider {
    let url = Url::parse(&company.issuer).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
    CompanyProvider { account: company.account, host }
}

/// Returns the hash by which a membership knows its person at the provider.
fn subject_hash(issuer: &str, subject: &str) -> [u8; 32] {
    let hash = Sha256::new().chain_update("company-subject\0").chain_update(issuer).chain_update("\0");
    hash.chain_update(subject).finalize().into()
}
