//! Bounds of an incident's fields: the last good value and the first bad one.

use super::*;
use crate::id::{IncidentId, UpdateId};
use crate::incident::IncidentStatus;
use crate::page::branding::Language;
use crate::time::{DAY, HOUR};

const NOW: i64 = 20_600 * DAY;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

pub(crate) fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

fn monitors() -> BTreeSet<MonitorId> {
    (1..=3).map(MonitorId::from_u128).collect()
}

fn open_all(edit: &IncidentEdit) -> Result<CreatedIncident, String> {
    let names = WindowIds { incident: IncidentId::from_u128(1), update: UpdateId::from_u128(2) };
    let monitors = monitors();
    let seat = NewIncident {
        page: PageId::from_u128(3),
        monitors: &monitors,
        locale: Locale::of(Language::En),
        ids: names,
        series: SeriesId::from_u128(4),
        now: at(0),
    };
    edit.validate_new(seat).map_err(|faults| faults.to_string())
}

fn open(edit: &IncidentEdit) -> Result<Incident, String> {
    open_all(edit).map(|opened| opened.incident)
}

fn titled() -> IncidentEdit {
    IncidentEdit { title: value("Broken"), ..IncidentEdit::default() }
}

fn planned(starts: i64, ends: i64) -> IncidentEdit {
    IncidentEdit {
        kind: value("maintenance"),
        starts_at: value(&at(starts).to_string()),
        ends_at: value(&at(ends).to_string()),
        ..titled()
    }
}

pub(crate) fn incident() -> Incident {
    open(&titled()).unwrap()
}

pub(crate) fn window(starts: i64, ends: i64) -> Incident {
    open(&planned(starts, ends)).unwrap()
}

fn amend(edit: &IncidentEdit, incident: &Incident) -> Result<Incident, String> {
    let amended = edit.validate_edit(incident, None, &monitors(), at(5));
    amended.map(|amended| amended.incident).map_err(|faults| faults.to_string())
}

#[test]
fn a_title_is_all_that_an_incident_needs() {
    let opened = open_all(&titled()).unwrap();
    let incident = opened.incident;
    assert_eq!((incident.status, incident.impact), (IncidentStatus::Investigating, Impact::Partial));
    assert_eq!((incident.started_at, incident.resolved_at, incident.automatic), (at(0), None, false));
    assert_eq!((opened.change, opened.notify, incident.affected.len()), (IncidentChange::Opened, true, 0));
    let update = &incident.updates[0];
    assert_eq!((update.status.as_str(), update.created_at), ("investigating", at(0)));
    assert_eq!(update.body, "We are investigating this incident.");
}

#[test]
fn text_is_bounded_in_characters_after_trimming() {
    let title = |text: &str| open(&IncidentEdit { title: value(text), ..IncidentEdit::default() });
    assert_eq!(title(&format!("  {} ", "ü".repeat(120))).unwrap().title, "ü".repeat(120));
    assert_eq!(title(&"ü".repeat(121)).unwrap_err(), "title must be 1 to 120 characters");
    assert_eq!(title("  ").unwrap_err(), "title must be 1 to 120 characters");
    assert_eq!(open(&IncidentEdit::default()).unwrap_err(), "title is required");
    let message = |text: &str| open(&IncidentEdit { message: value(text), ..titled() });
    assert_eq!(message("\n# A\n\n* b\n").unwrap().updates[0].body, "\n# A\n\n* b\n", "as it was sent");
    assert!(message(&"€".repeat(4000)).is_ok());
    assert_eq!(message(&format!("{}\n", "€".repeat(4000))).unwrap().updates[0].body, "€".repeat(4000));
    assert_eq!(message(&"€".repeat(4001)).unwrap_err(), "message must be at most 4000 characters");
    assert!(message("a\u{0}b").is_err());
    assert_eq!(message(" ").unwrap().updates[0].body, "We are investigating this incident.");
    let postmortem =
        |text: PatchField<String>| amend(&IncidentEdit { postmortem: text, ..IncidentEdit::default() }, &incident());
    assert!(postmortem(value(&"x".repeat(20_000))).unwrap().postmortem.is_some());
    assert!(postmortem(value(&"x".repeat(20_001))).is_err());
    assert_eq!(postmortem(PatchField::Null).unwrap().postmortem, None);
}

