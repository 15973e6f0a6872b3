//! Recent changes of monitors and the alerts of a day, for the overview.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::delivery::DeliveryState;
use parallax_core::event::{Event, EventKind, MonitorStatus, StatusChange};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::observation::RoundOutcome;
use parallax_core::time::Timestamp;
use parallax_store::{JournalEvent, StoreRead};

use super::{DashboardService, PageState};
use crate::ServiceResult;
use crate::deliveries::is_alert;
use crate::monitors::MonitorWithState;

/// Maximum recent changes returned.
const MAX_CHANGES: usize = 8;
/// Monitors whose newest events are read: those whose state changed last.
const RECENT_MONITORS: usize = 12;
/// Events or deliveries read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum events scanned for recent changes: failed rounds are events too.
const MAX_EVENTS_SCANNED: usize = 4_096;
/// Maximum deliveries scanned for alerts, of all pages shown together: mails to subscribers are deliveries too.
const MAX_DELIVERIES_SCANNED: usize = 4_096;
/// Deliveries that are read of each page in any case.
const MIN_DELIVERIES_SCANNED: usize = 128;

/// Alerts of 24 hours, of the newest deliveries that are scanned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Number that arrived.
    pub delivered: usize,
    /// Number that wait or were given up.
    pub undelivered: usize,
    /// Milliseconds from the event to the accepted attempt, of those that arrived.
    pub durations_ms: Vec<i64>,
}

/// A recent change of a monitor.
#[derive(Debug, Clone)]
pub struct RecentChange {
    /// Page of the monitor.
    pub page: PageId,
    /// The monitor.
    pub monitor: MonitorId,
    /// The monitor's name.
    pub name: String,
    /// The event.
    pub event: Event,
}

impl DashboardService {
    /// Returns the newest changes of the monitors of some pages, newest first: those of the monitors whose state
    /// changed last. An outage or slow period that lasts is among them, however many rounds failed since.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn recent_changes(&self, states: &[PageState]) -> ServiceResult<Vec<RecentChange>> {
        let monitors = states.iter().flat_map(|state| &state.overview.monitors);
        let mut monitors: Vec<&MonitorWithState> = monitors.collect();
        let changed_at = |it: &MonitorWithState| it.view.since.unwrap_or(it.monitor.created_at);
        monitors.sort_by_key(|it| std::cmp::Reverse(changed_at(it)));
        monitors.truncate(RECENT_MONITORS);
        let known: BTreeMap<MonitorId, &MonitorWithState> = monitors.iter().map(|it| (it.monitor.id, *it)).collect();
        let ids: Vec<MonitorId> = known.keys().copied().collect();
        let mut events = self.context.store().read(move |store| newest_changes(store, &ids)).await?;
        events.extend(monitors.iter().filter_map(|it| unlisted_trouble(it, &events)).collect::<Vec<_>>());
        events.sort_by_key(|event| std::cmp::Reverse(event.at));
        events.truncate(MAX_CHANGES);
        let change = |event: Event| {
            let it = known.get(&event.monitor?)?;
            Some(RecentChange { page: it.monitor.page, monitor: it.monitor.id, name: it.monitor.name.clone(), event })
        };
        Ok(events.into_iter().filter_map(change).collect())
    }
}

/// Reads the newest changes of monitors, newest first.
fn newest_changes(store: &dyn StoreRead, monitors: &[MonitorId]) -> parallax_store::Result<Vec<Event>> {
    let (mut changes, mut before, mut scanned) = (Vec::new(), None, 0);
    let mut with_round = BTreeSet::new();
    while changes.len() < MAX_CHANGES && scanned < MAX_EVENTS_SCANNED {
        let read = store.events_of_many(monitors, before, READ_AT_ONCE)?;
        let Some(oldest) = read.last().map(|event| event.seq) else { break };
        before = Some(oldest);
        scanned += read.len();
        // A round is followed by others like it: one for each monitor is enough.
        let is_first = |event: &Event| !matches!(event.kind, EventKind::Round(_)) || with_round.insert(event.monitor);
        let events = read.into_iter().map(|JournalEvent { event, .. }| event);
        changes.extend(events.filter(is_notable).filter(is_first));
    }
    Ok(changes)
}

/// Returns true for events that the list of recent changes shows: changes of the status, and rounds only if they could
/// not make the monitor down.
fn is_notable(event: &Event) -> bool {
    match &event.kind {
        EventKind::StatusChanged(change) => change.is_transition(),
        EventKind::MonitorEdited(_) | EventKind::FlappingEnded(_) => true,
        EventKind::Round(report) => matches!(report.round_outcome, RoundOutcome::Disputed | RoundOutcome::Unconfirmed),
        _ => false,
    }
}

/// Change with which the trouble of a monitor began, made from its state, if its event lies behind those that were
/// read.
fn unlisted_trouble(monitor: &MonitorWithState, listed: &[Event]) -> Option<Event> {
    let (id, view) = (monitor.monitor.id, &monitor.view);
    let since = view.since.filter(|_| matches!(view.status, MonitorStatus::Down | MonitorStatus::Slow))?;
    let is_it = |event: &Event| {
        let begins = |change: &StatusChange| change.is_transition() && change.to == view.status;
        event.monitor == Some(id) && matches!(&event.kind, EventKind::StatusChanged(change) if begins(change))
    };
    if monitor.monitor.paused || listed.iter().any(is_it) {
        return None;
    }
    let change = StatusChange {
        from: MonitorStatus::Up,
        to: view.status,
        alert: None,
        since,
        down_since: view.outage_since,
        reason: view.down_reason.clone(),
        down_from: view.down_from,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: Vec::new(),
        flapping: None,
    };
    let kind = EventKind::StatusChanged(change);
    Some(Event { at: since, page: Some(monitor.monitor.page), monitor: Some(id), kind })
}

/// Counts the alerts of a page since that time, by its share of the deliveries that are scanned for all pages shown.
pub(super) fn count_alerts(
    store: &dyn StoreRead,
    (page, pages_shown): (PageId, usize),
    since: Timestamp,
) -> parallax_store::Result<DeliveryCounts> {
    let share = (MAX_DELIVERIES_SCANNED / pages_shown.max(1)).max(MIN_DELIVERIES_SCANNED);
    let (mut counts, mut before, mut scanned) = (DeliveryCounts::default(), None, 0);
    while scanned < share {
        let read = store.deliveries_of(Some(page), before, READ_AT_ONCE.min(share - scanned))?;
        let Some(oldest) = read.last() else { break };
        let is_past = oldest.value.created_at < since;
        before = Some(oldest.value.id);
        scanned += read.len();
        let alerts = read.into_iter().map(|it| it.value).filter(|it| it.created_at >= since && is_alert(it));
        for delivery in alerts {
            match delivery.state {
                DeliveryState::Delivered(at) => {
                    counts.delivered += 1;
                    counts.durations_ms.push(at.since(delivery.created_at));
                }
                DeliveryState::Waiting(_) | DeliveryState::Failed(_) => counts.undelivered += 1,
                DeliveryState::Dropped(_) => {}
            }
        }
        if is_past {
            break;
        }
    }
    Ok(counts)
}
