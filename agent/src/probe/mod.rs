//! Probes: one check in, one report out. A report never claims more than this vantage saw.
//!
//! [`run_cached`] is the whole interface, and [`run`] for a check that runs once. Each probe gathers facts
//! with IO and judges them in a pure function at the bottom of its file. Shared resources are in
//! `context.rs`; [`Probes`] adds the state of single probes.

mod certificate;
mod chain_cache;
mod component;
mod context;
mod dns;
mod domain;
mod facts;
mod http;
mod memory_budget;
mod ping;
mod tcp;
mod tls;
mod vendor;

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use parallax_dial::DialGuard;
use parallax_protocol::{
    check::{WireCheckKind, WireCheckSpec},
    result::ProbeReport,
};
use rustls::RootCertStore;
use url::Url;

use self::{component::VendorPageCache, context::ProbeContext, domain::Registries, ping::Pingers};

pub use self::context::{ProbeSetupError, roots};

/// Check types that the probes of this build support.
pub const KINDS: &[WireCheckKind] = &WireCheckKind::ALL;

/// The probes of an agent: their shared resources and the state of each; cheap to clone.
#[derive(Debug, Clone)]
pub struct Probes {
    context: ProbeContext,
    pingers: Arc<Pingers>,
    registries: Arc<Registries>,
    vendor_pages: Arc<VendorPageCache>,
}

impl Probes {
    /// Default time limit of a whole check.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// Creates probes that dial through `guard` and trust `roots`.
    ///
    /// # Errors
    /// [`ProbeSetupError::Tls`] if the TLS library refuses its settings, [`ProbeSetupError::Roots`] for no roots at
    /// all.
    pub fn new(guard: DialGuard, roots: RootCertStore) -> Result<Self, ProbeSetupError> {
        let pingers = Arc::new(Pingers::new(guard.policy().source));
        Ok(Self {
            context: ProbeContext::new(guard, roots, Self::LIMIT)?,
            pingers,
            registries: Arc::new(Registries::new(None)),
            vendor_pages: Arc::new(VendorPageCache::new(VendorPageCache::LIFETIME)),
        })
    }

    /// Sets another time limit for a whole check.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.context.set_limit(limit);
        self
    }

    /// Sets one RDAP service for every domain, instead of the registries' own.
    #[must_use]
    pub fn with_rdap(mut self, base: &Url) -> Self {
        self.registries = Arc::new(Registries::new(Some(base)));
        self
    }

    /// Sets another address of the bootstrap registry of RDAP services (RFC 9224), if given, and a file that
    /// caches its contents over a restart.
    #[must_use]
    pub fn with_bootstrap(mut self, address: Option<&Url>, file: PathBuf) -> Self {
        self.registries = Arc::new(Registries::new(None).with_bootstrap(address, file));
        self
    }

    /// Sets another WHOIS server that refers to those of registries without RDAP; all listen on its port.
    #[must_use]
    pub fn with_whois(mut self, root: SocketAddr) -> Self {
        self.registries = Arc::new(Registries::with_whois(root));
        self
    }

    /// Sets another cache lifetime of a vendor's page, which all its followers share.
    #[must_use]
    pub fn with_page_lifetime(mut self, lifetime: Duration) -> Self {
        self.vendor_pages = Arc::new(VendorPageCache::new(lifetime));
        self
    }

    /// Detects the product of a vendor's page in one check instead of over several, for a single run.
    #[must_use]
    pub fn with_full_page_detection(mut self) -> Self {
        self.vendor_pages = Arc::new(VendorPageCache::with_full_detection());
        self
    }

    /// Returns the product that a component check detected on a vendor's page.
    #[must_use]
    pub fn vendor_product(&self, vendor_url: &str) -> Option<&'static str> {
        self.vendor_pages.product(vendor_url)
    }

    /// Returns the guard that probes dial through.
    #[must_use]
    pub fn guard(&self) -> &DialGuard {
        self.context.guard()
    }

    /// Returns the time limit of a whole check.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.context.limit()
    }

    /// Returns true if this host permits pings (ICMP).
    pub(crate) fn may_ping(&self) -> bool {
        self.pingers.may_send()
    }
}

/// Cached parts of a check between runs; never anything that was received. It belongs to one [`WireCheckSpec`]: a
/// changed specification needs a new cache.
#[derive(Default)]
pub struct CheckCache {
    http: http::PreparedRequestCache,
    account: u32,
}

impl CheckCache {
    /// Creates an empty cache for a check of that account, which is charged for the check's memory.
    #[must_use]
    pub fn for_account(account: u32) -> Self {
        Self { account, ..Self::default() }
    }
}

impl fmt::Debug for CheckCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A request contains the customer's headers, which are secrets.
        f.write_str("CheckCache")
    }
}

/// Runs one check without a cache: see [`run_cached`].
pub async fn run(spec: &WireCheckSpec, probes: &Probes) -> ProbeReport {
    run_cached(spec, &CheckCache::default(), probes).await
}

/// Runs one check and ends within the limit of `probes`.
///
/// Every end becomes an outcome: the target's faults are
/// [failed](parallax_protocol::result::WireOutcome::Failed), those on the agent's side
/// [inconclusive](parallax_protocol::result::WireOutcome::Inconclusive).
/// [Pending](parallax_protocol::result::WireOutcome::Pending) is never returned; the caller sends it for a check
/// that is still running. Dropping the future ends the check and closes its connections.
pub async fn run_cached(spec: &WireCheckSpec, cache: &CheckCache, probes: &Probes) -> ProbeReport {
    let context = &probes.context;
    match spec {
        // Each boxed: a check's future is moved a few times before it starts, and should not be as large as
        // the largest of them.
        WireCheckSpec::Http(check) => Box::pin(http::run(check, &cache.http, cache.account, context)).await,
        WireCheckSpec::Tcp(check) => Box::pin(tcp::run(check, context)).await,
        WireCheckSpec::Dns(check) => Box::pin(dns::run(check, context)).await,
        WireCheckSpec::Ping(check) => Box::pin(ping::run(check, &probes.pingers, context)).await,
        WireCheckSpec::Certificate(check) => Box::pin(certificate::run(check, context)).await,
        WireCheckSpec::Domain(check) => Box::pin(domain::run(check, &probes.registries, context)).await,
        WireCheckSpec::Component(check) => {
            Box::pin(component::run(check, cache.account, &probes.vendor_pages, context)).await
        }
    }
}
