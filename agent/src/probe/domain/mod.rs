//! The domain probe: expiry of a domain's registration, from its registry by RDAP (RFC 9082, RFC 9083), or by
//! WHOIS if the registry has no RDAP.
//!
//! Only a clear statement of a registry can fail a check. Anything unreadable is inconclusive.

mod date;
mod lookup_cache;
mod rdap;
mod registrable;
mod registration;
mod registries;
mod vocabulary;
mod whois;

use http::{HeaderMap, HeaderValue, header};
use parallax_dial::Host;
use parallax_protocol::{
    check::WireDomainCheck,
    fair_slots::UNKNOWN_ACCOUNT,
    result::{ProbeReport, WireFailure, WireOutcome, WireOwnFault},
    text::ShortText,
};
use tokio::time::Instant;

use self::registration::Registration;
pub(super) use self::registries::Registries;
use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target},
    http::fetch::{FetchRequest, FetchedPage, fetch},
};
use crate::clock::AgentClock;

/// Maximum size of a response in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Message for a response without an expiry date.
const NO_DATE: &str = "its answer has no expiry date";
/// Message for a rate limit of the registry.
const RATE_LIMITED: &str = "it limits the rate of requests";
const RDAP: HeaderValue = HeaderValue::from_static("application/rdap+json, application/json;q=0.9");

/// Queries the registry of the host's registrable part.
pub(super) async fn run(check: &WireDomainCheck, registries: &Registries, context: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let answer = registration_of(check, registries, context, &mut facts).await;
    if answer.is_ok() {
        facts.duration = Some(started.elapsed());
    }
    // The status code is the registry's, not the customer's.
    facts.status = None;
    let now_ms = AgentClock::new(0).wall_ms();
    let expires_ms = match &answer {
        Ok(Some(registration)) => registration.plausible_expiry(now_ms).ok(),
        Ok(None) | Err(_) => None,
    };
    let outcome = judge(check.warn_days, now_ms, answer);
    ProbeReport { expires_ms, ..facts.report(outcome) }
}

