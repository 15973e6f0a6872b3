//! Automatic incidents: announced outages of a page's monitors open, extend and resolve them.

mod flapping;
mod home;
mod outages;
#[cfg(test)]
mod tests;
mod words;

pub use words::title_of;

use std::collections::{BTreeMap, BTreeSet};

use super::{Affected, Impact, Incident, Kind, MAX_AFFECTED, MAX_UPDATES, News, Progress, Told};
use crate::event::{AlertKind, Change, Event, Status, What};
use crate::flapping::{Aspect, Flapping, Steady};
use crate::id::{IncidentId, MonitorId, PageId, UpdateId};
use crate::page::look::Language;
use crate::place::RegionSet;
use crate::telling::{Outages, ToldOutage};
use crate::time::{MINUTE, Timestamp};
use crate::tongue::Tongue;
use home::Home;
use words::Tense;

/// Milliseconds after its opening within which further monitors that go down join an incident.
pub const JOINABLE: i64 = 10 * MINUTE;

/// The state of a page's automatic incidents. Triggers are applied one after another, and each sees the
/// result of those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desk {
    /// The page.
    pub page: PageId,
    /// True if monitors that go down open or join incidents.
    pub opens: bool,
    /// Language of generated texts.
    pub language: Language,
    /// Time zone of times in generated texts.
    pub zone: chrono_tz::Tz,
    /// Its monitors.
    pub monitors: BTreeMap<MonitorId, Watched>,
    /// Announced outages that are not over.
    pub outages: Outages,
    /// Its open incidents without windows, and those closed since.
    pub incidents: BTreeMap<IncidentId, Incident>,
    /// Number of its open incidents and unfinished windows.
    pub open: usize,
}

/// The part of a monitor that the rules need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// True if regions judge it separately.
    pub regional: bool,
    /// True if it is not checked.
    pub paused: bool,
}

/// A trigger for a page's automatic incidents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened<'a> {
    /// An outage of the monitor was announced.
    WentDown(MonitorId, &'a Change),
    /// The monitor is up again: that was announced, along with any flapping that it is part of, or was
    /// silent.
    Back(MonitorId, Option<Flapping>),
    /// The monitor has stopped flapping.
    Steady(MonitorId, &'a Steady),
    /// While the monitor is down: the regions it is down from changed, as others see it up.
    Rescoped(MonitorId, Option<RegionSet>),
    /// Monitors were created, edited, paused or deleted, or the page was edited.
    Edited,
}

impl<'a> Happened<'a> {
    /// The trigger that an event is for its page's incidents, if any.
    pub fn of(event: &'a Event) -> Option<Self> {
        match (&event.what, event.monitor) {
            (What::Changed(change), Some(monitor)) => Self::of_change(monitor, change),
            (What::ScopeChanged(down_from), Some(monitor)) => Some(Self::Rescoped(monitor, *down_from)),
            (What::Steady(steady), Some(monitor)) if steady.aspect == Aspect::Availability => {
                Some(Self::Steady(monitor, steady))
            }
            (What::MonitorEdited(_) | What::PageEdited(_), _) => Some(Self::Edited),
            (
                What::Changed(_)
                | What::ScopeChanged(_)
                | What::Round(_)
                | What::AgentJoined(_)
                | What::AgentRevoked(_)
                | What::Quarantine(..)
                | What::Incident(_)
                | What::Notice(_)
                | What::DeadlineExtended(_)
                | What::Steady(_)
                | What::Unjudged(_),
                _,
            ) => None,
        }
    }

    fn of_change(monitor: MonitorId, change: &'a Change) -> Option<Self> {
        match (change.alert, change.to) {
            (Some(AlertKind::WentDown), _) => Some(Self::WentDown(monitor, change)),
            (Some(AlertKind::Recovered), _) => Some(Self::Back(monitor, change.flapping)),
            // It is checked again after a pause: no outage was in progress and nothing was announced.
            (None, Status::Up) if change.from == Status::Unknown && change.down_since.is_none() => {
                Some(Self::Back(monitor, change.flapping))
            }
            (None, Status::Down) => Some(Self::Rescoped(monitor, change.down_from)),
            (Some(AlertKind::StillDown | AlertKind::WentSlow | AlertKind::BackToNormal) | None, _) => None,
        }
    }
}

/// The way in which the last outage of an incident ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Back,
    Unchecked,
    /// The flapping monitor is steady again, in words.
    Steady(String),
}

