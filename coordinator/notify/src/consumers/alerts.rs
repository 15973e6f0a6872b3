//! Alerts: turns each change of a monitor's state into one delivery per destination that is subscribed to it.
//! Chats receive two messages about a flapping monitor: one when it starts flapping and one when it is stable
//! again. The owner is notified if a monitor can't be judged.

mod unjudged;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::event::{AlertKind, EventKind, RoundReport, StatusChange};
use parallax_core::flapping::{Aspect, Flapping, FlappingEnd};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;
use parallax_core::vantage::VantageNo;
use parallax_store::{Batch, JournalEvent, Result, StoreRead};

use super::evidence_links::EvidenceLinks;
use super::{JournalConsumer, alert_log, event_delivery_id};
use crate::render::alert_payload::AlertSubject;
use crate::render::{self, AgentLabel, Alert};

/// Event names of the chat messages about flapping.
const FLAPPING: &str = "flapping";
const STABLE: &str = "steady";

/// Journal consumer that creates alerts.
#[derive(Debug)]
pub struct AlertConsumer {
    base_url: String,
    root_domain: Option<String>,
    evidence_links: EvidenceLinks,
    counts: [AtomicU64; AlertKind::ALL.len()],
}

impl AlertConsumer {
    /// Creates the consumer. Pages are served below `base_url` (without a trailing slash) or under
    /// `root_domain`; alerts of outages get a link to their evidence if their destination wants one.
    pub fn new(base_url: String, root_domain: Option<String>, evidence_links: EvidenceLinks) -> Self {
        Self { base_url, root_domain, evidence_links, counts: Default::default() }
    }

    /// Number of alerts of each kind read since the start, whether or not any destination receives them.
    pub fn counts(&self) -> [(AlertKind, u64); AlertKind::ALL.len()] {
        let mut counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        AlertKind::ALL.map(|kind| (kind, counts.next().unwrap_or(0)))
    }

    /// Returns the monitor that an alert is about; `None` if it no longer exists, or the alert is a still-down alert of
    /// an acknowledged outage.
    fn subject(
        &self,
        destinations: &PageDestinations,
        journal_event: &JournalEvent,
        read: &dyn StoreRead,
    ) -> Result<Option<AlertSubject>> {
        let Some(monitor) = journal_event.event.monitor else { return Ok(None) };
        let url = || destinations.page.address(&self.base_url, self.root_domain.as_deref());
        let monitor = read.monitor(monitor)?.map(|monitor| monitor.value);
        let monitor = monitor.filter(|monitor| !is_acknowledged_reminder(journal_event, monitor));
        Ok(monitor.map(|monitor| AlertSubject::for_monitor(&destinations.page, url(), &monitor)))
    }
}

