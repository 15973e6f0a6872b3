//! Custom domains of pages: each claimed domain is looked up, and assigned to its page once its TXT record matches.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use parallax_core::event::EditKind;
use parallax_core::id::{AccountId, PageId};
use parallax_core::page::Page;
use parallax_core::page::domain::{DomainClaim, RESERVED_FOR, ReservedHostname};
use parallax_core::page::domain_verification::{LookupFailure, next_lookup, verify};
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::role::Permission;
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::hostname::normalize_host;
use crate::audit::ChangeAuthor;
use crate::context::ServiceContext;
use crate::{Caller, ServiceError, ServiceResult};

/// Minimum milliseconds between two look-ups on request of one page's domain.
const CHECK_INTERVAL: i64 = 10 * SECOND;

/// A hostname that the operator released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedHostname {
    /// The hostname in normalized form.
    pub host: String,
    /// The page that had it; `None` if it was only reserved.
    pub page: Option<PageId>,
    /// The account of that page, or else the one whose company sign-in had proved it.
    pub account: AccountId,
    /// The account whose company sign-in had proved it as an email domain.
    pub company: Option<AccountId>,
}

/// Pending domain claims of pages, read after that edit.
#[derive(Debug)]
struct PendingClaims {
    edit: u64,
    claims: Vec<(PageId, DomainClaim)>,
}

/// Source of TXT records.
pub trait TxtLookup: fmt::Debug + Send + Sync {
    /// Returns the texts of a name's records; bounded in time.
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, LookupFailure>>;
}

/// Source for a service that looks nothing up: each look-up fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTxtLookup;

impl TxtLookup for NoTxtLookup {
    fn texts<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, LookupFailure>> {
        Box::pin(std::future::ready(Err(LookupFailure::Internal)))
    }
}

/// Owns domain claims and hostname reservations. A page gets a claimed domain only once its TXT record proves it, and
/// a released one is reserved for its account for a while.
#[derive(Debug)]
pub struct DomainService {
    context: Arc<ServiceContext>,
    /// Pending claims, as they were last read.
    claims: Mutex<Option<PendingClaims>>,
    txt_lookup: Arc<dyn TxtLookup>,
    /// Look-ups on request, by page.
    check_limit: Mutex<FixedWindowLimit<PageId>>,
}

impl DomainService {
    pub(crate) fn new(context: &Arc<ServiceContext>, txt_lookup: Arc<dyn TxtLookup>) -> Self {
        Self {
            context: Arc::clone(context),
            claims: Mutex::default(),
            txt_lookup,
            check_limit: Mutex::new(FixedWindowLimit::new(CHECK_INTERVAL)),
        }
    }

    /// Looks up the claimed domain at once, and returns the updated page.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`] if the page has no pending
    /// claim, and [`ServiceError::DomainCheckTooSoon`].
    pub async fn check(&self, caller: &Caller, id: PageId) -> ServiceResult<Page> {
        caller.require(Permission::ManagePage)?;
        let page = self.context.page(caller, id)?;
        if page.domain_claim.is_none() {
            return Err(ValidationErrors::single("customDomain", "is not waiting to be verified").into());
        }
        let limited = self.context.check_rate(&self.check_limit, 1, &id);
        limited.map_err(|RateExceeded { seconds }| ServiceError::DomainCheckTooSoon { seconds })?;
        self.verify(id).await?;
        self.context.page(caller, id)
    }

