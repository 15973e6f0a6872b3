//! Card of an incident or maintenance window: kind, current state, and updates.

use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus};
use parallax_core::page_view::IncidentView;
use parallax_core::recurrence::Frequency;
use parallax_core::rollup::day_of;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, PageMessages, in_english};
use parallax_markdown::Markup;

use crate::views::feeds::is_in_progress;
use crate::views::format::{self, FormattedTime};

/// Number of updates on a card; the incident's own page has all of them.
const MAX_UPDATES: usize = 5;

/// A card, ready to render.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IncidentCard {
    /// CSS class and icon.
    pub class: &'static str,
    /// Path of its page.
    pub path: String,
    /// Title.
    pub title: String,
    /// Kind and severity; for a closed incident, that it is resolved.
    pub kind: &'static str,
    /// Severity of a closed incident.
    pub past_severity: Option<&'static str>,
    /// Actual or planned start, and the format that the script uses.
    pub from: (FormattedTime, &'static str),
    /// Actual or planned end, and the format that the script uses: the time only, if it is on the same day.
    pub to: Option<(FormattedTime, &'static str)>,
    /// Target of the script's countdown: start or end of a window, and the text for the end.
    pub countdown: Option<(FormattedTime, Option<&'static str>)>,
    /// Duration so far, or total.
    pub length: String,
    /// Recurrence of a window that is not over.
    pub repeats: Option<&'static str>,
    /// True if closed.
    pub is_over: bool,
    /// True for maintenance.
    pub is_window: bool,
    /// Names of the affected monitors; empty if there are none.
    pub monitors: String,
    /// True if an outage opened it automatically.
    pub automatic: bool,
    /// State change of a window by time alone since its last update.
    pub time_change: Option<CardUpdate>,
    /// Updates, newest first.
    pub updates: Vec<CardUpdate>,
    /// Number of updates left out.
    pub more: usize,
    /// Post-mortem.
    pub postmortem: Option<Markup>,
}

/// An update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CardUpdate {
    /// Status.
    pub status: String,
    /// Time of posting.
    pub at: FormattedTime,
    /// Text.
    pub body: Markup,
}

/// Phase of an incident or window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardPhase {
    Planned,
    InProgress,
    Closed,
}

impl CardPhase {
    /// Returns the phase; an incident is never planned.
    fn of(incident: &Incident, now: Timestamp) -> Self {
        match incident.kind {
            _ if !incident.is_open() => Self::Closed,
            IncidentKind::Maintenance if !is_in_progress(incident, now) => Self::Planned,
            IncidentKind::Maintenance | IncidentKind::Incident => Self::InProgress,
        }
    }
}

impl IncidentCard {
    /// Builds a card; `short` limits it to the newest updates.
    pub(crate) fn of(
        incident_view: &IncidentView,
        root: &str,
        locale: PageLocale,
        now: Timestamp,
        short: bool,
    ) -> Self {
        let (incident, messages) = (&incident_view.incident, locale.messages);
        let is_window = incident.kind == IncidentKind::Maintenance;
        let phase = CardPhase::of(incident, now);
        let (start, end) = (incident.planned_start(), end_of(incident));
        let limit = if short { MAX_UPDATES } else { usize::MAX };
        let names: Vec<String> = incident_view.monitors.iter().map(|(_, name, _)| name.clone()).collect();
        let from = match phase {
            CardPhase::Planned => (format::format_planned(start, locale), "w"),
            CardPhase::InProgress | CardPhase::Closed => (format::format_time(start, locale), "t"),
        };
        let countdown = match phase {
            CardPhase::Planned => Some((from.0.clone(), None)),
            CardPhase::InProgress => end.map(|end| (format::format_time(end, locale), Some(messages.ends_in))),
            CardPhase::Closed => None,
        };
        Self {
            class: class(incident),
            path: format!("{root}/incidents/{}", incident.id),
            title: incident.title.clone(),
            kind: kind(incident, phase, messages),
            past_severity: if phase == CardPhase::Closed { past_severity(incident, messages) } else { None },
            from,
            to: end.map(|end| end_time(start, end, locale)),
            countdown,
            length: messages.locale().duration(end.unwrap_or(now).since(start)),
            repeats: incident_view.repeats.filter(|_| phase != CardPhase::Closed).map(|every| repeats(every, messages)),
            is_over: phase == CardPhase::Closed,
            is_window,
            monitors: messages.locale().list(&names),
            automatic: incident.automatic,
            time_change: if is_window { time_change(incident, phase, locale) } else { None },
            updates: incident.updates.iter().rev().take(limit).map(|it| card_update(incident, it, locale)).collect(),
            more: incident.updates.len().saturating_sub(limit) + incident_view.omitted_updates,
            postmortem: incident.postmortem.as_deref().filter(|_| !short).map(|text| {
                parallax_markdown::render_article(
                    text,
                    &[messages.postmortem, in_english().postmortem, &incident.title],
                )
            }),
        }
    }
}