impl JournalConsumer for AlertConsumer {
    const NAME: &'static str = "alerts";

    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        let mut pages: BTreeMap<PageId, Option<PageDestinations>> = BTreeMap::new();
        let mut names = AgentNameCache::default();
        let no_agents = BTreeMap::new();
        for journal_event in events {
            if let Some(delivery) = unjudged::unjudged_delivery(journal_event, read, now)? {
                batch.write(delivery);
            }
            let (Some(trigger), Some(page)) = (AlertTrigger::from_event(journal_event), journal_event.event.page)
            else {
                continue;
            };
            let page_destinations = match pages.entry(page) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(PageDestinations::load(read, page)?),
            };
            let Some(page_destinations) = page_destinations else { continue };
            let Some(subject) = self.subject(page_destinations, journal_event, read)? else { continue };
            let with_alert = |it| Some((it, trigger.for_destination(it, subject.monitor_id)?));
            let receivers: Vec<(&Destination, DestinationAlert<'_>)> =
                page_destinations.destinations.iter().filter_map(with_alert).collect();
            if receivers.is_empty() {
                continue;
            }
            let (at, zone) = (journal_event.event.at, page_destinations.page.timezone);
            let agents = match trigger {
                AlertTrigger::Change(_, change) => names.for_change(change, page_destinations.page.account, read)?,
                AlertTrigger::Stable(_) => &no_agents,
            };
            let link = self.evidence_links.for_event(subject.monitor_id, journal_event.seq, now);
            // One message per channel, with and without the link, however many destinations use it.
            let mut messages: BTreeMap<(ChannelKind, bool), DeliveryMessage> = BTreeMap::new();
            for (destination, alert) in receivers {
                let (channel, has_link) = (destination.channel.kind(), destination.evidence_link);
                let evidence_url = link.as_deref().filter(|_| has_link);
                let alert_of = |kind, change| Alert {
                    kind,
                    subject: &subject,
                    change,
                    at,
                    zone,
                    agents,
                    evidence_url,
                    is_test: false,
                };
                let message = messages.entry((channel, has_link)).or_insert_with(|| match alert {
                    DestinationAlert::Alert(kind, change) => render::render_alert(channel, &alert_of(kind, change)),
                    DestinationAlert::Flapping(kind, change, flapping) => {
                        render::render_flapping(channel, &alert_of(kind, change), flapping)
                    }
                    DestinationAlert::Stable(end) => render::render_stable(channel, &subject, end, at, zone),
                });
                batch.write(alert_delivery(journal_event, &subject, alert, destination, message.clone(), now));
            }
        }
        Ok(batch)
    }

    fn on_committed(&self, events: &[JournalEvent]) {
        events.iter().for_each(alert_log::log_event);
        for trigger in events.iter().filter_map(AlertTrigger::from_event) {
            let AlertTrigger::Change(kind, _) = trigger else { continue };
            let entry = AlertKind::ALL.iter().zip(&self.counts).find(|(it, _)| **it == kind);
            if let Some((_, count)) = entry {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Notifiable change of a monitor, as read from the journal.
#[derive(Debug, Clone, Copy)]
enum AlertTrigger<'a> {
    Change(AlertKind, &'a StatusChange),
    Stable(&'a FlappingEnd),
}

/// Notification for one destination.
#[derive(Debug, Clone, Copy)]
enum DestinationAlert<'a> {
    /// A change of state.
    Alert(AlertKind, &'a StatusChange),
    /// The change that started the flapping.
    Flapping(AlertKind, &'a StatusChange, Flapping),
    /// The monitor is stable again.
    Stable(&'a FlappingEnd),
}

impl<'a> AlertTrigger<'a> {
    fn from_event(journal_event: &'a JournalEvent) -> Option<Self> {
        match &journal_event.event.kind {
            EventKind::StatusChanged(change) => change.alert.map(|kind| Self::Change(kind, change)),
            EventKind::FlappingEnded(end) => Some(Self::Stable(end)),
            _ => None,
        }
    }

    /// Returns the notification for a destination; `None` if it doesn't receive this one.
    fn for_destination(self, destination: &Destination, monitor: MonitorId) -> Option<DestinationAlert<'a>> {
        let (receives, alert) = match self {
            Self::Stable(end) => (destination.receives_flapping(end.aspect, monitor), DestinationAlert::Stable(end)),
            Self::Change(kind, change) => match change.flapping {
                Some(flapping) if destination.channel.kind().is_chat() => {
                    let is_start = flapping.has_begun() && kind != AlertKind::StillDown;
                    let receives = is_start && destination.receives_flapping(Aspect::of(kind), monitor);
                    (receives, DestinationAlert::Flapping(kind, change, flapping))
                }
                Some(_) | None => (destination.receives(kind, monitor), DestinationAlert::Alert(kind, change)),
            },
        };
        receives.then_some(alert)
    }
}

impl DestinationAlert<'_> {
    /// Event name of its deliveries.
    const fn event_name(self) -> &'static str {
        match self {
            Self::Alert(kind, _) => kind.name(),
            Self::Flapping(..) => FLAPPING,
            Self::Stable(_) => STABLE,
        }
    }

    /// Start of the outage or slow period.
    fn started_at(self) -> Option<Timestamp> {
        match self {
            Self::Alert(AlertKind::WentDown | AlertKind::StillDown | AlertKind::Recovered, change) => {
                Some(change.down_since.unwrap_or(change.since))
            }
            Self::Alert(AlertKind::WentSlow, change) => Some(change.since),
            Self::Alert(AlertKind::BackToNormal, change) => {
                let duration = change.duration_ms.and_then(|millis| i64::try_from(millis).ok())?;
                Some(change.since - duration)
            }
            Self::Flapping(.., flapping) => Some(flapping.since),
            Self::Stable(end) => Some(end.flapping.since),
        }
    }
}

/// Returns true for a still-down alert of an outage that was acknowledged after the event. Later ones have no event.
fn is_acknowledged_reminder(journal_event: &JournalEvent, monitor: &Monitor) -> bool {
    let EventKind::StatusChanged(change) = &journal_event.event.kind else { return false };
    let outage = change.down_since.filter(|_| change.alert == Some(AlertKind::StillDown));
    outage.is_some_and(|outage| monitor.acknowledgement_of(outage).is_some())
}

fn alert_delivery(
    journal_event: &JournalEvent,
    subject: &AlertSubject,
    alert: DestinationAlert<'_>,
    destination: &Destination,
    message: DeliveryMessage,
    now: Timestamp,
) -> Delivery {
    let to = Recipient::Destination(destination.id);
    Delivery {
        page: Some(subject.page_id),
        monitor: Some(subject.monitor_id),
        seq: journal_event.seq,
        outage_start: alert.started_at(),
        ..Delivery::waiting(event_delivery_id(journal_event, to), to, alert.event_name(), message, now)
    }
}

/// A page and those of its destinations that its plan includes.
struct PageDestinations {
    page: Page,
    destinations: Vec<Destination>,
}

impl PageDestinations {
    /// Loads a page; `None` if it no longer exists.
    fn load(read: &dyn StoreRead, id: PageId) -> Result<Option<Self>> {
        let Some(page) = read.page(id)? else { return Ok(None) };
        let page = page.value;
        let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let in_plan = |it: &Destination| plan.has_channel(it.channel.kind());
        let destinations = read.destinations_of(id)?.into_iter().map(|destination| destination.value);
        Ok(Some(Self { page, destinations: destinations.filter(in_plan).collect() }))
    }
}

/// Names of agents, read once and only when evidence is shown. The operator's account sees agents' own names;
/// other accounts see a number and the network.
#[derive(Default)]
struct AgentNameCache {
    agents: Option<BTreeMap<VantageNo, AgentLabel>>,
    /// The operator's account, once read.
    operator_account: Option<Option<AccountId>>,
    current: BTreeMap<VantageNo, AgentLabel>,
}

impl AgentNameCache {
    /// Returns the names of the agents in a change's evidence, as the account sees them. A removed agent is
    /// named by its number.
    fn for_change(
        &mut self,
        change: &StatusChange,
        account: AccountId,
        read: &dyn StoreRead,
    ) -> Result<&BTreeMap<VantageNo, AgentLabel>> {
        self.current.clear();
        let vantages = |round: &RoundReport| {
            let (second, third) = (round.second.as_ref(), round.third.as_deref());
            [Some(round.first_vantage), second.map(|it| it.0), third.map(|it| it.0)].into_iter().flatten()
        };
        for vantage in change.evidence.iter().flat_map(vantages) {
            let agents = match &mut self.agents {
                Some(agents) => agents,
                None => self.agents.insert(agent_labels(read)?),
            };
            let operator = match self.operator_account {
                Some(operator) => operator,
                None => *self.operator_account.insert(operator_account(read)?),
            };
            let numbered = || format!("place {}", vantage.0);
            let label = match agents.get(&vantage) {
                Some(agent) if operator == Some(account) => agent.clone(),
                Some(agent) => AgentLabel { name: numbered(), network: agent.network.clone() },
                None => AgentLabel { name: numbered(), network: "unknown".to_owned() },
            };
            self.current.insert(vantage, label);
        }
        Ok(&self.current)
    }
}

/// The operator's account: the oldest of the installation.
fn operator_account(read: &dyn StoreRead) -> Result<Option<AccountId>> {
    let accounts = read.accounts()?.into_iter().map(|account| account.value);
    Ok(accounts.min_by_key(|account| (account.created_at, account.id)).map(|account| account.id))
}

fn agent_labels(read: &dyn StoreRead) -> Result<BTreeMap<VantageNo, AgentLabel>> {
    let agents = read.agents()?.into_iter().map(|agent| agent.value);
    Ok(agents.map(|agent| (agent.vantage_no, AgentLabel { name: agent.name, network: agent.network })).collect())
}

#[cfg(test)]
pub(crate) mod tests;
