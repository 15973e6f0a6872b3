//! News of an incident or a window, for a page's subscribers: the JSON that is posted, and the mail.

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

/// UTF-16 units of a title, of a page's name, and of the list of affected monitors.
const MAX_NAME: usize = 140;
const MAX_AFFECTED: usize = 600;
/// UTF-16 units of an update's text.
const MAX_BODY: usize = 8_000;

/// News that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct IncidentNews<'a> {
    /// What happened.
    pub told: &'a Told,
    /// The page's name.
    pub page: &'a str,
    /// The page's public address.
    pub page_url: &'a str,
    /// The incident or window as it now is.
    pub incident: &'a Incident,
    /// The repeating entry that it was planned from, where it is still there.
    pub series: Option<&'a Series>,
    /// Its monitors that are still there: id, name, and impact where one of its own was given.
    pub monitors: &'a [(MonitorId, String, Option<Impact>)],
    /// When.
    pub at: Timestamp,
    /// The page's time zone, for what people read.
    pub zone: chrono_tz::Tz,
    /// The page's language, for what subscribers read.
    pub language: Language,
}

/// News, written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name: `incident.created`.
    pub event: &'static str,
    /// What is posted and signed.
    pub json: Vec<u8>,
    /// What is mailed, before [`with_unsubscribe`](super::mail::with_unsubscribe).
    pub mail: Mail,
}

/// The names of all that subscribers are told of.
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

/// The JSON that is posted. `at` is in milliseconds since the epoch, as in alerts; the incident is as the API shows it.
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

/// Writes it for subscribers; none for what is not theirs to know.
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
    // A struct of texts and numbers is always written.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    Some(Written { event, json, mail: mail(news, update) })
}

/// A page's news as one subscriber's webhook gets it: with the address where it leaves.
pub fn with_unsubscribe_url(news: &[u8], url: &str) -> Vec<u8> {
    // An object of several members, as this writes them.
    let Some(open) = news.strip_suffix(b"}") else { return news.to_vec() };
    let url = Value::from(url).to_string();
    [open, b",\"unsubscribeUrl\":", url.as_bytes(), b"}"].concat()
}

/// The owner's reminder that an incident had no update for so many milliseconds: in English.
pub fn quiet(news: &IncidentNews<'_>, silent_ms: i64) -> Mail {
    let title = text::line(&news.incident.title, MAX_NAME);
    let page = text::line(news.page, MAX_NAME);
    let lead = format!(
        "This incident has had no update for {}. Post one, or resolve it, so that visitors know where it stands.",
        words::length(silent_ms)
    );
    Sheet {
        title: format!("No update for {}: {title} ({page})", words::length(silent_ms)),
        mood: Mood::Warning,
        lead: vec![lead],
        facts: facts(news, Language::En),
        link: Some(("Open the incident".to_owned(), address(news))),
        footer: vec![format!("You get this because a reminder is set on this incident of {page}.")],
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

/// The update that says it, where one does.
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
        // Mail programs show those of one subject together.
        subject: Some(format!("[{page}] {}", text::line(&lasting_title(news), MAX_NAME))),
        mood,
        facts: facts(news, news.language),
        body: update.map(|update| body(&update.body)),
        link: Some((said.open.to_owned(), address(news))),
        ..Sheet::default()
    }
    .mail()
}

/// A title that is the same over all of an incident's course, unless a person gives it another.
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

/// Where visitors read of it.
fn address(news: &IncidentNews<'_>) -> String {
    format!("{}/incidents/{}", news.page_url.trim_end_matches('/'), news.incident.id)
}

#[cfg(test)]
mod tests;
