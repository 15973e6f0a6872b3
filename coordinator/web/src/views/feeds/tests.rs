//! Documents for programs are parsed back by other libraries, whatever the texts contain.

use parallax_core::event::MonitorStatus;
use parallax_core::headline::Indicator;
use parallax_core::incident::{IncidentKind, IncidentStatus, IncidentUpdate};
use parallax_core::page::branding::Language;
use parallax_core::page_view::{IncidentView, PageView};
use parallax_core::time::{DAY, HOUR};
use parallax_core::vantage::RegionSet;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use super::statuspage_api::StatuspageDocument;
use super::*;
use crate::views::tests::{NOW, page_view};

mod calendars;

const ADDRESS: &str = "https://northwind.pages.example";
const OWN: &str = "https://northwind.pages.example/t/token/feed";

/// Texts that break one format or another.
pub(crate) const HOSTILE_TEXTS: &[&str] = &[
    "Errors & <b>delays</b> ]]> \"quoted\" 'text'",
    "a, b; c \\ d \\n e: f",
    "\u{202e}desrever\u{202c} \u{200f}\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
    "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e \"x\">]>&e;",
    "BEGIN:VEVENT END:VCALENDAR </svg> --> &#0; \\u0000",
    "*bold* _under_ [a](javascript:alert(1)) `code` # head | pipe ~~x~~ 1. one",
    "👩\u{200d}🚀 é ｆｕｌｌ \u{2028}\u{2029} end",
];

fn site(page_view: &PageView) -> FeedSite<'_> {
    FeedSite { page: &page_view.page, url: ADDRESS }
}

/// A page with `text` in every field.
pub(crate) fn page_with_text(text: &str) -> PageView {
    let mut page_view = page_view();
    page_view.page.name = text.to_owned();
    for view in &mut page_view.monitors {
        view.monitor.name = text.to_owned();
        view.monitor.group = Some(text.to_owned());
    }
    let lists = page_view.incidents.iter_mut().chain(&mut page_view.maintenance).chain(&mut page_view.past_incidents);
    for incident_view in lists {
        incident_view.incident.title = text.to_owned();
        for (_, name, _) in &mut incident_view.monitors {
            *name = text.to_owned();
        }
        for update in &mut incident_view.incident.updates {
            update.body = text.to_owned();
        }
    }
    page_view
}

pub(crate) fn incident_views(page_view: &PageView) -> Vec<IncidentView> {
    page_view.maintenance.iter().chain(&page_view.incidents).chain(&page_view.past_incidents).cloned().collect()
}

fn document(kind: StatuspageDocument, page_view: &PageView) -> Value {
    let written = statuspage_api::write(kind, site(page_view), page_view, &incident_views(page_view)).unwrap();
    serde_json::from_slice(&written).unwrap()
}

/// Texts of all elements of a name, as parsed by an XML reader.
pub(crate) fn texts(document: &[u8], name: &str) -> Vec<String> {
    let mut reader = Reader::from_str(std::str::from_utf8(document).unwrap());
    reader.config_mut().check_comments = true;
    let (mut found, mut open) = (Vec::new(), None::<String>);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) if start.name().0 == name => open = Some(String::new()),
            Event::End(end) if end.name().0 == name => found.extend(open.take()),
            Event::Text(text) => {
                if let Some(open) = &mut open {
                    open.push_str(&text);
                }
            }
            Event::GeneralRef(entity) => {
                let character = quick_xml::escape::unescape(&format!("&{};", &*entity)).unwrap().into_owned();
                if let Some(open) = &mut open {
                    open.push_str(&character);
                }
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// Values of a property in a calendar, unfolded and unescaped.
fn values(calendar: &str, name: &str) -> Vec<String> {
    let unfolded = calendar.replace("\r\n ", "");
    let lines = unfolded.split("\r\n").filter_map(|line| line.split_once(':'));
    let matching = lines.filter(|(key, _)| key.split(';').next() == Some(name));
    let mut values = Vec::new();
    for (_, value) in matching {
        let (mut text, mut characters) = (String::new(), value.chars());
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some('n' | 'N') => text.push('\n'),
                    Some(other) => text.push(other),
                    None => panic!("{value}"),
                },
                ';' | ',' => panic!("unescaped in {value}"),
                other => text.push(other),
            }
        }
        values.push(text);
    }
    values
}

#[test]
fn the_summary_equals_the_golden_document() {
    let golden: Value = serde_json::from_str(include_str!("golden/summary.json")).unwrap();
    let summary = document(StatuspageDocument::Summary, &page_view());
    assert_eq!(summary, golden, "{}", serde_json::to_string_pretty(&summary).unwrap());
}

