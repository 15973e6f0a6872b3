//! Updates about outages that change and end: the regions, the recovered monitors, and the past tense.

use super::*;

fn regions(names: &str) -> Option<RegionSet> {
    let named = || names.split('+').map(|name| name.parse::<Region>().unwrap()).collect();
    (names != "all").then(named)
}

/// The text of a monitor's first update, from the regions on.
fn scope(page: &Page) -> &str {
    let bodies = page.newest().updates[0].body.strip_prefix("M1 is down from ").unwrap();
    bodies.split(':').next().unwrap()
}

#[test]
fn the_text_follows_the_scope_and_keeps_the_widest_once_the_monitor_is_back() {
    const ALL: &str = "every region that checks it";
    for (scopes, while_down, after) in [
        ("all", ALL, ALL),
        ("asia", "Asia", "Asia"),
        // Regions recover one by one: the widest scope is kept.
        ("all europe+asia asia", "Asia", ALL),
        // It spread, and receded in the same order.
        ("asia europe+asia all europe+asia europe", "Europe", ALL),
        ("asia europe+asia asia", "Asia", "Europe and Asia"),
        ("asia europe+africa+asia europe+asia asia", "Asia", "Europe, Africa and Asia"),
        ("asia all", ALL, ALL),
        // Equally many other regions are not a wider scope.
        ("asia europe", "Europe", "Asia"),
    ] {
        for (others, paused) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut page = Page::with(2);
            let mut scopes = scopes.split(' ');
            page.down_from(1, scopes.next().and_then(regions));
            if others {
                page.down(2);
            }
            for names in scopes {
                let events = page.take(IncidentTrigger::ScopeChanged(id(1), regions(names)));
                assert_eq!((events, page.newest().updates.len()), (vec![SILENT], 1 + usize::from(others)));
            }
            assert_eq!(scope(&page), while_down, "{while_down} {after}");
            let events = if paused { page.pause(1, true) } else { page.back(1) };
            assert_eq!(scope(&page), after, "{while_down} {after} {others} {paused}");
            let expected: &[(IncidentChange, bool)] = match (others, paused) {
                (false, false) => &[RESOLVED],
                (false, true) => &[LEFT],
                (true, false) => &[ONE_BACK],
                (true, true) if while_down == after => &[],
                (true, true) => &[SILENT],
            };
            assert_eq!(events, expected, "one update: {others} {paused}");
        }
    }
}

#[test]
fn each_outage_of_a_monitor_keeps_a_scope_of_its_own() {
    let mut page = Page::with(2);
    page.down(2);
    for scopes in [["all", "asia"], ["asia", "europe+asia"], ["africa", "africa"]] {
        page.down_from(1, regions(scopes[0]));
        page.take(IncidentTrigger::ScopeChanged(id(1), regions(scopes[1])));
        page.back(1);
    }
    let bodies: Vec<&str> = page.newest().updates.iter().map(|update| update.body.as_str()).collect();
    assert_eq!(
        bodies[1..],
        [
            "M1 is down from every region that checks it: connection refused.",
            "M1 is back up.",
            "M1 is down again from Europe and Asia: connection refused. It is reachable from other regions.",
            "M1 is back up.",
            "M1 is down again from Africa: connection refused. It is reachable from other regions.",
            "M1 is back up.",
        ]
    );
}

#[test]
fn a_manual_incident_gets_no_recovery_updates() {
    let mut page = Page::with(2);
    page.down_from(1, regions("asia"));
    page.down(2);
    page.take(IncidentTrigger::ScopeChanged(id(1), None));
    let incident = page.newest().id;
    page.post(incident, "identified");
    let taken = page.newest().clone();
    assert_eq!((page.back(1), page.back(2), page.newest()), (vec![], vec![], &taken));
}

#[test]
fn recoveries_are_posted_until_one_update_is_left_for_the_end() {
    let mut page = Page::with(2);
    page.down(1);
    page.down(2);
    while page.newest().updates.len() + 1 < MAX_UPDATES {
        assert_eq!(page.back(2), [ONE_BACK]);
        assert_eq!(page.down(2), if page.last_words() == "M2 is back up." { [SILENT] } else { [AGAIN] });
    }
    let count = page.newest().updates.len();
    assert_eq!((page.back(2), page.newest().updates.len()), (vec![SILENT], count));
    assert_eq!((page.back(1), page.newest().updates.len()), (vec![RESOLVED], count + 1));
}

#[test]
fn a_generated_title_turns_to_the_past_tense_and_a_persons_title_stays() {
    for (language, titles) in [
        (Language::En, ["M1 was down", "M1 and 1 other were down", "M1 and 2 others were down"]),
        (
            Language::De,
            ["M1 war ausgefallen", "M1 und 1 weiterer Dienst waren ausgefallen", "M1 und 2 weitere waren ausgefallen"],
        ),
    ] {
        for (count, title) in (1..).zip(titles) {
            let mut page = Page::with(4);
            // The page's language at the end counts, whatever it was at the beginning.
            page.desk.language = Language::Fr;
            (1..=count).for_each(|n| assert_eq!(page.down(n).len(), 1));
            page.desk.language = language;
            (1..=count).for_each(|n| assert_eq!(page.back(n).len(), 1));
            assert_eq!(page.newest().title, title);
            let first = Some("M1");
            assert!(page.newest().has_generated_title(first), "{title} is still ours");
            assert_eq!(page.newest().past_tense_title(first, language).as_deref(), Some(title));
        }
    }
    for (title, delete, expected) in [
        ("Our shop is down", false, "Our shop is down"),
        ("M2 is down", false, "M2 is down"),
        // Its name is no longer known.
        ("M1 is down", true, "M1 is down"),
    ] {
        let mut page = Page::with(2);
        page.down(1);
        page.desk.incidents.values_mut().for_each(|incident| incident.title = title.to_owned());
        let events = if delete { page.delete(1) } else { page.back(1) };
        let over = if delete { LEFT } else { RESOLVED };
        assert_eq!((events, page.newest().title.as_str()), (vec![over], expected), "{title}");
    }
}
