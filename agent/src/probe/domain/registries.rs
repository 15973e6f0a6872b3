//! The registries: RDAP and WHOIS servers by top-level domain, and pauses that they requested.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, header};
use parallax_protocol::fair_slots::UNKNOWN_ACCOUNT;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::{
    lookup_cache::LookupCache,
    registrable::top_level,
    unreadable,
    whois::{self, WhoisRoot},
};
use crate::probe::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts},
    http::fetch::{FetchRequest, fetch},
};

/// Address of IANA's list of RDAP services (RFC 9224).
const BOOTSTRAP: &str = "https://data.iana.org/rdap/dns.json";
/// Contents of the list at build time.
const BUILT_IN: &str = include_str!("registries.txt");
/// Lifetime of a read copy, and retry interval after a failed reading.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const RETRY_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Time that a check waits for a new copy.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BOOTSTRAP: usize = 2 * 1024 * 1024;
/// Pause for a registry that reports too many requests without a duration.
const PAUSE: Duration = Duration::from_secs(5 * 60);
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The registries, shared by all checks.
#[derive(Debug)]
pub(in crate::probe) struct Registries {
    /// Service for every domain, if set by the operator or a test.
    fixed: Option<String>,
    whois: WhoisRoot,
    /// Address of the bootstrap registry, and file that caches it for the next start.
    bootstrap: String,
    file: Option<PathBuf>,
    lookups: LookupCache,
    state: Mutex<RegistryState>,
}

#[derive(Debug)]
struct RegistryState {
    /// Base address, ending in a slash, by top-level domain.
    services: BTreeMap<String, String>,
    /// WHOIS server by top-level domain; empty if it has none.
    whois: BTreeMap<String, String>,
    next_read: Option<Instant>,
    /// End of the pause, by base address.
    paused_until: BTreeMap<String, Instant>,
}

impl Registries {
    /// Creates the built-in registries, or one that serves all domains.
    pub(in crate::probe) fn new(fixed: Option<&Url>) -> Self {
        let state = RegistryState {
            services: built_in(),
            whois: BTreeMap::new(),
            next_read: None,
            paused_until: BTreeMap::new(),
        };
        let fixed = fixed.map(|url| with_slash(url.as_str()));
        Self {
            fixed,
            whois: WhoisRoot::default(),
            bootstrap: BOOTSTRAP.to_owned(),
            file: None,
            lookups: LookupCache::default(),
            state: Mutex::new(state),
        }
    }

    /// Creates the built-in registries with one WHOIS server that refers to the others; all listen on its
    /// port.
    pub(in crate::probe) fn with_whois(at: SocketAddr) -> Self {
        let whois = WhoisRoot { host: at.ip().to_string(), port: at.port() };
        let registries = Self { whois, ..Self::new(None) };
        registries.state().next_read = Some(Instant::now() + LIFETIME);
        registries
    }