#[test]
fn each_document_has_its_list() {
    let mut page_view = page_view();
    for (kind, key, count) in [
        (StatuspageDocument::Components, "components", 7),
        (StatuspageDocument::Incidents, "incidents", 2),
        (StatuspageDocument::Unresolved, "incidents", 1),
        (StatuspageDocument::Maintenances, "scheduled_maintenances", 1),
        (StatuspageDocument::Upcoming, "scheduled_maintenances", 1),
        (StatuspageDocument::Active, "scheduled_maintenances", 0),
    ] {
        let body = document(kind, &page_view);
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["page", key], "{kind:?}");
        assert_eq!(body[key].as_array().unwrap().len(), count, "{kind:?}");
    }
    page_view.maintenance[0].incident.has_begun = true;
    let active = document(StatuspageDocument::Active, &page_view);
    assert_eq!(active["scheduled_maintenances"][0]["status"], "in_progress");
    assert_eq!(
        document(StatuspageDocument::Upcoming, &page_view)["scheduled_maintenances"].as_array().unwrap().len(),
        0
    );
}

#[test]
fn a_groups_id_does_not_depend_on_its_monitors() {
    let mut page_view = page_view();
    let ids = |page_view: &PageView| {
        let components = document(StatuspageDocument::Components, page_view)["components"].take();
        let groups = components.as_array().unwrap().iter().filter(|part| part["group"] == true);
        groups.map(|group| (group["name"].to_string(), group["id"].to_string())).collect::<Vec<_>>()
    };
    let before = ids(&page_view);
    page_view.monitors.remove(0);
    page_view.monitors.reverse();
    let mut after = ids(&page_view);
    after.reverse();
    assert_eq!(before, after);
}

#[test]
fn long_incidents_keep_the_newest_updates_within_the_limit() {
    let mut page_view = page_view();
    let update = page_view.incidents[0].incident.updates[0].clone();
    let numbered_update = |number: u128| IncidentUpdate {
        id: parallax_core::id::UpdateId::from_u128(number),
        body: "\u{fc}".repeat(2000),
        ..update.clone()
    };
    page_view.incidents[0].incident.updates = (0..200).map(numbered_update).collect();
    let updates = document(StatuspageDocument::Incidents, &page_view)["incidents"][0]["incident_updates"].take();
    assert_eq!(updates.as_array().unwrap().len(), 4);
    assert_eq!(updates[0]["id"], parallax_core::id::UpdateId::from_u128(199).to_string());
    let atom = atom::write(site(&page_view), OWN, &incident_views(&page_view)).unwrap();
    assert!(atom.len() < 200_000 && texts(&atom, "content")[1].contains("Earlier updates: 184"), "{}", atom.len());
}

#[test]
fn any_text_is_read_back_from_each_format() {
    let long = "\u{e4}\u{1f680}, ".repeat(1000);
    for text in HOSTILE_TEXTS.iter().copied().chain([long.as_str()]) {
        let page_view = page_with_text(text);
        let all = incident_views(&page_view);
        let summary = document(StatuspageDocument::Summary, &page_view);
        assert_eq!(summary["page"]["name"], text);
        assert_eq!(summary["incidents"][0]["name"], text);
        assert_eq!(summary["incidents"][0]["incident_updates"][0]["body"], text);
        for feed in
            [atom::write(site(&page_view), OWN, &all).unwrap(), rss::write(site(&page_view), OWN, &all).unwrap()]
        {
            let titles = texts(&feed, "title");
            assert_eq!(titles.len(), 4, "{text}");
            assert_eq!(titles[0], format!("{text} status"));
            assert!(titles[1..].iter().all(|title| title == text), "{titles:?}");
        }
        let windows: Vec<_> = page_view.maintenance.iter().map(|incident_view| (7, incident_view.clone())).collect();
        let calendar = String::from_utf8(calendar::write(site(&page_view), &windows, &[])).unwrap();
        assert_eq!(values(&calendar, "SUMMARY"), [text]);
        assert_eq!(values(&calendar, "NAME"), [format!("{text} maintenance")]);
        assert!(calendar.split("\r\n").all(|line| line.len() <= 75), "{calendar}");
        assert!(!calendar.replace("\r\n", "").contains(['\r', '\n']), "{calendar}");
    }
}

