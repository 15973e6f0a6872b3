//! Pages' own domains: each that was asked for is looked for, and becomes its page's once its record says so.

use std::fmt;
use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;
use parallax_core::event::Edited;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::page::domain::{DomainClaim, FREED_FOR, Freed};
use parallax_core::page::verification::{Unseen, judge, next_look};
use parallax_core::refusal::Refusals;
use parallax_core::time::{SECOND, Timestamp};

use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op};

/// Time between two looks on request at one page's domain, in milliseconds.
const APART: i64 = 10 * SECOND;
/// How many pages' last looks are remembered.
const MAX_LOOKED: usize = 10_000;

/// Whoever looks for TXT records.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// The texts of a name's records; bounded in time.
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, Unseen>>;
}

impl Service {
    /// Has domains looked for by that; before that, nobody can be asked. Only the first call counts.
    pub fn look_up_by(&self, lookup: Arc<dyn Lookup>) {
        let _ = self.0.lookup.set(lookup);
    }

    /// Looks at once for the domain that was asked for, and gives the page as it is then.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] where the page asks for none, and
    /// [`Error::DomainCheckedJustNow`].
    pub async fn check_domain(&self, caller: &Caller, id: PageId) -> Result<Page> {
        caller.writes()?;
        let page = self.page(caller, id)?;
        if page.domain_claim.is_none() {
            return Err(Refusals::one("customDomain", "is not waiting to be verified").into());
        }
        self.admit_domain_look(id)?;
        self.look_for_domain(id).await?;
        self.page(caller, id)
    }

    /// The pages whose domains are to be looked for now.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
    pub async fn domains_due(&self) -> Result<Vec<PageId>> {
        let now = self.now();
        let pages = self.store().read(|store| store.pages()).await?;
        let due =
            |page: &Page| page.domain_claim.as_ref().and_then(next_look).is_some_and(|next| next <= now);
        Ok(pages.into_iter().filter(|page| due(&page.value)).map(|page| page.value.id).collect())
    }

    /// Looks for the domain that a page asks for, and notes what came of it: the page's own, or why not.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read or written.
    pub async fn look_for_domain(&self, id: PageId) -> Result<()> {
        let Some(claim) = self.claim_of(id)? else { return Ok(()) };
        let found = match self.0.lookup.get() {
            Some(lookup) => lookup.texts(&claim.record_name()).await,
            None => Err(Unseen::Ours),
        };
        let now = self.now();
        let judged = judge(&claim, found.as_deref().map_err(|unseen| *unseen), now);
        let (claim, judged) = (&claim, &judged);
        let is_verified = self
            .change(id.to_u128(), || async move {
                let Some(page) = self.store().reader().page(id)? else { return Ok((false, None)) };
                // What was asked for may have changed while its record was looked for.
                let same = |asked: &DomainClaim| asked.host == claim.host && asked.token == claim.token;
                if !page.value.domain_claim.as_ref().is_some_and(same) {
                    return Ok((false, None));
                }
                let refused = match judged {
                    Err(words) => Some(words.clone()),
                    Ok(()) => self.held_by_another(&page.value, &claim.host, now)?,
                };
                let mut batch = Batch::new();
                batch.expect(Expect::Page(id, Is::At(page.revision)));
                if refused.is_none() {
                    batch.event(self.page_event(id, Edited::Changed));
                    if let Some(before) =
                        page.value.custom_domain.clone().filter(|before| *before != claim.host)
                    {
                        let freed = Freed { account: page.value.account, until: now + FREED_FOR };
                        batch.write(Op::PutFreed(before, freed));
                    }
                }
                let is_verified = refused.is_none();
                batch.write(noted(page.value, claim, refused, now));
                Ok((is_verified, Some(batch)))
            })
            .await?;
        if is_verified {
            self.forget_domains();
        }
        Ok(())
    }

    fn claim_of(&self, id: PageId) -> Result<Option<DomainClaim>> {
        Ok(self.store().reader().page(id)?.and_then(|page| page.value.domain_claim))
    }

    /// Why that page may not have the hostname, in words for its owner.
    fn held_by_another(&self, page: &Page, host: &str, now: Timestamp) -> Result<Option<String>> {
        let reader = self.store().reader();
        if reader.page_by_host(host)?.is_some_and(|other| other.value.id != page.id) {
            return Ok(Some(format!("{host} is another page's domain")));
        }
        let freed = reader.freed(host)?;
        Ok(freed.filter(|freed| freed.holds_against(page.account, now)).map(|_| {
            format!("{host} was another account's domain until lately, and is kept for it for 30 days")
        }))
    }

    fn admit_domain_look(&self, id: PageId) -> Result<()> {
        let now = self.now();
        let mut looked = self.0.domains_looked.lock().unwrap_or_else(PoisonError::into_inner);
        let age = looked.get(&id).map_or(APART, |at| now.since(*at));
        if (0..APART).contains(&age) {
            let seconds = u32::try_from((APART - age + SECOND - 1) / SECOND).unwrap_or(1);
            return Err(Error::DomainCheckedJustNow { seconds });
        }
        if looked.len() >= MAX_LOOKED {
            looked.retain(|_, at| (0..APART).contains(&now.since(*at)));
        }
        if looked.len() >= MAX_LOOKED {
            looked.pop_first();
        }
        looked.insert(id, now);
        Ok(())
    }
}

/// The page after a look that gave it the domain, or was refused for that reason.
fn noted(mut page: Page, claim: &DomainClaim, refused: Option<String>, now: Timestamp) -> Page {
    page.domain_claim = match refused {
        Some(words) => Some(DomainClaim { checked_at: Some(now), problem: Some(words), ..claim.clone() }),
        None => {
            page.custom_domain = Some(claim.host.clone());
            None
        }
    };
    page
}
