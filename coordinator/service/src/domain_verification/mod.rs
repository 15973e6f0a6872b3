//! Verification of custom domains: looks up the pages' TXT records, first soon after a request, then at growing
//! intervals.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::page::domain_verification::LookupFailure;
use parallax_dial::{DialError, DnsRecord, DnsRecordKind, DnsResolver, Host};
use tokio::time::Instant;

use crate::hosts::domains::{DomainService, TxtLookup};

/// Interval at which due look-ups are started.
const INTERVAL: Duration = Duration::from_secs(5);
/// Timeout of one look-up.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum concurrent look-ups.
const AT_ONCE: usize = 8;

/// Looks up TXT records through a resolver.
#[derive(Debug)]
pub struct TxtResolver(DnsResolver);

impl TxtResolver {
    /// Uses this resolver, with a time limit per query.
    pub fn new(resolver: DnsResolver) -> Self {
        Self(resolver.with_limit(TIMEOUT))
    }
}

impl TxtLookup for TxtResolver {
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LookupFailure>> {
        async move {
            let Ok(Host::Name(name)) = Host::parse(name) else { return Err(LookupFailure::NoRecord) };
            let answer = self.0.records(&name, DnsRecordKind::Txt, Instant::now() + TIMEOUT).await;
            let records = answer.map_err(|error| match error {
                DialError::NotFound | DialError::NoAddress => LookupFailure::NoRecord,
                DialError::ServFail { .. } => LookupFailure::ServerError,
                DialError::DnsTimeout => LookupFailure::NoResponse,
                _ => LookupFailure::Internal,
            })?;
            let text = |record| match record {
                DnsRecord::Text(text) => Some(text),
                DnsRecord::Address(_) | DnsRecord::Name(_) | DnsRecord::Exchange { .. } => None,
            };
            Ok(records.into_iter().filter_map(text).collect())
        }
        .boxed()
    }
}

/// Runs due look-ups for as long as the coordinator runs.
pub async fn run(domains: Arc<DomainService>) {
    loop {
        match domains.due().await {
            Ok(due) => {
                let checks = due.into_iter().map(|page| {
                    let domains = Arc::clone(&domains);
                    async move { (page, domains.verify(page).await) }
                });
                let mut checks = stream::iter(checks).buffer_unordered(AT_ONCE);
                while let Some((page, result)) = checks.next().await {
                    if let Err(error) = result {
                        tracing::warn!(%page, %error, "the result of a domain look-up can't be stored");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "domains due for verification can't be read"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
