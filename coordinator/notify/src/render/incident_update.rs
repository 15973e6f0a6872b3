//! Updates about incidents and maintenance windows for a page's subscribers: the JSON webhook body and the
//! mail.

use parallax_core::delivery::MailMessage;
use parallax_core::id::MonitorId;
use parallax_core::incident::series::Series;
use parallax_core::incident::{Impact, Incident, IncidentChange, IncidentEvent, IncidentKind, IncidentUpdate};
use parallax_core::locale::{Locale, fill};
use parallax_core::page::branding::Language;
use parallax_core::time::Timestamp;
use parallax_i18n::mail_messages;
use parallax_markdown::{plain_text, render_mail};
use serde::Serialize;
use serde_json::Value;

use super::incident_resource::{IncidentResource, UpdateResource};
use super::mail::{HeadingColor, MailBody, MailContent};
use super::{text, time_format};

/// Maximum length of a title or of a page's name in UTF-16 units; below, of the list of affected monitors.
const MAX_NAME: usize = 140;
const MAX_AFFECTED: usize = 600;
/// Maximum length of an update's text in UTF-16 units.
const MAX_BODY: usize = 8_000;

/// An incident update to render.
#[derive(Debug, Clone, Copy)]
pub struct IncidentNotification<'a> {
    /// The journal's record of what happened.
    pub event: &'a IncidentEvent,
    /// The page's name.
    pub page: &'a str,
    /// The page's public URL.
    pub page_url: &'a str,
    /// Current state of the incident or window.
    pub incident: &'a Incident,
    /// The series that it was planned from, if it still exists.
    pub series: Option<&'a Series>,
    /// Affected monitors that still exist: id, name, and their own impact, if set.
    pub monitors: &'a [(MonitorId, String, Option<Impact>)],
    /// Time of the event.
    pub at: Timestamp,
    /// The page's time zone, used in texts.
    pub zone: chrono_tz::Tz,
    /// The page's language, used in texts.
    pub language: Language,
}

/// A rendered update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedUpdate {
    /// Event name, such as `incident.created`.
    pub event: &'static str,
    /// JSON body that is posted and signed.
    pub json: Vec<u8>,
    /// Mail, before `with_unsubscribe`.
    pub mail: MailMessage,
}

/// Names of all events that subscribers receive.
pub const EVENTS: [&str; 8] = [
    "incident.created",
    "incident.updated",
    "maintenance.updated",
    "incident.resolved",
    "maintenance.scheduled",
    "maintenance.reminder",
    "maintenance.started",
    "maintenance.completed",
];

/// JSON body. `at` is in milliseconds since the epoch, as in alerts; the incident is as in the API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdatePayload<'a> {
    event: &'static str,
    page: &'a str,
    page_url: &'a str,
    incident: IncidentResource<'a>,
    update: Option<UpdateResource<'a>>,
    at: i64,
}

/// Renders an update for subscribers; `None` for events they don't receive.
pub(crate) fn render_update(notification: &IncidentNotification<'_>) -> Option<RenderedUpdate> {
    let event = event_name(notification)?;
    let update = referenced_update(notification);
    let payload = UpdatePayload {
        event,
        page: notification.page,
        page_url: notification.page_url,
        incident: IncidentResource::new(notification.incident, notification.series, notification.monitors),
        update: update.map(UpdateResource::new),
        at: notification.at.as_millis(),
    };
    // A struct of strings and numbers always serializes.
    let json = serde_json::to_vec(&payload).unwrap_or_default();
    Some(RenderedUpdate { event, json, mail: mail(notification, update) })
}

/// Adds a subscriber's unsubscribe URL to an update for their webhook.
pub(crate) fn with_unsubscribe_url(body: &[u8], url: &str) -> Vec<u8> {
    // Always an object with several members, as serialized above.
    let Some(open) = body.strip_suffix(b"}") else { return body.to_vec() };
    let url = Value::from(url).to_string();
    [open, b",\"unsubscribeUrl\":", url.as_bytes(), b"}"].concat()
}

/// Renders the owner's reminder that an incident had no update for `silent_ms` milliseconds (in English).
pub(crate) fn owner_reminder(notification: &IncidentNotification<'_>, silent_ms: i64) -> MailMessage {
    let title = text::single_line(&notification.incident.title, MAX_NAME);
    let page = text::single_line(notification.page, MAX_NAME);
    let paragraph = format!(
        "This incident has had no update for {}. Post an update or resolve it, so that visitors know its status.",
        time_format::format_duration(silent_ms)
    );
    MailContent {
        title: format!("No update for {}: {title} ({page})", time_format::format_duration(silent_ms)),
        heading_color: HeadingColor::Warning,
        paragraphs: vec![paragraph],
        facts: facts(notification, Language::En),
        links: vec![("Open the incident".to_owned(), incident_url(notification))],
        footer: vec![format!("You received this email because a reminder is set for this incident of {page}.")],
        ..MailContent::default()
    }
    .render()
}

