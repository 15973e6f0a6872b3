//! Look-up cache: one look-up of a domain serves all checks within half a minute.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parallax_protocol::result::WireOwnFault;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout_at},
};

use super::{registration::Registration, unreadable};
use crate::probe::facts::CheckError;

/// Lifetime of a cached result: shorter than the minute after which a failed round is repeated.
const LIFETIME: Duration = Duration::from_secs(30);
/// Maximum number of cached domains; the least recently requested one is evicted.
const MAX_DOMAINS: usize = 4096;

type LookupResult = Result<Option<Registration>, CheckError>;

/// Recent results from registries, by domain.
#[derive(Debug, Default)]
pub(in crate::probe) struct LookupCache(Mutex<BTreeMap<String, (Instant, LookupSlot)>>);

/// Lock of the look-up: one check looks up; the others wait for it.
type LookupSlot = Arc<AsyncMutex<Option<(Instant, LookupResult)>>>;

impl LookupCache {
    /// Returns the recent result for the domain, or that of `look_up`.
    pub(super) async fn get_or_look_up(
        &self,
        domain: &str,
        deadline: Instant,
        look_up: impl Future<Output = LookupResult>,
    ) -> LookupResult {
        let slot = self.slot(domain);
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            return Err(unreadable("another check is still waiting for it"));
        };
        if let Some((at, result)) = &*slot
            && at.elapsed() < LIFETIME
        {
            return result.clone();
        }
        let result = look_up.await;
        // A fault on the agent's side is no information about the registry.
        let is_informative = match &result {
            Ok(_) | Err(CheckError::Own(WireOwnFault::RegistryUnreadable { .. })) => true,
            Err(_) => false,
        };
        *slot = is_informative.then(|| (Instant::now(), result.clone()));
        result
    }

    fn slot(&self, domain: &str) -> LookupSlot {
        let now = Instant::now();
        let mut domains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !domains.contains_key(domain) && domains.len() >= MAX_DOMAINS {
            let oldest = domains.iter().min_by_key(|(_, (at, _))| *at).map(|(domain, _)| domain.clone());
            domains.remove(&oldest.unwrap_or_default());
        }
        let (last_requested, slot) = domains.entry(domain.to_owned()).or_insert_with(|| (now, LookupSlot::default()));
        *last_requested = now;
        Arc::clone(slot)
    }
}
