//! What documents tell: their best address, what is wrong with a monitor, and what is folded away.

use super::*;

/// One of [`documents`].
fn named(name: &str) -> String {
    documents().into_iter().find(|(known, _)| *known == name).map(|(_, document)| document).unwrap()
}

#[test]
fn every_document_names_its_best_address_and_what_a_link_to_it_shows() {
    for (name, path, title) in [
        ("page", "", "Northwind: Payments API fails from Asia"),
        ("day", "", "Northwind: Payments API fails from Asia"),
        ("monitor", "/monitors/mon_00000000000000000000000003", "Northwind: Payments API"),
        (
            "incident",
            "/incidents/inc_00000000000000000000000003",
            "Northwind: Checkout slow for some customers",
        ),
        ("history", "/history/2026-11", "Northwind: History of November 2026"),
    ] {
        let document = named(name);
        for told in [
            format!("<link rel=\"canonical\" href=\"{ADDRESS}{path}\">"),
            format!("<meta property=\"og:url\" content=\"{ADDRESS}{path}\">"),
            format!("<meta property=\"og:title\" content=\"{title}\">"),
            format!("<meta property=\"og:image\" content=\"{ADDRESS}/og-"),
            format!("<p class=\"at\">{ADDRESS}{path}</p>"),
        ] {
            assert_eq!(document.matches(&told).count(), 1, "{name}: {told}");
        }
        let text = document.split("og:description\" content=\"").nth(1).unwrap();
        assert!(!text.starts_with('"'), "{name}");
    }
}

#[test]
fn a_monitors_page_says_what_is_open_what_was_and_what_may_be_used_up() {
    let document = named("monitor");
    for told in [
        "<h2><a href=\"/p/northwind/incidents/inc_00000000000000000000000001\">Payments API fails from Asia</a></h2>",
        ">Database upgrade</a></h2>",
        ">Checkout slow for some customers</a> <span class=\"soft\">resolved after 22 minutes</span>",
        "<div class=\"budget\"><span>Error budget</span>",
    ] {
        assert_eq!(document.matches(told).count(), 1, "{told}: {document}");
    }
}

#[test]
fn a_page_claims_nothing_of_the_time_before_a_monitor() {
    let mut board = board();
    board.monitors.truncate(1);
    board.monitors[0].monitor.created_at = NOW - 400 * DAY;
    let told = |board: &Board| {
        String::from_utf8(crate::views::print(&StatusPage::new(board, "", ADDRESS)).unwrap()).unwrap()
    };
    assert!(told(&board).contains("<span class=\"vh\"> over 90 days</span>"));
    board.monitors[0].monitor.created_at = NOW - 6 * MINUTE;
    let young = told(&board);
    assert!(young.contains("<span> since 27 Nov</span>"), "{young}");
    assert!(young.contains("aria-label=\"Asia: ") && !young.contains("over 90 days"), "{young}");
}

#[test]
fn what_is_slow_from_some_regions_says_from_which() {
    let mut slow = shown(1, "Search", "Shop", Status::Slow, 4);
    let state = |shown: &Shown, is_stale| {
        let state =
            crate::views::monitor::State::of(shown, is_stale, crate::views::tongue::words(Language::En));
        (state.class, state.words)
    };
    assert_eq!(state(&slow, false), ("slow", "Slow".to_owned()));
    slow.view.slow_from = Some(RegionSet::only(Region::Oceania));
    assert_eq!(state(&slow, false), ("slow", "Slow from Oceania".to_owned()));
    assert_eq!(state(&slow, true), ("none", "Was slow".to_owned()));
}

#[test]
fn what_is_folded_away_below_a_monitor_is_called_what_it_is() {
    let said = crate::views::tongue::words(Language::En);
    let board = board();
    let whole = crate::views::monitor::Row::of(&board.monitors[0], &board, "", &[]);
    let without = |lanes: bool, chart: bool, budget: bool| {
        let mut row = whole.clone();
        if lanes {
            row.lanes.clear();
        }
        row.chart = row.chart.filter(|_| !chart);
        row.budget = row.budget.filter(|_| !budget);
        row.folded(said)
    };
    assert_eq!(without(false, false, false), Some("Regions and response time"));
    assert_eq!(without(true, false, false), Some("Response time"));
    assert_eq!(without(false, true, false), Some("Regions"));
    assert_eq!(without(true, true, false), Some("Error budget"));
    assert_eq!(without(true, true, true), None);
}