    /// Lists the pages whose domains are due for a look-up. All pages are read only after an edit or a look-up.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn due(&self) -> ServiceResult<Vec<PageId>> {
        // Read first: an edit made in the meantime has a higher number.
        let edit = self.context.last_edit();
        let cached = self.claims().take().filter(|cached| cached.edit == edit);
        let cached = match cached {
            Some(cached) => cached,
            None => {
                let pages = self.context.store().read(|store| store.pages()).await?;
                let claim_of = |page: VersionedValue<Page>| Some((page.value.id, page.value.domain_claim?));
                PendingClaims { edit, claims: pages.into_iter().filter_map(claim_of).collect() }
            }
        };
        let now = self.context.now();
        let is_due = |claim: &DomainClaim| next_lookup(claim).is_some_and(|next| next <= now);
        let due = cached.claims.iter().filter(|(_, claim)| is_due(claim)).map(|(page, _)| *page).collect();
        *self.claims() = Some(cached);
        Ok(due)
    }

    /// Looks up the domain that a page claims, and stores the result: the page's own domain, or the problem.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read or written.
    pub async fn verify(&self, id: PageId) -> ServiceResult<()> {
        let Some(claim) = self.claim_of(id)? else { return Ok(()) };
        let records = self.txt_lookup.texts(&claim.record_name()).await;
        let now = self.context.now();
        let verdict = verify(&claim, records.as_deref().map_err(|failure| *failure), now);
        let (claim, verdict) = (&claim, &verdict);
        let committed = self
            .context
            .commit_change(id.to_u128(), || async move {
                let Some(page) = self.context.store().reader().page(id)? else { return Ok(((), None)) };
                // The claim may have changed during the look-up.
                let is_same_claim = |other: &DomainClaim| other.host == claim.host && other.token == claim.token;
                if !page.value.domain_claim.as_ref().is_some_and(is_same_claim) {
                    return Ok(((), None));
                }
                let problem = match verdict {
                    Err(text) => Some(text.clone()),
                    Ok(()) => self.claim_conflict(&page.value, &claim.host, now)?,
                };
                let mut batch = Batch::new();
                batch.expect(Expect::Page(id, Presence::At(page.revision)));
                if problem.is_none() {
                    batch.event(self.context.page_event(id, EditKind::Changed));
                    if let Some(before) = page.value.custom_domain.clone().filter(|before| *before != claim.host) {
                        let reservation = ReservedHostname { account: page.value.account, until: now + RESERVED_FOR };
                        batch.write(Op::PutReservedHostname(before, reservation));
                    }
                }
                let account = page.value.account;
                batch.write(with_lookup_result(page.value, claim, problem, now));
                self.context.log_change(ChangeAuthor::service(account), &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await;
        // The result of a look-up emits no event, so the cached claims are dropped here.
        *self.claims() = None;
        committed
    }

    /// Releases a hostname from a page or a company sign-in that should not have it, and lifts its reservation; called by
    /// the operator. Anyone may claim it at once, and still has to prove it.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a hostname that no page and no company has and that is not reserved.
    pub async fn release(&self, host: &str) -> ServiceResult<ReleasedHostname> {
        let host = &normalize_host(host).ok_or(ServiceError::NotFound)?;
        let company = self.release_email_domain(host).await?;
        match (self.release_from_page(host).await, company) {
            (Ok(released), company) => Ok(ReleasedHostname { company, ..released }),
            (Err(ServiceError::NotFound), Some(account)) => {
                Ok(ReleasedHostname { host: host.clone(), page: None, account, company })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Takes back the proof that a company has an email domain. Company sign-in is not required without one. Returns the
    /// account; none if no company has proved it.
    async fn release_email_domain(&self, host: &str) -> ServiceResult<Option<AccountId>> {
        let Some(found) = self.context.store().reader().company_of_domain(host)? else { return Ok(None) };
        let account = found.value.account;
        self.context
            .commit_change(account.to_u128(), || async move {
                let stored = self.context.store().reader().company_sign_in(account)?;
                let Some(VersionedValue { revision, value: mut company }) = stored else { return Ok((None, None)) };
                let mut proved = company.domains.iter_mut().filter(|it| it.proved_at.is_some());
                let Some(domain) = proved.find(|it| it.claim.host == host) else { return Ok((None, None)) };
                domain.proved_at = None;
                domain.claim.problem = Some("the operator released it: check the record again".to_owned());
                company.is_required = company.is_required && company.proved_domains().next().is_some();
                let mut batch = Batch::new();
                batch.expect(Expect::CompanySignIn(account, Presence::At(revision))).write(company);
                self.context.log_change(ChangeAuthor::operator(account), &mut batch)?;
                Ok((Some(account), Some(batch)))
            })
            .await
    }

    async fn release_from_page(&self, host: &str) -> ServiceResult<ReleasedHostname> {
        let owner = self.context.store().reader().page_by_host(host)?.map(|page| page.value.id);
        let lock_id = owner.map_or(0, |page| page.to_u128());
        self.context
            .commit_change(lock_id, || async move {
                let reader = self.context.store().reader();
                let (page, reservation) = (reader.page_by_host(host)?, reader.reserved_hostname(host)?);
                let now = self.context.now();
                let mut batch = Batch::new();
                let account = match (&page, reservation) {
                    (Some(page), _) => page.value.account,
                    (None, Some(reservation)) if reservation.until > now => reservation.account,
                    (None, _) => return Err(ServiceError::NotFound),
                };
                let page_id = page.as_ref().map(|page| page.value.id);
                let released = ReleasedHostname { host: host.to_owned(), page: page_id, account, company: None };
                // A reservation that has already ended reserves it for nobody.
                batch.write(Op::PutReservedHostname(host.to_owned(), ReservedHostname { account, until: now }));
                if let Some(page) = page {
                    let id = page.value.id;
                    batch.expect(Expect::Page(id, Presence::At(page.revision)));
                    batch.write(Page { custom_domain: None, ..page.value });
                    batch.event(self.context.page_event(id, EditKind::Changed));
                }
                self.context.log_change(ChangeAuthor::operator(account), &mut batch)?;
                Ok((released, Some(batch)))
            })
            .await
    }

    fn claims(&self) -> MutexGuard<'_, Option<PendingClaims>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim_of(&self, id: PageId) -> ServiceResult<Option<DomainClaim>> {
        Ok(self.context.store().reader().page(id)?.and_then(|page| page.value.domain_claim))
    }

    /// Returns the reason why that page may not have the hostname, in words for its owner.
    fn claim_conflict(&self, page: &Page, host: &str, now: Timestamp) -> ServiceResult<Option<String>> {
        let reader = self.context.store().reader();
        if reader.page_by_host(host)?.is_some_and(|other| other.value.id != page.id) {
            return Ok(Some(format!("{host} is another page's domain")));
        }
        let reservation = reader.reserved_hostname(host)?;
        Ok(reservation.filter(|reservation| reservation.is_reserved_from(page.account, now)).map(|_| {
            format!("{host} was another account's domain recently and is reserved for that account for 30 days")
        }))
    }
}

/// The page after a look-up: with the domain, or with the problem.
fn with_lookup_result(mut page: Page, claim: &DomainClaim, problem: Option<String>, now: Timestamp) -> Page {
    page.domain_claim = match problem {
        Some(text) => Some(DomainClaim { checked_at: Some(now), problem: Some(text), ..claim.clone() }),
        None => {
            page.custom_domain = Some(claim.host.clone());
            None
        }
    };
    page
}
