//! Card of an incident or maintenance window: kind, current state, and updates.

use parallax_core::board::Notice;
use parallax_core::incident::{Impact, Incident, Kind, Progress};
use parallax_core::recurrence::Every;
use parallax_core::rollup::day_of;
use parallax_core::time::Timestamp;

use crate::views::feeds::is_under_way;
use crate::views::markdown::{self, Markup};
use crate::views::tongue::{Voice, Words, in_english};
use crate::views::words::{self, Moment};

/// Number of updates on a card; the incident's own page has all of them.
const UPDATES: usize = 5;

/// A card, ready to render.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// CSS class and icon.
    pub class: &'static str,
    /// Path of its page.
    pub path: String,
    /// Title.
    pub title: String,
    /// Kind and severity; for a closed incident, that it is resolved.
    pub kind: &'static str,
    /// Severity of a closed incident.
    pub was: Option<&'static str>,
    /// Actual or planned start, and the format that the script uses.
    pub from: (Moment, &'static str),
    /// Actual or planned end, and the format that the script uses: the time only, if it is on the same day.
    pub to: Option<(Moment, &'static str)>,
    /// Target of the script's countdown: start or end of a window, and the text for the end.
    pub awaited: Option<(Moment, Option<&'static str>)>,
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
    pub course: Option<Said>,
    /// Updates, newest first.
    pub updates: Vec<Said>,
    /// Number of updates left out.
    pub more: usize,
    /// Post-mortem.
    pub postmortem: Option<Markup>,
}

/// An update.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Status.
    pub status: String,
    /// Time of posting.
    pub at: Moment,
    /// Text.
    pub body: Markup,
}

/// Stage of an incident or window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Planned,
    UnderWay,
    Over,
}

impl Stage {
    /// Returns the stage; an incident is never planned.
    fn of(incident: &Incident, now: Timestamp) -> Self {
        match incident.kind {
            _ if !incident.is_open() => Self::Over,
            Kind::Maintenance if !is_under_way(incident, now) => Self::Planned,
            Kind::Maintenance | Kind::Incident => Self::UnderWay,
        }
    }
}

impl Card {
    /// Builds a card; `short` limits it to the newest updates.
    pub fn of(notice: &Notice, root: &str, voice: Voice, now: Timestamp, short: bool) -> Self {
        let (incident, words) = (&notice.incident, voice.words);
        let is_window = incident.kind == Kind::Maintenance;
        let stage = Stage::of(incident, now);
        let (start, end) = (incident.planned_start(), end_of(incident));
        let shown = if short { UPDATES } else { usize::MAX };
        let names: Vec<String> = notice.monitors.iter().map(|(_, name, _)| name.clone()).collect();
        let from = match stage {
            Stage::Planned => (words::planned(start, voice), "w"),
            Stage::UnderWay | Stage::Over => (words::moment(start, voice), "t"),
        };
        let awaited = match stage {
            Stage::Planned => Some((from.0.clone(), None)),
            Stage::UnderWay => end.map(|end| (words::moment(end, voice), Some(words.still))),
            Stage::Over => None,
        };
        Self {
            class: class(incident),
            path: format!("{root}/incidents/{}", incident.id),
            title: incident.title.clone(),
            kind: kind(incident, stage, words),
            was: if stage == Stage::Over { was(incident, words) } else { None },
            from,
            to: end.map(|end| until(start, end, voice)),
            awaited,
            length: words.tongue().length(end.unwrap_or(now).since(start)),
            repeats: notice.repeats.filter(|_| stage != Stage::Over).map(|every| repeats(every, words)),
            is_over: stage == Stage::Over,
            is_window,
            monitors: words.tongue().list(&names),
            automatic: incident.automatic,
            course: if is_window { course(incident, stage, voice) } else { None },
            updates: incident.updates.iter().rev().take(shown).map(|it| said(incident, it, voice)).collect(),
            more: incident.updates.len().saturating_sub(shown) + notice.more,
            postmortem: incident.postmortem.as_deref().filter(|_| !short).map(|text| {
                markdown::article(text, &[words.postmortem, in_english().postmortem, &incident.title])
            }),
        }
    }
}

/// Actual or planned end, also of a window that was cancelled before it began.
fn end_of(incident: &Incident) -> Option<Timestamp> {
    let ended =
        incident.resolved_at.filter(|at| incident.kind == Kind::Incident || *at > incident.started_at);
    ended.or(incident.ends_at)
}

