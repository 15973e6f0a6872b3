//! Explanation of a monitor's state for someone who manages its page: reads the facts of
//! [`parallax_core::explanation`].

use std::collections::BTreeMap;

use parallax_core::delivery::{Delivery, DeliveryState, Recipient};
use parallax_core::destination::Destination;
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, RoundReport, StatusChange};
use parallax_core::explanation::{AlertResult, Explanation, ExplanationFacts, OutageIncident, VantageLabel};
use parallax_core::id::{DeliveryId, IncidentId, MonitorId, PageId};
use parallax_core::machine::MachineInspection;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::time::{DAY, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, Region, RegionSet, VantageNo};
use parallax_store::StoreRead;

use super::PublicPageService;
use super::page_view::MonitorDetail;
use crate::ServiceResult;

/// Events read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum events scanned for the change that an explanation is about: some hours of failing rounds.
const MAX_EVENTS_SCANNED: usize = 4_096;
/// Maximum deliveries scanned for its alerts.
const MAX_DELIVERIES_SCANNED: usize = 1_024;
/// Milliseconds after a change within which its alerts are looked for, the likely ones first: mails to subscribers of
/// the page follow them, and may be many.
const ALERTED_WITHIN: [i64; 3] = [10 * SECOND, 10 * MINUTE, DAY];
/// Maximum alerts that an explanation names.
const MAX_ALERTS: usize = 20;
/// Milliseconds before and after the first failure whose rounds are kept, besides the newest ones.
const NEAR: i64 = 2 * MINUTE;
/// Newest rounds that are kept.
const NEWEST_ROUNDS: usize = 64;

/// Explanation of a monitor's state, with what is shown beside it.
#[derive(Debug, Clone)]
pub struct MonitorExplanation {
    /// The explanation.
    pub explanation: Explanation,
    /// Names of agents, as the reader may see them.
    pub agents: BTreeMap<VantageNo, VantageLabel>,
    /// Regions that are checked; empty while that can't be read.
    pub checked: RegionSet,
    /// Deadline of a heartbeat's next ping, or of the one that was missed.
    pub deadline: Option<Timestamp>,
    /// Milliseconds between two rounds in one region; none while that can't be read.
    pub interval_ms: Option<u32>,
}

/// Entries of the journal about a change.
#[derive(Default)]
struct ChangeRecord {
    /// The change, with its sequence number and its time.
    change: Option<(u64, Timestamp, StatusChange)>,
    /// Set if the outage began before that change, in a maintenance window, which kept it silent.
    began_silently: bool,
    rounds: Vec<RoundReport>,
}

impl ChangeRecord {
    /// Returns true if the found change announces the outage that began silently with that earlier one.
    fn announces(&self, earlier: &StatusChange) -> bool {
        let is_announced = |change: &StatusChange| change.alert.is_some() && change.down_since == earlier.down_since;
        earlier.begins_silent_outage() && self.change.as_ref().is_some_and(|(.., change)| is_announced(change))
    }
}

/// Change that an explanation is about.
#[derive(Clone, Copy)]
struct WantedChange {
    /// Status.
    to: MonitorStatus,
    /// Start of the outage that lasts.
    outage_since: Option<Timestamp>,
    /// Start of the status: events before it are not read. None if the monitor was never down or slow.
    since: Option<Timestamp>,
}

impl WantedChange {
    fn of(detail: &MonitorDetail) -> Self {
        let view = &detail.monitor.state;
        if view.status == MonitorStatus::Slow {
            return Self { to: MonitorStatus::Slow, outage_since: None, since: view.since };
        }
        let last = detail.outages.first().map(|outage| outage.from);
        Self { to: MonitorStatus::Down, outage_since: view.outage_since, since: view.outage_since.or(last) }
    }

    fn is(self, change: &StatusChange) -> bool {
        match self.to {
            MonitorStatus::Down => {
                change.begins_outage() && self.outage_since.is_none_or(|since| change.down_since == Some(since))
            }
            to => change.is_transition() && change.to == to,
        }
    }
}

