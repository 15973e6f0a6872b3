//! Tests of the list of monitors.

use std::io::Write as _;

use parallax_core::role::Role;

use super::super::samples::{MonitorSample, sample, samples};
use super::super::tests::{HOSTILE, NOW, frame, keep};
use super::super::{Section, render};
use super::*;

fn list(samples: &[MonitorSample], role: Role, query: &str) -> String {
    let rows: Vec<RowInput<'_>> = samples.iter().map(|sample| sample.row(NOW)).collect();
    let (frame, filter) = (frame(role, Section::Monitors, "Northwind"), ListFilter::read(query));
    let lead = "12 of 500 monitors used in this account.".to_owned();
    render(&MonitorListScreen::new(frame, &rows, filter, lead, "key".to_owned())).unwrap()
}

/// Names of the rows, in order.
fn names(screen: &str) -> Vec<&str> {
    let rows = screen.split("<div class=\"who\">").skip(1);
    rows.filter_map(|row| row.split_once('>')?.1.split_once("</a>")).map(|(name, _)| name).collect()
}

#[test]
fn every_condition_has_its_words_and_chips_count_them() {
    let screen = list(&samples(NOW), Role::Owner, "");
    keep("monitors", &screen);
    for words in [
        "Down from Asia",
        "Slow from Oceania",
        "Failing, not confirmed",
        "Ping missing",
        "No ping yet",
        "No fresh result",
        "In maintenance",
        "Paused",
        "GET https://example.com",
        "Every 15 min",
    ] {
        assert!(screen.contains(words), "{words} in {screen}");
    }
    for chip in ["All <b>12</b>", "Down <b>2</b>", "No data <b>2</b>", "Up <b>4</b>"] {
        assert!(screen.contains(chip), "{chip}");
    }
}

#[test]
fn filters_and_order_come_from_the_query() {
    let samples = samples(NOW);
    let shown = |query: &str| {
        let screen = list(&samples, Role::Owner, query);
        names(&screen).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown("state=down"), ["Payments API", "Search index"]);
    assert_eq!(shown("q=SEARCH&sort=name"), ["Search", "Search index"]);
    assert_eq!(shown("type=heartbeat&state=no-data"), ["Nightly report"]);
    assert_eq!(shown("group=Vendors&state=paused"), ["Staging website"]);
    assert_eq!(shown("sort=worst")[..2], ["Payments API", "Search index"]);
    assert_eq!(shown("state=bogus"), [""; 0]);
    let none = list(&samples, Role::Owner, "q=zebra");
    assert!(none.contains("No monitor matches.") && none.contains("All <b>0</b>"), "{none}");
    let kept = list(&samples, Role::Owner, "q=a%26b&sort=worst");
    assert!(kept.contains("?q=a%26b&#38;sort=worst"), "{kept}");
    let chips = list(&samples, Role::Owner, "q=e&sort=worst");
    assert!(chips.contains("?state=down&#38;q=e&#38;sort=worst"), "{chips}");
}

#[test]
fn a_viewer_gets_no_forms_that_change_something() {
    let (owner, viewer) = (list(&samples(NOW), Role::Owner, ""), list(&samples(NOW), Role::Viewer, ""));
    for part in ["id=\"bulk\"", "name=\"id\"", "/new\"", "/edit"] {
        assert!(owner.contains(part), "{part}");
        assert!(!viewer.contains(part), "{part}");
    }
    let empty = list(&[], Role::Viewer, "");
    assert!(empty.contains("No monitors yet") && !empty.contains("<form class=\"first\""), "{empty}");
    assert!(list(&[], Role::Editor, "").contains("name=\"target\""));
}

#[test]
fn names_and_groups_are_escaped() {
    let hostile = [sample(1, HOSTILE, "<script>alert(1)</script>", Condition::Up, NOW)];
    let screen =
        list(&hostile, Role::Owner, &form_urlencoded::Serializer::new(String::new()).append_pair("q", "<").finish());
    assert!(!screen.contains("<script>alert"), "{screen}");
    assert!(names(&screen).len() == 1, "the filter finds it");
}

#[test]
fn five_hundred_monitors_are_one_small_document() {
    /// Bytes of the document after gzip.
    const BUDGET: usize = 60 * 1024;
    /// Elements of the document.
    const ELEMENTS: usize = 9000;
    let many: Vec<MonitorSample> = (1..=500)
        .map(|slot| {
            let condition = Condition::ALL[if slot % 20 == 0 { (slot / 20 % 8) as usize } else { 7 }];
            let (name, group) =
                (format!("Service {slot} of shop {}", slot * 7919 % 1000), format!("Group {}", slot / 25));
            let mut it = sample(slot, &name, &group, condition, NOW);
            it.monitor.id = MonitorId::new(
                NOW,
                [slot as u8, (slot >> 8) as u8, 0xa7, 0x31, 0x5c, (slot * 31) as u8, 9, 8, (slot * 17) as u8, 6],
            );
            it
        })
        .collect();
    let screen = list(&many, Role::Owner, "");
    keep("monitors-500", &screen);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    packed.write_all(screen.as_bytes()).unwrap();
    let length = packed.finish().unwrap().len();
    assert!(length <= BUDGET, "{length} bytes");
    let closing = ["</", "<!"].map(|mark| screen.matches(mark).count());
    let elements = screen.matches('<').count() - closing.iter().sum::<usize>();
    assert!(elements <= ELEMENTS, "{elements} elements");
    assert!(screen.matches("<details class=\"group\">").count() > 5, "healthy groups are closed");
}
