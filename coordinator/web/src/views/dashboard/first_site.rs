//! First site of an account: its fields in the set-up form, and the result of its test.

use parallax_core::explanation::capitalized;
use parallax_core::observation::{Failure, ProbeOutcome};
use parallax_core::vantage::VantageNo;

use super::monitor::outcome::{VantageLabels, outcome_class, outcome_text};
use super::monitor::waterfall::{self, PHASES, RegionResult, WaterfallLine};

/// Days before the end of a certificate from which on it is a concern.
const CERTIFICATE_DAYS: i64 = 14;

/// Fields of the first site: what was entered, and the fault of each; empty if there is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FirstSiteFields {
    /// Address of the site.
    pub url: String,
    /// Fault of the address.
    pub url_fault: String,
    /// Name of the page.
    pub page_name: String,
    /// Fault of the name.
    pub page_name_fault: String,
    /// Slug of the page.
    pub slug: String,
    /// Fault of the slug.
    pub slug_fault: String,
    /// Address of the page before its slug.
    pub page_base: String,
    /// Result of the test of the address; none before it.
    pub test: Option<FirstSiteTest>,
}

/// Result of the test of a first site.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FirstSiteTest {
    /// CSS class and icon of the verdict.
    pub class: &'static str,
    /// Verdict in words.
    pub verdict: String,
    /// Days of the certificate, or the remedy and whether to go on.
    pub advice: String,
    /// One line a region, if all of them passed.
    pub lines: Vec<WaterfallLine>,
}

impl FirstSiteTest {
    /// Builds the result; `certificate_days` are the days until the certificate ends, negative after it.
    pub(crate) fn new(results: &[RegionResult<'_>], labels: &VantageLabels, certificate_days: Option<i64>) -> Self {
        let seen: Vec<RegionResult<'_>> = results.iter().filter(|it| it.seen.is_some()).copied().collect();
        // The worst counts: a site that one region can't reach is not fine.
        let rank = |outcome: &ProbeOutcome| match outcome {
            ProbeOutcome::Failed(..) => 2,
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => 1,
            ProbeOutcome::Passed(_) => 0,
        };
        let outcomes = seen.iter().filter_map(|it| it.seen);
        let Some((_, worst)) = outcomes.max_by_key(|(_, outcome): &(VantageNo, _)| rank(outcome)) else {
            let advice = "The first check runs as soon as an agent is connected. You can start now.";
            return Self::refused("Not tested: no agent answered.", advice);
        };
        let certificate = certificate_days.map(certificate_text).unwrap_or_default();
        let (class, verdict, advice) = match worst {
            ProbeOutcome::Passed(_) => {
                let is_ending = certificate_days.is_some_and(|days| days < CERTIFICATE_DAYS);
                let class = if is_ending { "slow" } else { outcome_class(worst) };
                (class, format!("Answers: {}.", outcome_text(worst)), certificate)
            }
            ProbeOutcome::Failed(_, failure) => {
                let text = format!("{} You can start anyway: it counts as down until it answers.", remedy(failure));
                (outcome_class(worst), format!("{}.", capitalized(&outcome_text(worst))), text.trim().to_owned())
            }
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => {
                let text = "That says nothing about your site. You can start now.".to_owned();
                (outcome_class(worst), format!("Not tested: {}.", outcome_text(worst)), text)
            }
        };
        // The verdict says why a check failed, and the phases are of one that passed.
        let is_passed = matches!(worst, ProbeOutcome::Passed(_));
        let lines = if is_passed { waterfall::waterfall(&seen, labels) } else { Vec::new() };
        let (lines, _) = waterfall::with_shared_address(lines);
        Self { class, verdict, advice, lines }
    }

    /// Reports that there was no test, why, and what follows.
    pub(crate) fn refused(verdict: &str, advice: &str) -> Self {
        Self { class: "none", verdict: verdict.to_owned(), advice: advice.to_owned(), lines: Vec::new() }
    }

    /// Names and colors of the phases.
    pub(super) const fn phases() -> [(&'static str, &'static str); 5] {
        PHASES
    }
}

fn certificate_text(days: i64) -> String {
    let count = |days: i64| format!("{days} {}", if days == 1 { "day" } else { "days" });
    match days {
        i64::MIN..0 => "Its certificate has ended.".to_owned(),
        0..CERTIFICATE_DAYS => format!("Its certificate ends in {}: renew it soon.", count(days)),
        _ => format!("Its certificate is valid for {}.", count(days)),
    }
}

/// Remedy for a failure; empty if its own words say enough.
fn remedy(failure: &Failure) -> &'static str {
    match failure {
        Failure::NameNotFound | Failure::NoAddress | Failure::ResolutionFailed => "Is the name spelled right?",
        Failure::AddressNotAllowed(_) => {
            "Agents check public addresses only, unless their settings have allow_private."
        }
        Failure::Timeout(_) | Failure::Refused | Failure::Unreachable => "Does a firewall stop this host?",
        Failure::UnexpectedStatus(_) => "Choose an address that answers with a 2xx status, such as a health check.",
        Failure::TlsExpired
        | Failure::TlsNotYetValid
        | Failure::TlsNameMismatch
        | Failure::TlsUnknownIssuer
        | Failure::TlsFailed(_) => "Visitors get a warning of their browser, too.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{CheckPhase, InconclusiveReason, Measurements};
    use parallax_core::vantage::Region;

    use super::*;

    fn test(outcome: Option<&ProbeOutcome>, days: Option<i64>) -> (&'static str, String, String) {
        let seen = outcome.map(|outcome| (VantageNo(1), outcome));
        let missing = outcome.is_none().then_some("no agent in this region is in service");
        let results = [RegionResult { region: Region::Europe, seen, missing, threshold_ms: None }];
        let it = FirstSiteTest::new(&results, &VantageLabels::new(), days);
        (it.class, it.verdict, it.advice)
    }

    #[test]
    fn a_verdict_says_what_is_wrong_and_whether_to_go_on() {
        let passed = ProbeOutcome::Passed(Measurements {
            status_code: Some(200),
            latency_ms: Some(84),
            ..Measurements::default()
        });
        let failed = |failure| ProbeOutcome::Failed(Measurements::default(), failure);
        let timeout = failed(Failure::Timeout(CheckPhase::Connect));
        let busy = ProbeOutcome::Inconclusive(InconclusiveReason::Overloaded);
        for (outcome, days, class, verdict, advice) in [
            (Some(&passed), Some(62), "up", "Answers: 200 in 84 ms.", "Its certificate is valid for 62 days."),
            (Some(&passed), Some(1), "slow", "Answers: 200 in 84 ms.", "Its certificate ends in 1 day: renew it soon."),
            (Some(&passed), None, "up", "Answers: 200 in 84 ms.", ""),
            (
                Some(&timeout),
                None,
                "down",
                "Timed out connecting.",
                "Does a firewall stop this host? You can start anyway: it counts as down until it answers.",
            ),
            (
                Some(&busy),
                None,
                "none",
                "Not tested: the agent is overloaded.",
                "That says nothing about your site. You can start now.",
            ),
            (
                None,
                None,
                "none",
                "Not tested: no agent answered.",
                "The first check runs as soon as an agent is connected. You can start now.",
            ),
        ] {
            assert_eq!(test(outcome, days), (class, verdict.to_owned(), advice.to_owned()));
        }
    }
}
