//! Screens of incidents: the list, one incident with the form of its next update, and the forms around it.

use parallax_core::id::MonitorId;
use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus, UpdateTemplate};
use parallax_core::locale::Locale;
use parallax_core::page::branding::Language;
use parallax_core::page_view::IncidentView;
use parallax_core::time::Timestamp;
use parallax_markdown::Markup;
use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::incidents;
use super::window_times::{self, WindowTime};
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Labels of the fields of incidents and updates, for the summary of faults.
pub(crate) const LABELS: [(&str, &str); 14] = [
    ("status", "Status"),
    ("message", "Message"),
    ("title", "Title"),
    ("impact", "Impact"),
    ("monitors", "Affected monitors"),
    ("monitorIds", "Monitors"),
    ("remind", "Reminder"),
    ("startedAt", "Began"),
    ("resolvedAt", "Ended"),
    ("timezone", "Time zone"),
    ("startsAt", "Starts"),
    ("endsAt", "Ends"),
    ("repeat", "Repeats"),
    ("postmortem", "Post-mortem"),
];

/// Returns the labels of fields, for templates.
pub(crate) const fn labels() -> &'static [(&'static str, &'static str)] {
    &LABELS
}

/// State of an incident or window: CSS class with icon, and word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncidentState {
    /// CSS class and icon.
    pub class: &'static str,
    /// Word.
    pub text: String,
    /// Since when, or until when.
    pub why: String,
}

impl IncidentState {
    /// State of an incident or window at that time.
    pub(crate) fn of(incident: &Incident, now: Timestamp) -> Self {
        let english = Locale::of(Language::En);
        let state = |class, text: &str, why: String| Self { class, text: text.to_owned(), why };
        match incident.kind {
            IncidentKind::Incident if incident.is_open() => {
                let why = format!("for {}", words::duration(now.since(incident.started_at)));
                state("part", english.status(incident.status), why)
            }
            IncidentKind::Incident => state("up", "Resolved", lasted(incident)),
            IncidentKind::Maintenance if incident.is_cancelled() => state("none", "Cancelled", String::new()),
            IncidentKind::Maintenance if !incident.is_open() => state("up", "Completed", lasted(incident)),
            IncidentKind::Maintenance if incident.started_at <= now => {
                let left = incident.ends_at.map_or(0, |end| end.since(now));
                state("maint", "In maintenance", format!("ends in {}", words::duration(left)))
            }
            IncidentKind::Maintenance => {
                state("maint", "Planned", format!("starts in {}", words::duration(incident.started_at.since(now))))
            }
        }
    }
}

fn lasted(incident: &Incident) -> String {
    let end = incident.resolved_at.or(incident.ends_at).unwrap_or(incident.started_at);
    format!("after {}", words::duration(end.since(incident.started_at)))
}

/// A line of the list.
#[derive(Debug, Clone)]
pub(crate) struct IncidentRow {
    /// Address of its screen.
    pub href: String,
    /// Title.
    pub title: String,
    /// State.
    pub state: IncidentState,
    /// Start.
    pub at: FormattedTime,
    /// For a window: when it is, in its zone.
    pub when: String,
    /// Affected monitors, and who opened it.
    pub about: String,
    /// Number of its updates.
    pub updates: String,
}

impl IncidentRow {
    /// Makes the line of an incident on the page whose screens are below `base`.
    pub(crate) fn of(view: &IncidentView, base: &str, zone: chrono_tz::Tz, now: Timestamp) -> Self {
        let incident = &view.incident;
        let is_window = incident.kind == IncidentKind::Maintenance;
        let end = incident.ends_at.unwrap_or(incident.started_at);
        let when = if is_window { WindowTime::of(incident.planned_start(), end, zone).line() } else { String::new() };
        let mut about = vec![monitors_text(view)];
        if is_window {
            about.extend(view.repeats.map(|every| window_times::sentence(every, None)));
        } else {
            about.push(format!("{} impact", Locale::of(Language::En).impact(incident.impact)));
        }
        if incident.automatic {
            about.push("opened automatically".to_owned());
        }
        if incident.postmortem.is_some() {
            about.push("post-mortem".to_owned());
        }
        Self {
            href: format!("{base}/incidents/{}", incident.id),
            title: incident.title.clone(),
            state: IncidentState::of(incident, now),
            at: words::time(incident.started_at, now),
            when,
            about: about.join(" · "),
            updates: words::count(incident.updates.len() + view.omitted_updates, "update", "updates"),
        }
    }
}

