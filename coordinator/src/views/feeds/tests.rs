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
use crate::views::tests::{NOW, board};

mod calendars;

const ADDRESS: &str = "https://northwind.pages.example";
const OWN: &str = "https://northwind.pages.example/t/token/feed";

/// Texts that break one format or another.
pub(crate) const NASTY: &[&str] = &[
    "Errors & <b>delays</b> ]]> \"quoted\" 'text'",
    "a, b; c \\ d \\n e: f",
    "\u{202e}desrever\u{202c} \u{200f}\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
    "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e \"x\">]>&e;",
    "BEGIN:VEVENT END:VCALENDAR </svg> --> &#0; \\u0000",
    "*bold* _under_ [a](javascript:alert(1)) `code` # head | pipe ~~x~~ 1. one",
    "👩\u{200d}🚀 é ｆｕｌｌ \u{2028}\u{2029} end",
];

fn site(board: &PageView) -> FeedSite<'_> {
    FeedSite { page: &board.page, url: ADDRESS }
}

/// A page with `text` in every field.
pub(crate) fn saying(text: &str) -> PageView {
    let mut board = board();
    board.page.name = text.to_owned();
    for shown in &mut board.monitors {
        shown.monitor.name = text.to_owned();
        shown.monitor.group = Some(text.to_owned());
    }
    let lists = board.incidents.iter_mut().chain(&mut board.maintenance).chain(&mut board.past_incidents);
    for notice in lists {
        notice.incident.title = text.to_owned();
        for (_, name, _) in &mut notice.monitors {
            *name = text.to_owned();
        }
        for update in &mut notice.incident.updates {
            update.body = text.to_owned();
        }
    }
    board
}

pub(crate) fn notices(board: &PageView) -> Vec<IncidentView> {
    board.maintenance.iter().chain(&board.incidents).chain(&board.past_incidents).cloned().collect()
}

