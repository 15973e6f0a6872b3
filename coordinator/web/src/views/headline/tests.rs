//! Headlines of pages by their monitors, alone and with open incidents.

use parallax_core::id::MonitorId;
use parallax_core::incident::{Incident, IncidentStatus, MonitorImpact};
use parallax_core::time::HOUR;
use parallax_core::vantage::{Region, RegionSet};

use super::*;
use crate::views::tests::{incident, incident_view, monitor_view, page_view, window};

/// A page without incidents whose monitors are given by letters: up, slow, down, unknown (`?`), paused, in a
/// window (and down).
fn page(letters: &str) -> PageView {
    let monitor = |(at, letter): (usize, char)| {
        let status = match letter {
            'u' => MonitorStatus::Up,
            's' => MonitorStatus::Slow,
            'd' | 'w' => MonitorStatus::Down,
            _ => MonitorStatus::Unknown,
        };
        let number = u32::try_from(at).unwrap() + 1;
        let mut view = monitor_view(number, &format!("M{number}"), "Shop", status, 2);
        (view.monitor.paused, view.in_maintenance) = (letter == 'p', letter == 'w');
        view
    };
    let monitors: Vec<MonitorView> = letters.chars().enumerate().map(monitor).collect();
    let statuses = monitors.iter().filter(|view| !view.in_maintenance).map(|view| view.state.status);
    let indicator = Indicator::of(None, statuses, false);
    PageView { incidents: Vec::new(), maintenance: Vec::new(), indicator, monitors, ..page_view() }
}

#[test]
fn heartbeats_do_not_count_as_checks_from_a_region() {
    use parallax_core::check::Check;
    use parallax_core::time::MINUTE;

    let now = page_view().now;
    // Each monitor: its kind (a heartbeat, or paused), and minutes since its last check.
    for (monitors, checked, regions) in [
        ("", None, 0),
        ("h1", Some(1), 0),
        ("h1 m5", Some(5), 6),
        ("h1 m5 m3", Some(3), 6),
        ("h1 p5", Some(1), 0),
        ("h1 m", Some(1), 0),
        ("m", None, 0),
    ] {
        let monitor = |(at, text): (usize, &str)| {
            let mut view = page("u").monitors.remove(0);
            let (kind, ago) = text.split_at(1);
            let ago: Option<i64> = ago.parse().ok();
            match (&mut view.state.last_check, ago) {
                (Some(last), Some(ago)) => last.at = now - ago * MINUTE,
                (last, _) => *last = None,
            }
            view.monitor.id = parallax_core::id::MonitorId::from_u128(at as u128);
            view.monitor.paused = kind == "p";
            if kind == "h" {
                let heartbeat = parallax_core::check::HeartbeatCheck {
                    period_seconds: 60,
                    grace_seconds: 60,
                    token: String::new(),
                };
                view.monitor.check = Check::Heartbeat(heartbeat);
                view.history.regions.clear();
            }
            view
        };
        let monitors_of: Vec<MonitorView> = monitors.split_whitespace().enumerate().map(monitor).collect();
        let page_view = PageView { monitors: monitors_of, ..page_view() };
        let minutes_ago = page_view.last_checked_at().map(|at| now.since(at) / MINUTE);
        assert_eq!((minutes_ago, page_view.checked_from().len()), (checked, regions), "{monitors}");
    }
}

