//! Automatic incidents: announced outages of a page's monitors open, extend and resolve them.

mod assignment;
mod flapping;
mod outages;
#[cfg(test)]
mod tests;
mod texts;

pub use texts::title_for_down;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Impact, Incident, IncidentChange, IncidentEvent, IncidentKind, IncidentStatus, MAX_AFFECTED, MAX_UPDATES,
    MonitorImpact,
};
use crate::alert_settings::{AnnouncedOutage, AnnouncedOutages};
use crate::event::{AlertKind, Event, EventKind, MonitorStatus, StatusChange};
use crate::flapping::{Aspect, Flapping, FlappingEnd};
use crate::id::{IncidentId, MonitorId, PageId, UpdateId};
use crate::locale::Locale;
use crate::page::branding::Language;
use crate::time::{MINUTE, Timestamp};
use crate::vantage::RegionSet;
use assignment::IncidentChoice;
use texts::Tense;

/// Milliseconds after its opening within which further monitors that go down join an incident.
pub const JOINABLE: i64 = 10 * MINUTE;

/// The state of a page's automatic incidents. Triggers are applied one after another, and each sees the
/// result of those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomaticIncidents {
    /// The page.
    pub page: PageId,
    /// True if monitors that go down open or join incidents.
    pub opens_incidents: bool,
    /// Language of generated texts.
    pub language: Language,
    /// Time zone of times in generated texts.
    pub zone: chrono_tz::Tz,
    /// Its monitors.
    pub monitors: BTreeMap<MonitorId, MonitorInfo>,
    /// Announced outages that are not over.
    pub outages: AnnouncedOutages,
    /// Its open incidents without windows, and those closed since.
    pub incidents: BTreeMap<IncidentId, Incident>,
    /// Number of its open incidents and unfinished windows.
    pub open: usize,
}

/// The part of a monitor that the rules need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorInfo {
    /// Its name.
    pub name: String,
    /// True if regions judge it separately.
    pub is_regional: bool,
    /// True if it is not checked.
    pub paused: bool,
}

/// A trigger for a page's automatic incidents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentTrigger<'a> {
    /// An outage of the monitor was announced.
    WentDown(MonitorId, &'a StatusChange),
    /// The monitor is up again: that was announced, along with any flapping that it is part of, or was
    /// silent.
    Recovered(MonitorId, Option<Flapping>),
    /// The monitor has stopped flapping.
    Steady(MonitorId, &'a FlappingEnd),
    /// While the monitor is down: the regions it is down from changed, as others see it up.
    ScopeChanged(MonitorId, Option<RegionSet>),
    /// Monitors were created, edited, paused or deleted, or the page was edited.
    Edited,
}

impl<'a> IncidentTrigger<'a> {
    /// The trigger that an event is for its page's incidents, if any.
    pub fn of(event: &'a Event) -> Option<Self> {
        match (&event.kind, event.monitor) {
            (EventKind::StatusChanged(change), Some(monitor)) => Self::of_change(monitor, change),
            (EventKind::ScopeChanged(down_from), Some(monitor)) => Some(Self::ScopeChanged(monitor, *down_from)),
            (EventKind::FlappingEnded(steady), Some(monitor)) if steady.aspect == Aspect::Availability => {
                Some(Self::Steady(monitor, steady))
            }
            (EventKind::MonitorEdited(_) | EventKind::PageEdited(_), _) => Some(Self::Edited),
            (
                EventKind::StatusChanged(_)
                | EventKind::ScopeChanged(_)
                | EventKind::Round(_)
                | EventKind::AgentJoined(_)
                | EventKind::AgentRevoked(_)
                | EventKind::QuarantineChanged(..)
                | EventKind::Incident(_)
                | EventKind::OperatorAlert(_)
                | EventKind::DeadlineExtended(_)
                | EventKind::FlappingEnded(_)
                | EventKind::Unjudged(_)
                | EventKind::OutageAcknowledged(_)
                | EventKind::AcknowledgementWithdrawn(_),
                _,
            ) => None,
        }
    }

    fn of_change(monitor: MonitorId, change: &'a StatusChange) -> Option<Self> {
        match (change.alert, change.to) {
            (Some(AlertKind::WentDown), _) => Some(Self::WentDown(monitor, change)),
            (Some(AlertKind::Recovered), _) => Some(Self::Recovered(monitor, change.flapping)),
            // It is checked again after a pause: no outage was in progress and nothing was announced.
            (None, MonitorStatus::Up) if change.from == MonitorStatus::Unknown && change.down_since.is_none() => {
                Some(Self::Recovered(monitor, change.flapping))
            }
            (None, MonitorStatus::Down) => Some(Self::ScopeChanged(monitor, change.down_from)),
            (Some(AlertKind::StillDown | AlertKind::WentSlow | AlertKind::BackToNormal) | None, _) => None,
        }
    }
}

/// The way in which the last outage of an incident ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OutageEnd {
    Recovered,
    Unmonitored,
    /// The flapping monitor is steady again, in words.
    Steady(String),
}

