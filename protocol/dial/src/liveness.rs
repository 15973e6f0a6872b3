//! Liveness check of the resolver: queries that no cache can answer.
//!
//! A resolver that has lost its upstream keeps answering from its cache, the root and popular names above
//! all. So the query is for a random label below a large zone, which only that zone's servers can answer.
//! Validating resolvers may deny such a name from their cache if the zone's NSEC records allow it (RFC 8198);
//! the zones here have NSEC3 with opt-out, which does not.

use std::{
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use hickory_resolver::{
    TokioResolver,
    proto::rr::{Name as DnsName, RecordType},
};
use parallax_primitives::host::HostName;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{dns_error::dns_error, error::DialError};

/// Zones of independent registries, so that no single one decides.
pub(crate) const ZONES: [&str; 8] = ["com", "net", "org", "de", "nl", "fr", "uk", "jp"];

/// Time limit of a liveness check of a resolver.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of zones queried at first.
const FIRST_QUERIES: usize = 2;

/// Number of zones queried if the first have not answered.
const MORE_QUERIES: usize = 3;

/// Time without an answer after which more zones are queried.
const MORE_AFTER: Duration = Duration::from_millis(600);

/// Time that the resolver must have been alive before a query for its failure to count against the name: a
/// resolver that comes back still believes for a while that other servers are gone.
const RECOVERY_GRACE: Duration = Duration::from_secs(30);

/// Maximum number of remembered zones of resolved names.
const MAX_LOCAL_ZONES: usize = 8;

/// Liveness of one resolver, shared by all its callers.
#[derive(Debug)]
pub(crate) struct ResolverLiveness {
    zones: Vec<DnsName>,
    /// Locked during a liveness check: callers that wait for it share its verdict.
    check_lock: tokio::sync::Mutex<()>,
    state: Mutex<LivenessState>,
}

#[derive(Debug, Default)]
struct LivenessState {
    newest: Option<LivenessVerdict>,
    /// Newest time at which the resolver was found dead.
    last_dead: Option<Instant>,
    /// True once a large zone was reached: this is not an isolated network.
    has_reached_large_zone: bool,
    /// Zones of names that were resolved here, for isolated networks.
    local_zones: Vec<DnsName>,
}

/// Result of one liveness check.
#[derive(Debug, Clone, Copy)]
struct LivenessVerdict {
    started_at: Instant,
    result: Result<(), DialError>,
}

impl ResolverLiveness {
    /// Queries names below these zones.
    pub(crate) fn new(zones: Vec<DnsName>) -> Self {
        Self { zones, check_lock: tokio::sync::Mutex::default(), state: Mutex::default() }
    }

    /// Queries names below the large zones of [`ZONES`].
    pub(crate) fn with_large_zones() -> Self {
        Self::new(ZONES.iter().filter_map(|zone| DnsName::from_ascii(format!("{zone}.")).ok()).collect())
    }

    /// Records that a name was resolved.
    pub(crate) fn record_resolved(&self, name: &HostName) {
        let Some((_, zone)) = name.as_str().split_once('.') else { return };
        let mut state = self.state();
        if state.has_reached_large_zone {
            return;
        }
        let Ok(zone) = DnsName::from_ascii(format!("{zone}.")) else { return };
        if !state.local_zones.contains(&zone) {
            state.local_zones.insert(0, zone);
            state.local_zones.truncate(MAX_LOCAL_ZONES);
        }
    }

    /// Checks whether the resolver answers, with a query sent at `since` or later; returns the fault of this
    /// host if it does not, `None` if `deadline` passed first. Takes at most 4 s.
    pub(crate) async fn verdict(
        &self,
        resolver: &TokioResolver,
        since: Instant,
        deadline: Instant,
    ) -> Option<Result<(), DialError>> {
        let of_others = || self.state().newest.filter(|newest| newest.started_at >= since);
        if let Some(newest) = of_others() {
            return Some(newest.result);
        }
        let turn = timeout_at(deadline, self.check_lock.lock()).await.ok()?;
        if let Some(newest) = of_others() {
            return Some(newest.result);
        }
        let started = Instant::now();
        let until = started + CHECK_TIMEOUT;
        let result = timeout_at(deadline, self.check(resolver, started, until)).await.ok()?;
        {
            let mut state = self.state();
            state.newest = Some(LivenessVerdict { started_at: started, result });
            if result.is_err() {
                state.last_dead = Some(Instant::now());
            }
        }
        drop(turn);
        Some(result)
    }

    /// Returns the host's own fault if the resolver was dead recently: within [`RECOVERY_GRACE`] before `started`, or
    /// since.
    pub(crate) fn fault_since(&self, started: Instant) -> Option<DialError> {
        let state = self.state();
        let is_lately = |dead: &Instant| *dead + RECOVERY_GRACE >= started;
        state.last_dead.filter(is_lately).map(|_| match state.newest.map(|newest| newest.result) {
            Some(Err(fault)) => fault,
            Some(Ok(())) | None => DialError::ResolverDead,
        })
    }

    async fn check(&self, resolver: &TokioResolver, started: Instant, until: Instant) -> Result<(), DialError> {
        let (large, near) = self.queries();
        let (first, more) = large.split_at(FIRST_QUERIES.min(large.len()));
        let query =
            |(name, is_large): (DnsName, bool)| async move { (is_large, resolver.lookup(name, RecordType::NS).await) };
        let mut open: FuturesUnordered<_> = first.iter().map(|name| query((name.clone(), true))).collect();
        let mut rest = Some(more.iter().map(|name| (name.clone(), true)).chain(near));
        let mut fault = DialError::ResolverDead;
        loop {
            if open.is_empty() {
                // All queries have failed: there is nothing to wait for.
                match rest.take() {
                    Some(rest) => open.extend(rest.map(query)),
                    None => return Err(fault),
                }
                continue;
            }
            let answered = tokio::select! {
                biased;
                answered = open.next() => answered,
                () = sleep_until(started + MORE_AFTER), if rest.is_some() => {
                    open.extend(rest.take().into_iter().flatten().map(query));
                    continue;
                }
                () = sleep_until(until) => return Err(fault),
            };
            let Some((is_large, answer)) = answered else { continue };
            match answer {
                Err(error) if error.is_nx_domain() => {
                    if self.denies_all(resolver, until).await {
                        return Err(DialError::ResolverDead);
                    }
                }
                Err(error) if !error.is_no_records_found() => {
                    if dns_error(&error) == DialError::NoDescriptors {
                        fault = DialError::NoDescriptors;
                    }
                    continue;
                }
                // An empty answer also proves liveness.
                Ok(_) | Err(_) => {}
            }
            self.state().has_reached_large_zone |= is_large;
            return Ok(());
        }
    }

    /// Checks whether the resolver denies the root, which exists: such a resolver denies every name.
    async fn denies_all(&self, resolver: &TokioResolver, until: Instant) -> bool {
        let root = timeout_at(until, resolver.lookup(DnsName::root(), RecordType::NS)).await;
        matches!(root, Ok(Err(error)) if error.is_nx_domain())
    }

    /// Random names below large zones, and below zones of this network if no large zone was ever reached.
    fn queries(&self) -> (Vec<DnsName>, Vec<(DnsName, bool)>) {
        let random = random();
        let below = |zone: &DnsName| DnsName::from_ascii(format!("px{random:016x}")).ok()?.append_domain(zone).ok();
        let count = self.zones.len().max(1);
        let start = usize::try_from(random % count as u64).unwrap_or(0);
        let large = self.zones.iter().cycle().skip(start).take(self.zones.len().min(FIRST_QUERIES + MORE_QUERIES));
        let state = self.state();
        let near = state.local_zones.iter().filter(|_| !state.has_reached_large_zone).take(MORE_QUERIES);
        (large.filter_map(below).collect(), near.filter_map(below).map(|name| (name, false)).collect())
    }

    fn state(&self) -> MutexGuard<'_, LivenessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number never queried before: the standard library seeds each of its hashers.
fn random() -> u64 {
    std::hash::RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_primitives::host::Host;

    #[test]
    fn every_query_is_unique_and_zones_rotate() {
        let life = ResolverLiveness::with_large_zones();
        let mut names = std::collections::BTreeSet::new();
        let mut zones = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (large, near) = life.queries();
            assert_eq!((large.len(), near.len()), (FIRST_QUERIES + MORE_QUERIES, 0));
            zones.insert(large[0].base_name().to_ascii());
            names.extend(large.iter().map(DnsName::to_ascii));
        }
        assert_eq!((names.len(), zones.len()), (200 * (FIRST_QUERIES + MORE_QUERIES), ZONES.len()));
    }

    #[test]
    fn local_zones_are_queried_while_no_large_one_was_reached() {
        let life = ResolverLiveness::with_large_zones();
        for host in ["app.corp.internal", "db.corp.internal", "corp"] {
            let Ok(Host::Name(name)) = Host::parse(host) else { panic!("{host}") };
            life.record_resolved(&name);
        }
        let near: Vec<String> = life.queries().1.iter().map(|(name, _)| name.base_name().to_ascii()).collect();
        assert_eq!(near, ["corp.internal."]);
        life.state().has_reached_large_zone = true;
        assert_eq!(life.queries().1.len(), 0);
    }

    #[test]
    fn remembered_zones_are_bounded() {
        let life = ResolverLiveness::with_large_zones();
        for n in 0..99 {
            let Ok(Host::Name(name)) = Host::parse(&format!("www.zone{n}.test")) else { panic!("{n}") };
            life.record_resolved(&name);
        }
        assert_eq!(life.state().local_zones.len(), MAX_LOCAL_ZONES);
    }
}