impl Desk {
    /// Applies a trigger at that moment; returns the changes of incidents, each incident at most once.
    /// `random` makes ids.
    ///
    /// No bound rejects a trigger: a page with [`super::MAX_OPEN`] open incidents opens no other; a monitor
    /// beyond [`MAX_AFFECTED`] belongs to its incident without being listed; and near [`MAX_UPDATES`]
    /// monitors join without an update, so that the last update is left for the end.
    pub fn take(
        &mut self,
        happened: Happened<'_>,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Vec<Told> {
        let mut told = Vec::new();
        let mut ended = Ended::Back;
        match happened {
            Happened::WentDown(monitor, change) => told.extend(self.go_down(monitor, change, at, random)),
            Happened::Back(monitor, flapping) => {
                told.extend(self.come_back(monitor, flapping, at, random));
            }
            Happened::Steady(monitor, steady) => {
                let (said, how) = self.become_steady(monitor, steady, at, random);
                told.extend(said);
                ended = how;
            }
            Happened::Rescoped(monitor, down_from) => told.extend(self.rescope(monitor, down_from)),
            Happened::Edited => {
                ended = Ended::Unchecked;
                let is_checked = |id: &MonitorId| self.monitors.get(id).is_some_and(|it| !it.paused);
                let over: Vec<MonitorId> =
                    self.outages.down.keys().filter(|id| !is_checked(id)).copied().collect();
                self.outages.flapping.retain(|id, _| is_checked(id));
                for monitor in over {
                    if let Some((incident, true)) = self.end(monitor) {
                        note(&mut told, incident);
                    }
                }
            }
        }
        self.resolve(&ended, at, random, &mut told);
        self.weigh(&mut told);
        told
    }