/// Actual or planned end, also of a window that was cancelled before it began.
fn end_of(incident: &Incident) -> Option<Timestamp> {
    let ended_at =
        incident.resolved_at.filter(|at| incident.kind == IncidentKind::Incident || *at > incident.started_at);
    ended_at.or(incident.ends_at)
}

fn end_time(from: Timestamp, to: Timestamp, locale: PageLocale) -> (FormattedTime, &'static str) {
    let zone = locale.zone;
    if day_of(from, zone) == day_of(to, zone) {
        let text = format::format_pattern(to, zone, "%H:%M %Z");
        return (FormattedTime { iso: to.to_string(), text }, "c");
    }
    (format::format_time(to, locale), "t")
}

/// State change of a window by time alone that no update reports: it has begun, or is over.
fn time_change(incident: &Incident, phase: CardPhase, locale: PageLocale) -> Option<CardUpdate> {
    let messages = locale.messages;
    let is_reported = incident.updates.iter().any(|update| update.status == IncidentStatus::Completed.name());
    let (status, at, text) = match phase {
        CardPhase::Planned => return None,
        CardPhase::InProgress => (messages.in_progress, incident.started_at, messages.has_begun),
        CardPhase::Closed if is_reported => return None,
        CardPhase::Closed => {
            let (status, text) =
                (IncidentStatus::Completed, messages.locale().default_message(IncidentStatus::Completed));
            (messages.locale().status(status), end_of(incident)?, text)
        }
    };
    Some(CardUpdate {
        status: status.to_owned(),
        at: format::format_time(at, locale),
        body: parallax_markdown::render_short(text),
    })
}

fn card_update(
    incident: &Incident,
    update: &parallax_core::incident::IncidentUpdate,
    locale: PageLocale,
) -> CardUpdate {
    let messages = locale.messages;
    let status_text = match IncidentStatus::ALL.into_iter().find(|status| status.name() == update.status) {
        Some(IncidentStatus::Completed) => messages.locale().status_of(incident).to_owned(),
        Some(status) => messages.locale().status(status).to_owned(),
        None => {
            let mut characters = update.status.chars();
            let first = characters.next();
            first.map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
        }
    };
    CardUpdate {
        status: status_text,
        at: format::format_time(update.created_at, locale),
        body: parallax_markdown::render_short(&update.body),
    }
}

fn class(incident: &Incident) -> &'static str {
    match (incident.kind, incident.status, incident.impact) {
        (IncidentKind::Maintenance, ..) => "maint",
        (IncidentKind::Incident, IncidentStatus::Resolved, _) => "up",
        (IncidentKind::Incident, _, Impact::None) => "none",
        (IncidentKind::Incident, _, Impact::Degraded) => "slow",
        (IncidentKind::Incident, _, Impact::Partial) => "part",
        (IncidentKind::Incident, _, Impact::Major) => "down",
    }
}

