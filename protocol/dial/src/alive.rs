//! The resolver's liveness: it is asked for what no cache can hold.
//!
//! A resolver that has lost its way out goes on answering from its cache, the root and popular names above all. So the
//! question is for a random label below a large zone, which only that zone's servers can answer. Validating resolvers may
//! deny such a name out of their cache where the zone's NSEC records allow it (RFC 8198); the zones here have NSEC3 with
//! opt-out, which does not.

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
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{error::DialError, host::Name, resolve::reason};

/// Zones of registries in different hands, so that no one of them decides.
pub(crate) const ZONES: [&str; 8] = ["com", "net", "org", "de", "nl", "fr", "uk", "jp"];

/// How long a resolver may take to show that it is alive at all.
const WITHIN: Duration = Duration::from_secs(2);

/// Zones that are asked below at once.
const FIRST: usize = 2;

/// Zones that are asked below where those have not answered.
const MORE: usize = 3;

/// Time without an answer after which those are asked.
const MORE_AFTER: Duration = Duration::from_millis(600);

/// A name is accused only where the resolver was alive for so long before it was asked: one that comes back still believes
/// for a while that other servers are gone.
const RECOVERS: Duration = Duration::from_secs(30);

/// Zones of names that were resolved, of which so many are remembered.
const NEAR: usize = 8;

/// Looks into whether one resolver is alive, for everybody who asks it.
#[derive(Debug)]
pub(crate) struct Life {
    zones: Vec<DnsName>,
    /// Held while the resolver is asked: who waits for it takes the same verdict.
    turn: tokio::sync::Mutex<()>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    newest: Option<Verdict>,
    /// The newest moment at which it was found dead.
    dead: Option<Instant>,
    /// A large zone has been reached at all: this is no network of its own.
    reached: bool,
    /// The zones of names that were resolved here, for networks without a way out.
    near: Vec<DnsName>,
}

/// One look at the resolver.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    begun: Instant,
    result: Result<(), DialError>,
}

impl Life {
    /// Asks below these zones.
    pub(crate) fn new(zones: Vec<DnsName>) -> Self {
        Self { zones, turn: tokio::sync::Mutex::default(), seen: Mutex::default() }
    }

    /// Asks below the large zones of [`ZONES`].
    pub(crate) fn usual() -> Self {
        Self::new(ZONES.iter().filter_map(|zone| DnsName::from_ascii(format!("{zone}.")).ok()).collect())
    }

    /// Notes that a name was resolved.
    pub(crate) fn resolved(&self, name: &Name) {
        let Some((_, zone)) = name.as_str().split_once('.') else { return };
        let mut seen = self.seen();
        if seen.reached {
            return;
        }
        let Ok(zone) = DnsName::from_ascii(format!("{zone}.")) else { return };
        if !seen.near.contains(&zone) {
            seen.near.insert(0, zone);
            seen.near.truncate(NEAR);
        }
    }

    /// Asks whether the resolver answers, by a question that was asked at `since` or later; the fault of this host where it
    /// does not, none where `deadline` came first. Takes 4 s at most.
    pub(crate) async fn verdict(
        &self,
        resolver: &TokioResolver,
        since: Instant,
        deadline: Instant,
    ) -> Option<Result<(), DialError>> {
        let of_others = || self.seen().newest.filter(|newest| newest.begun >= since);
        if let Some(newest) = of_others() {
            return Some(newest.result);
        }
        let turn = timeout_at(deadline, self.turn.lock()).await.ok()?;
        if let Some(newest) = of_others() {
            return Some(newest.result);
        }
        let begun = Instant::now();
        let until = begun + WITHIN;
        let result = timeout_at(deadline, self.ask(resolver, begun, until)).await.ok()?;
        {
            let mut seen = self.seen();
            seen.newest = Some(Verdict { begun, result });
            if result.is_err() {
                seen.dead = Some(Instant::now());
            }
        }
        drop(turn);
        Some(result)
    }

    /// The host's own fault where the resolver was dead lately: within [`RECOVERS`] before `asked`, or since.
    pub(crate) fn fault_since(&self, asked: Instant) -> Option<DialError> {
        let seen = self.seen();
        let is_lately = |dead: &Instant| *dead + RECOVERS >= asked;
        seen.dead.filter(is_lately).map(|_| match seen.newest.map(|newest| newest.result) {
            Some(Err(fault)) => fault,
            Some(Ok(())) | None => DialError::ResolverDead,
        })
    }