fn until(from: Timestamp, to: Timestamp, voice: Voice) -> (Moment, &'static str) {
    let zone = voice.zone;
    if day_of(from, zone) == day_of(to, zone) {
        let text = words::formatted(to, zone, "%H:%M %Z");
        return (Moment { iso: to.to_string(), text }, "c");
    }
    (words::moment(to, voice), "t")
}

/// State change of a window by time alone that no update reports: it has begun, or is over.
fn course(incident: &Incident, stage: Stage, voice: Voice) -> Option<Said> {
    let words = voice.words;
    let is_said = incident.updates.iter().any(|update| update.status == Progress::Completed.name());
    let (status, at, line) = match stage {
        Stage::Planned => return None,
        Stage::UnderWay => (words.under_way, incident.started_at, words.has_begun),
        Stage::Over if is_said => return None,
        Stage::Over => {
            let (status, line) = (Progress::Completed, words.tongue().standard_line(Progress::Completed));
            (words.tongue().status(status), end_of(incident)?, line)
        }
    };
    Some(Said { status: status.to_owned(), at: words::moment(at, voice), body: markdown::render(line) })
}

fn said(incident: &Incident, update: &parallax_core::incident::Update, voice: Voice) -> Said {
    let words = voice.words;
    let status = match Progress::ALL.into_iter().find(|known| known.name() == update.status) {
        Some(Progress::Completed) => words.tongue().status_of(incident).to_owned(),
        Some(known) => words.tongue().status(known).to_owned(),
        None => {
            let mut letters = update.status.chars();
            let first = letters.next();
            first.map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    };
    Said { status, at: words::moment(update.created_at, voice), body: markdown::render(&update.body) }
}

fn class(incident: &Incident) -> &'static str {
    match (incident.kind, incident.status, incident.impact) {
        (Kind::Maintenance, ..) => "maint",
        (Kind::Incident, Progress::Resolved, _) => "up",
        (Kind::Incident, _, Impact::None) => "none",
        (Kind::Incident, _, Impact::Degraded) => "slow",
        (Kind::Incident, _, Impact::Partial) => "part",
        (Kind::Incident, _, Impact::Major) => "down",
    }
}

