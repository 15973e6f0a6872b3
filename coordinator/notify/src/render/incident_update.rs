//! Updates about incidents and maintenance windows for a page's subscribers: the JSON webhook body and the
//! mail.

use parallax_core::delivery::MailMessage;
use parallax_core::id::MonitorId;
use parallax_core::incident::series::Series;
use parallax_core::incident::{Impact, Incident, IncidentChange as What, IncidentEvent, IncidentKind, IncidentUpdate};
use parallax_core::locale::{Locale, fill};
use parallax_core::page::branding::Language;
use parallax_core::time::Timestamp;
use parallax_i18n::mail_messages;
use parallax_runtime::markdown::{plain_text, render_mail};
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
pub(crate) fn render_update(news: &IncidentNotification<'_>) -> Option<RenderedUpdate> {
    let event = event_name(news)?;
    let update = referenced_update(news);
    let document = UpdatePayload {
        event,
        page: news.page,
        page_url: news.page_url,
        incident: IncidentResource::new(news.incident, news.series, news.monitors),
        update: update.map(UpdateResource::new),
        at: news.at.as_millis(),
    };
    // A struct of strings and numbers always serializes.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    Some(RenderedUpdate { event, json, mail: mail(news, update) })
}

/// Adds a subscriber's unsubscribe URL to an update for their webhook.
pub(crate) fn with_unsubscribe_url(news: &[u8], url: &str) -> Vec<u8> {
    // Always an object with several members, as serialized above.
    let Some(open) = news.strip_suffix(b"}") else { return news.to_vec() };
    let url = Value::from(url).to_string();
    [open, b",\"unsubscribeUrl\":", url.as_bytes(), b"}"].concat()
}

/// Renders the owner's reminder that an incident had no update for `silent_ms` milliseconds (in English).
pub(crate) fn owner_reminder(news: &IncidentNotification<'_>, silent_ms: i64) -> MailMessage {
    let title = text::single_line(&news.incident.title, MAX_NAME);
    let page = text::single_line(news.page, MAX_NAME);
    let lead = format!(
        "This incident has had no update for {}. Post an update or resolve it, so that visitors know its status.",
        time_format::format_duration(silent_ms)
    );
    MailContent {
        title: format!("No update for {}: {title} ({page})", time_format::format_duration(silent_ms)),
        heading_color: HeadingColor::Warning,
        paragraphs: vec![lead],
        facts: facts(news, Language::En),
        link: Some(("Open the incident".to_owned(), incident_url(news))),
        footer: vec![format!("You received this email because a reminder is set for this incident of {page}.")],
        ..MailContent::default()
    }
    .render()
}

fn event_name(news: &IncidentNotification<'_>) -> Option<&'static str> {
    let [created, updated, changed, resolved, scheduled, reminder, started, completed] = EVENTS;
    Some(match news.event.change {
        What::Opened => created,
        What::Updated => match news.incident.kind {
            IncidentKind::Incident => updated,
            IncidentKind::Maintenance => changed,
        },
        What::Resolved => resolved,
        What::Scheduled => scheduled,
        What::Reminder(_) => reminder,
        What::Started => started,
        What::Completed => completed,
        What::OwnerReminder(_) | What::Changed | What::Deleted => return None,
    })
}

/// The update that the event refers to, if any.
fn referenced_update<'a>(news: &IncidentNotification<'a>) -> Option<&'a IncidentUpdate> {
    let wanted = news.event.update?;
    news.incident.updates.iter().find(|update| update.id == wanted)
}

fn mail(news: &IncidentNotification<'_>, update: Option<&IncidentUpdate>) -> MailMessage {
    let title = text::single_line(&news.incident.title, MAX_NAME);
    let page = text::single_line(news.page, MAX_NAME);
    let said = mail_messages::messages(news.language);
    let (what, mood) = match news.event.change {
        What::Opened => (said.incident, HeadingColor::Critical),
        What::Updated => (said.update, HeadingColor::Warning),
        What::Resolved => (said.resolved, HeadingColor::Resolved),
        What::Scheduled => (said.planned, HeadingColor::Neutral),
        What::Reminder(_) => (said.soon, HeadingColor::Neutral),
        What::Started => (said.begins, HeadingColor::Neutral),
        What::Completed if news.incident.is_cancelled() => (said.cancelled, HeadingColor::Neutral),
        What::Completed => (said.completed, HeadingColor::Resolved),
        What::OwnerReminder(_) | What::Changed | What::Deleted => ("", HeadingColor::Neutral),
    };
    let what = match news.event.change {
        What::Reminder(before) => fill(what, &[&Locale::of(news.language).duration(before)]),
        _ => what.to_owned(),
    };
    MailContent {
        language: news.language,
        title: fill(said.subject, &[&what, &title, &page]),
        // Mail programs group mails with the same subject.
        subject: Some(format!("[{page}] {}", text::single_line(&stable_title(news), MAX_NAME))),
        heading_color: mood,
        facts: facts(news, news.language),
        body: update.map(|update| mail_body(&update.body)),
        link: Some((said.open.to_owned(), incident_url(news))),
        ..MailContent::default()
    }
    .render()
}

/// Title that stays the same for the whole incident, unless someone edits it.
fn stable_title(news: &IncidentNotification<'_>) -> String {
    let first = news.incident.first_monitor_name(news.monitors);
    news.incident.original_title(first, news.language).unwrap_or_else(|| news.incident.title.clone())
}

fn mail_body(written: &str) -> MailBody {
    let text = text::lines(written, MAX_BODY);
    MailBody { html: render_mail(&text), text: text::lines(&plain_text(&text, MAX_BODY), MAX_BODY) }
}

fn facts(news: &IncidentNotification<'_>, language: Language) -> Vec<(&'static str, String)> {
    let incident = news.incident;
    let (said, tongue) = (mail_messages::messages(language), Locale::of(language));
    let moment = |at| time_format::format_time_in_language(at, news.zone, language);
    let names: Vec<String> = news.monitors.iter().map(|(_, name, _)| text::single_line(name, MAX_NAME)).collect();
    let mut facts = vec![(said.status, tongue.status_of(incident).to_owned())];
    if !names.is_empty() {
        facts.push((said.affected, text::truncate(&names.join(tongue.comma()), MAX_AFFECTED)));
    }
    match incident.kind {
        IncidentKind::Incident => {
            facts.push((said.impact, tongue.impact(incident.impact).to_owned()));
            facts.push((said.since, moment(incident.started_at)));
        }
        IncidentKind::Maintenance => {
            facts.push((said.from, moment(incident.planned_start())));
            facts.extend(incident.ends_at.map(|end| (said.to, moment(end))));
        }
    }
    if incident.status.is_closed() {
        facts.extend(incident.resolved_at.map(|at| (said.over, moment(at))));
    }
    facts
}

/// Public URL of the incident.
fn incident_url(news: &IncidentNotification<'_>) -> String {
    format!("{}/incidents/{}", news.page_url.trim_end_matches('/'), news.incident.id)
}

#[cfg(test)]
mod tests;
