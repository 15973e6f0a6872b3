//! A flapping monitor: one update that is refreshed, one at the end, and one incident throughout.

use super::*;
use crate::flapping::FlapHistory;

/// A page whose changes are counted as the machines count them.
struct Counted {
    page: Page,
    flaps: BTreeMap<u128, FlapHistory>,
}

impl Counted {
    fn with(monitors: u128) -> Self {
        Self { page: Page::with(monitors), flaps: BTreeMap::new() }
    }

    /// Advances by some minutes, then takes the monitor down or up.
    fn change(&mut self, minutes: i64, n: u128, kind: AlertKind) -> Vec<(IncidentChange, bool)> {
        self.page.wait(minutes * MINUTE);
        let now = at(self.page.now);
        let flapping = self.flaps.entry(n).or_default().record_change(kind, now);
        let mut change = StatusChange::new(MonitorStatus::Down, now);
        (change.down_since, change.reason, change.flapping) = (Some(now), Some(Failure::Refused), flapping);
        match kind {
            AlertKind::WentDown => self.page.take(IncidentTrigger::WentDown(id(n), &change)),
            _ => self.page.take(IncidentTrigger::Recovered(id(n), flapping)),
        }
    }

    fn down(&mut self, minutes: i64, n: u128) -> Vec<(IncidentChange, bool)> {
        self.change(minutes, n, AlertKind::WentDown)
    }

    fn back(&mut self, minutes: i64, n: u128) -> Vec<(IncidentChange, bool)> {
        self.change(minutes, n, AlertKind::Recovered)
    }

    fn steady(&mut self, minutes: i64, n: u128) -> Vec<(IncidentChange, bool)> {
        self.page.wait(minutes * MINUTE);
        let now = at(self.page.now);
        let steady = self.flaps.get_mut(&n).and_then(|flaps| flaps.end(now)).unwrap();
        self.page.take(IncidentTrigger::Steady(id(n), &steady))
    }

    fn title_and_bodies(&self) -> (&str, Vec<&str>) {
        let newest = self.page.newest();
        (&newest.title, newest.updates.iter().map(|update| update.body.as_str()).collect())
    }
}

#[test]
fn forty_changes_are_two_updates_of_one_incident_that_stays_open() {
    let mut page = Counted::with(2);
    assert_eq!((page.down(0, 1), page.back(2, 1)), (vec![OPENED], vec![RESOLVED]));
    assert_eq!(page.down(2, 1), [OPENED]);
    let says =
        |n| format!("M1 is flapping: it has changed between up and down {n} times since 13 Jul 2025, 02:40 UTC.");
    let since = page.page.newest().updates[0].created_at;
    let text = says(3);
    let day = text.split_once("since ").unwrap().1;
    assert!(
        page.title_and_bodies().1[0].starts_with("M1 is flapping: it has changed between up and down 3 times since "),
        "{day}"
    );
    assert_eq!(page.title_and_bodies().0, "M1 is flapping");
    for n in 0..19 {
        assert_eq!(page.back(2, 1), [SILENT], "{n}");
        assert_eq!(page.down(2, 1), [SILENT], "{n}");
    }
    assert_eq!(page.back(2, 1), [SILENT]);
    let (title, bodies) = page.title_and_bodies();
    assert_eq!((title, bodies.len()), ("M1 is flapping", 1));
    assert!(bodies[0].contains(" 42 times since "), "{bodies:?}");
    assert_eq!(page.page.newest().updates[0].created_at, since, "it is renewed in place");
    assert!(page.page.newest().is_open());
    assert_eq!(page.steady(30, 1), [RESOLVED]);
    let (title, bodies) = page.title_and_bodies();
    assert_eq!((title, bodies.len()), ("M1 was flapping", 2));
    assert!(bodies[1].starts_with("M1 is stable again: it has been up since "), "{bodies:?}");
    assert!(bodies[1].ends_with(" UTC. It had changed 42 times."), "{bodies:?}");
    assert!(page.page.desk.outages.is_empty() && page.page.open() == 0);
}

#[test]
fn a_steady_outage_stays_open_until_recovery() {
    let mut page = Counted::with(2);
    for _ in 0..2 {
        page.down(2, 1);
        page.back(2, 1);
    }
    page.down(2, 1);
    assert_eq!(page.steady(30, 1), [JOINED]);
    let (title, bodies) = page.title_and_bodies();
    assert_eq!((title, bodies.len()), ("M1 is down", 2));
    assert!(bodies[1].starts_with("M1 has stopped flapping: it has been down since "), "{bodies:?}");
    assert_eq!(page.back(60, 1), [RESOLVED]);
    assert_eq!(page.title_and_bodies().0, "M1 was down");
}

