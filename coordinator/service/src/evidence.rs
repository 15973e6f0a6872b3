//! Evidence links in alerts: they show the evidence of one outage without sign-in, for seven days. They are signed, and
//! nothing of them is stored.

use std::sync::Arc;

use parallax_core::event::{AlertKind, EventKind, MonitorStatus, StatusChange};
use parallax_core::evidence_link::{EvidenceReference, SIGNATURE_BYTES};
use parallax_core::id::MonitorId;
use parallax_core::outage_evidence::{OutageEvidence, OutageProgress};
use parallax_core::page::NO_ACCOUNT;
use parallax_core::time::Timestamp;
use parallax_store::StoreRead;
use subtle::ConstantTimeEq;

use crate::context::ServiceContext;
use crate::{ServiceError, ServiceResult};

/// Maximum events of a monitor that are searched for the start of an outage, and for its recovery.
const MAX_EVENTS_SEARCHED: usize = 8192;
/// Events read per query.
const READ_AT_ONCE: usize = 512;

/// Creates and verifies evidence links.
#[derive(Debug)]
pub struct EvidenceService {
    context: Arc<ServiceContext>,
}

/// An outage as the journal has it.
struct JournaledOutage {
    /// Start.
    started_at: Timestamp,
    /// Change that began it, if it is still stored; otherwise the one of the alert.
    change: StatusChange,
    /// Time of its recovery, if there was one.
    recovered_at: Option<Timestamp>,
}

impl EvidenceService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Returns the URL that shows the evidence of the outage that a monitor's event belongs to, from `now` on.
    pub fn url(&self, monitor: MonitorId, seq: u64, now: Timestamp) -> String {
        let reference = EvidenceReference::new(monitor, seq, now);
        format!("{}/evidence/{}", self.context.base_url(), reference.encode(self.signature(&reference)))
    }

    /// Returns the evidence that a link shows.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a link that is forged or expired, or whose monitor or event no longer exists.
    pub async fn outage(&self, link: &str) -> ServiceResult<OutageEvidence> {
        let (reference, signature) = EvidenceReference::decode(link).ok_or(ServiceError::NotFound)?;
        let now = self.context.now();
        let is_ours = self.signature(&reference).ct_eq(&signature);
        if !bool::from(is_ours) || !reference.is_valid_at(now) {
            return Err(ServiceError::NotFound);
        }
        let reader = self.context.store().reader();
        let monitor = reader.monitor(reference.monitor)?.ok_or(ServiceError::NotFound)?.value;
        let page = reader.page(monitor.page)?.ok_or(ServiceError::NotFound)?.value;
        if page.account == NO_ACCOUNT {
            return Err(ServiceError::NotFound);
        }
        let outage = self.context.store().read(move |store| read_outage(store, reference)).await?;
        let JournaledOutage { started_at, change, recovered_at } = outage.ok_or(ServiceError::NotFound)?;
        let view = self.context.monitor_views(vec![monitor.id]).await.pop().unwrap_or_default();
        let agents = self.context.agents_by_number().await?;
        let networks = agents.into_iter().map(|(vantage, agent)| (vantage, agent.network)).collect();
        Ok(OutageEvidence {
            page,
            monitor,
            started_at,
            reason: change.reason,
            down_from: change.down_from,
            rounds: change.evidence,
            networks,
            progress: OutageProgress::new(started_at, recovered_at, &view),
            now,
            expires_at: reference.expires_at,
        })
    }

    fn signature(&self, reference: &EvidenceReference) -> [u8; SIGNATURE_BYTES] {
        self.context.mac_prefix(&[b"evidence", &reference.signed_bytes()])
    }
}

/// Reads the outage that an alert is about; none if its event is no longer stored, or is not about an outage.
fn read_outage(store: &dyn StoreRead, reference: EvidenceReference) -> parallax_store::Result<Option<JournaledOutage>> {
    let EvidenceReference { monitor, seq, .. } = reference;
    let mut alerts = store.events_of(monitor, Some(seq.saturating_add(1)), 1)?.into_iter();
    let Some(EventKind::StatusChanged(alert)) = alerts.next().filter(|it| it.seq == seq).map(|it| it.event.kind) else {
        return Ok(None);
    };
    let is_start = match alert.alert {
        Some(AlertKind::WentDown) => true,
        Some(AlertKind::StillDown | AlertKind::Recovered) => false,
        Some(AlertKind::WentSlow | AlertKind::BackToNormal) | None => return Ok(None),
    };
    let started_at = alert.down_since.unwrap_or(alert.since);
    let is_of_outage = |change: &StatusChange| change.down_since == Some(started_at);
    // A recovery within a maintenance window has no alert.
    let is_recovery =
        |change: &StatusChange| matches!(change.to, MonitorStatus::Up | MonitorStatus::Slow) && is_of_outage(change);
    let recovery =
        if is_recovery(&alert) { Some(alert.clone()) } else { find_change(store, monitor, (seq, None), is_recovery)? };
    let start = if is_start {
        None
    } else {
        let is_first = |change: &StatusChange| change.begins_outage() && is_of_outage(change);
        find_change(store, monitor, (0, Some(seq)), is_first)?
    };
    let (change, recovered_at) = (start.unwrap_or(alert), recovery.map(|change| change.since));
    Ok(Some(JournaledOutage { started_at, change, recovered_at }))
}

/// Finds the newest matching change of a monitor with a sequence number above `after` and below `before`, among the
/// newest [`MAX_EVENTS_SEARCHED`] of these events.
fn find_change(
    store: &dyn StoreRead,
    monitor: MonitorId,
    (after, before): (u64, Option<u64>),
    is_match: impl Fn(&StatusChange) -> bool,
) -> parallax_store::Result<Option<StatusChange>> {
    let (mut before, mut searched) = (before, 0);
    while searched < MAX_EVENTS_SEARCHED {
        let events = store.events_of(monitor, before, READ_AT_ONCE)?;
        let Some(oldest) = events.last().map(|event| event.seq) else { return Ok(None) };
        searched += events.len();
        for event in events.into_iter().take_while(|event| event.seq > after) {
            if let EventKind::StatusChanged(change) = event.event.kind
                && is_match(&change)
            {
                return Ok(Some(change));
            }
        }
        if oldest <= after {
            return Ok(None);
        }
        before = Some(oldest);
    }
    Ok(None)
}