fn kind(incident: &Incident, stage: Stage, words: &'static Words) -> &'static str {
    match (incident.kind, stage, incident.impact) {
        (Kind::Maintenance, Stage::Over, _) if incident.is_cancelled() => words.kind_cancelled,
        (Kind::Maintenance, Stage::Over, _) => words.kind_done,
        (Kind::Maintenance, Stage::UnderWay, _) => words.kind_running,
        (Kind::Maintenance, Stage::Planned, _) => words.kind_planned,
        (Kind::Incident, Stage::Over, _) => words.tongue().status(Progress::Resolved),
        (Kind::Incident, _, Impact::None) => words.kind_notice,
        (Kind::Incident, _, impact) => words.tongue().impact(impact),
    }
}

fn was(incident: &Incident, words: &'static Words) -> Option<&'static str> {
    match (incident.kind, incident.impact) {
        (Kind::Maintenance, _) | (Kind::Incident, Impact::None) => None,
        (Kind::Incident, Impact::Degraded) => Some(words.was_degraded),
        (Kind::Incident, Impact::Partial) => Some(words.was_partial),
        (Kind::Incident, Impact::Major) => Some(words.was_major),
    }
}

fn repeats(every: Every, words: &'static Words) -> &'static str {
    match every {
        Every::Weekly => words.repeats_weekly,
        Every::Monthly | Every::MonthlyWeekday => words.repeats_monthly,
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::incident::Update;
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use super::*;
    use crate::views::tests::{NOW, incident, notice, resolved, window};
    use crate::views::tongue::english;

    fn card(incident: Incident) -> Card {
        Card::of(&notice(incident), "", english(chrono_tz::Tz::UTC), NOW, true)
    }

    fn planned(from: i64, to: i64) -> Incident {
        let scheduled = Update {
            status: "scheduled".to_owned(),
            body: "Maintenance is scheduled.".to_owned(),
            created_at: NOW - 9 * DAY,
            ..incident(1, "").updates[0].clone()
        };
        Incident { started_at: NOW + from, ends_at: Some(NOW + to), updates: vec![scheduled], ..window() }
    }

    fn course(card: &Card) -> Option<(&str, &str, &str)> {
        card.course.as_ref().map(|said| (said.status.as_str(), said.at.iso.as_str(), said.body.as_str()))
    }

    #[test]
    fn a_window_says_what_has_become_of_it_where_no_update_does() {
        let before = card(planned(2 * DAY, 2 * DAY + HOUR));
        assert_eq!((before.kind, course(&before)), ("Scheduled maintenance", None));
        assert_eq!(before.awaited, Some((before.from.0.clone(), None)));
        for begun in [true, false] {
            let running = card(Incident { begun, ..planned(-MINUTE, HOUR) });
            assert_eq!(running.kind, "Maintenance in progress");
            let said = ("In progress", "2026-11-27T12:45:00.000Z", "<p>The maintenance has started.</p>\n");
            assert_eq!(course(&running), Some(said));
            let (end, says) = running.awaited.as_ref().unwrap();
            assert_eq!((end.iso.as_str(), *says), ("2026-11-27T13:46:00.000Z", Some("ends in {0}")));
            assert_eq!(running.updates.len(), 1, "the update is unchanged");
        }
        let closed = Incident { status: Progress::Completed, begun: true, ..planned(-2 * HOUR, -HOUR) };
        let by_time = card(Incident { resolved_at: closed.ends_at, ..closed.clone() });
        let said = ("Completed", "2026-11-27T11:46:00.000Z", "<p>The maintenance has been completed.</p>\n");
        assert_eq!((course(&by_time), &by_time.awaited), (Some(said), &None));
        let mut told = closed;
        told.updates.push(Update { status: "completed".to_owned(), ..told.updates[0].clone() });
        assert_eq!(course(&card(told.clone())), None, "an update says so");
        // Cancelled a day before its start: shows the planned time and that it is cancelled.
        let (start, now) = (NOW + DAY, NOW);
        let cancelled = Incident { started_at: now, planned_at: Some(start), resolved_at: Some(now), ..told };
        let cancelled = card(Incident { ends_at: Some(start + HOUR), begun: false, ..cancelled });
        assert_eq!((cancelled.kind, cancelled.length.as_str()), ("Cancelled maintenance", "1 hour"));
        assert_eq!(cancelled.from.0.iso, start.to_string());
        assert_eq!(cancelled.updates[0].status, "Cancelled");
    }

    #[test]
    fn a_planned_window_has_what_people_plan_by() {
        let mut notice = notice(planned(2 * DAY, 2 * DAY + 90 * MINUTE));
        notice.repeats = Some(Every::Monthly);
        let card = Card::of(&notice, "", english(chrono_tz::Tz::UTC), NOW, true);
        assert_eq!((card.from.0.text.as_str(), card.from.1), ("Sun, 29 Nov 2026, 12:46 UTC", "w"));
        assert_eq!((card.length.as_str(), card.repeats), ("1 hour 30 minutes", Some("repeats monthly")));
        notice.incident.status = Progress::Completed;
        let over = Card::of(&notice, "", english(chrono_tz::Tz::UTC), NOW, true);
        assert_eq!((over.repeats, over.from.1), (None, "t"));
    }

    #[test]
    fn a_window_that_was_called_off_keeps_the_time_it_was_planned_for() {
        let off =
            Incident { status: Progress::Completed, resolved_at: Some(NOW), ..planned(DAY, DAY + HOUR) };
        let card = card(off);
        assert_eq!(
            (card.to.unwrap().0.iso.as_str(), card.length.as_str()),
            ("2026-11-28T13:46:00.000Z", "1 hour")
        );
    }

    #[test]
    fn what_is_over_says_so_and_how_bad_it_was() {
        for (impact, was) in [
            (Impact::None, None),
            (Impact::Degraded, Some("was degraded")),
            (Impact::Partial, Some("was a partial outage")),
            (Impact::Major, Some("was a major outage")),
        ] {
            let over = card(Incident { impact, ..resolved() });
            assert_eq!((over.class, over.kind, over.was), ("up", "Resolved", was));
            assert_eq!(over.to.unwrap().0.text, "13:08 UTC");
            assert_eq!(card(Incident { impact, ..incident(1, "x") }).was, None);
        }
    }
}