/// Returns the registry's response, or the recent one to another check of the domain; `None` if the domain is
/// not registered.
async fn registration_of(
    check: &WireDomainCheck,
    registries: &Registries,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<Option<Registration>, CheckError> {
    let deadline = context.deadline();
    let name = match Host::parse(&check.host) {
        Ok(Host::Name(name)) => name,
        Ok(Host::Ip(_)) => return Err(bad_target("the host must be a domain name, not an address").into()),
        Err(error) => return Err(bad_target(error.to_string()).into()),
    };
    let domain = registrable::of(name.as_str())
        .ok_or_else(|| bad_target("this name can't be registered: it is a public suffix"))?;
    let look_up = look_up(&domain, registries, context, deadline, facts);
    registries.lookups().get_or_look_up(&domain, deadline, look_up).await
}

/// Queries the registry of a domain.
async fn look_up(
    domain: &str,
    registries: &Registries,
    context: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<Option<Registration>, CheckError> {
    let Some(base) = registries.service_of(domain, context, deadline).await else {
        return by_whois(domain, registries, context, deadline, facts).await;
    };
    registries.check_not_paused(&base).map_err(unreadable)?;
    let url = format!("{base}domain/{domain}");
    let request = FetchRequest {
        url: &url,
        headers: vec![(header::ACCEPT, RDAP)],
        max_bytes: MAX_RESPONSE,
        account: UNKNOWN_ACCOUNT,
    };
    let page = fetch(request, context, deadline, facts).await.map_err(|error| match error {
        CheckError::Target(failure) => unreadable(failure.to_string()),
        own @ CheckError::Own(_) => own,
    })?;
    if page.status == 429 || page.status == 503 {
        registries.pause(&base, &page.headers);
    }
    read(&page, domain).map_err(unreadable)
}

/// Queries a registry without RDAP.
async fn by_whois(
    domain: &str,
    registries: &Registries,
    context: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<Option<Registration>, CheckError> {
    let server = registries.whois_of(domain, context, deadline).await?;
    registries.check_not_paused(&server).map_err(unreadable)?;
    let answer = whois::look_up(&server, registries.whois_port(), domain, context, deadline, facts).await;
    if answer.as_ref().is_err_and(|error| *error == unreadable(RATE_LIMITED)) {
        registries.pause(&server, &HeaderMap::new());
    }
    answer
}

fn read(page: &FetchedPage, domain: &str) -> Result<Option<Registration>, String> {
    match page.status {
        200 => rdap::read(&page.body, domain).map(Some),
        // A web server without the service responds with 404 too, in HTML.
        404 if page.body.is_empty() || rdap::is_json_object(&page.body) => Ok(None),
        429 => Err(RATE_LIMITED.to_owned()),
        404 => Err("it answers with status 404 and no RDAP response".to_owned()),
        status => Err(format!("it answers with status {status}")),
    }
}

fn unreadable(why: impl AsRef<str>) -> CheckError {
    CheckError::Own(WireOwnFault::RegistryUnreadable { detail: ShortText::new(why.as_ref()) })
}

fn judge(warn_days: u16, now_ms: i64, answer: Result<Option<Registration>, CheckError>) -> WireOutcome {
    let registration = match answer {
        Ok(Some(registration)) => registration,
        Ok(None) => return WireOutcome::Failed(WireFailure::DomainNotFound),
        Err(error) => return error.into(),
    };
    if registration.is_lapsed {
        return WireOutcome::Failed(WireFailure::DomainExpired);
    }
    let expires_ms = match registration.plausible_expiry(now_ms) {
        Ok(expires_ms) => expires_ms,
        Err(why) => return unreadable(why).into(),
    };
    let left_ms = expires_ms.saturating_sub(now_ms);
    if left_ms <= 0 {
        return WireOutcome::Failed(WireFailure::DomainExpired);
    }
    if left_ms < i64::from(warn_days) * DAY_MS {
        let days = u32::try_from(left_ms / DAY_MS).unwrap_or(0);
        return WireOutcome::Failed(WireFailure::DomainExpiring { days });
    }
    WireOutcome::Passed
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn expiring_in(left_ms: i64) -> WireOutcome {
        judge(30, NOW, Ok(Some(Registration { expires_ms: Some(NOW + left_ms), ..Registration::default() })))
    }

    #[test]
    fn a_registration_fails_from_warn_days_before_its_expiry() {
        assert_eq!(expiring_in(30 * DAY_MS), WireOutcome::Passed);
        assert_eq!(expiring_in(30 * DAY_MS - 1), WireOutcome::Failed(WireFailure::DomainExpiring { days: 29 }));
        assert_eq!(expiring_in(1), WireOutcome::Failed(WireFailure::DomainExpiring { days: 0 }));
        assert_eq!(expiring_in(0), WireOutcome::Failed(WireFailure::DomainExpired));
        let lapsed = Registration { expires_ms: Some(NOW + 300 * DAY_MS), is_lapsed: true, ..Registration::default() };
        assert_eq!(judge(30, NOW, Ok(Some(lapsed))), WireOutcome::Failed(WireFailure::DomainExpired));
        assert_eq!(judge(30, NOW, Ok(None)), WireOutcome::Failed(WireFailure::DomainNotFound));
    }

    #[test]
    fn unreadable_answers_are_inconclusive() {
        let without_dates = Registration::default();
        let year_one = Registration { expires_ms: Some(-62_135_596_800_000), ..without_dates };
        let epoch = Registration { expires_ms: Some(0), ..without_dates };
        let long_past = Registration { expires_ms: Some(NOW - 400 * DAY_MS), ..without_dates };
        let reversed = Registration { expires_ms: Some(NOW - DAY_MS), registered_ms: Some(NOW), ..without_dates };
        let answers = [without_dates, year_one, epoch, long_past, reversed].map(|answer| Ok(Some(answer)));
        for answer in answers.into_iter().chain([Err(unreadable("it answers with status 500"))]) {
            let outcome = judge(30, NOW, answer);
            assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })));
        }
    }
}
