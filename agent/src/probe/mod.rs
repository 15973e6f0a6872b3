//! Probes: one check in, one report out. A report never claims more than this vantage saw.
//!
//! [`run_cached`] is the whole interface, and [`run`] for a check that runs once. Each probe gathers facts
//! with IO and judges them in a pure function at the bottom of its file.

mod certificate;
mod chain_cache;
mod component;
mod dns;
mod domain;
mod facts;
mod http;
pub mod net;
mod ping;
mod tcp;
mod tls;
mod vendor;

use std::fmt;

use parallax_protocol::{
    check::{WireCheckKind, WireCheckSpec},
    result::ProbeReport,
};

pub use net::ProbeContext;

/// Check types that the probes of this build support.
pub const KINDS: &[WireCheckKind] = &WireCheckKind::ALL;

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
        f.write_str("Kept")
    }
}

/// Runs one check without a cache: see [`run_cached`].
pub async fn run(spec: &WireCheckSpec, net: &ProbeContext) -> ProbeReport {
    run_cached(spec, &CheckCache::default(), net).await
}

/// Runs one check and ends within the limit of `net`.
///
/// Every end becomes an outcome: the target's faults are
/// [failed](parallax_protocol::result::WireOutcome::Failed), those on the agent's side
/// [inconclusive](parallax_protocol::result::WireOutcome::Inconclusive).
/// [Pending](parallax_protocol::result::WireOutcome::Pending) is never returned; the caller sends it for a check
/// that is still running. Dropping the future ends the check and closes its connections.
pub async fn run_cached(spec: &WireCheckSpec, kept: &CheckCache, net: &ProbeContext) -> ProbeReport {
    match spec {
        // Each boxed: a check's future is moved a few times before it starts, and should not be as large as
        // the largest of them.
        WireCheckSpec::Http(check) => Box::pin(http::run(check, &kept.http, kept.account, net)).await,
        WireCheckSpec::Tcp(check) => Box::pin(tcp::run(check, net)).await,
        WireCheckSpec::Dns(check) => Box::pin(dns::run(check, net)).await,
        WireCheckSpec::Ping(check) => Box::pin(ping::run(check, net)).await,
        WireCheckSpec::Certificate(check) => Box::pin(certificate::run(check, net)).await,
        WireCheckSpec::Domain(check) => Box::pin(domain::run(check, net)).await,
        WireCheckSpec::Component(check) => Box::pin(component::run(check, kept.account, net)).await,
    }
}