#[test]
fn feeds_and_calendars_are_in_the_pages_language() {
    let mut page_view = page_view();
    page_view.page.language = Language::De;
    page_view.incidents[0].incident.postmortem = Some("x".to_owned());
    let all = incident_views(&page_view);
    let windows: Vec<_> = page_view.maintenance.iter().map(|incident_view| (7, incident_view.clone())).collect();
    for (written, german) in [
        (atom::write(site(&page_view), OWN, &all).unwrap(), "xml:lang=\"de\""),
        (rss::write(site(&page_view), OWN, &all).unwrap(), "<language>de</language>"),
    ] {
        let text = String::from_utf8(written).unwrap();
        for expected in [german, ">Status von Northwind<", "Betroffen: ", "Nachbetrachtung", " bis "] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        for english in ["Affected", "Post-mortem", " status<", "Incidents and"] {
            assert!(!text.contains(english), "{english}: {text}");
        }
    }
    let calendar = String::from_utf8(calendar::write(site(&page_view), &windows, &[])).unwrap();
    assert_eq!(values(&calendar, "NAME"), ["Wartungen von Northwind"]);
    assert!(calendar.contains("DESCRIPTION:Betroffen: "), "{calendar}");
}

#[test]
fn characters_that_xml_does_not_allow_are_removed() {
    assert_eq!(xml_text("a\u{0}b\u{b}c\u{ffff}d\r\ne\rf\tg\u{1b}"), "abcd\ne\nf\tg");
    let feed = atom::write(site(&page_view()), OWN, &incident_views(&page_with_text("a\u{b}\u{0}b"))).unwrap();
    assert_eq!(texts(&feed, "title")[1], "ab");
}

#[test]
fn an_entry_keeps_its_id_in_atom_and_gets_a_new_guid_per_update_in_rss() {
    let mut page_view = page_view();
    let (old_atom, old_rss) = {
        let all = incident_views(&page_view);
        (atom::write(site(&page_view), OWN, &all).unwrap(), rss::write(site(&page_view), OWN, &all).unwrap())
    };
    let incident = &mut page_view.incidents[0].incident;
    let mut update = incident.updates[0].clone();
    (update.id, update.created_at) = (parallax_core::id::UpdateId::from_u128(9), NOW + HOUR);
    incident.updates.push(update);
    let moved_site = FeedSite { page: &page_view.page, url: "https://status.northwind.example" };
    let all = incident_views(&page_view);
    let (atom, rss) = (atom::write(moved_site, OWN, &all).unwrap(), rss::write(moved_site, OWN, &all).unwrap());
    assert_eq!(texts(&atom, "id"), texts(&old_atom, "id"), "ids don't depend on the host");
    let (old, new) = (texts(&old_rss, "guid"), texts(&rss, "guid"));
    let changed_items: Vec<usize> = (0..3).filter(|at| old[*at] != new[*at]).collect();
    assert_eq!(changed_items, [1], "{old:?} {new:?}");
    assert_eq!(texts(&atom, "updated")[0], "2026-11-27T13:46:00.000Z");
    let is_own = |feed: &[u8], kind: &str| {
        let link = format!("rel=\"self\" type=\"application/{kind}+xml\" href=\"{OWN}\"");
        String::from_utf8_lossy(feed).contains(&link)
    };
    assert!(is_own(&atom, "atom") && is_own(&rss, "rss"), "each feed links to itself");
    let content = &texts(&atom, "content")[1];
    let at = |time: &str| content.find(time).unwrap();
    assert!(at("13:46") < at("12:40") && at("12:40") < at("12:32"), "newest first: {content}");
    assert!(content.contains("<strong>Identified</strong>") && !content.contains("href=\"/"), "{content}");
}

#[test]
fn an_edit_changes_the_timestamps_of_every_feed() {
    let mut page_view = page_view();
    let feed_values = |page_view: &PageView| {
        let all = incident_views(page_view);
        let windows: Vec<_> = page_view.maintenance.iter().map(|incident_view| (7, incident_view.clone())).collect();
        let rss = rss::write(site(page_view), OWN, &all).unwrap();
        let calendar = String::from_utf8(calendar::write(site(page_view), &windows, &[])).unwrap();
        [
            texts(&atom::write(site(page_view), OWN, &all).unwrap(), "updated"),
            texts(&rss, "guid"),
            texts(&rss, "pubDate"),
            values(&calendar, "DTSTAMP"),
            values(&calendar, "LAST-MODIFIED"),
        ]
    };
    let before = feed_values(&page_view);
    page_view.maintenance[0].incident.edited_at = Some(NOW + HOUR);
    let after = feed_values(&page_view);
    assert_eq!(after[0][..2], ["2026-11-27T13:46:00.000Z", "2026-11-27T13:46:00.000Z"]);
    assert_eq!(
        (after[3].as_slice(), after[4].as_slice()),
        (&["20261127T134600Z".to_owned()][..], &["20261127T134600Z".to_owned()][..])
    );
    assert!(after[1][0].starts_with(&before[1][0]) && after[1][0] != before[1][0], "{:?}", after[1]);
    assert_eq!((&after[1][1..], &after[2][1..]), (&before[1][1..], &before[2][1..]));
    // An update after the edit already has an id of its own.
    let incident = &mut page_view.incidents[0].incident;
    let posted_at = incident.updates.last().unwrap().created_at;
    incident.edited_at = Some(posted_at - HOUR);
    assert_eq!(feed_values(&page_view)[1][1], before[1][1]);
}

