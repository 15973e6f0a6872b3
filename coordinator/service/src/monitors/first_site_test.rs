//! Test of an account's first site, before somebody owns the account.

use parallax_core::check::{Check, CheckKind};
use parallax_core::observation::ProbeOutcome;
use parallax_core::time::Timestamp;
use parallax_engine::CheckNowResult;

use super::MonitorService;
use super::check_now::{CheckNowProgress, CheckNowReport};
use crate::people::{FirstSite, SetUpAccount};
use crate::{ServiceError, ServiceResult};

/// Result of the test of a first site.
#[derive(Debug, Clone)]
pub struct FirstSiteReport {
    /// Outcomes of the site.
    pub site: CheckNowReport,
    /// Earliest end of the certificate that its host presents; none without TLS, or if it could not be read.
    pub certificate_ends_at: Option<Timestamp>,
}

impl MonitorService {
    /// Checks the site that is about to be an account's first, and reads its certificate. Nothing is stored. The bearer of
    /// a set-up link may do so as often as a member may test an unsaved monitor, and by the same rules: agents check no
    /// address that they would not check for a monitor.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that is in use, [`ServiceError::Invalid`] for the address,
    /// [`ServiceError::PlanLimit`], and [`ServiceError::MonitorTestLimit`].
    pub async fn test_first_site(&self, target: &SetUpAccount, site: &FirstSite) -> ServiceResult<FirstSiteReport> {
        if !target.asks_for_site {
            return Err(ServiceError::NotFound);
        }
        let check = site.settings()?.check;
        let account = self.context.store().reader().account(target.id)?.ok_or(ServiceError::NotFound)?.value;
        self.admit_test(&account, CheckKind::Http)?;
        let certificate = match &check {
            Check::Http(http) => http.certificate_check().map(Check::Certificate),
            _ => None,
        };
        let outcomes = |check: Check| self.unsaved_outcomes(account.id, (check, None), CheckNowProgress::default());
        let certificate = async {
            match certificate {
                Some(check) => outcomes(check).await,
                None => Vec::new(),
            }
        };
        let (outcomes, certificate) = tokio::join!(outcomes(check), certificate);
        let site = CheckNowReport { outcomes, agents: self.context.agents_by_number().await? };
        Ok(FirstSiteReport { site, certificate_ends_at: certificate.iter().filter_map(expiry).min() })
    }
}

/// Expiry date that an agent read, also of a certificate that fails.
fn expiry(result: &CheckNowResult) -> Option<Timestamp> {
    match &result.observation.as_ref()?.outcome {
        ProbeOutcome::Passed(facts) | ProbeOutcome::Failed(facts, _) => facts.expires_at,
        ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
    }
}