#[test]
fn an_incident_may_lie_up_to_a_year_back() {
    let started =
        |at: Timestamp| open(&IncidentEdit { started_at: value(&at.to_string()), ..titled() }).map(|it| it.started_at);
    let now = at(0).to_utc().unwrap();
    let year = Timestamp::from_millis(now.checked_sub_months(Months::new(12)).unwrap().timestamp_millis());
    assert_eq!(started(year), Ok(year));
    assert_eq!(started(year - 1), Err("startedAt must be at most a year back".to_owned()));
    assert_eq!(started(at(CLOCK_TOLERANCE)), Ok(at(CLOCK_TOLERANCE)));
    assert!(started(at(CLOCK_TOLERANCE + 1)).is_err());
    assert!(open(&IncidentEdit { started_at: value("yesterday"), ..titled() }).is_err());
}

#[test]
fn an_incident_entered_after_its_end_is_resolved_without_notification() {
    let past = |started: i64, resolved: i64| IncidentEdit {
        started_at: value(&at(started).to_string()),
        resolved_at: value(&at(resolved).to_string()),
        ..titled()
    };
    let opened = open_all(&past(-HOUR, -5)).unwrap();
    assert_eq!((opened.change, opened.notify), (IncidentChange::Resolved, false));
    let incident = opened.incident;
    assert_eq!((incident.status, incident.resolved_at), (IncidentStatus::Resolved, Some(at(-5))));
    assert_eq!((incident.updates[0].created_at, incident.updates[0].status.as_str()), (at(-5), "resolved"));
    assert!(open(&past(-5, -5)).is_ok());
    assert_eq!(open(&past(-5, -6)).unwrap_err(), "resolvedAt must not be before startedAt");
    assert_eq!(open(&past(-5, CLOCK_TOLERANCE + 1)).unwrap_err(), "resolvedAt must not be in the future");
}

#[test]
fn a_window_ends_after_its_start_and_within_seven_days() {
    assert!(open(&planned(HOUR, HOUR + 1)).is_ok() && open(&planned(HOUR, HOUR + 7 * DAY)).is_ok());
    assert_eq!(open(&planned(HOUR, HOUR)).unwrap_err(), "endsAt must be after startsAt");
    assert_eq!(open(&planned(HOUR, HOUR + 7 * DAY + 1)).unwrap_err(), "endsAt must be within 7 days of startsAt");
    let bare = IncidentEdit { kind: value("maintenance"), ..titled() };
    assert_eq!(open(&bare).unwrap_err(), "startsAt is required; endsAt is required");
    let opened = open_all(&planned(HOUR, 2 * HOUR)).unwrap();
    assert_eq!((opened.change, opened.notify, opened.series), (IncidentChange::Scheduled, true, None));
    let window = opened.incident;
    assert_eq!((window.status, window.impact), (IncidentStatus::Scheduled, Impact::None));
    assert_eq!((window.started_at, window.ends_at), (at(HOUR), Some(at(2 * HOUR))));
}

#[test]
fn a_window_in_the_past_is_completed_without_notification() {
    let opened = open_all(&planned(-2 * HOUR, 0)).unwrap();
    assert_eq!((opened.change, opened.notify), (IncidentChange::Completed, false));
    assert_eq!((opened.incident.status, opened.incident.resolved_at), (IncidentStatus::Completed, Some(at(0))));
    assert_eq!(opened.incident.updates[0].body, "The maintenance has been completed.");
    let with_message = IncidentEdit { message: value("It went well."), ..planned(-2 * HOUR, 0) };
    assert_eq!(open_all(&with_message).unwrap().incident.updates[0].body, "It went well.");
    let running = open_all(&planned(-2 * HOUR, 1)).unwrap();
    assert_eq!((running.change, running.incident.next_due()), (IncidentChange::Scheduled, Some(at(-2 * HOUR))));
}

