//! The domain probe: expiry of a domain's registration, from its registry by RDAP (RFC 9082, RFC 9083), or by
//! WHOIS if the registry has no RDAP.
//!
//! Only a clear statement of a registry can fail a check. Anything unreadable is inconclusive.

mod answer;
mod date;
mod looks;
mod meaning;
mod registrable;
mod registries;
mod whois;

use http::{HeaderMap, HeaderValue, header};
use parallax_dial::Host;
use parallax_protocol::{
    check::DomainCheck,
    result::{Failure, Outcome, OwnFault, Report},
    slots::UNKNOWN_ACCOUNT,
    text::Detail,
};
use tokio::time::Instant;

use self::answer::Registration;
pub(super) use self::registries::Registries;
use super::{
    facts::{Facts, Trouble, bad_target},
    http::fetch::{Page, Want, fetch},
    net::Net,
};
use crate::clock::Clock;

/// Maximum size of a response in bytes.
const MAX_ANSWER: usize = 1024 * 1024;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Message for a response without an expiry date.
const NO_DATE: &str = "its answer has no expiry date";
/// Message for a rate limit of the registry.
const BUSY: &str = "it limits the rate of requests";
const RDAP: HeaderValue = HeaderValue::from_static("application/rdap+json, application/json;q=0.9");

/// Queries the registry of the host's registrable part.
pub(super) async fn run(check: &DomainCheck, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let answer = ask(check, net, &mut facts).await;
    if answer.is_ok() {
        facts.took = Some(started.elapsed());
    }
    // The status code is the registry's, not the customer's.
    facts.status = None;
    let now_ms = Clock::new(0).wall_ms();
    let expires_ms = match &answer {
        Ok(Some(registration)) => registration.end(now_ms).ok(),
        Ok(None) | Err(_) => None,
    };
    let outcome = judge(check.warn_days, now_ms, answer);
    Report { expires_ms, ..facts.report(outcome) }
}

/// Returns the registry's response, or the recent one to another check of the domain; `None` if the domain is
/// not registered.
async fn ask(check: &DomainCheck, net: &Net, facts: &mut Facts) -> Result<Option<Registration>, Trouble> {
    let deadline = net.deadline();
    let name = match Host::parse(&check.host) {
        Ok(Host::Name(name)) => name,
        Ok(Host::Ip(_)) => return Err(bad_target("the host must be a domain name, not an address").into()),
        Err(error) => return Err(bad_target(error.to_string()).into()),
    };
    let domain = registrable::of(name.as_str())
        .ok_or_else(|| bad_target("this name can't be registered: it is a public suffix"))?;
    net.registries().looks().share(&domain, deadline, look_up(&domain, net, deadline, facts)).await
}