impl AutomaticIncidents {
    /// Applies a trigger at that moment; returns the changes of incidents, each incident at most once.
    /// `random` makes ids.
    ///
    /// No bound rejects a trigger: a page with [`super::MAX_OPEN_INCIDENTS`] open incidents opens no other; a monitor
    /// beyond [`MAX_AFFECTED`] belongs to its incident without being listed; and near [`MAX_UPDATES`]
    /// monitors join without an update, so that the last update is left for the end.
    pub fn apply(
        &mut self,
        happened: IncidentTrigger<'_>,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Vec<IncidentEvent> {
        let mut events = Vec::new();
        let mut ended = OutageEnd::Recovered;
        match happened {
            IncidentTrigger::WentDown(monitor, change) => events.extend(self.on_down(monitor, change, at, random)),
            IncidentTrigger::Recovered(monitor, flapping) => {
                events.extend(self.on_recovery(monitor, flapping, at, random));
            }
            IncidentTrigger::Steady(monitor, steady) => {
                let (event, how) = self.on_steady(monitor, steady, at, random);
                events.extend(event);
                ended = how;
            }
            IncidentTrigger::ScopeChanged(monitor, down_from) => {
                events.extend(self.on_scope_change(monitor, down_from))
            }
            IncidentTrigger::Edited => {
                ended = OutageEnd::Unmonitored;
                let is_checked = |id: &MonitorId| self.monitors.get(id).is_some_and(|it| !it.paused);
                let over: Vec<MonitorId> = self.outages.down.keys().filter(|id| !is_checked(id)).copied().collect();
                self.outages.flapping.retain(|id, _| is_checked(id));
                for monitor in over {
                    if let Some((incident, true)) = self.end_outage(monitor) {
                        record_silent_change(&mut events, incident);
                    }
                }
            }
        }
        self.resolve(&ended, at, random, &mut events);
        self.update_impacts(&mut events);
        events
    }