    async fn ask(&self, resolver: &TokioResolver, begun: Instant, until: Instant) -> Result<(), DialError> {
        let (large, near) = self.questions();
        let (first, more) = large.split_at(FIRST.min(large.len()));
        let asks = |(name, is_large): (DnsName, bool)| async move {
            (is_large, resolver.lookup(name, RecordType::NS).await)
        };
        let mut open: FuturesUnordered<_> = first.iter().map(|name| asks((name.clone(), true))).collect();
        let mut rest = Some(more.iter().map(|name| (name.clone(), true)).chain(near));
        let mut fault = DialError::ResolverDead;
        loop {
            if open.is_empty() {
                // Nobody answered: there is nothing to wait for.
                match rest.take() {
                    Some(rest) => open.extend(rest.map(asks)),
                    None => return Err(fault),
                }
                continue;
            }
            let answered = tokio::select! {
                biased;
                answered = open.next() => answered,
                () = sleep_until(begun + MORE_AFTER), if rest.is_some() => {
                    open.extend(rest.take().into_iter().flatten().map(asks));
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
                    if reason(&error) == DialError::NoDescriptors {
                        fault = DialError::NoDescriptors;
                    }
                    continue;
                }
                // An empty answer is an answer.
                Ok(_) | Err(_) => {}
            }
            self.seen().reached |= is_large;
            return Ok(());
        }
    }

    /// Asks whether the resolver denies the root, which exists: then it denies every name.
    async fn denies_all(&self, resolver: &TokioResolver, until: Instant) -> bool {
        let root = timeout_at(until, resolver.lookup(DnsName::root(), RecordType::NS)).await;
        matches!(root, Ok(Err(error)) if error.is_nx_domain())
    }

    /// Random names below large zones, and below zones of this network where no large one was ever reached.
    fn questions(&self) -> (Vec<DnsName>, Vec<(DnsName, bool)>) {
        let random = random();
        let below =
            |zone: &DnsName| DnsName::from_ascii(format!("px{random:016x}")).ok()?.append_domain(zone).ok();
        let count = self.zones.len().max(1);
        let start = usize::try_from(random % count as u64).unwrap_or(0);
        let large = self.zones.iter().cycle().skip(start).take(self.zones.len().min(FIRST + MORE));
        let seen = self.seen();
        let near = seen.near.iter().filter(|_| !seen.reached).take(MORE);
        (large.filter_map(below).collect(), near.filter_map(below).map(|name| (name, false)).collect())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that nobody has asked for before: the standard library seeds each of its hashers.
fn random() -> u64 {
    std::hash::RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn every_question_is_another_and_no_zone_is_always_first() {
        let life = Life::usual();
        let mut names = std::collections::BTreeSet::new();
        let mut zones = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (large, near) = life.questions();
            assert_eq!((large.len(), near.len()), (FIRST + MORE, 0));
            zones.insert(large[0].base_name().to_ascii());
            names.extend(large.iter().map(DnsName::to_ascii));
        }
        assert_eq!((names.len(), zones.len()), (200 * (FIRST + MORE), ZONES.len()));
    }

    #[test]
    fn zones_of_its_own_are_asked_below_while_no_large_one_was_reached() {
        let life = Life::usual();
        for host in ["app.corp.internal", "db.corp.internal", "corp"] {
            let Ok(Host::Name(name)) = Host::parse(host) else { panic!("{host}") };
            life.resolved(&name);
        }
        let near: Vec<String> =
            life.questions().1.iter().map(|(name, _)| name.base_name().to_ascii()).collect();
        assert_eq!(near, ["corp.internal."]);
        life.seen().reached = true;
        assert_eq!(life.questions().1.len(), 0);
    }

    #[test]
    fn the_zones_that_are_remembered_have_a_bound() {
        let life = Life::usual();
        for n in 0..99 {
            let Ok(Host::Name(name)) = Host::parse(&format!("www.zone{n}.test")) else { panic!("{n}") };
            life.resolved(&name);
        }
        assert_eq!(life.seen().near.len(), NEAR);
    }
}