impl PublicPageService {
    /// Explains the state of a monitor whose detail view the caller has read. Agents have their names if `shows_names`
    /// is true, otherwise their numbers.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn explain(&self, detail: &MonitorDetail, shows_names: bool) -> ServiceResult<MonitorExplanation> {
        let (page, monitor, view) = (&detail.page, &detail.monitor.monitor, &detail.monitor.state);
        let inspected = self.monitors.inspect_machine(monitor.id).await;
        let record = self.change_record(monitor.id, WantedChange::of(detail)).await?;
        let alerts = match &record.change {
            Some((seq, at, change)) => self.alerts_of(page.id, monitor.id, (*seq, *at), change).await?,
            None => Vec::new(),
        };
        // By the record of announced outages: an incident is no longer automatic once a person writes in it.
        let announced = self.context.store().reader().announced_outages(page.id)?;
        let announced = announced.and_then(|outages| outages.value.down.get(&monitor.id)?.incident);
        let incident = announced.and_then(|id| detail.open.iter().find(|it| it.incident.id == id));
        let (machine, mesh) =
            inspected.map_or_else(|| (None, Mesh::default()), |(machine, mesh)| (Some(machine), mesh));
        let agents = labels(&self.context.agents_by_number().await?, shows_names);
        let deadline = machine.as_ref().and_then(|it| it.heartbeat.as_ref()?.deadline);
        let regions = machine.as_ref().map(|it| it.regions.as_slice()).unwrap_or_default();
        let rounds = with_evidence(record.rounds, machine.as_ref());
        let explanation = Explanation::new(&ExplanationFacts {
            now: detail.now,
            zone: page.timezone,
            monitor,
            view,
            maintenance_until: maintenance_until(detail),
            regions,
            mesh: &mesh,
            agents: &agents,
            rounds: &rounds,
            change: record.change.as_ref().map(|(.., change)| change),
            announced_at: record.change.as_ref().filter(|_| record.began_silently).map(|(_, at, _)| *at),
            deadline,
            alerts: &alerts,
            incident: incident.map(|it| outage_incident(it.incident.id, &it.incident.title, it.incident.started_at)),
        });
        let checked = regions.iter().map(|it| it.region).collect();
        let interval_ms = machine.as_ref().map(|it| it.settings.interval_ms);
        Ok(MonitorExplanation { explanation, agents, checked, deadline, interval_ms })
    }

    /// Finds the newest change that is wanted, and the rounds around it and the newest ones. For a monitor that was
    /// never down or slow, only the newest rounds are read.
    async fn change_record(&self, id: MonitorId, wanted: WantedChange) -> ServiceResult<ChangeRecord> {
        let (mut record, mut before, mut scanned) = (ChangeRecord::default(), None, 0);
        while scanned < MAX_EVENTS_SCANNED {
            let read = self.context.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(oldest) = read.last().map(|event| (event.seq, event.event.at)) else { break };
            before = Some(oldest.0);
            scanned += read.len();
            for event in read {
                match event.event.kind {
                    EventKind::StatusChanged(change) if record.change.is_none() && wanted.is(&change) => {
                        record.change = Some((event.seq, event.event.at, change));
                    }
                    EventKind::StatusChanged(change) if record.announces(&change) => record.began_silently = true,
                    EventKind::Round(report) => record.rounds.push(report),
                    _ => {}
                }
            }
            if wanted.since.is_none_or(|since| oldest.1 < since - NEAR) {
                break;
            }
        }
        let since = record.change.as_ref().map(|(.., change)| change.since);
        let is_near = |started: Timestamp| since.is_some_and(|since| started.since(since).abs() <= NEAR);
        let mut kept = 0;
        record.rounds.retain(|report| {
            kept += 1;
            kept <= NEWEST_ROUNDS || is_near(report.started)
        });
        Ok(record)
    }

    /// Lists the alerts of a change, oldest first.
    async fn alerts_of(
        &self,
        page: PageId,
        monitor: MonitorId,
        (seq, at): (u64, Timestamp),
        change: &StatusChange,
    ) -> ServiceResult<Vec<AlertResult>> {
        let since = change.since;
        let is_alert = [AlertKind::WentDown, AlertKind::WentSlow].map(AlertKind::name);
        let read_within = move |store: &dyn StoreRead, within: i64| -> parallax_store::Result<Vec<Delivery>> {
            let latest = DeliveryId::new(at + within, [u8::MAX; 10]);
            let (mut found, mut before, mut scanned) = (Vec::new(), Some(latest), 0);
            while scanned < MAX_DELIVERIES_SCANNED {
                let read = store.deliveries_of(Some(page), before, READ_AT_ONCE)?;
                let Some(oldest) = read.last() else { break };
                let is_past = oldest.value.created_at < since;
                before = Some(oldest.value.id);
                scanned += read.len();
                found.extend(read.into_iter().map(|it| it.value).filter(|delivery| {
                    delivery.monitor == Some(monitor)
                        && is_alert.contains(&delivery.event.as_str())
                        && (delivery.seq == seq || delivery.outage_start == Some(since))
                }));
                if is_past {
                    break;
                }
            }
            Ok(found)
        };
        let read = move |store: &dyn StoreRead| {
            let mut found = Vec::new();
            for within in ALERTED_WITHIN {
                if found.is_empty() {
                    found = read_within(store, within)?;
                }
            }
            Ok((found, store.destinations_of(page)?))
        };
        let (found, destinations) = self.context.store().read(read).await?;
        let destinations: Vec<Destination> = destinations.into_iter().map(|it| it.value).collect();
        let mut alerts: Vec<AlertResult> =
            found.iter().rev().take(MAX_ALERTS).map(|delivery| alert_result(delivery, &destinations)).collect();
        alerts.sort_by_key(|alert| alert.at);
        Ok(alerts)
    }
}

