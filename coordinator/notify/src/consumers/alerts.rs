//! Alerts: turns each change of a monitor's state into one delivery per destination that is subscribed to it.
//! Chats receive two messages about a flapping monitor: one when it starts flapping and one when it is stable
//! again. The owner is notified if a monitor can't be judged.

mod unjudged;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::event::{AlertKind, EventKind, StatusChange};
use parallax_core::flapping::{Aspect, Flapping, FlappingEnd};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::page::Page;
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;
use parallax_core::vantage::VantageNo;
use parallax_store::{Batch, JournalEvent, Result, StoreRead};

use super::{JournalConsumer, alert_log, event_delivery_id};
use crate::render::alert_payload::AlertSubject;
use crate::render::{self, AgentLabel, Alert};

/// Event names of the chat messages about flapping.
const FLAPPING: &str = "flapping";
const STEADY: &str = "steady";

/// Journal consumer that creates alerts.
#[derive(Debug)]
pub struct AlertConsumer {
    base_url: String,
    root_domain: Option<String>,
    counts: [AtomicU64; AlertKind::ALL.len()],
}

impl AlertConsumer {
    /// Creates the consumer. Pages are served below `base_url` (without a trailing slash) or under
    /// `root_domain`.
    pub fn new(base_url: String, root_domain: Option<String>) -> Self {
        Self { base_url, root_domain, counts: Default::default() }
    }

    /// Number of alerts of each kind read since the start, whether or not any destination receives them.
    pub fn counts(&self) -> [(AlertKind, u64); AlertKind::ALL.len()] {
        let mut counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        AlertKind::ALL.map(|kind| (kind, counts.next().unwrap_or(0)))
    }

    fn subject(
        &self,
        hearing: &PageDestinations,
        recorded: &JournalEvent,
        read: &dyn StoreRead,
    ) -> Result<Option<AlertSubject>> {
        let Some(monitor) = recorded.event.monitor else { return Ok(None) };
        let url = || hearing.page.address(&self.base_url, self.root_domain.as_deref());
        let monitor = read.monitor(monitor)?;
        Ok(monitor.map(|monitor| AlertSubject::for_monitor(&hearing.page, url(), &monitor.value)))
    }
}

