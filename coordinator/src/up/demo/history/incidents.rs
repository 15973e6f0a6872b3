//! Incidents and maintenance of the simulated past, made by the rules for those of people and for automatic ones.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::alert_settings::AnnouncedOutages;
use parallax_core::deploy::Deploy;
use parallax_core::event::{Event, EventKind};
use parallax_core::id::{DeployId, IncidentId, MonitorId, SeriesId, UpdateId};
use parallax_core::incident::automatic::{AutomaticIncidents, IncidentTrigger, MonitorInfo};
use parallax_core::incident::edit::{IncidentEdit, NewIncident};
use parallax_core::incident::series::WindowIds;
use parallax_core::incident::{Incident, IncidentEvent, UpdatePost};
use parallax_core::locale::Locale;
use parallax_core::page::Page;
use parallax_core::patch::PatchField;
use parallax_core::time::{DAY, MINUTE, Timestamp};
use parallax_core::validation::ValidationErrors;

use super::events::outage_events;
use super::readings::SimulatedMonitor;
use super::script::{Calendar, DEPLOYS, OUTAGES, SLOW, ScriptedWindow, UNATTENDED, WINDOWS};
use super::seeded;
use super::stories::{IncidentStory, STORIES};

/// The incidents and windows, with their events.
#[derive(Debug, Default)]
pub(super) struct PastIncidents {
    pub(super) incidents: Vec<Incident>,
    pub(super) events: Vec<Event>,
}

/// Makes them.
pub(super) struct IncidentWriter<'a> {
    pub(super) calendar: Calendar,
    pub(super) page: &'a Page,
    pub(super) monitors: &'a [SimulatedMonitor],
}