#[test]
fn a_flapping_update_is_posted_to_its_incident() {
    let mut page = Counted::with(3);
    page.down(0, 2);
    assert_eq!((page.down(1, 1), page.back(1, 1)), (vec![JOINED], vec![ONE_BACK]));
    assert_eq!(page.down(1, 1), [JOINED], "the third change is announced");
    assert_eq!((page.back(1, 1), page.down(1, 1)), (vec![SILENT], vec![SILENT]));
    assert_eq!(
        (page.page.open(), page.title_and_bodies().0, page.title_and_bodies().1.len()),
        (1, "M2 and 1 other are down", 4)
    );
    assert_eq!(page.back(1, 2), [ONE_BACK]);
    assert_eq!(page.back(1, 1), [SILENT]);
    assert_eq!(page.steady(30, 1), [RESOLVED], "both are over");
    let bodies = page.title_and_bodies().1;
    let last = bodies.last().unwrap();
    assert!(last.contains("is stable again") && last.contains("All affected services are back up."), "{last}");
    // While others are still down, an update reports that this one is steady.
    page.down(60, 2);
    for _ in 0..2 {
        page.down(1, 1);
        page.back(1, 1);
    }
    assert_eq!((page.steady(30, 1), page.page.open()), (vec![JOINED], 1));
}

#[test]
fn a_recovery_can_be_the_third_change() {
    let mut page = Counted::with(2);
    page.down(0, 1);
    page.back(40, 1);
    assert_eq!((page.down(5, 1), page.back(5, 1)), (vec![OPENED], vec![JOINED]));
    assert_eq!(
        (page.title_and_bodies().0, page.title_and_bodies().1.len(), page.page.open()),
        ("M1 is flapping", 2, 1)
    );
    assert_eq!(page.steady(30, 1), [RESOLVED]);
}

#[test]
fn without_outage_notifications_there_are_none_of_flapping() {
    let mut page = Counted::with(2);
    page.page.desk.opens_incidents = false;
    for _ in 0..3 {
        assert!(page.down(1, 1).is_empty() && page.back(1, 1).is_empty());
    }
    assert!(page.page.desk.outages.is_empty() && page.steady(30, 1).is_empty());
}

#[test]
fn a_person_who_takes_it_over_has_it() {
    let mut page = Counted::with(2);
    page.down(0, 1);
    page.back(1, 1);
    page.down(1, 1);
    let incident = page.page.newest().id;
    page.page.post(incident, "identified");
    let before = page.page.newest().clone();
    assert!(page.back(1, 1).is_empty() && page.down(1, 1).is_empty() && page.back(1, 1).is_empty());
    assert!(page.steady(30, 1).is_empty());
    assert_eq!(*page.page.newest(), before);
    assert!(page.page.desk.outages.is_empty());
}

#[test]
fn a_pause_while_it_is_up_ends_it_too() {
    let mut page = Counted::with(2);
    page.down(0, 1);
    page.back(1, 1);
    page.down(1, 1);
    page.back(1, 1);
    assert_eq!(page.page.open(), 1);
    assert_eq!(page.page.pause(1, true), [(IncidentChange::Resolved, false)]);
    assert!(page.page.desk.outages.is_empty());
}

#[test]
fn times_are_in_the_pages_zone_in_every_language() {
    for language in Language::ALL {
        let mut page = Counted::with(1);
        (page.page.desk.language, page.page.desk.zone) = (language, chrono_tz::Europe::Berlin);
        page.down(0, 1);
        page.back(1, 1);
        page.down(1, 1);
        page.back(1, 1);
        let bodies = page.title_and_bodies().1[0].to_owned();
        assert!(bodies.contains("M1") && bodies.contains('4') && bodies.contains(" UTC+0"), "{bodies}");
        let first = page.page.newest().clone();
        assert!(first.has_generated_title(Some("M1")), "{}", first.title);
        page.steady(30, 1);
        assert_ne!(page.title_and_bodies().0, first.title);
        assert!(page.page.newest().has_generated_title(Some("M1")));
    }
}