    /// Sets another address of the bootstrap registry, if given, and a file that caches its contents; the
    /// cached contents are used until a new reading succeeds.
    pub(in crate::probe) fn with_bootstrap(mut self, address: Option<&Url>, file: PathBuf) -> Self {
        if let Some(address) = address {
            self.bootstrap = address.to_string();
        }
        let is_sane = std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() <= MAX_BOOTSTRAP as u64);
        if let Some(cached) = is_sane.then(|| std::fs::read(&file).ok()).flatten().and_then(|body| services(&body)) {
            self.state().services.extend(cached);
        }
        self.file = Some(file);
        self
    }

    /// Returns the cache of recent results.
    pub(super) fn lookups(&self) -> &LookupCache {
        &self.lookups
    }

    /// Returns the WHOIS server for `domain`; looked up once for each top-level domain.
    ///
    /// # Errors
    /// The fault if there is none, or if the look-up failed.
    pub(super) async fn whois_of(
        &self,
        domain: &str,
        context: &ProbeContext,
        deadline: Instant,
    ) -> Result<String, CheckError> {
        let top = top_level(domain);
        let known = self.state().whois.get(top).cloned();
        let server = match known {
            Some(server) => server,
            None => {
                let server = whois::server_of(top, &self.whois, context, deadline).await?.unwrap_or_default();
                self.state().whois.insert(top.to_owned(), server.clone());
                server
            }
        };
        if server.is_empty() { Err(unreadable("it offers neither RDAP nor WHOIS")) } else { Ok(server) }
    }

    /// Returns the port of WHOIS servers.
    pub(super) fn whois_port(&self) -> u16 {
        self.whois.port
    }

    /// Returns the base address of the service for `domain`. Reads the bootstrap registry again when due; the
    /// check that finds it due does so, and the others continue with the cached copy.
    pub(super) async fn service_of(&self, domain: &str, context: &ProbeContext, deadline: Instant) -> Option<String> {
        if self.fixed.is_some() {
            return self.fixed.clone();
        }
        let now = Instant::now();
        let is_due = {
            let mut state = self.state();
            let is_due = state.next_read.is_none_or(|at| at <= now);
            if is_due {
                state.next_read = Some(now + RETRY_INTERVAL);
            }
            is_due
        };
        if is_due && let Some(services) = self.refresh(context, deadline.min(now + REFRESH_TIMEOUT)).await {
            let mut state = self.state();
            state.services.extend(services);
            state.next_read = Some(now + LIFETIME);
        }
        self.state().services.get(top_level(domain)).cloned()
    }

    /// # Errors
    /// A message for a registry that must not be queried for now.
    pub(super) fn check_not_paused(&self, base: &str) -> Result<(), &'static str> {
        match self.state().paused_until.get(base) {
            Some(until) if *until > Instant::now() => Err("it limits the rate of requests"),
            Some(_) | None => Ok(()),
        }
    }

    /// Pauses queries to a registry for as long as its response requests.
    pub(super) fn pause(&self, base: &str, headers: &HeaderMap) {
        let now = Instant::now();
        let mut state = self.state();
        state.paused_until.retain(|_, until| *until > now);
        state.paused_until.insert(base.to_owned(), now + retry_after(headers));
    }

    /// Reads the bootstrap registry and caches it for the next start.
    async fn refresh(&self, context: &ProbeContext, deadline: Instant) -> Option<BTreeMap<String, String>> {
        let request = FetchRequest {
            url: &self.bootstrap,
            headers: Vec::new(),
            max_bytes: MAX_BOOTSTRAP,
            account: UNKNOWN_ACCOUNT,
        };
        let page =
            fetch(request, context, deadline, &mut CheckFacts::default()).await.ok().filter(|page| page.status == 200);
        let read = page.and_then(|page| Some((services(&page.body)?, page.body)));
        let Some((services, body)) = read else {
            tracing::info!("the registry of RDAP services can't be read; using the cached copy");
            return None;
        };
        if let Some(file) = self.file.clone() {
            let saving = tokio::task::spawn_blocking(move || {
                let temporary = file.with_extension("new");
                std::fs::write(&temporary, &body).and_then(|()| std::fs::rename(&temporary, &file))
            });
            if let Ok(Err(error)) = saving.await {
                tracing::warn!(%error, "the registry of RDAP services could not be saved");
            }
        }
        Some(services)
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `Retry-After` in seconds (RFC 9110, section 10.2.3); one with a date is ignored.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(PAUSE, Duration::from_secs).min(MAX_PAUSE)
}

fn built_in() -> BTreeMap<String, String> {
    let lines = BUILT_IN.lines().filter(|line| !line.starts_with('#'));
    let services = lines.filter_map(|line| {
        let (base, domains) = line.split_once(' ')?;
        Some(domains.split(' ').map(|domain| (domain.to_owned(), base.to_owned())))
    });
    services.flatten().collect()
}

#[derive(Deserialize)]
struct Bootstrap {
    services: Vec<(Vec<String>, Vec<String>)>,
}

fn services(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let bootstrap: Bootstrap = serde_json::from_slice(body).ok()?;
    let mut services = BTreeMap::new();
    for (domains, bases) in bootstrap.services {
        let https = bases.iter().find(|base| base.starts_with("https://"));
        let Some(base) = https.or(bases.first()).filter(|base| Url::parse(base).is_ok()) else { continue };
        for domain in domains {
            services.insert(domain.to_ascii_lowercase(), with_slash(base));
        }
    }
    (!services.is_empty()).then_some(services)
}

fn with_slash(base: &str) -> String {
    format!("{}/", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_built_in_list_is_complete() {
        let services = built_in();
        assert!(services.len() > 1000);
        assert_eq!(services["com"], "https://rdap.verisign.com/com/v1/");
        for (domain, base) in services {
            assert!(Url::parse(&base).is_ok() && base.ends_with('/'), "{base}");
            assert!(domain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{domain}");
        }
    }

    #[test]
    fn the_bootstrap_registry_is_parsed_and_https_preferred() {
        let body = br#"{"version":"1.0","publication":"2026-01-01T00:00:00Z","services":[
            [["net","COM"],["http://a.example/rdap","https://b.example/rdap"]],
            [["example"],["no address"]],[["org"],["http://c.example/"]]]}"#;
        let services = services(body).unwrap();
        assert_eq!(services["com"], "https://b.example/rdap/");
        assert_eq!(services["org"], "http://c.example/");
        assert!(!services.contains_key("example"));
        assert!(super::services(b"<html>").is_none());
        assert!(super::services(br#"{"services":[]}"#).is_none());
    }

    #[test]
    fn a_registry_is_paused_for_its_retry_after() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), PAUSE);
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("120"));
        assert_eq!(retry_after(&headers), Duration::from_secs(120));
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("999999999"));
        assert_eq!(retry_after(&headers), MAX_PAUSE);
    }
}
