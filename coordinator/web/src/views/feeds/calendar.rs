//! iCalendar feed (RFC 5545) of a page's maintenance: one event per window, with a stable UID.

use icalendar::{Calendar, Component, Event, EventLike, EventStatus, Property};
use parallax_core::id::IncidentId;
use parallax_core::incident::cancelled::CancelledWindow;
use parallax_core::page_view::IncidentView;
use parallax_i18n::page_messages::{fill, messages};
use parallax_markdown::plain_text;

use super::FeedSite;

/// Media type.
pub(crate) const MEDIA: &str = "text/calendar; charset=utf-8";
/// Approximate maximum size of a description in bytes.
const MAX_DESCRIPTION: usize = 16 * 1024;
/// Refresh interval for clients.
const REFRESH_INTERVAL: &str = "PT1H";

/// Writes the calendar of maintenance windows, each with the revision of its record, which grows with each
/// change, and of deleted windows.
pub(crate) fn write(site: FeedSite<'_>, windows: &[(u64, IncidentView)], deleted: &[CancelledWindow]) -> Vec<u8> {
    let name = plain(&fill(messages(site.page.language).calendar_name, &[&site.page.name]));
    let mut calendar = Calendar::empty();
    for (key, value) in [
        ("VERSION", "2.0"),
        ("PRODID", "-//Parallax//Maintenance//EN"),
        ("CALSCALE", "GREGORIAN"),
        ("METHOD", "PUBLISH"),
        ("X-WR-CALNAME", &name),
        ("X-PUBLISHED-TTL", REFRESH_INTERVAL),
    ] {
        calendar.append_property((key, value));
    }
    // Two newer properties (RFC 7986), whose types the library doesn't know.
    calendar.append_property(Property::new("NAME", &name).add_parameter("VALUE", "TEXT").done());
    let refresh_interval =
        Property::new("REFRESH-INTERVAL", REFRESH_INTERVAL).add_parameter("VALUE", "DURATION").done();
    calendar.append_property(refresh_interval);
    for (revision, incident_view) in windows {
        if let Some(event) = event(site, *revision, incident_view) {
            calendar.push(event);
        }
    }
    for window in deleted {
        if let Some(event) = cancelled_event(site, window) {
            calendar.push(event);
        }
    }
    calendar.to_string().into_bytes()
}

/// A deleted window as a cancelled event, so that clients remove it. Its title and text are not repeated.
fn cancelled_event(site: FeedSite<'_>, window: &CancelledWindow) -> Option<Event> {
    let deleted = window.deleted_at.to_utc()?;
    let mut event = Event::new();
    event
        .uid(&uid(window.id))
        .timestamp(deleted)
        .last_modified(deleted)
        .starts(window.started_at.to_utc()?)
        .ends(window.ends_at.to_utc()?)
        .summary(messages(site.page.language).calendar_cancelled)
        .sequence(sequence(window.version))
        .status(EventStatus::Cancelled)
        .append_property(("TRANSP", "TRANSPARENT"));
    Some(event.done())
}

/// UID of a window.
fn uid(id: IncidentId) -> String {
    format!("{id}@parallax")
}

fn sequence(version: u64) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs())
}

fn event(site: FeedSite<'_>, revision: u64, incident_view: &IncidentView) -> Option<Event> {
    let incident = &incident_view.incident;
    let ends_at = incident.ends_at?;
    // A window that ended early ends then; a cancelled one keeps its planned time.
    let end = incident.resolved_at.filter(|at| *at > incident.started_at).map_or(ends_at, |at| at.min(ends_at));
    let changed = incident.last_change().to_utc()?;
    let status = if incident.is_cancelled() { EventStatus::Cancelled } else { EventStatus::Confirmed };
    let mut event = Event::new();
    event
        .uid(&uid(incident.id))
        .timestamp(changed)
        .last_modified(changed)
        .created(incident.published_at().to_utc()?)
        .starts(incident.planned_start().to_utc()?)
        .ends(end.to_utc()?)
        .summary(&plain(&incident.title))
        .description(&description(site, incident_view))
        .url(&site.incident_url(incident))
        .sequence(sequence(revision))
        .status(status)
        .append_property(("TRANSP", "TRANSPARENT"))
        .append_property(("CATEGORIES", "MAINTENANCE"));
    Some(event.done())
}

/// Affected monitors and the newest update.
fn description(site: FeedSite<'_>, incident_view: &IncidentView) -> String {
    let names: Vec<String> = incident_view.monitors.iter().map(|(_, name, _)| name.clone()).collect();
    let texts = messages(site.page.language);
    let names = texts.locale().list(&names);
    // Calendars don't support markup.
    let last_update = incident_view.incident.updates.last().map(|update| plain_text(&update.body, MAX_DESCRIPTION));
    let parts = [if names.is_empty() { String::new() } else { fill(texts.affected, &[&names]) }];
    let parts = parts.into_iter().chain(last_update).filter(|part| !part.is_empty());
    plain(&parts.collect::<Vec<_>>().join("\n\n"))
}

/// Text that is valid in a calendar: uniform line breaks, which the library escapes, and no other control
/// characters.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}
