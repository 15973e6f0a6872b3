//! A page's maintenance as a calendar (RFC 5545): an event for each window, under a name that stays.

use icalendar::{Calendar, Component, Event, EventLike, EventStatus, Property};
use parallax_core::board::Notice;
use parallax_core::id::IncidentId;
use parallax_core::incident::cancelled::CancelledWindow;

use super::Site;
use crate::plain_text::plain_text;
use crate::views::tongue::{fill, words};

/// Its media type.
pub const MEDIA: &str = "text/calendar; charset=utf-8";
/// Bytes of a description, about.
const MAX_DESCRIPTION: usize = 16 * 1024;
/// How long a reader may keep it.
const FRESH: &str = "PT1H";

/// Writes the calendar of those windows, each with the number of the commit that wrote it last, which grows with each
/// change, and of those that were deleted.
pub fn write(site: Site<'_>, windows: &[(u64, Notice)], deleted: &[CancelledWindow]) -> Vec<u8> {
    let name = plain(&fill(words(site.page.language).calendar_name, &[&site.page.name]));
    let mut calendar = Calendar::empty();
    for (key, value) in [
        ("VERSION", "2.0"),
        ("PRODID", "-//Parallax//Maintenance//EN"),
        ("CALSCALE", "GREGORIAN"),
        ("METHOD", "PUBLISH"),
        ("X-WR-CALNAME", &name),
        ("X-PUBLISHED-TTL", FRESH),
    ] {
        calendar.append_property((key, value));
    }
    // Two younger ones (RFC 7986), of whose types the writer has to be told.
    calendar.append_property(Property::new("NAME", &name).add_parameter("VALUE", "TEXT").done());
    let fresh = Property::new("REFRESH-INTERVAL", FRESH).add_parameter("VALUE", "DURATION").done();
    calendar.append_property(fresh);
    for (revision, notice) in windows {
        if let Some(event) = event(site, *revision, notice) {
            calendar.push(event);
        }
    }
    for window in deleted {
        if let Some(event) = cancelled(site, window) {
            calendar.push(event);
        }
    }
    calendar.to_string().into_bytes()
}

/// A window that was deleted: one that has read of it takes it out. What it said is said no more.
fn cancelled(site: Site<'_>, window: &CancelledWindow) -> Option<Event> {
    let deleted = window.deleted_at.to_utc()?;
    let mut event = Event::new();
    event
        .uid(&uid(window.id))
        .timestamp(deleted)
        .last_modified(deleted)
        .starts(window.started_at.to_utc()?)
        .ends(window.ends_at.to_utc()?)
        .summary(words(site.page.language).calendar_cancelled)
        .sequence(sequence(window.version))
        .status(EventStatus::Cancelled)
        .append_property(("TRANSP", "TRANSPARENT"));
    Some(event.done())
}

/// The name that a window keeps.
fn uid(id: IncidentId) -> String {
    format!("{id}@parallax")
}

fn sequence(version: u64) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs())
}

fn event(site: Site<'_>, revision: u64, notice: &Notice) -> Option<Event> {
    let incident = &notice.incident;
    let ends_at = incident.ends_at?;
    // One that was over before its time ends then; one that was called off keeps the time it was planned for.
    let end =
        incident.resolved_at.filter(|at| *at > incident.started_at).map_or(ends_at, |at| at.min(ends_at));
    let changed = incident.last_word().to_utc()?;
    let status = if incident.is_cancelled() { EventStatus::Cancelled } else { EventStatus::Confirmed };
    let mut event = Event::new();
    event
        .uid(&uid(incident.id))
        .timestamp(changed)
        .last_modified(changed)
        .created(incident.made_at().to_utc()?)
        .starts(incident.planned_start().to_utc()?)
        .ends(end.to_utc()?)
        .summary(&plain(&incident.title))
        .description(&description(site, notice))
        .url(&site.incident(incident))
        .sequence(sequence(revision))
        .status(status)
        .append_property(("TRANSP", "TRANSPARENT"))
        .append_property(("CATEGORIES", "MAINTENANCE"));
    Some(event.done())
}

/// Its monitors, and what was last said of it.
fn description(site: Site<'_>, notice: &Notice) -> String {
    let names: Vec<String> = notice.monitors.iter().map(|(_, name, _)| name.clone()).collect();
    let words = words(site.page.language);
    let names = words.tongue().list(&names);
    // A calendar knows no markup.
    let said = notice.incident.updates.last().map(|update| plain_text(&update.body, MAX_DESCRIPTION));
    let parts = [if names.is_empty() { String::new() } else { fill(words.affected, &[&names]) }];
    let parts = parts.into_iter().chain(said).filter(|part| !part.is_empty());
    plain(&parts.collect::<Vec<_>>().join("\n\n"))
}

/// A text as a calendar may hold it: line breaks of one kind, which are escaped, and no other control characters.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|sign| !sign.is_control() || matches!(sign, '\n' | '\t')).collect()
}