/// Queries the registry of a domain.
async fn look_up(
    domain: &str,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Option<Registration>, Trouble> {
    let registries = net.registries();
    let Some(base) = registries.of(domain, net, deadline).await else {
        return by_whois(domain, net, deadline, facts).await;
    };
    registries.is_asked(&base).map_err(unreadable)?;
    let url = format!("{base}domain/{domain}");
    let want =
        Want { url: &url, headers: vec![(header::ACCEPT, RDAP)], most: MAX_ANSWER, account: UNKNOWN_ACCOUNT };
    let page = fetch(want, net, deadline, facts).await.map_err(|trouble| match trouble {
        Trouble::Target(failure) => unreadable(failure.to_string()),
        own @ Trouble::Own(_) => own,
    })?;
    if page.status == 429 || page.status == 503 {
        registries.rest(&base, &page.headers);
    }
    read(&page, domain).map_err(unreadable)
}

/// Queries a registry without RDAP.
async fn by_whois(
    domain: &str,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Option<Registration>, Trouble> {
    let registries = net.registries();
    let server = registries.whois_of(domain, net, deadline).await?;
    registries.is_asked(&server).map_err(unreadable)?;
    let answer = whois::ask(&server, registries.whois_port(), domain, net, deadline, facts).await;
    if answer.as_ref().is_err_and(|trouble| *trouble == unreadable(BUSY)) {
        registries.rest(&server, &HeaderMap::new());
    }
    answer
}

fn read(page: &Page, domain: &str) -> Result<Option<Registration>, String> {
    match page.status {
        200 => answer::read(&page.body, domain).map(Some),
        // A web server without the service responds with 404 too, in HTML.
        404 if page.body.is_empty() || answer::is_json_object(&page.body) => Ok(None),
        429 => Err(BUSY.to_owned()),
        404 => Err("it answers with status 404 and no RDAP response".to_owned()),
        status => Err(format!("it answers with status {status}")),
    }
}

fn unreadable(why: impl AsRef<str>) -> Trouble {
    Trouble::Own(OwnFault::RegistryUnreadable { detail: Detail::new(why.as_ref()) })
}

fn judge(warn_days: u16, now_ms: i64, answer: Result<Option<Registration>, Trouble>) -> Outcome {
    let registration = match answer {
        Ok(Some(registration)) => registration,
        Ok(None) => return Outcome::Failed(Failure::DomainNotFound),
        Err(trouble) => return trouble.into(),
    };
    if registration.is_lapsed {
        return Outcome::Failed(Failure::DomainExpired);
    }
    let expires_ms = match registration.end(now_ms) {
        Ok(expires_ms) => expires_ms,
        Err(why) => return unreadable(why).into(),
    };
    let left_ms = expires_ms.saturating_sub(now_ms);
    if left_ms <= 0 {
        return Outcome::Failed(Failure::DomainExpired);
    }
    if left_ms < i64::from(warn_days) * DAY_MS {
        let days = u32::try_from(left_ms / DAY_MS).unwrap_or(0);
        return Outcome::Failed(Failure::DomainExpiring { days });
    }
    Outcome::Passed
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn ends_in(left_ms: i64) -> Outcome {
        judge(30, NOW, Ok(Some(Registration { expires_ms: Some(NOW + left_ms), ..Registration::default() })))
    }

    #[test]
    fn a_registration_fails_from_the_warning_on() {
        assert_eq!(ends_in(30 * DAY_MS), Outcome::Passed);
        assert_eq!(ends_in(30 * DAY_MS - 1), Outcome::Failed(Failure::DomainExpiring { days: 29 }));
        assert_eq!(ends_in(1), Outcome::Failed(Failure::DomainExpiring { days: 0 }));
        assert_eq!(ends_in(0), Outcome::Failed(Failure::DomainExpired));
        let lapsed =
            Registration { expires_ms: Some(NOW + 300 * DAY_MS), is_lapsed: true, ..Registration::default() };
        assert_eq!(judge(30, NOW, Ok(Some(lapsed))), Outcome::Failed(Failure::DomainExpired));
        assert_eq!(judge(30, NOW, Ok(None)), Outcome::Failed(Failure::DomainNotFound));
    }

    #[test]
    fn what_can_not_be_read_is_never_expiring() {
        let silent = Registration::default();
        let year_one = Registration { expires_ms: Some(-62_135_596_800_000), ..silent };
        let epoch = Registration { expires_ms: Some(0), ..silent };
        let long_past = Registration { expires_ms: Some(NOW - 400 * DAY_MS), ..silent };
        let reversed = Registration { expires_ms: Some(NOW - DAY_MS), began_ms: Some(NOW), ..silent };
        let answers = [silent, year_one, epoch, long_past, reversed].map(|answer| Ok(Some(answer)));
        for answer in answers.into_iter().chain([Err(unreadable("it answers with status 500"))]) {
            let outcome = judge(30, NOW, answer);
            assert!(matches!(outcome, Outcome::Inconclusive(OwnFault::RegistryUnreadable { .. })));
        }
    }
}