#[test]
fn a_repeating_window_begins_a_series_in_its_zone() {
    let repeat = |repeat: &str, zone: PatchField<String>| IncidentEdit {
        repeat: value(repeat),
        timezone: zone,
        ..planned(HOUR, 2 * HOUR)
    };
    let opened = open_all(&repeat("monthly-weekday", value("Europe/Berlin"))).unwrap();
    let series = opened.series.unwrap();
    assert_eq!(opened.incident.series, Some(series.id));
    assert_eq!((series.recurrence.zone, series.next_index), (chrono_tz::Europe::Berlin, 1));
    assert_eq!((series.length, series.title.as_str()), (HOUR, "Broken"));
    let utc = open_all(&repeat("weekly", PatchField::Absent)).unwrap().series.unwrap();
    assert_eq!(utc.recurrence.zone, chrono_tz::UTC);
    let wrong = open(&repeat("daily", PatchField::Absent)).unwrap_err();
    assert_eq!(wrong, "repeat must be one of weekly, monthly, monthly-weekday");
    assert!(open(&repeat("weekly", value("Mars/Base"))).unwrap_err().starts_with("timezone"));
}

#[test]
fn a_window_is_planned_in_local_time() {
    let local = |zone: PatchField<String>| IncidentEdit {
        kind: value("maintenance"),
        starts_at: value("2027-03-28T01:30:00"),
        ends_at: value("2027-03-28T03:30:00"),
        timezone: zone,
        ..titled()
    };
    let window = open(&local(value("Europe/Berlin"))).unwrap();
    // The clocks go forward at 2 o'clock: the window takes an hour.
    assert_eq!(window.ends_at.map(|end| end.since(window.started_at)), Some(HOUR));
    assert_eq!(window.started_at.to_string(), "2027-03-28T00:30:00.000Z");
    let refused = open(&local(PatchField::Absent)).unwrap_err();
    assert!(refused.contains("startsAt") && refused.contains("also send timezone"), "{refused}");
    assert_eq!(open(&local(value("Mars/Base"))).unwrap_err().matches("timezone must").count(), 1);
    let moved = IncidentEdit {
        ends_at: value("2027-03-28T04:00:00"),
        timezone: value("Europe/Berlin"),
        ..IncidentEdit::default()
    };
    assert_eq!(amend(&moved, &window).unwrap().ends_at, Timestamp::parse_iso("2027-03-28T02:00:00Z"));
}

#[test]
fn monitors_are_merged_and_must_be_the_pages() {
    let id = |n: u128| MonitorId::from_u128(n).to_string();
    let with = |ids: PatchField<Vec<String>>, named: PatchField<Vec<(String, Option<String>)>>| {
        open(&IncidentEdit { monitor_ids: ids, monitors: named, ..titled() })
            .map(|it| it.affected.iter().map(|it| (it.monitor.to_u128(), it.impact)).collect::<Vec<_>>())
    };
    let merged = with(
        PatchField::Value(vec![id(2), id(1), id(1)]),
        PatchField::Value(vec![(id(3), None), (id(2), Some("major".to_owned()))]),
    );
    assert_eq!(merged, Ok(vec![(3, None), (2, Some(Impact::Major)), (1, None)]));
    assert_eq!(with(PatchField::Value(vec![]), PatchField::Null), Ok(vec![]));
    let foreign = with(PatchField::Value(vec![id(4)]), PatchField::Value(vec![("x".to_owned(), None)]));
    assert_eq!(
        foreign.unwrap_err(),
        "monitors must be monitors of this page; monitorIds must be monitors of this page"
    );
    assert!(with(PatchField::Absent, PatchField::Value(vec![(id(1), Some("huge".to_owned()))])).is_err());
}

#[test]
fn all_errors_are_reported_at_once() {
    let wrong = || PatchField::Invalid("must be a string".to_owned());
    let edit = IncidentEdit {
        kind: value("accident"),
        title: wrong(),
        status: value("resolved"),
        impact: value("huge"),
        message: wrong(),
        remind: PatchField::Value(vec!["soon".to_owned()]),
        notify: PatchField::Invalid("must be true or false".to_owned()),
        started_at: value("x"),
        ..IncidentEdit::default()
    };
    let error = open(&edit).unwrap_err();
    for field in ["kind", "title", "status", "impact", "message", "remind", "notify", "startedAt"] {
        assert!(error.split("; ").any(|fault| fault.starts_with(field)), "{field}: {error}");
    }
}