fn event_name(notification: &IncidentNotification<'_>) -> Option<&'static str> {
    let [created, updated, changed, resolved, scheduled, reminder, started, completed] = EVENTS;
    Some(match notification.event.change {
        IncidentChange::Opened => created,
        IncidentChange::Updated => match notification.incident.kind {
            IncidentKind::Incident => updated,
            IncidentKind::Maintenance => changed,
        },
        IncidentChange::Resolved => resolved,
        IncidentChange::Scheduled => scheduled,
        IncidentChange::Reminder(_) => reminder,
        IncidentChange::Started => started,
        IncidentChange::Completed => completed,
        IncidentChange::OwnerReminder(_) | IncidentChange::Changed | IncidentChange::Deleted => return None,
    })
}

/// The update that the event refers to, if any.
fn referenced_update<'a>(notification: &IncidentNotification<'a>) -> Option<&'a IncidentUpdate> {
    let id = notification.event.update?;
    notification.incident.updates.iter().find(|update| update.id == id)
}

fn mail(notification: &IncidentNotification<'_>, update: Option<&IncidentUpdate>) -> MailMessage {
    let title = text::single_line(&notification.incident.title, MAX_NAME);
    let page = text::single_line(notification.page, MAX_NAME);
    let messages = mail_messages::messages(notification.language);
    let (kind_text, color) = match notification.event.change {
        IncidentChange::Opened => (messages.incident, HeadingColor::Critical),
        IncidentChange::Updated => (messages.update, HeadingColor::Warning),
        IncidentChange::Resolved => (messages.resolved, HeadingColor::Resolved),
        IncidentChange::Scheduled => (messages.scheduled, HeadingColor::Neutral),
        IncidentChange::Reminder(_) => (messages.starts_in, HeadingColor::Neutral),
        IncidentChange::Started => (messages.started, HeadingColor::Neutral),
        IncidentChange::Completed if notification.incident.is_cancelled() => {
            (messages.cancelled, HeadingColor::Neutral)
        }
        IncidentChange::Completed => (messages.completed, HeadingColor::Resolved),
        IncidentChange::OwnerReminder(_) | IncidentChange::Changed | IncidentChange::Deleted => {
            ("", HeadingColor::Neutral)
        }
    };
    let kind_text = match notification.event.change {
        IncidentChange::Reminder(before) => fill(kind_text, &[&Locale::of(notification.language).duration(before)]),
        _ => kind_text.to_owned(),
    };
    MailContent {
        language: notification.language,
        title: fill(messages.subject, &[&kind_text, &title, &page]),
        // Mail programs group mails with the same subject.
        subject: Some(format!("[{page}] {}", text::single_line(&stable_title(notification), MAX_NAME))),
        heading_color: color,
        facts: facts(notification, notification.language),
        body: update.map(|update| mail_body(&update.body)),
        links: vec![(messages.open.to_owned(), incident_url(notification))],
        ..MailContent::default()
    }
    .render()
}

/// Title that stays the same for the whole incident, unless someone edits it.
fn stable_title(notification: &IncidentNotification<'_>) -> String {
    let first = notification.incident.first_monitor_name(notification.monitors);
    notification
        .incident
        .original_title(first, notification.language)
        .unwrap_or_else(|| notification.incident.title.clone())
}

fn mail_body(markdown: &str) -> MailBody {
    let text = text::lines(markdown, MAX_BODY);
    MailBody { html: render_mail(&text), text: text::lines(&plain_text(&text, MAX_BODY), MAX_BODY) }
}

fn facts(notification: &IncidentNotification<'_>, language: Language) -> Vec<(&'static str, String)> {
    let incident = notification.incident;
    let (messages, locale) = (mail_messages::messages(language), Locale::of(language));
    let time = |at| time_format::format_time_in_language(at, notification.zone, language);
    let names: Vec<String> =
        notification.monitors.iter().map(|(_, name, _)| text::single_line(name, MAX_NAME)).collect();
    let mut facts = vec![(messages.status, locale.status_of(incident).to_owned())];
    if !names.is_empty() {
        facts.push((messages.affected, text::truncate(&names.join(locale.comma()), MAX_AFFECTED)));
    }
    match incident.kind {
        IncidentKind::Incident => {
            facts.push((messages.impact, locale.impact(incident.impact).to_owned()));
            facts.push((messages.since, time(incident.started_at)));
        }
        IncidentKind::Maintenance => {
            facts.push((messages.from, time(incident.planned_start())));
            facts.extend(incident.ends_at.map(|end| (messages.to, time(end))));
        }
    }
    if incident.status.is_closed() {
        facts.extend(incident.resolved_at.map(|at| (messages.ended, time(at))));
    }
    facts
}

/// Public URL of the incident.
fn incident_url(notification: &IncidentNotification<'_>) -> String {
    format!("{}/incidents/{}", notification.page_url.trim_end_matches('/'), notification.incident.id)
}

#[cfg(test)]
mod tests;