#[test]
fn the_headline_claims_no_more_than_the_data_shows() {
    for (monitors, class, title, text) in [
        ("uuu", "up", "All systems operational", ""),
        ("uu?", "up", "Everything we have data for is working", "1 has no data."),
        ("u?", "none", "Everything we have data for is working", "1 has no data."),
        ("u?????????", "none", "Everything we have data for is working", "9 have no data."),
        // Paused monitors don't count.
        ("upppppp", "up", "All systems operational", ""),
        ("uup?", "up", "Everything we have data for is working", "1 has no data."),
        ("u?p", "none", "Everything we have data for is working", "1 has no data."),
        ("u?w", "none", "Everything we have data for is working", "Maintenance in progress. 1 has no data."),
        ("??p", "none", "No data yet", ""),
        ("pp", "none", "No data yet", ""),
        ("ddd", "down", "All systems are down", ""),
        ("dddp", "down", "All systems are down", ""),
        ("duw", "part", "M1 is down", ""),
        ("dp", "down", "M1 is down", ""),
        ("ddduupp", "part", "3 of 5 services are down", "Everything else is working."),
        ("dd?p", "part", "M1 and M2 are down", "1 has no data."),
        ("sup", "slow", "M1 is slow", "Everything else is working."),
    ] {
        let Headline { class: headline_class, title: headline, text: detail, .. } = Headline::of(&page(monitors));
        assert_eq!((headline_class, headline.as_str(), detail.as_str()), (class, title, text), "{monitors}");
    }
    for (monitors, title, text) in [
        ("d", "M1 is down from Asia", ""),
        ("dd", "M1 and M2 are down", "Down from Asia."),
        ("ddu", "M1 and M2 are down", "Down from Asia. Everything else is working."),
    ] {
        let mut page_view = page(monitors);
        for down in page_view.monitors.iter_mut().filter(|view| view.state.status == MonitorStatus::Down) {
            down.state.down_from = Some(RegionSet::only(Region::Asia));
        }
        let Headline { class, title: headline, text: detail, .. } = Headline::of(&page_view);
        assert_eq!((class, headline.as_str(), detail.as_str()), ("part", title, text), "{monitors} from Asia");
    }
    let mut slow = page("su");
    slow.monitors[0].state.slow_from = Some(RegionSet::only(Region::Oceania));
    assert_eq!(Headline::of(&slow).title, "M1 is slow from Oceania");
    let announced = PageView { indicator: Indicator::Partial, monitors: page("dd").monitors, ..page_view() };
    assert_eq!(Headline::of(&announced).class, "part", "incidents take precedence");
}

/// An open incident of the first `count` monitors.
fn announced_incident(title: &str, count: u32, impact: Impact, automatic: bool) -> IncidentView {
    let id = |number: u32| MonitorId::from_u128(u128::from(number));
    let affected = (1..=count).map(|number| MonitorImpact { monitor: id(number), impact: None }).collect();
    let monitors = (1..=count).map(|number| (id(number), format!("M{number}"), None)).collect();
    IncidentView {
        monitors,
        repeats: None,
        omitted_updates: 0,
        incident: Incident { impact, automatic, affected, ..incident(7, title) },
    }
}

/// Class, title and text of a page's headline while `open` are open.
fn headline_with_incidents(mut page: PageView, open: Vec<IncidentView>) -> String {
    let worst = open.iter().map(|incident_view| incident_view.incident.impact).max();
    page.indicator = Indicator::of(worst, [], false);
    page.incidents = open;
    let Headline { class, title, text, .. } = Headline::of(&page);
    format!("{class}: {title}. {text}").trim_end().to_owned()
}