fn kind(incident: &Incident, phase: CardPhase, messages: &'static PageMessages) -> &'static str {
    match (incident.kind, phase, incident.impact) {
        (IncidentKind::Maintenance, CardPhase::Closed, _) if incident.is_cancelled() => messages.kind_cancelled,
        (IncidentKind::Maintenance, CardPhase::Closed, _) => messages.kind_completed,
        (IncidentKind::Maintenance, CardPhase::InProgress, _) => messages.kind_running,
        (IncidentKind::Maintenance, CardPhase::Planned, _) => messages.kind_planned,
        (IncidentKind::Incident, CardPhase::Closed, _) => messages.locale().status(IncidentStatus::Resolved),
        (IncidentKind::Incident, _, Impact::None) => messages.kind_notice,
        (IncidentKind::Incident, _, impact) => messages.locale().impact(impact),
    }
}

fn past_severity(incident: &Incident, messages: &'static PageMessages) -> Option<&'static str> {
    match (incident.kind, incident.impact) {
        (IncidentKind::Maintenance, _) | (IncidentKind::Incident, Impact::None) => None,
        (IncidentKind::Incident, Impact::Degraded) => Some(messages.was_degraded),
        (IncidentKind::Incident, Impact::Partial) => Some(messages.was_partial),
        (IncidentKind::Incident, Impact::Major) => Some(messages.was_major),
    }
}

fn repeats(every: Frequency, messages: &'static PageMessages) -> &'static str {
    match every {
        Frequency::Weekly => messages.repeats_weekly,
        Frequency::Monthly | Frequency::MonthlyWeekday => messages.repeats_monthly,
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::incident::IncidentUpdate;
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use super::*;
    use crate::views::tests::english_locale;
    use crate::views::tests::{NOW, incident, incident_view, resolved, window};

    fn card(incident: Incident) -> IncidentCard {
        IncidentCard::of(&incident_view(incident), "", english_locale(chrono_tz::Tz::UTC), NOW, true)
    }

    fn planned(from: i64, to: i64) -> Incident {
        let scheduled = IncidentUpdate {
            status: "scheduled".to_owned(),
            body: "Maintenance is scheduled.".to_owned(),
            created_at: NOW - 9 * DAY,
            ..incident(1, "").updates[0].clone()
        };
        Incident { started_at: NOW + from, ends_at: Some(NOW + to), updates: vec![scheduled], ..window() }
    }

    fn time_change_of(card: &IncidentCard) -> Option<(&str, &str, &str)> {
        card.time_change.as_ref().map(|change| (change.status.as_str(), change.at.iso.as_str(), change.body.as_str()))
    }

    #[test]
    fn a_window_shows_its_state_change_if_no_update_reports_it() {
        let before = card(planned(2 * DAY, 2 * DAY + HOUR));
        assert_eq!((before.kind, time_change_of(&before)), ("Scheduled maintenance", None));
        assert_eq!(before.countdown, Some((before.from.0.clone(), None)));
        for has_begun in [true, false] {
            let running = card(Incident { has_begun, ..planned(-MINUTE, HOUR) });
            assert_eq!(running.kind, "Maintenance in progress");
            let expected = ("In progress", "2026-11-27T12:45:00.000Z", "<p>The maintenance has started.</p>\n");
            assert_eq!(time_change_of(&running), Some(expected));
            let (end, countdown_text) = running.countdown.as_ref().unwrap();
            assert_eq!((end.iso.as_str(), *countdown_text), ("2026-11-27T13:46:00.000Z", Some("ends in {0}")));
            assert_eq!(running.updates.len(), 1, "the update is unchanged");
        }
        let closed = Incident { status: IncidentStatus::Completed, has_begun: true, ..planned(-2 * HOUR, -HOUR) };
        let by_time = card(Incident { resolved_at: closed.ends_at, ..closed.clone() });
        let expected = ("Completed", "2026-11-27T11:46:00.000Z", "<p>The maintenance has been completed.</p>\n");
        assert_eq!((time_change_of(&by_time), &by_time.countdown), (Some(expected), &None));
        let mut updated = closed;
        updated.updates.push(IncidentUpdate { status: "completed".to_owned(), ..updated.updates[0].clone() });
        assert_eq!(time_change_of(&card(updated.clone())), None, "an update says so");
        // Cancelled a day before its start: shows the planned time and that it is cancelled.
        let (start, now) = (NOW + DAY, NOW);
        let cancelled = Incident { started_at: now, planned_at: Some(start), resolved_at: Some(now), ..updated };
        let cancelled = card(Incident { ends_at: Some(start + HOUR), has_begun: false, ..cancelled });
        assert_eq!((cancelled.kind, cancelled.length.as_str()), ("Cancelled maintenance", "1 hour"));
        assert_eq!(cancelled.from.0.iso, start.to_string());
        assert_eq!(cancelled.updates[0].status, "Cancelled");
    }

    #[test]
    fn a_planned_window_shows_weekday_duration_and_recurrence() {
        let mut incident_view = incident_view(planned(2 * DAY, 2 * DAY + 90 * MINUTE));
        incident_view.repeats = Some(Frequency::Monthly);
        let card = IncidentCard::of(&incident_view, "", english_locale(chrono_tz::Tz::UTC), NOW, true);
        assert_eq!((card.from.0.text.as_str(), card.from.1), ("Sun, 29 Nov 2026, 12:46 UTC", "w"));
        assert_eq!((card.length.as_str(), card.repeats), ("1 hour 30 minutes", Some("repeats monthly")));
        incident_view.incident.status = IncidentStatus::Completed;
        let closed = IncidentCard::of(&incident_view, "", english_locale(chrono_tz::Tz::UTC), NOW, true);
        assert_eq!((closed.repeats, closed.from.1), (None, "t"));
    }

    #[test]
    fn a_cancelled_window_keeps_its_planned_time() {
        let cancelled =
            Incident { status: IncidentStatus::Completed, resolved_at: Some(NOW), ..planned(DAY, DAY + HOUR) };
        let card = card(cancelled);
        assert_eq!((card.to.unwrap().0.iso.as_str(), card.length.as_str()), ("2026-11-28T13:46:00.000Z", "1 hour"));
    }

    #[test]
    fn a_closed_incident_shows_its_past_severity() {
        for (impact, past_severity) in [
            (Impact::None, None),
            (Impact::Degraded, Some("was degraded")),
            (Impact::Partial, Some("was a partial outage")),
            (Impact::Major, Some("was a major outage")),
        ] {
            let closed = card(Incident { impact, ..resolved() });
            assert_eq!((closed.class, closed.kind, closed.past_severity), ("up", "Resolved", past_severity));
            assert_eq!(closed.to.unwrap().0.text, "13:08 UTC");
            assert_eq!(card(Incident { impact, ..incident(1, "x") }).past_severity, None);
        }
    }
}
