//! Alerts: turns each change of a monitor's state into one delivery per destination that is subscribed to it.
//! Chats receive two messages about a flapping monitor: one when it starts flapping and one when it is stable
//! again. The owner is notified if a monitor can't be judged.

mod unjudged;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::event::{AlertKind, Change, What};
use parallax_core::flapping::{Aspect, Flapping, Steady};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::page::Page;
use parallax_core::place::PlaceNo;
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;

use super::{Reaction, delivery_id, log};
use crate::letters::payload::Subject;
use crate::letters::{self, News, PlaceName};
use crate::storage::{Batch, Read, Recorded, Result};

/// Event names of the chat messages about flapping.
const FLAPPING: &str = "flapping";
const STEADY: &str = "steady";

/// Journal consumer that creates alerts.
#[derive(Debug)]
pub struct Alerts {
    base_url: String,
    root_domain: Option<String>,
    told: [AtomicU64; AlertKind::ALL.len()],
}

impl Alerts {
    /// Creates the consumer. Pages are served below `base_url` (without a trailing slash) or under
    /// `root_domain`.
    pub fn new(base_url: String, root_domain: Option<String>) -> Self {
        Self { base_url, root_domain, told: Default::default() }
    }

    /// Number of alerts of each kind read since the start, whether or not any destination receives them.
    pub fn told(&self) -> [(AlertKind, u64); AlertKind::ALL.len()] {
        let mut counts = self.told.iter().map(|count| count.load(Ordering::Relaxed));
        AlertKind::ALL.map(|kind| (kind, counts.next().unwrap_or(0)))
    }

    fn subject(&self, hearing: &Hearing, recorded: &Recorded, read: &dyn Read) -> Result<Option<Subject>> {
        let Some(monitor) = recorded.event.monitor else { return Ok(None) };
        let url = || hearing.page.address(&self.base_url, self.root_domain.as_deref());
        let monitor = read.monitor(monitor)?;
        Ok(monitor.map(|monitor| Subject::of(&hearing.page, url(), &monitor.value)))
    }
}

impl Reaction for Alerts {
    const NAME: &'static str = "alerts";

    fn react(&self, read: &dyn Read, events: &[Recorded], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        let mut pages: BTreeMap<PageId, Option<Hearing>> = BTreeMap::new();
        let mut names = Names::default();
        let nobody = BTreeMap::new();
        for recorded in events {
            if let Some(delivery) = unjudged::delivery(recorded, read, now)? {
                batch.write(delivery);
            }
            let (Some(what), Some(page)) = (Told::of(recorded), recorded.event.page) else { continue };
            let hearing = match pages.entry(page) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(Hearing::of(read, page)?),
            };
            let Some(hearing) = hearing else { continue };
            let Some(subject) = self.subject(hearing, recorded, read)? else { continue };
            let heard = |it| Some((it, what.heard_by(it, subject.monitor_id)?));
            let hearers: Vec<(&Destination, Heard<'_>)> =
                hearing.destinations.iter().filter_map(heard).collect();
            if hearers.is_empty() {
                continue;
            }
            let (at, zone) = (recorded.event.at, hearing.page.timezone);
            let places = match what {
                Told::Change(_, change) => names.of(change, hearing.page.account, read)?,
                Told::Steady(_) => &nobody,
            };
            let news =
                |kind, change| News { kind, subject: &subject, change, at, zone, places, is_test: false };
            // One message per channel, however many destinations use it.
            let mut letters: BTreeMap<ChannelKind, Letter> = BTreeMap::new();
            for (destination, heard) in hearers {
                let channel = destination.channel.kind();
                let letter = letters.entry(channel).or_insert_with(|| match heard {
                    Heard::Alert(kind, change) => letters::alert(channel, &news(kind, change)),
                    Heard::Flapping(kind, change, flapping) => {
                        letters::flapping(channel, &news(kind, change), flapping)
                    }
                    Heard::Steady(steady) => letters::steady(channel, &subject, steady, at, zone),
                });
                batch.write(delivery(recorded, &subject, heard, destination, letter.clone(), now));
            }
        }
        Ok(batch)
    }