#[test]
fn with_an_automatic_incident_the_headline_names_what_is_down_now() {
    for (monitors, title, impact, expected) in [
        ("duu", "M1 is down", Impact::Partial, "part: M1 is down. Everything else is working."),
        ("ddd", "M1 and 2 others are down", Impact::Major, "down: All systems are down."),
        ("dud", "M1 and 2 others are down", Impact::Partial, "part: M1 and M3 are down. Everything else is working."),
        ("dddus", "M1 and 2 others are down", Impact::Partial, "part: 3 of 5 services are down. 1 more is slow."),
        // In any language of the page at the time it was opened.
        ("uud", "M1 ist ausgefallen", Impact::Partial, "part: M3 is down. Everything else is working."),
        // Recovered, while the incident is still open.
        ("uu", "M1 is down", Impact::Partial, "part: M1 is down. Everything else is working."),
        ("us", "M1 is down", Impact::Partial, "part: M1 is down. 1 more is slow."),
        // Its impact was edited to be lower.
        ("du", "M1 is down", Impact::Degraded, "slow: M1 is down. Everything else is working."),
        // Paused, in a window, and without data.
        ("pdu", "M1 and 1 other are down", Impact::Partial, "part: M2 is down. Everything else is working."),
        ("pd", "M1 and 1 other are down", Impact::Major, "down: M2 is down."),
        ("wdu", "M1 and 1 other are down", Impact::Partial, "part: M2 is down."),
        ("?du", "M1 and 1 other are down", Impact::Partial, "part: M2 is down. 1 has no data."),
        ("?u", "M1 is down", Impact::Partial, "part: M1 is down. 1 has no data."),
        // A title that was edited, or that names a renamed monitor, stays.
        ("uud", "M1 is on fire", Impact::Partial, "part: M1 is on fire. M3 is down. Everything else is working."),
        ("uud", "M9 is down", Impact::Partial, "part: M9 is down. M3 is down. Everything else is working."),
    ] {
        let count = if title.contains("2 others") { 3 } else { 1 + u32::from(title.contains("1 other")) };
        let open = announced_incident(title, count, impact, true);
        assert_eq!(headline_with_incidents(page(monitors), vec![open]), expected, "{monitors} {title}");
    }
    let manual = announced_incident("M1 is down", 1, Impact::Partial, false);
    assert_eq!(
        headline_with_incidents(page("uud"), vec![manual]),
        "part: M1 is down. M3 is down. Everything else is working.",
        "a manual incident"
    );
}

#[test]
fn with_an_automatic_incident_the_headline_names_regions_and_missing_data() {
    let open = || vec![announced_incident("M1 is down", 1, Impact::Partial, true)];
    let mut asia = page("duu");
    asia.monitors[0].state.down_from = Some(RegionSet::only(Region::Asia));
    assert_eq!(
        headline_with_incidents(asia.clone(), open()),
        "part: M1 is down from Asia. Everything else is working."
    );
    asia.monitors.truncate(1);
    let single_incident = vec![announced_incident("M1 is down", 1, Impact::Major, true)];
    assert_eq!(headline_with_incidents(asia, single_incident), "part: M1 is down from Asia.");
    // As far as is known, its outage continues.
    for (monitors, expected) in
        [("?uu", "part: M1 is down. 1 has no data."), ("?du", "part: M2 is down. 1 has no data.")]
    {
        let mut without_data = page(monitors);
        without_data.monitors[0].state.outage_since = Some(without_data.now - HOUR);
        assert_eq!(headline_with_incidents(without_data, open()), expected, "{monitors}");
    }
}

#[test]
fn an_incident_of_a_person_with_higher_impact_decides_the_headline() {
    let open = || announced_incident("M1 is down", 1, Impact::Partial, true);
    let mut in_window = page("wuu");
    let running =
        Incident { started_at: in_window.now - HOUR, ends_at: Some(in_window.now + HOUR), has_begun: true, ..window() };
    in_window.maintenance = vec![incident_view(Incident { status: IncidentStatus::Scheduled, ..running })];
    // A window doesn't end it.
    assert_eq!(headline_with_incidents(in_window, vec![open()]), "part: M1 is down.");
    for (monitors, impact, expected) in [
        ("duu", Impact::None, "part: M1 is down. Everything else is working."),
        ("duu", Impact::Degraded, "part: M1 is down. Everything else is working."),
        ("uuu", Impact::Degraded, "part: M1 is down. Everything else is working."),
        ("duu", Impact::Partial, "part: We are slow. M1 is down. Everything else is working."),
        ("uuu", Impact::Major, "down: We are slow."),
    ] {
        let manual = announced_incident("We are slow", 0, impact, false);
        for order in [vec![open(), manual.clone()], vec![manual, open()]] {
            assert_eq!(headline_with_incidents(page(monitors), order), expected, "{monitors} {impact:?}");
        }
    }
}
