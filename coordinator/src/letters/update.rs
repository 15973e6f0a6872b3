//! Updates about incidents and maintenance windows for a page's subscribers: the JSON webhook body and the
//! mail.

use parallax_core::delivery::Mail;
use parallax_core::id::MonitorId;
use parallax_core::incident::series::Series;
use parallax_core::incident::{Impact, Incident, Kind, News as What, Told, Update};
use parallax_core::page::look::Language;
use parallax_core::time::Timestamp;
use parallax_core::tongue::{Tongue, fill};
use serde::Serialize;
use serde_json::Value;

use super::mail::{Body, Mood, Sheet};
use super::resource::{Resource, Word};
use super::{markdown, text, tongue, words};
use crate::plain_text::plain_text;

/// Maximum length of a title or of a page's name in UTF-16 units; below, of the list of affected monitors.
const MAX_NAME: usize = 140;
const MAX_AFFECTED: usize = 600;
/// Maximum length of an update's text in UTF-16 units.
const MAX_BODY: usize = 8_000;

/// An incident update to render.
#[derive(Debug, Clone, Copy)]
pub struct IncidentNews<'a> {
    /// The journal's record of what happened.
    pub told: &'a Told,
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
pub struct Written {
    /// Event name, such as `incident.created`.
    pub event: &'static str,
    /// JSON body that is posted and signed.
    pub json: Vec<u8>,
    /// Mail, before [`with_unsubscribe`](super::mail::with_unsubscribe).
    pub mail: Mail,
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
struct Document<'a> {
    event: &'static str,
    page: &'a str,
    page_url: &'a str,
    incident: Resource<'a>,
    update: Option<Word<'a>>,
    at: i64,
}

/// Renders an update for subscribers; `None` for events they don't receive.
pub fn update(news: &IncidentNews<'_>) -> Option<Written> {
    let event = event(news)?;
    let update = said(news);
    let document = Document {
        event,
        page: news.page,
        page_url: news.page_url,
        incident: Resource::new(news.incident, news.series, news.monitors),
        update: update.map(Word::new),
        at: news.at.as_millis(),
    };
    // A struct of strings and numbers always serializes.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    Some(Written { event, json, mail: mail(news, update) })
}

/// Adds a subscriber's unsubscribe URL to an update for their webhook.
pub fn with_unsubscribe_url(news: &[u8], url: &str) -> Vec<u8> {
    // Always an object with several members, as serialized above.
    let Some(open) = news.strip_suffix(b"}") else { return news.to_vec() };
    let url = Value::from(url).to_string();
    [open, b",\"unsubscribeUrl\":", url.as_bytes(), b"}"].concat()
}

/// Renders the owner's reminder that an incident had no update for `silent_ms` milliseconds (in English).
pub fn quiet(news: &IncidentNews<'_>, silent_ms: i64) -> Mail {
    let title = text::line(&news.incident.title, MAX_NAME);
    let page = text::line(news.page, MAX_NAME);
    let lead = format!(
        "This incident has had no update for {}. Post an update or resolve it, so that visitors know its status.",
        words::length(silent_ms)
    );
    Sheet {
        title: format!("No update for {}: {title} ({page})", words::length(silent_ms)),
        mood: Mood::Warning,
        lead: vec![lead],
        facts: facts(news, Language::En),
        link: Some(("Open the incident".to_owned(), address(news))),
        footer: vec![format!(
            "You received this email because a reminder is set for this incident of {page}."
        )],
        ..Sheet::default()
    }
    .mail()
}

fn event(news: &IncidentNews<'_>) -> Option<&'static str> {
    let [created, updated, changed, resolved, scheduled, reminder, started, completed] = EVENTS;
    Some(match news.told.news {
        What::Opened => created,
        What::Updated => match news.incident.kind {
            Kind::Incident => updated,
            Kind::Maintenance => changed,
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
fn said<'a>(news: &IncidentNews<'a>) -> Option<&'a Update> {
    let wanted = news.told.update?;
    news.incident.updates.iter().find(|update| update.id == wanted)
}

fn mail(news: &IncidentNews<'_>, update: Option<&Update>) -> Mail {
    let title = text::line(&news.incident.title, MAX_NAME);
    let page = text::line(news.page, MAX_NAME);
    let said = tongue::words(news.language);
    let (what, mood) = match news.told.news {
        What::Opened => (said.incident, Mood::Bad),
        What::Updated => (said.update, Mood::Warning),
        What::Resolved => (said.resolved, Mood::Good),
        What::Scheduled => (said.planned, Mood::Plain),
        What::Reminder(_) => (said.soon, Mood::Plain),
        What::Started => (said.begins, Mood::Plain),
        What::Completed if news.incident.is_cancelled() => (said.cancelled, Mood::Plain),
        What::Completed => (said.completed, Mood::Good),
        What::OwnerReminder(_) | What::Changed | What::Deleted => ("", Mood::Plain),
    };
    let what = match news.told.news {
        What::Reminder(before) => fill(what, &[&Tongue::of(news.language).length(before)]),
        _ => what.to_owned(),
    };
    Sheet {
        language: news.language,
        title: fill(said.subject, &[&what, &title, &page]),
        // Mail programs group mails with the same subject.
        subject: Some(format!("[{page}] {}", text::line(&lasting_title(news), MAX_NAME))),
        mood,
        facts: facts(news, news.language),
        body: update.map(|update| body(&update.body)),
        link: Some((said.open.to_owned(), address(news))),
        ..Sheet::default()
    }
    .mail()
}

/// Title that stays the same for the whole incident, unless someone edits it.
fn lasting_title(news: &IncidentNews<'_>) -> String {
    let first = news.incident.first_of(news.monitors);
    news.incident.title_at_first(first, news.language).unwrap_or_else(|| news.incident.title.clone())
}

fn body(written: &str) -> Body {
    let text = text::lines(written, MAX_BODY);
    Body { html: markdown::html(&text), text: text::lines(&plain_text(&text, MAX_BODY), MAX_BODY) }
}

fn facts(news: &IncidentNews<'_>, language: Language) -> Vec<(&'static str, String)> {
    let incident = news.incident;
    let (said, tongue) = (tongue::words(language), Tongue::of(language));
    let moment = |at| tongue::moment(at, news.zone, language);
    let names: Vec<String> = news.monitors.iter().map(|(_, name, _)| text::line(name, MAX_NAME)).collect();
    let mut facts = vec![(said.status, tongue.status_of(incident).to_owned())];
    if !names.is_empty() {
        facts.push((said.affected, text::cut(&names.join(tongue.comma()), MAX_AFFECTED)));
    }
    match incident.kind {
        Kind::Incident => {
            facts.push((said.impact, tongue.impact(incident.impact).to_owned()));
            facts.push((said.since, moment(incident.started_at)));
        }
        Kind::Maintenance => {
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
fn address(news: &IncidentNews<'_>) -> String {
    format!("{}/incidents/{}", news.page_url.trim_end_matches('/'), news.incident.id)
}

#[cfg(test)]
mod tests;