    const fn tongue(&self) -> &'static Tongue {
        Tongue::of(self.language)
    }

    /// Assigns the outage of a monitor that went down to an existing incident or a new one.
    fn go_down(
        &mut self,
        monitor: MonitorId,
        change: &Change,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<Told> {
        let watched = self.monitors.get(&monitor).filter(|watched| !watched.paused)?.clone();
        let mut outage = ToldOutage {
            since: change.down_since.unwrap_or(change.since),
            reason: change.reason.clone(),
            down_from: change.down_from,
            incident: None,
        };
        let tongue = self.tongue();
        let flaps = change.flapping;
        if let Some(told) = flaps.and_then(|flapping| self.renew(monitor, flapping)) {
            outage.incident = Some(told.incident);
            self.outages.begin(monitor, outage);
            return Some(told);
        }
        let (zone, reported) = (self.zone, outage.clone());
        let text = |again| match flaps {
            Some(flapping) => words::flapping(&watched, flapping, zone, tongue),
            None => words::down(&watched, &reported, again, tongue),
        };
        let (home, told) = match self.home(monitor, at) {
            Home::Own(id) => (Some(id), self.say(id, text(true), flaps.is_some(), at, random)),
            Home::Persons(id) => (Some(id), None),
            Home::Joins(id) => {
                if let Some(incident) = self.incidents.get_mut(&id)
                    && incident.affected.len() < MAX_AFFECTED
                {
                    // A title that a person wrote is kept.
                    let first = words::first(incident, &self.monitors);
                    let is_ours = words::is_title(incident, first);
                    incident.affected.push(Affected { monitor, impact: None });
                    if is_ours {
                        let first = first.unwrap_or(tongue.some_monitor);
                        incident.title = words::title(first, incident.affected.len(), Tense::Present, tongue);
                    }
                }
                (Some(id), self.say(id, text(false), true, at, random))
            }
            Home::New => {
                let tense = if flaps.is_some() { Tense::Flapping } else { Tense::Present };
                let title = words::title(&watched.name, 1, tense, tongue);
                let told = self.open(monitor, title, text(false), outage.since, at, random);
                (Some(told.incident), Some(told))
            }
            Home::Nowhere => (None, None),
        };
        self.outages.flapping.remove(&monitor);
        if let Some(told) = told.filter(|_| flaps.is_some()) {
            self.note_flapping(monitor, told);
        }
        outage.incident = home;
        self.outages.begin(monitor, outage);
        told
    }

    fn automatic(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.values().rev().filter(|incident| incident.automatic && incident.is_open())
    }

    fn open(
        &mut self,
        monitor: MonitorId,
        title: String,
        text: String,
        since: Timestamp,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Told {
        let (id, update) = (IncidentId::new(at, random()), UpdateId::new(at, random()));
        let mut incident = Incident {
            id,
            page: self.page,
            kind: Kind::Incident,
            title,
            status: Progress::Investigating,
            impact: Impact::Partial,
            started_at: since.min(at),
            ends_at: None,
            resolved_at: None,
            automatic: true,
            notify: true,
            remind: Vec::new(),
            series: None,
            postmortem: None,
            affected: vec![Affected { monitor, impact: None }],
            updates: Vec::new(),
            begun: true,
            reminded_until: at,
            created_at: at,
            edited_at: None,
            planned_at: None,
        };
        incident.say(update, text, at);
        self.incidents.insert(id, incident);
        self.open += 1;
        Told { incident: id, news: News::Opened, update: Some(update), notify: true }
    }

    /// Adds an update unless only the last one is left.
    fn say(
        &mut self,
        id: IncidentId,
        text: String,
        notify: bool,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<Told> {
        let incident = self.incidents.get_mut(&id)?;
        if incident.updates.len() + 1 >= MAX_UPDATES {
            return Some(silently(id));
        }
        let update = UpdateId::new(at, random());
        incident.say(update, text, at);
        Some(Told { incident: id, news: News::Updated, update: Some(update), notify })
    }

    /// The incidents with an outage or a flapping monitor.
    fn lasting(&self) -> BTreeSet<IncidentId> {
        let down = self.outages.down.values().filter_map(|outage| outage.incident);
        down.chain(self.outages.flapping.values().map(|notice| notice.incident)).collect()
    }

    /// Resolves automatic incidents none of whose monitors is down any more.
    fn resolve(
        &mut self,
        ended: &Ended,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
        told: &mut Vec<Told>,
    ) {
        let tongue = self.tongue();
        let lasting = self.lasting();
        for incident in self.incidents.values_mut() {
            if !incident.automatic || !incident.is_open() || lasting.contains(&incident.id) {
                continue;
            }
            let resolved_at = at.max(incident.started_at);
            if let Some(title) = incident.title_in_past(words::first(incident, &self.monitors), self.language)
            {
                incident.title = title;
            }
            incident.status = Progress::Resolved;
            incident.resolved_at = Some(resolved_at);
            self.open = self.open.saturating_sub(1);
            let update = UpdateId::new(at, random());
            let has_room = incident.updates.len() < MAX_UPDATES;
            if has_room {
                let text = words::over(incident, &self.monitors, ended, resolved_at, tongue);
                incident.say(update, text, at);
            }
            // The resolution replaces earlier silent changes.
            told.retain(|one| one.incident != incident.id);
            told.push(Told {
                incident: incident.id,
                news: News::Resolved,
                update: has_room.then_some(update),
                // The end of monitoring is no news of the service; its owner may announce it to subscribers.
                notify: *ended != Ended::Unchecked,
            });
        }
    }

    /// Updates the impact of every open automatic incident, unless a person set it below partial.
    fn weigh(&mut self, told: &mut Vec<Told>) {
        let mut checked = self.monitors.iter().filter(|(_, it)| !it.paused).peekable();
        let any = checked.peek().is_some();
        let all_down = any && checked.all(|(id, _)| self.outages.down.contains_key(id));
        let impact = if all_down { Impact::Major } else { Impact::Partial };
        for incident in self.incidents.values_mut() {
            let is_ours = incident.automatic && incident.is_open() && incident.impact >= Impact::Partial;
            if is_ours && incident.impact != impact {
                incident.impact = impact;
                note(told, incident.id);
            }
        }
    }
}

/// Records a silent change, unless a change of the incident is already recorded.
fn note(told: &mut Vec<Told>, incident: IncidentId) {
    if told.iter().all(|one| one.incident != incident) {
        told.push(silently(incident));
    }
}

/// A silent change: nobody is notified.
fn silently(incident: IncidentId) -> Told {
    Told { incident, news: News::Changed, update: None, notify: false }
}