const fn outage_incident(id: IncidentId, title: &str, started_at: Timestamp) -> OutageIncident<'_> {
    OutageIncident { id, title, started_at }
}

/// Adds the rounds that the machine keeps as evidence, which may be older than what was read of the journal.
fn with_evidence(mut rounds: Vec<RoundReport>, machine: Option<&MachineInspection>) -> Vec<RoundReport> {
    for report in machine.map(|it| it.evidence.as_slice()).unwrap_or_default() {
        let is_known = |it: &RoundReport| it.region == report.region && it.started == report.started;
        if !rounds.iter().any(is_known) {
            rounds.push(report.clone());
        }
    }
    rounds.sort_by_key(|report| std::cmp::Reverse(report.started));
    rounds
}

/// End of the running window that covers the monitor.
fn maintenance_until(detail: &MonitorDetail) -> Option<Timestamp> {
    let id = detail.monitor.monitor.id;
    let windows = detail.open.iter().filter_map(|it| MaintenanceWindow::of(&it.incident));
    windows.filter(|it| it.span.contains(detail.now) && it.covers(id)).map(|it| it.span.to).max()
}

/// Names of agents, or their numbers for readers who may not know names.
pub fn labels(
    agents: &crate::monitors::history::AgentsByNumber,
    shows_names: bool,
) -> BTreeMap<VantageNo, VantageLabel> {
    let label = |(no, agent): (&VantageNo, &parallax_core::member::AgentRecord)| {
        let name = if shows_names { agent.name.clone() } else { format!("agent {}", no.0) };
        let region: Region = agent.region;
        (*no, VantageLabel { name, network: agent.network.clone(), region })
    };
    agents.iter().map(label).collect()
}

fn alert_result(delivery: &Delivery, destinations: &[Destination]) -> AlertResult {
    let destination = match delivery.to {
        Recipient::Destination(id) | Recipient::UnconfirmedDestination(id) => {
            let named = destinations.iter().find(|it| it.id == id);
            named.map_or_else(|| "a deleted destination".to_owned(), |it| it.name.clone())
        }
        Recipient::Owner(_) => "the account's mailbox".to_owned(),
        Recipient::Subscriber(_) | Recipient::OperatorMail | Recipient::OperatorWebhook | Recipient::Visitor(_) => {
            "another recipient".to_owned()
        }
    };
    let attempt = delivery.attempt_log.last();
    let answer = attempt.map(|it| match (it.status, &it.error) {
        (Some(status), _) => format!("answers {status}"),
        (None, Some(error)) => error.clone(),
        (None, None) => "no answer".to_owned(),
    });
    let (at, fault) = match delivery.state {
        DeliveryState::Delivered(at) => (at, None),
        DeliveryState::Waiting(_) => (
            attempt.map_or(delivery.created_at, |it| it.at),
            Some(answer.unwrap_or_else(|| "waiting to be sent".to_owned())),
        ),
        DeliveryState::Failed(at) => (at, Some(answer.unwrap_or_else(|| "given up".to_owned()))),
        DeliveryState::Dropped(at) => (at, Some("not sent: it was out of date, or the destination is off".to_owned())),
    };
    AlertResult { destination, at, fault }
}
