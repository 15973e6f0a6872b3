//! Contents of documents: canonical URL, open incidents, and collapsed details.

use super::*;

/// Returns one of [`documents`].
fn document_named(name: &str) -> String {
    documents().into_iter().find(|(known, _)| *known == name).map(|(_, document)| document).unwrap()
}

#[test]
fn every_document_has_its_canonical_url_and_a_link_preview() {
    for (name, path, title) in [
        ("page", "", "Northwind: Payments API fails from Asia"),
        ("day", "", "Northwind: Payments API fails from Asia"),
        ("monitor", "/monitors/mon_00000000000000000000000003", "Northwind: Payments API"),
        ("incident", "/incidents/inc_00000000000000000000000003", "Northwind: Checkout slow for some customers"),
        ("history", "/history/2026-11", "Northwind: History of November 2026"),
    ] {
        let document = document_named(name);
        for expected in [
            format!("<link rel=\"canonical\" href=\"{ADDRESS}{path}\">"),
            format!("<meta property=\"og:url\" content=\"{ADDRESS}{path}\">"),
            format!("<meta property=\"og:title\" content=\"{title}\">"),
            format!("<meta property=\"og:image\" content=\"{ADDRESS}/og-"),
            format!("<p class=\"at\">{ADDRESS}{path}</p>"),
        ] {
            assert_eq!(document.matches(&expected).count(), 1, "{name}: {expected}");
        }
        let text = document.split("og:description\" content=\"").nth(1).unwrap();
        assert!(!text.starts_with('"'), "{name}");
    }
}

#[test]
fn a_monitors_page_has_open_and_past_incidents_and_the_error_budget() {
    let document = document_named("monitor");
    for expected in [
        "<h2><a href=\"/p/northwind/incidents/inc_00000000000000000000000001\">Payments API fails from Asia</a></h2>",
        ">Database upgrade</a></h2>",
        ">Checkout slow for some customers</a> <span class=\"soft\">resolved after 22 minutes</span>",
        "<div class=\"budget\"><span>Error budget</span>",
        "<p class=\"legend\" aria-hidden=\"true\"><span class=\"u\">working</span>",
    ] {
        assert_eq!(document.matches(expected).count(), 1, "{expected}: {document}");
    }
}

#[test]
fn the_budget_bar_shows_the_remaining_percent() {
    let page_view = page_view();
    for (failed, left) in [(0, "100.0"), (864, "0.0")] {
        let mut view = page_view.monitors[0].clone();
        for day in &mut view.history.days {
            day.counts = OutcomeCounts { passed: 8640 - failed, failed, ..OutcomeCounts::default() };
            day.uptime = day.counts.tally().percent();
            day.time = MonitoredTime::of_rounds(DAY.unsigned_abs(), day.counts.tally());
        }
        let row = crate::views::monitor::MonitorRow::of(&view, &page_view, "", &[]);
        assert_eq!(row.budget.map(|budget| budget.left).as_deref(), Some(left), "{failed}");
    }
}

#[test]
fn uptime_covers_only_the_time_since_the_monitor_exists() {
    let mut page_view = page_view();
    page_view.monitors.truncate(1);
    page_view.monitors[0].monitor.created_at = NOW - 400 * DAY;
    let rendered = |page_view: &PageView| {
        String::from_utf8(crate::views::render(&StatusPage::new(page_view, "", ADDRESS)).unwrap()).unwrap()
    };
    assert!(rendered(&page_view).contains("<span class=\"vh\"> over 90 days</span>"));
    page_view.monitors[0].monitor.created_at = NOW - 6 * MINUTE;
    let html = rendered(&page_view);
    assert!(html.contains("<span> since 27 Nov</span>"), "{html}");
    assert!(html.contains("aria-label=\"Asia: ") && !html.contains("over 90 days"), "{html}");
}

#[test]
fn a_slow_monitor_names_the_regions_that_see_it_slow() {
    let mut slow = monitor_view(1, "Search", "Shop", MonitorStatus::Slow, 4);
    let state = |view: &MonitorView, is_stale| {
        let state = crate::views::monitor_state::MonitorStateLabel::of(
            view,
            is_stale,
            parallax_i18n::page_messages::messages(Language::En),
        );
        (state.class, state.text)
    };
    assert_eq!(state(&slow, false), ("slow", "Slow".to_owned()));
    slow.state.slow_from = Some(RegionSet::only(Region::Oceania));
    assert_eq!(state(&slow, false), ("slow", "Slow from Oceania".to_owned()));
    assert_eq!(state(&slow, true), ("none", "Was slow".to_owned()));
}

#[test]
fn the_label_of_collapsed_details_names_their_content() {
    let messages = parallax_i18n::page_messages::messages(Language::En);
    let page_view = page_view();
    let full_row = crate::views::monitor::MonitorRow::of(&page_view.monitors[0], &page_view, "", &[]);
    let label_without = |region_bars: bool, chart: bool, budget: bool| {
        let mut row = full_row.clone();
        if region_bars {
            row.region_bars.clear();
        }
        row.chart = row.chart.filter(|_| !chart);
        row.budget = row.budget.filter(|_| !budget);
        row.details_label(messages)
    };
    assert_eq!(label_without(false, false, false), Some("Regions and response time"));
    assert_eq!(label_without(true, false, false), Some("Response time"));
    assert_eq!(label_without(false, true, false), Some("Regions"));
    assert_eq!(label_without(true, true, false), Some("Error budget"));
    assert_eq!(label_without(true, true, true), None);
}