fn sheet(sheet: StatuspageDocument, board: &PageView) -> Value {
    let written = statuspage_api::write(sheet, site(board), board, &notices(board)).unwrap();
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
                let sign = quick_xml::escape::unescape(&format!("&{};", &*entity)).unwrap().into_owned();
                if let Some(open) = &mut open {
                    open.push_str(&sign);
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
    let of = lines.filter(|(key, _)| key.split(';').next() == Some(name));
    let mut values = Vec::new();
    for (_, value) in of {
        let (mut text, mut signs) = (String::new(), value.chars());
        while let Some(sign) = signs.next() {
            match sign {
                '\\' => match signs.next() {
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
fn the_summary_is_the_golden_one() {
    let golden: Value = serde_json::from_str(include_str!("golden/summary.json")).unwrap();
    let summary = sheet(StatuspageDocument::Summary, &board());
    assert_eq!(summary, golden, "{}", serde_json::to_string_pretty(&summary).unwrap());
}

#[test]
fn each_sheet_has_what_its_readers_look_for() {
    let mut board = board();
    for (wanted, key, count) in [
        (StatuspageDocument::Components, "components", 7),
        (StatuspageDocument::Incidents, "incidents", 2),
        (StatuspageDocument::Unresolved, "incidents", 1),
        (StatuspageDocument::Maintenances, "scheduled_maintenances", 1),
        (StatuspageDocument::Upcoming, "scheduled_maintenances", 1),
        (StatuspageDocument::Active, "scheduled_maintenances", 0),
    ] {
        let document = sheet(wanted, &board);
        let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["page", key], "{wanted:?}");
        assert_eq!(document[key].as_array().unwrap().len(), count, "{wanted:?}");
    }
    board.maintenance[0].incident.has_begun = true;
    let active = sheet(StatuspageDocument::Active, &board);
    assert_eq!(active["scheduled_maintenances"][0]["status"], "in_progress");
    assert_eq!(sheet(StatuspageDocument::Upcoming, &board)["scheduled_maintenances"].as_array().unwrap().len(), 0);
}

#[test]
fn a_groups_id_stays_while_its_monitors_come_and_go() {
    let mut board = board();
    let ids = |board: &PageView| {
        let components = sheet(StatuspageDocument::Components, board)["components"].take();
        let groups = components.as_array().unwrap().iter().filter(|part| part["group"] == true);
        groups.map(|group| (group["name"].to_string(), group["id"].to_string())).collect::<Vec<_>>()
    };
    let before = ids(&board);
    board.monitors.remove(0);
    board.monitors.reverse();
    let mut after = ids(&board);
    after.reverse();
    assert_eq!(before, after);
}

#[test]
fn long_incidents_say_the_newest_and_no_more_than_there_is_room_for() {
    let mut board = board();
    let update = board.incidents[0].incident.updates[0].clone();
    let many = |number: u128| IncidentUpdate {
        id: parallax_core::id::UpdateId::from_u128(number),
        body: "\u{fc}".repeat(2000),
        ..update.clone()
    };
    board.incidents[0].incident.updates = (0..200).map(many).collect();
    let told = sheet(StatuspageDocument::Incidents, &board)["incidents"][0]["incident_updates"].take();
    assert_eq!(told.as_array().unwrap().len(), 4);
    assert_eq!(told[0]["id"], parallax_core::id::UpdateId::from_u128(199).to_string());
    let atom = atom::write(site(&board), OWN, &notices(&board)).unwrap();
    assert!(atom.len() < 200_000 && texts(&atom, "content")[1].contains("Earlier updates: 184"), "{}", atom.len());
}

#[test]
fn whatever_is_said_is_read_back_from_each_format() {
    let long = "\u{e4}\u{1f680}, ".repeat(1000);
    for text in NASTY.iter().copied().chain([long.as_str()]) {
        let board = saying(text);
        let all = notices(&board);
        let summary = sheet(StatuspageDocument::Summary, &board);
        assert_eq!(summary["page"]["name"], text);
        assert_eq!(summary["incidents"][0]["name"], text);
        assert_eq!(summary["incidents"][0]["incident_updates"][0]["body"], text);
        for feed in [atom::write(site(&board), OWN, &all).unwrap(), rss::write(site(&board), OWN, &all).unwrap()] {
            let titles = texts(&feed, "title");
            assert_eq!(titles.len(), 4, "{text}");
            assert_eq!(titles[0], format!("{text} status"));
            assert!(titles[1..].iter().all(|title| title == text), "{titles:?}");
        }
        let windows: Vec<_> = board.maintenance.iter().map(|notice| (7, notice.clone())).collect();
        let calendar = String::from_utf8(calendar::write(site(&board), &windows, &[])).unwrap();
        assert_eq!(values(&calendar, "SUMMARY"), [text]);
        assert_eq!(values(&calendar, "NAME"), [format!("{text} maintenance")]);
        assert!(calendar.split("\r\n").all(|line| line.len() <= 75), "{calendar}");
        assert!(!calendar.replace("\r\n", "").contains(['\r', '\n']), "{calendar}");
    }
}

#[test]
fn feeds_and_calendars_speak_the_pages_language() {
    let mut board = board();
    board.page.language = Language::De;
    board.incidents[0].incident.postmortem = Some("x".to_owned());
    let all = notices(&board);
    let windows: Vec<_> = board.maintenance.iter().map(|notice| (7, notice.clone())).collect();
    for (written, german) in [
        (atom::write(site(&board), OWN, &all).unwrap(), "xml:lang=\"de\""),
        (rss::write(site(&board), OWN, &all).unwrap(), "<language>de</language>"),
    ] {
        let text = String::from_utf8(written).unwrap();
        for said in [german, ">Status von Northwind<", "Betroffen: ", "Nachbetrachtung", " bis "] {
            assert!(text.contains(said), "{said}: {text}");
        }
        for english in ["Affected", "Post-mortem", " status<", "Incidents and"] {
            assert!(!text.contains(english), "{english}: {text}");
        }
    }
    let calendar = String::from_utf8(calendar::write(site(&board), &windows, &[])).unwrap();
    assert_eq!(values(&calendar, "NAME"), ["Wartungen von Northwind"]);
    assert!(calendar.contains("DESCRIPTION:Betroffen: "), "{calendar}");
}

#[test]
fn what_xml_can_not_hold_is_left_out() {
    assert_eq!(xml_text("a\u{0}b\u{b}c\u{ffff}d\r\ne\rf\tg\u{1b}"), "abcd\ne\nf\tg");
    let feed = atom::write(site(&board()), OWN, &notices(&saying("a\u{b}\u{0}b"))).unwrap();
    assert_eq!(texts(&feed, "title")[1], "ab");
}

#[test]
fn an_entry_keeps_its_name_in_atom_and_gets_a_new_one_with_each_update_in_rss() {
    let mut board = board();
    let (old_atom, old_rss) = {
        let all = notices(&board);
        (atom::write(site(&board), OWN, &all).unwrap(), rss::write(site(&board), OWN, &all).unwrap())
    };
    let incident = &mut board.incidents[0].incident;
    let mut update = incident.updates[0].clone();
    (update.id, update.created_at) = (parallax_core::id::UpdateId::from_u128(9), NOW + HOUR);
    incident.updates.push(update);
    let moved = FeedSite { page: &board.page, url: "https://status.northwind.example" };
    let all = notices(&board);
    let (atom, rss) = (atom::write(moved, OWN, &all).unwrap(), rss::write(moved, OWN, &all).unwrap());
    assert_eq!(texts(&atom, "id"), texts(&old_atom, "id"), "ids don't depend on the host");
    let (old, new) = (texts(&old_rss, "guid"), texts(&rss, "guid"));
    let differ: Vec<usize> = (0..3).filter(|at| old[*at] != new[*at]).collect();
    assert_eq!(differ, [1], "{old:?} {new:?}");
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
fn an_edit_is_news_to_every_reader() {
    let mut board = board();
    let seen = |board: &PageView| {
        let all = notices(board);
        let windows: Vec<_> = board.maintenance.iter().map(|notice| (7, notice.clone())).collect();
        let rss = rss::write(site(board), OWN, &all).unwrap();
        let calendar = String::from_utf8(calendar::write(site(board), &windows, &[])).unwrap();
        [
            texts(&atom::write(site(board), OWN, &all).unwrap(), "updated"),
            texts(&rss, "guid"),
            texts(&rss, "pubDate"),
            values(&calendar, "DTSTAMP"),
            values(&calendar, "LAST-MODIFIED"),
        ]
    };
    let before = seen(&board);
    board.maintenance[0].incident.edited_at = Some(NOW + HOUR);
    let after = seen(&board);
    assert_eq!(after[0][..2], ["2026-11-27T13:46:00.000Z", "2026-11-27T13:46:00.000Z"]);
    assert_eq!(
        (after[3].as_slice(), after[4].as_slice()),
        (&["20261127T134600Z".to_owned()][..], &["20261127T134600Z".to_owned()][..])
    );
    assert!(after[1][0].starts_with(&before[1][0]) && after[1][0] != before[1][0], "{:?}", after[1]);
    assert_eq!((&after[1][1..], &after[2][1..]), (&before[1][1..], &before[2][1..]));
    // An update after the edit already has an id of its own.
    let incident = &mut board.incidents[0].incident;
    let said = incident.updates.last().unwrap().created_at;
    incident.edited_at = Some(said - HOUR);
    assert_eq!(seen(&board)[1][1], before[1][1]);
}

#[test]
fn what_nobody_looks_at_is_neither_well_nor_well_again() {
    let mut board = board();
    board.incidents.clear();
    let whole = |board: &PageView| {
        let status = sheet(StatuspageDocument::Status, board)["status"].take();
        ["indicator", "description", "parallax_indicator"].map(|key| status[key].as_str().unwrap().to_owned())
    };
    board.indicator = Indicator::Unknown;
    board.regions = RegionSet::default();
    assert_eq!(whole(&board), ["major", "Status unknown", "unknown"], "it was down at the last check");
    board.monitors.retain(|shown| shown.state.status != MonitorStatus::Down);
    assert_eq!(whole(&board), ["minor", "Status unknown", "unknown"]);
    board.monitors.retain(|shown| shown.state.status == MonitorStatus::Up);
    assert_eq!(whole(&board), ["minor", "Status unknown", "unknown"]);
    let components = sheet(StatuspageDocument::Components, &board)["components"].take();
    assert_eq!(components[1]["start_date"], "2026-09-28", "the day it was created");
    // Each of these shows that data existed.
    let seen = board.monitors.clone();
    for shown in &mut board.monitors {
        (shown.state, shown.history) = Default::default();
    }
    assert_eq!(whole(&board), ["none", "No data yet", "unknown"]);
    board.monitors[0].state.last_check.clone_from(&seen[0].state.last_check);
    assert_eq!(whole(&board)[0], "minor");
    board.monitors[0].state = Default::default();
    board.monitors[1].history.clone_from(&seen[1].history);
    assert_eq!(whole(&board)[0], "minor");
    board.monitors.clear();
    assert_eq!(whole(&board), ["none", "No data yet", "unknown"]);
}

#[test]
fn what_is_open_is_listed_whatever_else_is_and_long_lists_are_no_longer_documents() {
    let of = |number: u128, is_open: bool| {
        let mut notice = board().past_incidents.remove(0);
        notice.incident.id = parallax_core::id::IncidentId::from_u128(number);
        notice.incident.status = if is_open { IncidentStatus::Monitoring } else { IncidentStatus::Resolved };
        notice.incident.resolved_at = None;
        notice.incident.updates[0].body = "x".repeat(20_000);
        notice.incident.updates = vec![notice.incident.updates[0].clone(); 30];
        notice
    };
    for (before, open, listed_open, listed_over) in
        [(60, 1, 1, 49), (60, 3, 3, 47), (0, 200, 200, 10), (60, 45, 45, 10), (9, 0, 0, 9)]
    {
        let mut all: Vec<IncidentView> = (0..before).map(|number| of(number, false)).collect();
        all.extend((100..100 + open).map(|number| of(number, true)));
        all.extend((900..960).map(|number| of(number, false)).take(if before == 0 { 60 } else { 0 }));
        let found: Vec<_> = limit_entries(all.iter()).map(|notice| notice.incident.is_open()).collect();
        let count = |is_open: bool| found.iter().filter(|it| **it == is_open).count();
        assert_eq!((count(true), count(false)), (listed_open, listed_over), "{before} and {open}");
    }
    let many: Vec<IncidentView> = (0..200).map(|number| of(number, true)).collect();
    let board = board();
    for written in [
        atom::write(site(&board), OWN, &many).unwrap(),
        statuspage_api::write(StatuspageDocument::Unresolved, site(&board), &board, &many).unwrap(),
    ] {
        assert!(written.len() < 5_000_000, "{}", written.len());
    }
}