#[test]
fn without_agents_nothing_is_reported_as_up_or_recovered() {
    let mut page_view = page_view();
    page_view.incidents.clear();
    let overall_status = |page_view: &PageView| {
        let status = document(StatuspageDocument::Status, page_view)["status"].take();
        ["indicator", "description", "parallax_indicator"].map(|key| status[key].as_str().unwrap().to_owned())
    };
    page_view.indicator = Indicator::Unknown;
    page_view.regions = RegionSet::default();
    assert_eq!(overall_status(&page_view), ["major", "Status unknown", "unknown"], "it was down at the last check");
    page_view.monitors.retain(|view| view.state.status != MonitorStatus::Down);
    assert_eq!(overall_status(&page_view), ["minor", "Status unknown", "unknown"]);
    page_view.monitors.retain(|view| view.state.status == MonitorStatus::Up);
    assert_eq!(overall_status(&page_view), ["minor", "Status unknown", "unknown"]);
    let components = document(StatuspageDocument::Components, &page_view)["components"].take();
    assert_eq!(components[1]["start_date"], "2026-09-28", "the day it was created");
    // Each of these shows that data existed.
    let checked = page_view.monitors.clone();
    for view in &mut page_view.monitors {
        (view.state, view.history) = Default::default();
    }
    assert_eq!(overall_status(&page_view), ["none", "No data yet", "unknown"]);
    page_view.monitors[0].state.last_check.clone_from(&checked[0].state.last_check);
    assert_eq!(overall_status(&page_view)[0], "minor");
    page_view.monitors[0].state = Default::default();
    page_view.monitors[1].history.clone_from(&checked[1].history);
    assert_eq!(overall_status(&page_view)[0], "minor");
    page_view.monitors.clear();
    assert_eq!(overall_status(&page_view), ["none", "No data yet", "unknown"]);
}

#[test]
fn all_open_incidents_are_listed_and_documents_stay_small() {
    let numbered_incident = |number: u128, is_open: bool| {
        let mut incident_view = page_view().past_incidents.remove(0);
        incident_view.incident.id = parallax_core::id::IncidentId::from_u128(number);
        incident_view.incident.status = if is_open { IncidentStatus::Monitoring } else { IncidentStatus::Resolved };
        incident_view.incident.resolved_at = None;
        incident_view.incident.updates[0].body = "x".repeat(20_000);
        incident_view.incident.updates = vec![incident_view.incident.updates[0].clone(); 30];
        incident_view
    };
    for (before, open, listed_open, listed_over) in
        [(60, 1, 1, 49), (60, 3, 3, 47), (0, 200, 200, 10), (60, 45, 45, 10), (9, 0, 0, 9)]
    {
        let mut all: Vec<IncidentView> = (0..before).map(|number| numbered_incident(number, false)).collect();
        all.extend((100..100 + open).map(|number| numbered_incident(number, true)));
        all.extend((900..960).map(|number| numbered_incident(number, false)).take(if before == 0 { 60 } else { 0 }));
        let listed: Vec<_> = limit_entries(all.iter()).map(|incident_view| incident_view.incident.is_open()).collect();
        let count = |is_open: bool| listed.iter().filter(|it| **it == is_open).count();
        assert_eq!((count(true), count(false)), (listed_open, listed_over), "{before} and {open}");
    }
    let many: Vec<IncidentView> = (0..200).map(|number| numbered_incident(number, true)).collect();
    let page_view = page_view();
    for written in [
        atom::write(site(&page_view), OWN, &many).unwrap(),
        statuspage_api::write(StatuspageDocument::Unresolved, site(&page_view), &page_view, &many).unwrap(),
    ] {
        assert!(written.len() < 5_000_000, "{}", written.len());
    }
}