fn rendered(page_view: &PageView) -> String {
    String::from_utf8(crate::views::render(&StatusPage::new(page_view, "", ADDRESS)).unwrap()).unwrap()
}

#[test]
fn open_incidents_are_sorted_by_impact_and_maintenance_comes_last() {
    let open =
        |number: u128, title: &str, impact: Impact| incident_view(Incident { impact, ..incident(number, title) });
    let page_view = PageView {
        incidents: vec![
            open(14, "Newest notice", Impact::None),
            open(13, "Newer major", Impact::Major),
            open(12, "Slowness", Impact::Degraded),
            open(11, "Older major", Impact::Major),
        ],
        past_incidents: Vec::new(),
        ..page_view()
    };
    let site = crate::views::feeds::FeedSite { page: &page_view.page, url: ADDRESS };
    let running = vec![incident_view(Incident { started_at: NOW - MINUTE, has_begun: true, ..window() })];
    let embedded = PageView { maintenance: running, ..page_view.clone() };
    let embedded =
        crate::views::embed::EmbedPage::new(&embedded, "", ADDRESS, parallax_core::page::branding::Theme::Auto);
    for text in [
        rendered(&page_view),
        crate::views::markdown_page::status_page(site, &page_view),
        String::from_utf8(crate::views::render(&embedded).unwrap()).unwrap(),
    ] {
        let (_, text) = text.split_once("<body").unwrap_or(("", &text));
        let order = [13, 11, 12, 14, 2].map(|id| text.find(&IncidentId::from_u128(id).to_string()).unwrap());
        assert!(order.is_sorted(), "{order:?}: {text}");
    }
}

#[test]
fn a_running_window_states_its_end_in_every_document() {
    let incident = Incident { started_at: NOW - MINUTE, has_begun: true, ..window() };
    let page_view = PageView { maintenance: vec![incident_view(incident)], incidents: Vec::new(), ..page_view() };
    let until = "<time class=\"in\" datetime=\"2026-11-30T14:16:00.000Z\" data-f=\"in\" data-says=\"ends in {0}\">";
    let embed =
        crate::views::embed::EmbedPage::new(&page_view, "", ADDRESS, parallax_core::page::branding::Theme::Auto);
    let embed = String::from_utf8(crate::views::render(&embed).unwrap()).unwrap();
    let incident_page = IncidentPage::new((&page_view.page, ""), &page_view.maintenance[0], LOCATION, NOW);
    let incident_page = String::from_utf8(crate::views::render(&incident_page).unwrap()).unwrap();
    for text in [rendered(&page_view), embed, incident_page] {
        assert!(text.contains("Maintenance in progress") && text.contains(until), "{text}");
    }
    let site = crate::views::feeds::FeedSite { page: &page_view.page, url: ADDRESS };
    let expected = "Maintenance, in progress since 2026-11-27T12:45:00.000Z, ends at 2026-11-30T14:16:00.000Z";
    assert!(crate::views::markdown_page::status_page(site, &page_view).contains(expected));
    let feed = crate::views::feeds::atom::write(site, ADDRESS, &page_view.maintenance).unwrap();
    let expected = "&lt;strong&gt;In progress&lt;/strong&gt; · 27 Nov 2026, 12:45 UTC";
    assert!(String::from_utf8(feed).unwrap().contains(expected));
    // Until the start is stored, the feed has nothing new.
    let planned = [incident_view(window())];
    let feed = crate::views::feeds::atom::write(site, ADDRESS, &planned).unwrap();
    assert!(!String::from_utf8(feed).unwrap().contains("In progress"));
}

#[test]
fn a_countdown_does_not_change_the_document_each_minute() {
    let page_view = PageView { incidents: Vec::new(), ..page_view() };
    let card = |now: Timestamp| {
        let text = rendered(&PageView { now, ..page_view.clone() });
        let (_, after) = text.split_once("<section id=\"open\"").unwrap();
        after.split_once("</section>").unwrap().0.to_owned()
    };
    assert!(card(NOW).contains("data-f=\"in\""));
    assert_eq!(card(NOW), card(NOW + 3 * MINUTE));
}

#[test]
fn maintenance_after_the_next_week_is_listed_in_short_form() {
    let far = |number: u128| Incident {
        started_at: NOW + 9 * DAY,
        ends_at: Some(NOW + 9 * DAY + HOUR),
        ..Incident { id: IncidentId::from_u128(number), title: format!("Move {number}"), ..window() }
    };
    let later: Vec<IncidentView> = (100..122).map(far).map(incident_view).collect();
    let page_view = PageView { later_maintenance: later, ..page_view() };
    let text = rendered(&page_view);
    let (_, listed) = text.split_once("<section class=\"past\" id=\"later\"").unwrap();
    let listed = listed.split("</section>").next().unwrap();
    assert_eq!(listed.matches("<li>").count(), 20);
    for expected in ["Sun, 6 Dec 2026, 12:46 UTC", "(1 hour)", "Payments API", "2 more in the calendar"] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    assert!(!rendered(&PageView { later_maintenance: Vec::new(), ..page_view.clone() }).contains("id=\"later\""));
    let site = crate::views::feeds::FeedSite { page: &page_view.page, url: ADDRESS };
    assert!(
        crate::views::markdown_page::status_page(site, &page_view).contains("## Later maintenance\n\n- [Move 100]")
    );
}