#[test]
fn fields_of_the_other_kind_are_ignored_but_validated() {
    let time = || value("2026-01-01T00:00:00Z");
    let none = IncidentEdit::default;
    for (of_window, field) in [
        (IncidentEdit { starts_at: value("2024-01-01T12:99:00Z"), ..none() }, "startsAt"),
        (IncidentEdit { ends_at: PatchField::Invalid("must be a string".to_owned()), ..none() }, "endsAt"),
        (IncidentEdit { repeat: value("daily"), ..none() }, "repeat"),
        (IncidentEdit { timezone: value("Mars/Base"), ..none() }, "timezone"),
    ] {
        let error = open(&IncidentEdit { title: value("New"), ..of_window.clone() }).unwrap_err();
        assert!(error.starts_with(field), "{error}");
        assert!(amend(&of_window, &incident()).unwrap_err().starts_with(field));
    }
    for (of_incident, field) in [
        (IncidentEdit { status: value("over"), ..planned(1, 2) }, "status"),
        (IncidentEdit { impact: value("huge"), ..planned(1, 2) }, "impact"),
        (IncidentEdit { started_at: value("yesterday"), ..planned(1, 2) }, "startedAt"),
        (IncidentEdit { resolved_at: value("now"), ..planned(1, 2) }, "resolvedAt"),
        (IncidentEdit { timezone: value("Mars/Base"), ..planned(1, 2) }, "timezone"),
    ] {
        let error = open(&of_incident).unwrap_err();
        assert!(error.starts_with(field), "{error}");
    }
    let huge = IncidentEdit { impact: value("huge"), ..none() };
    assert!(amend(&huge, &window(0, HOUR)).unwrap_err().starts_with("impact"));

    let as_shown = IncidentEdit { starts_at: PatchField::Null, ends_at: PatchField::Null, ..titled() };
    assert!(open(&as_shown).is_ok() && amend(&as_shown, &incident()).is_ok());
    assert!(open(&IncidentEdit { status: value("scheduled"), ..planned(1, 2) }).is_ok());
    let strays = IncidentEdit { starts_at: time(), ends_at: time(), repeat: value("weekly"), ..titled() };
    let opened = open_all(&strays).unwrap();
    assert_eq!((opened.incident.ends_at, opened.series), (None, None));
    let strays = IncidentEdit { status: value("monitoring"), resolved_at: time(), ..planned(1, 2) };
    let planned = open(&strays).unwrap();
    assert_eq!((planned.status, planned.resolved_at), (IncidentStatus::Scheduled, None));
}

#[test]
fn an_amendment_keeps_what_was_left_out() {
    let before =
        Incident { affected: vec![MonitorImpact { monitor: MonitorId::from_u128(1), impact: None }], ..incident() };
    assert_eq!(amend(&IncidentEdit::default(), &before), Ok(before.clone()));
    let edit = IncidentEdit {
        title: value("New"),
        impact: value("none"),
        monitor_ids: PatchField::Value(vec![]),
        remind: PatchField::Value(vec!["1h".to_owned()]),
        starts_at: value("2026-01-01T00:00:00Z"),
        status: value("resolved"),
        ..IncidentEdit::default()
    };
    let after = amend(&edit, &before).unwrap();
    assert_eq!((after.title.as_str(), after.impact, after.affected.len()), ("New", Impact::None, 0));
    assert_eq!((after.edited_at, after.last_change()), (Some(at(5)), at(5)));
    assert_eq!((after.remind.len(), after.reminded_until, after.updates), (1, at(5), before.updates));
    for (edit, error) in [
        (IncidentEdit { title: PatchField::Null, ..IncidentEdit::default() }, "title must not be null"),
        (IncidentEdit { impact: value("x"), ..IncidentEdit::default() }, "impact must be one of"),
    ] {
        assert!(amend(&edit, &incident()).unwrap_err().starts_with(error));
    }
}

#[test]
fn a_window_whose_end_is_moved_into_the_past_is_over_at_once() {
    let until = |end: i64| IncidentEdit { ends_at: value(&at(end).to_string()), ..IncidentEdit::default() };
    let amended = |before: &Incident, end| until(end).validate_edit(before, None, &monitors(), at(5)).unwrap();
    let running = Incident { has_begun: true, notify: true, ..window(-HOUR, HOUR) };
    let over = amended(&running, 2);
    assert_eq!((over.incident.status, over.incident.resolved_at), (IncidentStatus::Completed, Some(at(2))));
    assert_eq!((over.change, over.incident.notify), (IncidentChange::Completed, true), "announced as at its own end");
    let later = amended(&running, 2 * HOUR);
    assert_eq!((later.incident.status, later.change), (IncidentStatus::Scheduled, IncidentChange::Changed));
    let entered = amended(&Incident { notify: true, ..window(-HOUR, HOUR) }, 2);
    assert_eq!((entered.incident.status, entered.change), (IncidentStatus::Completed, IncidentChange::Changed));
    assert!(!entered.incident.notify, "its start was not announced");
}

