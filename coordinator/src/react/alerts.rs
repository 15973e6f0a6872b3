//! Alerts: what a monitor's change tells becomes one delivery for each destination of its page that hears of it. Of a
//! monitor that flaps a chat hears twice: that it does, and that it is steady again. That
//! nobody can judge a monitor, its owner hears.

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

/// Names of deliveries to chats: a monitor flaps, and it is steady again.
const FLAPPING: &str = "flapping";
const STEADY: &str = "steady";

/// Writes the alerts of monitors.
#[derive(Debug)]
pub struct Alerts {
    base_url: String,
    root_domain: Option<String>,
    told: [AtomicU64; AlertKind::ALL.len()],
}

impl Alerts {
    /// Alerts of pages that are served below that URL (without a slash at its end), or under that domain.
    pub fn new(base_url: String, root_domain: Option<String>) -> Self {
        Self { base_url, root_domain, told: Default::default() }
    }

    /// How many alerts of each kind were read since the start, whether or not any destination hears of them.
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
            // One letter for each channel, however many destinations have it.
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

/// News of a monitor in the journal.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    Change(AlertKind, &'a Change),
    Steady(&'a Steady),
}

/// News as one destination hears it.
#[derive(Debug, Clone, Copy)]
enum Heard<'a> {
    /// A change.
    Alert(AlertKind, &'a Change),
    /// The change by which it flaps from now on.
    Flapping(AlertKind, &'a Change, Flapping),
    /// It is steady again.
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

    /// News for that destination; none where it hears nothing of it.
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
    /// Name of its deliveries.
    const fn name(self) -> &'static str {
        match self {
            Self::Alert(kind, _) => kind.name(),
            Self::Flapping(..) => FLAPPING,
            Self::Steady(_) => STEADY,
        }
    }

    /// Start of the outage, or of the slow time, that it is about.
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

/// A page, and those of its destinations that its plan allows.
struct Hearing {
    page: Page,
    destinations: Vec<Destination>,
}

impl Hearing {
    /// None where the page is gone.
    fn of(read: &dyn Read, id: PageId) -> Result<Option<Self>> {
        let Some(page) = read.page(id)? else { return Ok(None) };
        let page = page.value;
        let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
        let allowed = |it: &Destination| plan.has_channel(it.channel.kind());
        let all = read.destinations_of(id)?.into_iter().map(|destination| destination.value);
        Ok(Some(Self { page, destinations: all.filter(allowed).collect() }))
    }
}

/// Names of places, read once, and only where something is explained by what places saw. Agents' own names are shown to
/// the operator's account; other accounts see a number and the network.
#[derive(Default)]
struct Names {
    agents: Option<BTreeMap<PlaceNo, PlaceName>>,
    /// The operator's own account, once it was read.
    operator: Option<Option<AccountId>>,
    wanted: BTreeMap<PlaceNo, PlaceName>,
}

impl Names {
    /// Names of the places of a change, as that account sees them. A removed agent is named by its number.
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

/// The operator's own account: the installation's first.
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
