//! Calendars of maintenance: events that clients add and remove.

use parallax_core::id::IncidentId;
use parallax_core::incident::cancelled::CancelledWindow;

use super::*;

#[test]
fn a_calendar_has_cancelled_and_early_ended_windows() {
    let window = page_view().maintenance.remove(0);
    let page_view = page_view();
    let ended = |at| {
        let mut incident_view = window.clone();
        (incident_view.incident.status, incident_view.incident.resolved_at) = (IncidentStatus::Completed, Some(at));
        (3, incident_view)
    };
    let cancelled = ended(NOW - HOUR);
    let ended_early = ended(NOW + 3 * DAY + HOUR);
    let calendar_text = calendar::write(site(&page_view), &[(u64::MAX, window.clone()), cancelled, ended_early], &[]);
    let calendar_text = String::from_utf8(calendar_text).unwrap();
    assert_eq!(values(&calendar_text, "STATUS"), ["CONFIRMED", "CANCELLED", "CONFIRMED"]);
    assert_eq!(values(&calendar_text, "DTEND"), ["20261130T141600Z", "20261130T141600Z", "20261130T134600Z"]);
    assert_eq!(values(&calendar_text, "DTSTART"), ["20261130T124600Z"; 3]);
    assert_eq!(values(&calendar_text, "SEQUENCE"), ["2147483647", "3", "3"]);
    assert_eq!(values(&calendar_text, "UID")[0], format!("{}@parallax", window.incident.id));
    assert_eq!(values(&calendar_text, "METHOD"), ["PUBLISH"]);
    assert_eq!(window.incident.kind, IncidentKind::Maintenance);
    assert!(calendar_text.contains("\r\nREFRESH-INTERVAL;VALUE=DURATION:PT1H\r\n"), "{calendar_text}");
}

#[test]
fn a_calendar_cancels_the_windows_that_pages_show_as_cancelled() {
    let page_view = page_view();
    let ended = |planned_at: Option<i64>, at| {
        let mut incident_view = page_view.maintenance[0].clone();
        let incident = &mut incident_view.incident;
        (incident.status, incident.resolved_at) = (IncidentStatus::Completed, Some(at));
        (incident.started_at, incident.planned_at) = (at, planned_at.map(|after| at + after));
        (3, incident_view)
    };
    let windows = [ended(None, NOW), ended(Some(DAY), NOW)];
    let calendar_text = String::from_utf8(calendar::write(site(&page_view), &windows, &[])).unwrap();
    let pages = windows.each_ref().map(|(_, incident_view)| incident_view.incident.is_cancelled());
    assert_eq!(pages, [false, true]);
    assert_eq!(values(&calendar_text, "STATUS"), ["CONFIRMED", "CANCELLED"]);
}

#[test]
fn a_deleted_window_is_cancelled_without_its_texts() {
    let page_view = page_view();
    let window = page_view.maintenance[0].clone();
    let started_at = NOW + 3 * DAY;
    let deleted = CancelledWindow {
        id: IncidentId::from_u128(77),
        started_at,
        ends_at: started_at + HOUR,
        version: 9,
        deleted_at: NOW,
    };
    let calendar_text = calendar::write(site(&page_view), &[(7, window)], &[deleted]);
    let calendar_text = String::from_utf8(calendar_text).unwrap();
    assert_eq!(values(&calendar_text, "STATUS"), ["CONFIRMED", "CANCELLED"]);
    assert_eq!(values(&calendar_text, "SEQUENCE"), ["7", "9"]);
    assert_eq!(values(&calendar_text, "UID")[1], format!("{}@parallax", deleted.id));
    assert_eq!(values(&calendar_text, "SUMMARY")[1], "Cancelled maintenance");
    assert_eq!(values(&calendar_text, "DTSTART")[1], "20261130T124600Z");
    assert_eq!(values(&calendar_text, "DTSTAMP")[1], "20261127T124600Z");
}

#[test]
fn a_calendar_has_no_markdown() {
    let mut page_view = page_view();
    let markdown = "**We move** to [another](https://a.example/).\n\n| Step | At |\n|---|---|\n| *off* | 10:00 |";
    let mut update = page_view.incidents[0].incident.updates[0].clone();
    update.body = markdown.to_owned();
    page_view.maintenance[0].incident.updates = vec![update];
    let windows: Vec<_> = page_view.maintenance.iter().map(|incident_view| (7, incident_view.clone())).collect();
    let calendar_text = String::from_utf8(calendar::write(site(&page_view), &windows, &[])).unwrap();
    let plain = "We move to another (https://a.example/).\n\nStep  At\n----  -----\noff   10:00";
    let affected = "Affected: Payments API";
    assert_eq!(values(&calendar_text, "DESCRIPTION"), [format!("{affected}\n\n{plain}")]);
}
