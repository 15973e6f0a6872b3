//! Look-up cache: one look-up of a domain serves all checks within half a minute.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parallax_protocol::result::OwnFault;
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout_at},
};

use super::{answer::Registration, unreadable};
use crate::probe::facts::Trouble;

/// Lifetime of a cached result: shorter than the minute after which a failed round is repeated.
const FRESH: Duration = Duration::from_secs(30);
/// Maximum number of cached domains; the least recently requested one is evicted.
const MOST: usize = 4096;

type Said = Result<Option<Registration>, Trouble>;

/// Recent results from registries, by domain.
#[derive(Debug, Default)]
pub(in crate::probe) struct Looks(Mutex<BTreeMap<String, (Instant, Slot)>>);

/// Lock of the look-up: one check looks up; the others wait for it.
type Slot = Arc<Turn<Option<(Instant, Said)>>>;

impl Looks {
    /// Returns the recent result for the domain, or that of `look_up`.
    pub(super) async fn share(
        &self,
        domain: &str,
        deadline: Instant,
        look_up: impl Future<Output = Said>,
    ) -> Said {
        let slot = self.slot(domain);
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            return Err(unreadable("another check is still waiting for it"));
        };
        if let Some((at, said)) = &*slot
            && at.elapsed() < FRESH
        {
            return said.clone();
        }
        let said = look_up.await;
        // A fault on the agent's side is no information about the registry.
        let is_news = match &said {
            Ok(_) | Err(Trouble::Own(OwnFault::RegistryUnreadable { .. })) => true,
            Err(_) => false,
        };
        *slot = is_news.then(|| (Instant::now(), said.clone()));
        said
    }

    fn slot(&self, domain: &str) -> Slot {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(domain) && known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, (at, _))| *at).map(|(domain, _)| domain.clone());
            known.remove(&oldest.unwrap_or_default());
        }
        let (asked, slot) = known.entry(domain.to_owned()).or_insert_with(|| (now, Slot::default()));
        *asked = now;
        Arc::clone(slot)
    }
}
