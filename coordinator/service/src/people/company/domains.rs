//! Email domains of a company, each proved by a TXT record as the pages' own domains are.

use parallax_core::company_sign_in::{CompanyDomain, MAX_COMPANY_DOMAINS, read_company_domain};
use parallax_core::page::domain::DomainClaim;
use parallax_core::page::domain_verification::verify_on_request;
use parallax_core::validation::ValidationErrors;

use super::super::{CurrentSession, PeopleService};
use super::settings::require_provider;
use crate::{ServiceResult, secret_text};

impl PeopleService {
    /// Adds an email domain, which counts once it is [checked](Self::check_company_domain).
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`](crate::ServiceError::RoleForbids),
    /// [`ServiceError::ConfirmationRequired`](crate::ServiceError::ConfirmationRequired),
    /// [`ServiceError::Invalid`](crate::ServiceError::Invalid) for no domain, and for too many.
    pub async fn add_company_domain(&self, current: &CurrentSession, typed: &str) -> ServiceResult<()> {
        let host = read_company_domain(typed);
        let (now, token) = (self.context.now(), &secret_text::random_token(rand::random()));
        self.change_company(current, |mut company, _| {
            require_provider(&company)?;
            let fault = |rule: String| ValidationErrors::single("domain", rule);
            let host = host.clone().map_err(fault)?;
            if company.domains.iter().any(|it| it.claim.host == host) {
                return Ok(company);
            }
            if company.domains.len() >= MAX_COMPANY_DOMAINS {
                return Err(fault(format!("can be added {MAX_COMPANY_DOMAINS} times at most: remove one")).into());
            }
            let claim = DomainClaim::new(host, token.clone(), now);
            company.domains.push(CompanyDomain { claim, proved_at: None });
            Ok(company)
        })
        .await
    }

    /// Looks the TXT record of an added domain up, and stores the proof or the problem.
    ///
    /// # Errors
    /// As [`Self::add_company_domain`], and [`ServiceError::TooManyTries`](crate::ServiceError::TooManyTries).
    pub async fn check_company_domain(&self, current: &CurrentSession, host: &str) -> ServiceResult<()> {
        let account = self.begin_member_change(current)?;
        let company = self.company(account)?;
        let added = company.and_then(|company| company.domains.into_iter().find(|it| it.claim.host == host));
        let Some(CompanyDomain { claim, proved_at: None }) = added else { return Ok(()) };
        self.admit_company_test(account)?;
        let records = self.txt_lookup.texts(&claim.record_name()).await;
        let now = self.context.now();
        let proof = verify_on_request(&claim, records.as_deref().map_err(|failure| *failure));
        let (claim, proof) = (&claim, &proof);
        self.change_company(current, |mut company, _| {
            let owner = self.context.store().reader().company_of_domain(&claim.host)?;
            let is_taken = owner.is_some_and(|owner| owner.value.account != account);
            let problem = match proof {
                Err(problem) => Some(problem.clone()),
                Ok(()) if is_taken => Some(format!("another account has proved {} already", claim.host)),
                Ok(()) => None,
            };
            // It may have been removed, or added again, during the look-up.
            let is_same = |it: &&mut CompanyDomain| it.claim.host == claim.host && it.claim.token == claim.token;
            if let Some(domain) = company.domains.iter_mut().find(is_same) {
                domain.claim.checked_at = Some(now);
                domain.proved_at = problem.is_none().then_some(now);
                domain.claim.problem = problem;
            }
            Ok(company)
        })
        .await
    }

    /// Removes an email domain. People of it sign in by company sign-in no longer; the account stays theirs.
    ///
    /// # Errors
    /// As [`Self::add_company_domain`]; company sign-in that is required keeps one proved domain.
    pub async fn remove_company_domain(&self, current: &CurrentSession, host: &str) -> ServiceResult<()> {
        self.change_company(current, |mut changed, _| {
            changed.domains.retain(|it| it.claim.host != host);
            if changed.is_required && changed.proved_domains().next().is_none() {
                let rule = "is the last one: company sign-in is required for members";
                return Err(ValidationErrors::single("domain", rule).into());
            }
            Ok(changed)
        })
        .await
    }
}
