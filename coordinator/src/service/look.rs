//! Check now: an agent in each region checks a monitor on request, and the outcomes are stored as events.

use std::time::Duration;

use parallax_core::event::{Event, Reason, RoundReport, What};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::observation::{Outcome, Word};
use parallax_core::refusal::Refusals;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::history::Places;
use super::pace::TooOften;
use super::{Caller, Error, Result, Service};
use crate::flow::{Arrival, CheckNow, Sighting};
use crate::storage::Batch;

/// Time that the agents get: ten seconds for the check, two for the network, and one for the driver.
const PATIENCE: Duration = Duration::from_secs(13);

/// Result of a check on request.
#[derive(Debug, Clone)]
pub struct Looked {
    /// Outcome for each region, including regions without an agent, in the order of regions.
    pub sightings: Vec<Sighting>,
    /// Agents named in the outcomes.
    pub places: Places,
}

impl Service {
    /// Checks a monitor at once, once in each of its regions. The outcomes change no status and count in no
    /// statistics.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] for a heartbeat, which is not probed, and
    /// [`Error::CheckedJustNow`].
    pub async fn check_now(&self, caller: &Caller, page: PageId, id: MonitorId) -> Result<Looked> {
        caller.writes()?;
        let page = self.page(caller, page)?;
        let monitor = self.monitor_on(&page, id)?.value;
        if monitor.check.kind() == parallax_core::check::CheckKind::Heartbeat {
            return Err(
                Refusals::whole("a heartbeat can't be checked on request: its job reports by ping").into()
            );
        }
        self.paced(&self.0.looked, 1, &id)
            .map_err(|TooOften { seconds }| Error::CheckedJustNow { seconds })?;
        let (answer, answered) = oneshot::channel();
        let asked = Arrival::CheckNow(CheckNow { monitor: id, answer });
        let looking = async {
            self.0.beats.inbox.send(asked).await.ok()?;
            answered.await.ok()
        };
        let sightings = timeout(PATIENCE, looking).await.ok().flatten().unwrap_or_default();
        let mut batch = Batch::new();
        for report in sightings.iter().filter_map(report) {
            let at = self.now();
            batch.event(Event { at, page: Some(page.id), monitor: Some(id), what: What::Round(report) });
        }
        if !batch.is_empty() {
            self.store().commit(batch).await?;
        }
        Ok(Looked { sightings, places: self.places().await? })
    }
}

/// Builds the event of an agent's outcome: a failure counts as unconfirmed.
fn report(sighting: &Sighting) -> Option<RoundReport> {
    let observation = sighting.seen.as_ref()?;
    let word = match observation.outcome {
        Outcome::Passed(_) => Word::Passed,
        Outcome::Failed(..) => Word::Unconfirmed,
        Outcome::Inconclusive(_) => Word::Inconclusive,
        Outcome::Pending => return None,
    };
    Some(RoundReport {
        region: observation.region,
        reason: Reason::Manual,
        round: None,
        started: observation.started,
        word,
        first: observation.place,
        outcome: observation.outcome.clone(),
        second: None,
        third: None,
    })
}