    const fn locale(&self) -> &'static Locale {
        Locale::of(self.language)
    }

    /// Assigns the outage of a monitor that went down to an existing incident or a new one.
    fn on_down(
        &mut self,
        monitor: MonitorId,
        change: &StatusChange,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<IncidentEvent> {
        let watched = self.monitors.get(&monitor).filter(|watched| !watched.paused)?.clone();
        let mut outage = AnnouncedOutage {
            since: change.down_since.unwrap_or(change.since),
            reason: change.reason.clone(),
            down_from: change.down_from,
            incident: None,
        };
        let locale = self.locale();
        let flaps = change.flapping;
        if let Some(events) = flaps.and_then(|flapping| self.refresh_flapping(monitor, flapping)) {
            outage.incident = Some(events.incident);
            self.outages.add(monitor, outage);
            return Some(events);
        }
        let (zone, reported) = (self.zone, outage.clone());
        let text = |again| match flaps {
            Some(flapping) => texts::flapping_text(&watched, flapping, zone, locale),
            None => texts::down_text(&watched, &reported, again, locale),
        };
        let (incident, events) = match self.choose_incident(monitor, at) {
            IncidentChoice::Existing(id) => (Some(id), self.add_update(id, text(true), flaps.is_some(), at, random)),
            IncidentChoice::Manual(id) => (Some(id), None),
            IncidentChoice::Join(id) => {
                if let Some(incident) = self.incidents.get_mut(&id)
                    && incident.affected.len() < MAX_AFFECTED
                {
                    // A title that a person wrote is kept.
                    let first = texts::first_monitor(incident, &self.monitors);
                    let is_ours = texts::is_generated_title(incident, first);
                    incident.affected.push(MonitorImpact { monitor, impact: None });
                    if is_ours {
                        let first = first.unwrap_or(locale.some_monitor);
                        incident.title = texts::title(first, incident.affected.len(), Tense::Present, locale);
                    }
                }
                (Some(id), self.add_update(id, text(false), true, at, random))
            }
            IncidentChoice::New => {
                let tense = if flaps.is_some() { Tense::Flapping } else { Tense::Present };
                let title = texts::title(&watched.name, 1, tense, locale);
                let events = self.open(monitor, title, text(false), outage.since, at, random);
                (Some(events.incident), Some(events))
            }
            IncidentChoice::NoIncident => (None, None),
        };
        self.outages.flapping.remove(&monitor);
        if let Some(events) = events.filter(|_| flaps.is_some()) {
            self.track_flapping(monitor, events);
        }
        outage.incident = incident;
        self.outages.add(monitor, outage);
        events
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
    ) -> IncidentEvent {
        let (id, update) = (IncidentId::new(at, random()), UpdateId::new(at, random()));
        let mut incident = Incident {
            id,
            page: self.page,
            kind: IncidentKind::Incident,
            title,
            status: IncidentStatus::Investigating,
            impact: Impact::Partial,
            started_at: since.min(at),
            ends_at: None,
            resolved_at: None,
            automatic: true,
            notify: true,
            remind: Vec::new(),
            series: None,
            postmortem: None,
            affected: vec![MonitorImpact { monitor, impact: None }],
            updates: Vec::new(),
            has_begun: true,
            reminded_until: at,
            created_at: at,
            edited_at: None,
            planned_at: None,
        };
        incident.add_update(update, text, at);
        self.incidents.insert(id, incident);
        self.open += 1;
        IncidentEvent { incident: id, change: IncidentChange::Opened, update: Some(update), notify: true }
    }

    /// Adds an update unless only the last one is left.
    fn add_update(
        &mut self,
        id: IncidentId,
        text: String,
        notify: bool,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<IncidentEvent> {
        let incident = self.incidents.get_mut(&id)?;
        if incident.updates.len() + 1 >= MAX_UPDATES {
            return Some(silent_change(id));
        }
        let update = UpdateId::new(at, random());
        incident.add_update(update, text, at);
        Some(IncidentEvent { incident: id, change: IncidentChange::Updated, update: Some(update), notify })
    }

    /// The incidents with an outage or a flapping monitor.
    fn ongoing_incidents(&self) -> BTreeSet<IncidentId> {
        let down = self.outages.down.values().filter_map(|outage| outage.incident);
        down.chain(self.outages.flapping.values().map(|notice| notice.incident)).collect()
    }

    /// Resolves automatic incidents none of whose monitors is down any more.
    fn resolve(
        &mut self,
        ended: &OutageEnd,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
        events: &mut Vec<IncidentEvent>,
    ) {
        let locale = self.locale();
        let lasting = self.ongoing_incidents();
        for incident in self.incidents.values_mut() {
            if !incident.automatic || !incident.is_open() || lasting.contains(&incident.id) {
                continue;
            }
            let resolved_at = at.max(incident.started_at);
            if let Some(title) =
                incident.past_tense_title(texts::first_monitor(incident, &self.monitors), self.language)
            {
                incident.title = title;
            }
            incident.status = IncidentStatus::Resolved;
            incident.resolved_at = Some(resolved_at);
            self.open = self.open.saturating_sub(1);
            let update = UpdateId::new(at, random());
            let has_room = incident.updates.len() < MAX_UPDATES;
            if has_room {
                let text = texts::resolved_text(incident, &self.monitors, ended, resolved_at, locale);
                incident.add_update(update, text, at);
            }
            // The resolution replaces earlier silent changes.
            events.retain(|one| one.incident != incident.id);
            events.push(IncidentEvent {
                incident: incident.id,
                change: IncidentChange::Resolved,
                update: has_room.then_some(update),
                // The end of monitoring is no news of the service; its owner may announce it to subscribers.
                notify: *ended != OutageEnd::Unmonitored,
            });
        }
    }

    /// Updates the impact of every open automatic incident, unless a person set it below partial.
    fn update_impacts(&mut self, events: &mut Vec<IncidentEvent>) {
        let mut checked = self.monitors.iter().filter(|(_, it)| !it.paused).peekable();
        let any = checked.peek().is_some();
        let all_down = any && checked.all(|(id, _)| self.outages.down.contains_key(id));
        let impact = if all_down { Impact::Major } else { Impact::Partial };
        for incident in self.incidents.values_mut() {
            let is_ours = incident.automatic && incident.is_open() && incident.impact >= Impact::Partial;
            if is_ours && incident.impact != impact {
                incident.impact = impact;
                record_silent_change(events, incident.id);
            }
        }
    }
}

/// Records a silent change, unless a change of the incident is already recorded.
fn record_silent_change(events: &mut Vec<IncidentEvent>, incident: IncidentId) {
    if events.iter().all(|one| one.incident != incident) {
        events.push(silent_change(incident));
    }
}

/// A silent change: nobody is notified.
fn silent_change(incident: IncidentId) -> IncidentEvent {
    IncidentEvent { incident, change: IncidentChange::Changed, update: None, notify: false }
}