    fn written(&self, events: &[Recorded]) {
        events.iter().for_each(log::event);
        for told in events.iter().filter_map(Told::of) {
            let Told::Change(kind, _) = told else { continue };
            let of_kind = AlertKind::ALL.iter().zip(&self.told).find(|(it, _)| **it == kind);
            if let Some((_, count)) = of_kind {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Notifiable change of a monitor, as read from the journal.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    Change(AlertKind, &'a Change),
    Steady(&'a Steady),
}

/// Notification for one destination.
#[derive(Debug, Clone, Copy)]
enum Heard<'a> {
    /// A change of state.
    Alert(AlertKind, &'a Change),
    /// The change that started the flapping.
    Flapping(AlertKind, &'a Change, Flapping),
    /// The monitor is stable again.
    Steady(&'a Steady),
}

impl<'a> Told<'a> {
    fn of(recorded: &'a Recorded) -> Option<Self> {
        match &recorded.event.what {
            What::Changed(change) => change.alert.map(|kind| Self::Change(kind, change)),
            What::Steady(steady) => Some(Self::Steady(steady)),
            _ => None,
        }
    }

    /// Returns the notification for a destination; `None` if it doesn't receive this one.
    fn heard_by(self, destination: &Destination, monitor: MonitorId) -> Option<Heard<'a>> {
        let (hears, heard) = match self {
            Self::Steady(steady) => (destination.hears_of(steady.aspect, monitor), Heard::Steady(steady)),
            Self::Change(kind, change) => match change.flapping {
                Some(flapping) if destination.channel.kind().is_chat() => {
                    let begins = flapping.has_begun() && kind != AlertKind::StillDown;
                    let hears = begins && destination.hears_of(Aspect::of(kind), monitor);
                    (hears, Heard::Flapping(kind, change, flapping))
                }
                Some(_) | None => (destination.hears(kind, monitor), Heard::Alert(kind, change)),
            },
        };
        hears.then_some(heard)
    }
}

impl Heard<'_> {
    /// Event name of its deliveries.
    const fn name(self) -> &'static str {
        match self {
            Self::Alert(kind, _) => kind.name(),
            Self::Flapping(..) => FLAPPING,
            Self::Steady(_) => STEADY,
        }
    }

    /// Start of the outage or slow period.
    fn began(self) -> Option<Timestamp> {
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

fn delivery(
    recorded: &Recorded,
    subject: &Subject,
    heard: Heard<'_>,
    destination: &Destination,
    letter: Letter,
    now: Timestamp,
) -> Delivery {
    let to = Recipient::Destination(destination.id);
    Delivery {
        id: delivery_id(recorded, to),
        page: Some(subject.page_id),
        to,
        event: heard.name().to_owned(),
        monitor: Some(subject.monitor_id),
        incident: None,
        seq: recorded.seq,
        letter,
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: heard.began(),
    }
}

/// A page and those of its destinations that its plan includes.
struct Hearing {
    page: Page,
    destinations: Vec<Destination>,
}

impl Hearing {
    /// Loads a page; `None` if it is gone.
    fn of(read: &dyn Read, id: PageId) -> Result<Option<Self>> {
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
struct Names {
    agents: Option<BTreeMap<PlaceNo, PlaceName>>,
    /// The operator's account, once read.
    operator: Option<Option<AccountId>>,
    wanted: BTreeMap<PlaceNo, PlaceName>,
}

impl Names {
    /// Returns the names of the agents in a change's evidence, as the account sees them. A removed agent is
    /// named by its number.
    fn of(
        &mut self,
        change: &Change,
        account: AccountId,
        read: &dyn Read,
    ) -> Result<&BTreeMap<PlaceNo, PlaceName>> {
        self.wanted.clear();
        let seen = change.evidence.iter();
        for place in seen.flat_map(|it| std::iter::once(it.first).chain(it.second.as_ref().map(|it| it.0))) {
            let agents = match &mut self.agents {
                Some(agents) => agents,
                None => self.agents.insert(agents(read)?),
            };
            let operator = match self.operator {
                Some(operator) => operator,
                None => *self.operator.insert(operator(read)?),
            };
            let number = || format!("place {}", place.0);
            let name = match agents.get(&place) {
                Some(agent) if operator == Some(account) => agent.clone(),
                Some(agent) => PlaceName { name: number(), network: agent.network.clone() },
                None => PlaceName { name: number(), network: "unknown".to_owned() },
            };
            self.wanted.insert(place, name);
        }
        Ok(&self.wanted)
    }
}

/// The operator's account: the oldest of the installation.
fn operator(read: &dyn Read) -> Result<Option<AccountId>> {
    let accounts = read.accounts()?.into_iter().map(|account| account.value);
    Ok(accounts.min_by_key(|account| (account.created_at, account.id)).map(|account| account.id))
}

fn agents(read: &dyn Read) -> Result<BTreeMap<PlaceNo, PlaceName>> {
    let agents = read.agents()?.into_iter().map(|agent| agent.value);
    Ok(agents.map(|agent| (agent.place, PlaceName { name: agent.name, network: agent.network })).collect())
}

#[cfg(test)]
pub(crate) mod tests;
