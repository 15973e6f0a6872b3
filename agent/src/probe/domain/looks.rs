//! One look-up of a domain serves all checks that come within half a minute.

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

/// How long an answer serves others: shorter than the minute after which a failed round is repeated.
const FRESH: Duration = Duration::from_secs(30);
/// Domains that are remembered; the one that was asked for longest ago is forgotten for another.
const MOST: usize = 4096;

type Said = Result<Option<Registration>, Trouble>;

/// What registries have just said, by domain.
#[derive(Debug, Default)]
pub(in crate::probe) struct Looks(Mutex<BTreeMap<String, (Instant, Slot)>>);

/// One check looks up; the others wait for it.
type Slot = Arc<Turn<Option<(Instant, Said)>>>;

impl Looks {
    /// What was said of the domain lately, or else what `look_up` brings.
    pub(super) async fn share(
        &self,
        domain: &str,
        deadline: Instant,
        look_up: impl Future<Output = Said>,
    ) -> Said {
        let slot = self.slot(domain);
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            return Err(unreadable("another check still waits for it"));
        };
        if let Some((at, said)) = &*slot
            && at.elapsed() < FRESH
        {
            return said.clone();
        }
        let said = look_up.await;
        // A trouble of this host's is no news of the registry.
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