impl JournalConsumer for AlertConsumer {
    const NAME: &'static str = "alerts";

    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        let mut pages: BTreeMap<PageId, Option<PageDestinations>> = BTreeMap::new();
        let mut names = AgentNameCache::default();
        let nobody = BTreeMap::new();
        for recorded in events {
            if let Some(delivery) = unjudged::unjudged_delivery(recorded, read, now)? {
                batch.write(delivery);
            }
            let (Some(what), Some(page)) = (AlertTrigger::from_event(recorded), recorded.event.page) else {
                continue;
            };
            let hearing = match pages.entry(page) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(PageDestinations::load(read, page)?),
            };
            let Some(hearing) = hearing else { continue };
            let Some(subject) = self.subject(hearing, recorded, read)? else { continue };
            let heard = |it| Some((it, what.for_destination(it, subject.monitor_id)?));
            let hearers: Vec<(&Destination, DestinationAlert<'_>)> =
                hearing.destinations.iter().filter_map(heard).collect();
            if hearers.is_empty() {
                continue;
            }
            let (at, zone) = (recorded.event.at, hearing.page.timezone);
            let places = match what {
                AlertTrigger::Change(_, change) => names.for_change(change, hearing.page.account, read)?,
                AlertTrigger::Steady(_) => &nobody,
            };
            let news =
                |kind, change| Alert { kind, subject: &subject, change, at, zone, agents: places, is_test: false };
            // One message per channel, however many destinations use it.
            let mut letters: BTreeMap<ChannelKind, DeliveryMessage> = BTreeMap::new();
            for (destination, heard) in hearers {
                let channel = destination.channel.kind();
                let letter = letters.entry(channel).or_insert_with(|| match heard {
                    DestinationAlert::Alert(kind, change) => render::render_alert(channel, &news(kind, change)),
                    DestinationAlert::Flapping(kind, change, flapping) => {
                        render::render_flapping(channel, &news(kind, change), flapping)
                    }
                    DestinationAlert::Steady(steady) => render::render_stable(channel, &subject, steady, at, zone),
                });
                batch.write(alert_delivery(recorded, &subject, heard, destination, letter.clone(), now));
            }
        }
        Ok(batch)
    }

    fn on_committed(&self, events: &[JournalEvent]) {
        events.iter().for_each(alert_log::log_event);
        for told in events.iter().filter_map(AlertTrigger::from_event) {
            let AlertTrigger::Change(kind, _) = told else { continue };
            let of_kind = AlertKind::ALL.iter().zip(&self.counts).find(|(it, _)| **it == kind);
            if let Some((_, count)) = of_kind {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Notifiable change of a monitor, as read from the journal.
#[derive(Debug, Clone, Copy)]
enum AlertTrigger<'a> {
    Change(AlertKind, &'a StatusChange),
    Steady(&'a FlappingEnd),
}

/// Notification for one destination.
#[derive(Debug, Clone, Copy)]
enum DestinationAlert<'a> {
    /// A change of state.
    Alert(AlertKind, &'a StatusChange),
    /// The change that started the flapping.
    Flapping(AlertKind, &'a StatusChange, Flapping),
    /// The monitor is stable again.
    Steady(&'a FlappingEnd),
}

impl<'a> AlertTrigger<'a> {
    fn from_event(recorded: &'a JournalEvent) -> Option<Self> {
        match &recorded.event.kind {
            EventKind::StatusChanged(change) => change.alert.map(|kind| Self::Change(kind, change)),
            EventKind::FlappingEnded(steady) => Some(Self::Steady(steady)),
            _ => None,
        }
    }

    /// Returns the notification for a destination; `None` if it doesn't receive this one.
    fn for_destination(self, destination: &Destination, monitor: MonitorId) -> Option<DestinationAlert<'a>> {
        let (hears, heard) = match self {
            Self::Steady(steady) => {
                (destination.receives_flapping(steady.aspect, monitor), DestinationAlert::Steady(steady))
            }
            Self::Change(kind, change) => match change.flapping {
                Some(flapping) if destination.channel.kind().is_chat() => {
                    let begins = flapping.has_begun() && kind != AlertKind::StillDown;
                    let hears = begins && destination.receives_flapping(Aspect::of(kind), monitor);
                    (hears, DestinationAlert::Flapping(kind, change, flapping))
                }
                Some(_) | None => (destination.receives(kind, monitor), DestinationAlert::Alert(kind, change)),
            },
        };
        hears.then_some(heard)
    }
}

impl DestinationAlert<'_> {
    /// Event name of its deliveries.
    const fn event_name(self) -> &'static str {
        match self {
            Self::Alert(kind, _) => kind.name(),
            Self::Flapping(..) => FLAPPING,
            Self::Steady(_) => STEADY,
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
                let lasted = change.duration_ms.and_then(|lasted| i64::try_from(lasted).ok())?;
                Some(change.since - lasted)
            }
            Self::Flapping(.., flapping) => Some(flapping.since),
            Self::Steady(steady) => Some(steady.flapping.since),
        }
    }
}

fn alert_delivery(
    recorded: &JournalEvent,
    subject: &AlertSubject,
    heard: DestinationAlert<'_>,
    destination: &Destination,
    letter: DeliveryMessage,
    now: Timestamp,
) -> Delivery {
    let to = Recipient::Destination(destination.id);
    Delivery {
        page: Some(subject.page_id),
        monitor: Some(subject.monitor_id),
        seq: recorded.seq,
        outage_start: heard.started_at(),
        ..Delivery::waiting(event_delivery_id(recorded, to), to, heard.event_name(), letter, now)
    }
}

/// A page and those of its destinations that its plan includes.
struct PageDestinations {
    page: Page,
    destinations: Vec<Destination>,
}

impl PageDestinations {
    /// Loads a page; `None` if it is gone.
    fn load(read: &dyn StoreRead, id: PageId) -> Result<Option<Self>> {
        let Some(page) = read.page(id)? else { return Ok(None) };
        let page = page.value;
        let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let allowed = |it: &Destination| plan.has_channel(it.channel.kind());
        let all = read.destinations_of(id)?.into_iter().map(|destination| destination.value);
        Ok(Some(Self { page, destinations: all.filter(allowed).collect() }))
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
        let seen = change.evidence.iter();
        for place in seen.flat_map(|it| std::iter::once(it.first_vantage).chain(it.second.as_ref().map(|it| it.0))) {
            let agents = match &mut self.agents {
                Some(agents) => agents,
                None => self.agents.insert(agent_labels(read)?),
            };
            let operator = match self.operator_account {
                Some(operator) => operator,
                None => *self.operator_account.insert(operator_account(read)?),
            };
            let number = || format!("place {}", place.0);
            let name = match agents.get(&place) {
                Some(agent) if operator == Some(account) => agent.clone(),
                Some(agent) => AgentLabel { name: number(), network: agent.network.clone() },
                None => AgentLabel { name: number(), network: "unknown".to_owned() },
            };
            self.current.insert(place, name);
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