/// Names the affected monitors, up to three of them.
pub(crate) fn monitors_text(view: &IncidentView) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = view.monitors.iter().map(|(_, name, _)| name.as_str()).collect();
    match names.len() {
        0 if view.incident.kind == IncidentKind::Maintenance => "Whole page".to_owned(),
        0 => "No monitors named".to_owned(),
        more if more > NAMED => {
            format!("{} and {} more", names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", "), more - NAMED)
        }
        _ => names.join(", "),
    }
}

/// List of incidents, or of maintenance windows.
#[template_file("dashboard/incident_list.html")]
#[derive(Debug, Clone)]
pub(crate) struct IncidentListScreen {
    /// Frame.
    pub frame: Frame,
    /// True for maintenance.
    pub is_windows: bool,
    /// Open ones, and unfinished windows.
    pub open: Vec<IncidentRow>,
    /// Past ones by day, newest first.
    pub days: Vec<(String, Vec<IncidentRow>)>,
    /// Choices of states: address, text, true for the present one.
    pub states: Vec<(String, &'static str, bool)>,
    /// Name of the present state's filter.
    pub state: &'static str,
    /// Monitors to filter by: id and name.
    pub monitors: Vec<(String, String)>,
    /// Id of the chosen monitor; empty for all.
    pub monitor: String,
    /// Address of the next part of the list.
    pub older: Option<String>,
    /// True if a filter is set.
    pub is_filtered: bool,
}

/// Number of subscribers that would get an update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Receivers {
    /// By email.
    pub email: usize,
    /// By webhook.
    pub webhook: usize,
}

impl Receivers {
    /// Number of all of them.
    pub(crate) const fn total(self) -> usize {
        self.email + self.webhook
    }

    /// "214 by email, 6 by webhook".
    pub(crate) fn text(self) -> String {
        match self.total() {
            0 => "No subscribers yet".to_owned(),
            _ => format!("{} by email, {} by webhook", self.email, self.webhook),
        }
    }
}

/// A monitor that may be affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AffectedMonitorChoice {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// State: CSS class with icon, and words.
    pub state: (&'static str, String),
}

impl AffectedMonitorChoice {
    /// Returns true if the monitor is not up.
    pub(crate) fn is_troubled(&self) -> bool {
        self.state.0 != "up" && self.state.0 != "none"
    }
}

/// Choices of a form of an incident.
#[derive(Debug, Clone)]
pub(crate) struct IncidentChoices {
    /// Monitors of the page, those in trouble first.
    pub monitors: Vec<AffectedMonitorChoice>,
    /// Receivers of an update.
    pub receivers: Receivers,
    /// Address of the page, without the scheme.
    pub address: String,
}

impl IncidentChoices {
    /// Statuses of an incident: name and text.
    pub(crate) fn statuses(list: &[IncidentStatus]) -> Vec<(&'static str, &'static str)> {
        list.iter().map(|status| (status.name(), Locale::of(Language::En).status(*status))).collect()
    }

    /// Templates of updates: name and text.
    pub(crate) fn templates(&self) -> [(&'static str, &'static str); 6] {
        UpdateTemplate::ALL.map(|template| {
            let text = match template {
                UpdateTemplate::Investigating => "Investigating",
                UpdateTemplate::Identified => "Identified",
                UpdateTemplate::FixInProgress => "Fix in progress",
                UpdateTemplate::Monitoring => "Monitoring",
                UpdateTemplate::Resolved => "Resolved",
                UpdateTemplate::VendorOutage => "Vendor outage",
            };
            (template.name(), text)
        })
    }

    /// Impacts: name and text.
    pub(crate) fn impacts(&self) -> [(&'static str, &'static str); 4] {
        Impact::ALL.map(|impact| {
            let text = match impact {
                Impact::None => "None",
                Impact::Degraded => "Degraded",
                Impact::Partial => "Partial",
                Impact::Major => "Major",
            };
            (impact.name(), text)
        })
    }

    /// Number of chosen monitors in a form, as the summary of a disclosure says it.
    pub(crate) fn chosen_text(&self, form: &FormView) -> String {
        match form.values("monitors").filter(|value| !value.is_empty()).count() {
            0 => "no monitors".to_owned(),
            number => words::count(number, "monitor", "monitors"),
        }
    }
}

