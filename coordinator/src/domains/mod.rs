//! Verification of custom domains: looks up the pages' TXT records, first soon after a request, then at growing
//! intervals.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::page::verification::Unseen;
use parallax_dial::{DialError, Host, Record, RecordKind, Resolver};
use tokio::time::Instant;

use crate::service::Service;
use crate::service::domains::Lookup;

/// Interval at which due look-ups are started.
const LOOK: Duration = Duration::from_secs(5);
/// Timeout of one look-up.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum concurrent look-ups.
const AT_ONCE: usize = 8;

/// Looks up TXT records through a resolver.
#[derive(Debug)]
pub struct Records(Resolver);

impl Records {
    /// Uses this resolver, with a time limit per query.
    pub fn of(resolver: Resolver) -> Self {
        Self(resolver.limited_to(LIMIT))
    }
}

impl Lookup for Records {
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, Unseen>> {
        async move {
            let Ok(Host::Name(name)) = Host::parse(name) else { return Err(Unseen::Absent) };
            let asked = self.0.records(&name, RecordKind::Txt, Instant::now() + LIMIT).await;
            let records = asked.map_err(|error| match error {
                DialError::NotFound | DialError::NoAddress => Unseen::Absent,
                DialError::ServFail { .. } => Unseen::Fault,
                DialError::DnsTimeout => Unseen::Silence,
                _ => Unseen::Ours,
            })?;
            let text = |record| match record {
                Record::Text(text) => Some(text),
                Record::Address(_) | Record::Name(_) | Record::Exchange { .. } => None,
            };
            Ok(records.into_iter().filter_map(text).collect())
        }
        .boxed()
    }
}

/// Runs due look-ups for as long as the coordinator runs.
pub async fn keep(service: Service) {
    loop {
        match service.domains_due().await {
            Ok(due) => {
                let looks = due.into_iter().map(|page| {
                    let service = service.clone();
                    async move { (page, service.look_for_domain(page).await) }
                });
                let mut looks = stream::iter(looks).buffer_unordered(AT_ONCE);
                while let Some((page, looked)) = looks.next().await {
                    if let Err(error) = looked {
                        tracing::warn!(%page, %error, "the result of a domain look-up can't be stored");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "domains due for verification can't be read"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