#[test]
fn an_edit_is_any_change_that_readers_see() {
    let edited = |edit: &IncidentEdit, of: &Incident| amend(edit, of).unwrap().edited_at.is_some();
    let blank = IncidentEdit::default;
    let monitors = PatchField::Value(vec![MonitorId::from_u128(1).to_string()]);
    for edit in [
        IncidentEdit { title: value("New"), ..blank() },
        IncidentEdit { impact: value("major"), ..blank() },
        IncidentEdit { postmortem: value("A cable."), ..blank() },
        IncidentEdit { monitor_ids: monitors, ..blank() },
    ] {
        assert!(edited(&edit, &incident()), "{edit:?}");
    }
    let later = IncidentEdit { ends_at: value(&at(2 * HOUR).to_string()), ..blank() };
    assert!(edited(&later, &window(0, HOUR)));
    let remind = IncidentEdit { remind: PatchField::Value(vec!["1h".to_owned()]), ..blank() };
    let same = IncidentEdit { title: value(&incident().title), ..blank() };
    assert!(!edited(&remind, &incident()) && !edited(&same, &incident()));
    let before = Incident { edited_at: Some(at(3)), ..incident() };
    assert_eq!(amend(&remind, &before).unwrap().edited_at, Some(at(3)));
}

#[test]
fn a_windows_times_can_be_moved_until_it_is_over() {
    let moved = |starts: PatchField<String>, ends: PatchField<String>, window: &Incident| {
        amend(&IncidentEdit { starts_at: starts, ends_at: ends, ..IncidentEdit::default() }, window)
    };
    let time = |millis: i64| value(&at(millis).to_string());
    let begun = Incident { has_begun: true, ..window(0, HOUR) };
    let later = moved(time(HOUR), time(2 * HOUR), &begun).unwrap();
    assert_eq!((later.started_at, later.has_begun, later.next_due()), (at(HOUR), false, Some(at(HOUR))));
    assert!(moved(PatchField::Absent, time(7 * DAY), &begun).unwrap().has_begun);
    assert!(moved(PatchField::Absent, time(7 * DAY + 1), &begun).is_err());
    assert_eq!(moved(time(HOUR), PatchField::Absent, &begun).unwrap_err(), "endsAt must be after startsAt");
    assert_eq!(moved(PatchField::Null, PatchField::Absent, &begun).unwrap_err(), "startsAt must not be null");
    let over = Incident { status: IncidentStatus::Completed, resolved_at: Some(at(1)), ..begun };
    assert_eq!(
        moved(PatchField::Absent, time(9 * HOUR), &over).unwrap_err(),
        "endsAt can't be changed: it is completed"
    );
    assert!(moved(time(0), time(HOUR), &over).is_ok(), "the same is no change");
    let planned = window(HOUR, 2 * HOUR);
    let past = moved(time(-2 * HOUR), time(-HOUR), &planned).unwrap();
    assert_eq!((past.status, past.resolved_at, past.notify), (IncidentStatus::Completed, Some(at(-HOUR)), false));
    assert_eq!(past.next_due(), None, "nothing more is announced");
}

#[test]
fn null_stops_a_repeating_entry_and_nothing_else_can_be_set() {
    let amend = |repeat: PatchField<String>, repeats: Option<Frequency>| {
        let edit = IncidentEdit { repeat, ..IncidentEdit::default() };
        edit.validate_edit(&window(1, 2), repeats, &monitors(), at(5)).map(|amended| amended.stops_series)
    };
    assert_eq!(amend(PatchField::Null, Some(Frequency::Weekly)), Ok(true));
    assert_eq!(amend(PatchField::Null, None), Ok(false));
    assert_eq!(amend(value("weekly"), Some(Frequency::Weekly)), Ok(false));
    assert!(amend(value("monthly"), Some(Frequency::Weekly)).is_err() && amend(value("weekly"), None).is_err());
}