/// Text of an incident as readers would see it.
#[derive(Debug, Clone)]
pub(crate) struct IncidentPreview {
    /// Title.
    pub title: String,
    /// CSS class and icon of the impact.
    pub class: &'static str,
    /// Impact, time and monitors.
    pub meta: String,
    /// Updates, newest first; the first one may be the one that is written.
    pub updates: Vec<UpdateLine>,
}

/// An update of an incident.
#[derive(Debug, Clone)]
pub(crate) struct UpdateLine {
    /// Status.
    pub status: String,
    /// Time of posting; `None` for one that isn't posted yet.
    pub at: Option<FormattedTime>,
    /// Text.
    pub body: Markup,
}

impl UpdateLine {
    /// Lines of the updates of an incident, newest first.
    pub(crate) fn list(incident: &Incident, now: Timestamp) -> Vec<Self> {
        let line = |update: &parallax_core::incident::IncidentUpdate| Self {
            status: status_text(&update.status),
            at: Some(words::time(update.created_at, now)),
            body: parallax_markdown::render_short(&update.body),
        };
        incident.updates.iter().rev().map(line).collect()
    }

    /// Line of an update that is being written.
    pub(crate) fn draft(status: &str, text: &str) -> Self {
        Self { status: status_text(status), at: None, body: parallax_markdown::render_short(text) }
    }
}

fn status_text(name: &str) -> String {
    let known = IncidentStatus::ALL.into_iter().find(|status| status.name() == name);
    known.map_or_else(|| name.to_owned(), |status| Locale::of(Language::En).status(status).to_owned())
}

/// CSS class and icon of an impact.
pub(crate) const fn impact_class(impact: Impact) -> &'static str {
    match impact {
        Impact::None => "maint",
        Impact::Degraded => "slow",
        Impact::Partial => "part",
        Impact::Major => "down",
    }
}

/// One incident, with the form of its next update while it is open.
#[template_file("dashboard/incident.html")]
#[derive(Debug, Clone)]
pub(crate) struct IncidentScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Title.
    pub title: String,
    /// State.
    pub state: IncidentState,
    /// Start.
    pub began: FormattedTime,
    /// True while an outage's own incident resolves itself.
    pub is_automatic: bool,
    /// Address of the incident on the public page.
    pub public: String,
    /// Form of the next update; `None` if it is over, or the person may not edit.
    pub form: Option<FormView>,
    /// Choices of the form.
    pub choices: IncidentChoices,
    /// The incident as readers see it.
    pub preview: IncidentPreview,
    /// True if the preview shows what is typed.
    pub is_draft: bool,
    /// Affected monitors with their states.
    pub monitors: Vec<(String, AffectedMonitorChoice)>,
    /// Results of the last messages to subscribers.
    pub sent: String,
    /// Post-mortem.
    pub postmortem: Option<Markup>,
    /// True once it is over.
    pub is_over: bool,
}

impl IncidentScreen {
    /// Affected monitors that are down, as a sentence about resolving now.
    fn still_down(&self) -> Option<String> {
        let down: Vec<&AffectedMonitorChoice> =
            self.monitors.iter().map(|(_, monitor)| monitor).filter(|monitor| monitor.state.0 == "down").collect();
        match down.as_slice() {
            [] => None,
            [one] => {
                let mut words = one.state.1.clone();
                if let Some(first) = words.get_mut(..1) {
                    first.make_ascii_lowercase();
                }
                Some(format!("{} is still {words}. It opens a new incident if it goes down again.", one.name))
            }
            several => Some(format!(
                "{} monitors are still down. They open a new incident if they go down again.",
                several.len()
            )),
        }
    }

    fn is_resolving(&self) -> bool {
        self.form.as_ref().is_some_and(|form| form.is_value("status", IncidentStatus::Resolved.name()))
    }

    fn statuses(&self) -> Vec<(&'static str, &'static str)> {
        IncidentChoices::statuses(&IncidentStatus::OF_INCIDENT)
    }
}

/// Returns the value of a form's list of affected monitors: the id, and the impact of its own.
pub(crate) fn affected_value(id: MonitorId, impact: Option<Impact>) -> String {
    impact.map_or_else(|| id.to_string(), |impact| format!("{id} {}", impact.name()))
}