impl IncidentWriter<'_> {
    /// Returns every incident and window.
    ///
    /// # Errors
    /// If the script breaks a rule for incidents.
    pub(super) fn write(&self) -> Result<PastIncidents, ValidationErrors> {
        let mut past = PastIncidents::default();
        for story in STORIES {
            self.add_story(story, &mut past)?;
        }
        for window in WINDOWS {
            self.add_window(window, &mut past)?;
        }
        self.add_automatic(&mut past);
        Ok(past)
    }

    /// Returns the deploy markers.
    pub(super) fn deploys(&self) -> Vec<Deploy> {
        let deploys = DEPLOYS.iter().map(|deploy| {
            let at = self.calendar.time(deploy.at);
            let monitors = self.ids(deploy.monitors);
            Deploy {
                id: DeployId::new(at, seeded(deploy.note, 0)),
                page: self.page.id,
                version: deploy.version.to_owned(),
                url: None,
                note: Some(deploy.note.to_owned()),
                monitors: (!monitors.is_empty()).then_some(monitors),
                at,
                created_at: at,
            }
        });
        deploys.collect()
    }

    fn add_story(&self, story: &IncidentStory, past: &mut PastIncidents) -> Result<(), ValidationErrors> {
        let Some((start, monitors)) = self.occasion(story.key) else { return Ok(()) };
        let opened_at = start + story.opened_after * MINUTE;
        let edit = IncidentEdit {
            title: value(story.title),
            impact: value(story.impact.name()),
            message: value(story.opening),
            started_at: value(&start.to_string()),
            monitor_ids: PatchField::Value(monitors.iter().map(ToString::to_string).collect()),
            ..IncidentEdit::default()
        };
        let mut incident = self.open(&edit, story.key, opened_at, past)?;
        let mut last = opened_at;
        for (number, update) in (1..).zip(story.updates) {
            last = start + update.after * MINUTE;
            let post = UpdatePost {
                status: value(update.status.name()),
                message: value(update.text),
                notify: PatchField::Absent,
            };
            let id = UpdateId::new(last, seeded(story.key, number));
            let (updated, change, notify) = post.validate(&incident, id, Locale::of(self.page.language), last)?;
            incident = updated;
            self.add_event(past, last, IncidentEvent { incident: incident.id, change, update: Some(id), notify });
        }
        if let Some(postmortem) = story.postmortem {
            let edit = IncidentEdit { postmortem: value(postmortem), ..IncidentEdit::default() };
            incident = edit.validate_edit(&incident, None, &self.all_ids(), last + DAY)?.incident;
        }
        past.incidents.push(incident);
        Ok(())
    }

    fn add_window(&self, window: &ScriptedWindow, past: &mut PastIncidents) -> Result<(), ValidationErrors> {
        let span = self.calendar.span(window.start, window.minutes);
        let edit = IncidentEdit {
            kind: value("maintenance"),
            title: value(window.title),
            message: value(window.message),
            starts_at: value(&span.from.to_string()),
            ends_at: value(&span.to.to_string()),
            monitor_ids: PatchField::Value(self.ids(window.monitors).iter().map(ToString::to_string).collect()),
            remind: PatchField::Value(vec!["1d".to_owned()]),
            ..IncidentEdit::default()
        };
        let mut incident = self.open(&edit, window.title, self.calendar.time(window.planned), past)?;
        while let Some(due) = incident.next_due().filter(|due| *due <= self.calendar.now) {
            if let Some(change) = incident.apply_due(due) {
                let notify = incident.notify;
                self.add_event(past, due, IncidentEvent { incident: incident.id, change, update: None, notify });
            }
        }
        past.incidents.push(incident);
        Ok(())
    }

    fn open(
        &self,
        edit: &IncidentEdit,
        key: &str,
        now: Timestamp,
        past: &mut PastIncidents,
    ) -> Result<Incident, ValidationErrors> {
        let ids =
            WindowIds { incident: IncidentId::new(now, seeded(key, 0)), update: UpdateId::new(now, seeded(key, 0)) };
        let opened = edit.validate_new(NewIncident {
            page: self.page.id,
            monitors: &self.all_ids(),
            locale: Locale::of(self.page.language),
            ids,
            series: SeriesId::new(now, seeded(key, 0)),
            now,
        })?;
        let event = IncidentEvent {
            incident: ids.incident,
            change: opened.change,
            update: Some(ids.update),
            notify: opened.notify,
        };
        self.add_event(past, now, event);
        Ok(opened.incident)
    }

    /// Lets the rules for automatic incidents open and resolve those that nobody took over.
    fn add_automatic(&self, past: &mut PastIncidents) {
        let outages = OUTAGES.iter().filter(|outage| UNATTENDED.contains(&outage.key));
        let events = outages.flat_map(|outage| {
            let monitors = self.monitors.iter().filter(|monitor| outage.monitors.contains(&monitor.key));
            monitors.flat_map(|monitor| outage_events(self.calendar, monitor, outage))
        });
        let info = |monitor: &SimulatedMonitor| MonitorInfo {
            name: monitor.record.name.clone(),
            is_regional: monitor.record.check.kind().is_regional(),
            paused: false,
        };
        let mut automatic = AutomaticIncidents {
            page: self.page.id,
            opens_incidents: true,
            language: self.page.language,
            zone: self.page.timezone,
            monitors: self.monitors.iter().map(|monitor| (monitor.record.id, info(monitor))).collect(),
            outages: AnnouncedOutages::default(),
            incidents: BTreeMap::new(),
            open: 0,
        };
        let mut number = 0;
        let mut random = || {
            number += 1;
            seeded("automatic", number)
        };
        for event in events {
            let Some(trigger) = IncidentTrigger::of(&event) else { continue };
            for change in automatic.apply(trigger, event.at, &mut random) {
                self.add_event(past, event.at, change);
            }
        }
        past.incidents.extend(automatic.incidents.into_values());
    }

    /// Start and monitors of an outage or the slow period.
    fn occasion(&self, key: &str) -> Option<(Timestamp, Vec<MonitorId>)> {
        if key == SLOW.key {
            return Some((self.calendar.time(SLOW.start), self.ids(&[SLOW.monitor])));
        }
        let outage = OUTAGES.iter().find(|outage| outage.key == key)?;
        Some((self.calendar.time(outage.start), self.ids(outage.monitors)))
    }

    fn add_event(&self, past: &mut PastIncidents, at: Timestamp, event: IncidentEvent) {
        past.events.push(Event { at, page: Some(self.page.id), monitor: None, kind: EventKind::Incident(event) });
    }

    fn ids(&self, keys: &[&str]) -> Vec<MonitorId> {
        self.monitors.iter().filter(|monitor| keys.contains(&monitor.key)).map(|monitor| monitor.record.id).collect()
    }

    fn all_ids(&self) -> BTreeSet<MonitorId> {
        self.monitors.iter().map(|monitor| monitor.record.id).collect()
    }
}

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}
