//! Automatic incidents as scenarios, and their invariants over any sequence of outages and people's actions.

mod flapping;
mod outages;

use proptest::prelude::*;

use super::*;
use crate::event::EditKind;
use crate::incident::edit::tests::{at, value};
use crate::incident::{MAX_OPEN_INCIDENTS, UpdatePost};
use crate::observation::Failure;
use crate::page::branding::Language;
use crate::patch::PatchField;
use crate::time::SECOND;
use crate::vantage::Region;

fn id(n: u128) -> MonitorId {
    MonitorId::from_u128(n)
}

/// A page with that many monitors, and a clock.
struct Page {
    desk: AutomaticIncidents,
    now: i64,
    ids: u8,
}

impl Page {
    fn with(monitors: u128) -> Self {
        let watched = |n: u128| (id(n), MonitorInfo { name: format!("M{n}"), is_regional: true, paused: false });
        let desk = AutomaticIncidents {
            page: PageId::from_u128(1),
            opens_incidents: true,
            language: Language::En,
            zone: chrono_tz::Tz::UTC,
            monitors: (1..=monitors).map(watched).collect(),
            outages: AnnouncedOutages::default(),
            incidents: BTreeMap::new(),
            open: 0,
        };
        Self { desk, now: 0, ids: 0 }
    }

    fn wait(&mut self, millis: i64) {
        self.now += millis;
    }

    fn take(&mut self, happened: IncidentTrigger<'_>) -> Vec<(IncidentChange, bool)> {
        let ids = &mut self.ids;
        let mut random = || {
            *ids = ids.wrapping_add(1);
            [*ids; 10]
        };
        let events = self.desk.apply(happened, at(self.now), &mut random);
        events.into_iter().map(|events| (events.change, events.notify)).collect()
    }

    fn down(&mut self, n: u128) -> Vec<(IncidentChange, bool)> {
        self.down_from(n, None)
    }

    fn down_from(&mut self, n: u128, regions: Option<RegionSet>) -> Vec<(IncidentChange, bool)> {
        let mut change = StatusChange::new(MonitorStatus::Down, at(self.now - 10 * SECOND));
        change.alert = Some(AlertKind::WentDown);
        change.down_since = Some(change.since);
        change.reason = Some(Failure::Refused);
        change.down_from = regions;
        self.take(IncidentTrigger::WentDown(id(n), &change))
    }

    fn back(&mut self, n: u128) -> Vec<(IncidentChange, bool)> {
        self.take(IncidentTrigger::Recovered(id(n), None))
    }

    fn pause(&mut self, n: u128, paused: bool) -> Vec<(IncidentChange, bool)> {
        if let Some(watched) = self.desk.monitors.get_mut(&id(n)) {
            watched.paused = paused;
        }
        self.take(IncidentTrigger::Edited)
    }

    fn delete(&mut self, n: u128) -> Vec<(IncidentChange, bool)> {
        self.desk.monitors.remove(&id(n));
        self.take(IncidentTrigger::Edited)
    }

    /// A person posts an update on an incident.
    fn post(&mut self, incident: IncidentId, status: &str) {
        let post = UpdatePost { status: value(status), message: value("By hand"), notify: PatchField::Absent };
        let before = &self.desk.incidents[&incident];
        if let Ok((after, ..)) = post.validate(before, UpdateId::from_u128(u128::MAX), self.desk.locale(), at(self.now))
        {
            self.desk.open -= usize::from(!after.is_open());
            self.desk.incidents.insert(incident, after);
        }
    }

    fn newest(&self) -> &Incident {
        self.desk.incidents.values().next_back().unwrap()
    }

    fn open(&self) -> usize {
        self.desk.incidents.values().filter(|incident| incident.is_open()).count()
    }

    fn last_words(&self) -> &str {
        &self.newest().updates.last().unwrap().body
    }
}

const OPENED: (IncidentChange, bool) = (IncidentChange::Opened, true);
const JOINED: (IncidentChange, bool) = (IncidentChange::Updated, true);
const AGAIN: (IncidentChange, bool) = (IncidentChange::Updated, false);
const ONE_BACK: (IncidentChange, bool) = (IncidentChange::Updated, false);
const RESOLVED: (IncidentChange, bool) = (IncidentChange::Resolved, true);
const SILENT: (IncidentChange, bool) = (IncidentChange::Changed, false);
/// Resolved because monitoring ended; subscribers are not notified automatically.
const LEFT: (IncidentChange, bool) = (IncidentChange::Resolved, false);

#[test]
fn an_outage_opens_one_incident_and_its_end_resolves_it() {
    let mut page = Page::with(2);
    assert_eq!(page.down(1), [OPENED]);
    let incident = page.newest().clone();
    assert_eq!((incident.title.as_str(), incident.impact), ("M1 is down", Impact::Partial));
    assert_eq!((incident.automatic, incident.status), (true, IncidentStatus::Investigating));
    assert_eq!((incident.started_at, incident.created_at), (at(-10_000), at(0)));
    assert_eq!(page.last_words(), "M1 is down from every region that checks it: connection refused.");
    page.wait(12 * MINUTE);
    assert_eq!(page.back(1), [RESOLVED]);
    assert_eq!((page.newest().resolved_at, page.newest().automatic), (Some(at(12 * MINUTE)), true));
    assert_eq!(page.last_words(), "M1 is back up. The outage lasted 12 minutes.");
    assert!(page.back(1).is_empty() && page.desk.outages.down.is_empty());
}

#[test]
fn it_is_major_while_every_monitor_that_is_checked_is_down() {
    let mut page = Page::with(3);
    page.desk.monitors.get_mut(&id(3)).unwrap().paused = true;
    assert_eq!((page.down(1), page.newest().impact), (vec![OPENED], Impact::Partial));
    assert_eq!((page.down(2), page.newest().impact), (vec![JOINED], Impact::Major));
    assert_eq!((page.pause(3, false), page.newest().impact), (vec![SILENT], Impact::Partial));
    assert_eq!((page.delete(3), page.newest().impact), (vec![SILENT], Impact::Major));
    assert_eq!((page.back(1), page.newest().impact), (vec![ONE_BACK], Impact::Partial));
    assert_eq!(page.back(2), [RESOLVED]);
    let mut alone = Page::with(1);
    assert_eq!((alone.down(1), alone.newest().impact), (vec![OPENED], Impact::Major));
}

#[test]
fn a_monitor_joins_within_ten_minutes_and_rejoins_at_any_age() {
    let mut page = Page::with(9);
    page.down(1);
    page.wait(JOINABLE - 1);
    assert_eq!(page.down(2), [JOINED]);
    assert_eq!((page.newest().title.as_str(), page.open()), ("M1 and 1 other are down", 1));
    page.wait(1);
    assert_eq!(page.down(3), [OPENED], "the first is too old");
    page.wait(99 * MINUTE);
    assert_eq!(page.back(2), [ONE_BACK]);
    assert_eq!(page.down(2), [AGAIN], "it belonged to that one before");
    assert_eq!((page.back(1), page.back(2), page.back(3)), (vec![ONE_BACK], vec![RESOLVED], vec![RESOLVED]));
}

#[test]
fn a_persons_update_takes_the_incident_over() {
    let mut page = Page::with(2);
    page.down(1);
    let incident = page.newest().id;
    page.post(incident, "identified");
    let taken = page.newest().clone();
    assert!(!taken.automatic);
    assert_eq!(
        (page.back(1), page.down(1), page.back(1)),
        (vec![], vec![], vec![]),
        "a person has reported it already"
    );
    assert_eq!(page.newest(), &taken);
    assert_eq!(page.down(2), [OPENED], "but not the other monitor");
}

#[test]
fn resolved_by_hand_then_back_adds_nothing() {
    let mut page = Page::with(2);
    page.down(1);
    let incident = page.newest().id;
    page.post(incident, "resolved");
    let closed = page.newest().clone();
    assert_eq!((page.back(1), page.newest()), (vec![], &closed));
    assert_eq!(page.down(1), [OPENED], "the next outage is another one");
}

#[test]
fn pausing_and_deleting_count_as_back() {
    for delete in [false, true] {
        let mut page = Page::with(3);
        page.down(1);
        page.down(2);
        page.back(1);
        let events = if delete { page.delete(2) } else { page.pause(2, true) };
        assert_eq!(events, [LEFT], "{delete}: subscribers are notified only by a person");
        assert_eq!(page.last_words(), "The services that were still down are no longer monitored.");
        assert_eq!(page.down(2), [], "what is not checked opens nothing");
    }
}

#[test]
fn a_change_of_scope_rewrites_the_newest_update_without_notification() {
    let mut page = Page::with(2);
    page.down(1);
    page.down(2);
    let asia = RegionSet::only(Region::Asia);
    for region in [asia, RegionSet::only(Region::Europe), asia] {
        assert_eq!(page.take(IncidentTrigger::ScopeChanged(id(2), Some(region))), [SILENT]);
    }
    assert_eq!(page.take(IncidentTrigger::ScopeChanged(id(2), Some(asia))), [], "no news");
    assert_eq!(page.last_words(), "M2 is down from Asia: connection refused. It is reachable from other regions.");
    assert_eq!((page.newest().updates.len(), page.open()), (2, 1), "six regions, one outage, one incident");
    assert!(page.newest().updates[0].body.starts_with("M1 is down from every region"));
}

#[test]
fn updates_are_in_the_pages_language_and_recognized_in_every_language() {
    let mut page = Page::with(3);
    page.desk.language = Language::De;
    page.down(1);
    assert_eq!(page.newest().title, "M1 ist ausgefallen");
    assert_eq!(page.last_words(), "M1 ist aus keiner der prüfenden Regionen erreichbar: Verbindung abgelehnt.");
    page.desk.language = Language::Fr;
    assert_eq!(page.down(2), [JOINED]);
    assert_eq!(page.newest().title, "M1 et 1 autre sont en panne", "a generated title follows the language");
    page.take(IncidentTrigger::ScopeChanged(id(1), Some(RegionSet::only(Region::Asia))));
    assert!(page.newest().updates[0].body.starts_with("M1 est en panne vu de certaines régions (Asie) : "));
    page.desk.incidents.values_mut().for_each(|incident| incident.title = "Ours".to_owned());
    assert_eq!((page.down(3), page.newest().title.as_str()), (vec![JOINED], "Ours"));
}

#[test]
fn a_page_without_automatic_incidents_keeps_outages_and_closes_open_ones() {
    let mut page = Page::with(3);
    page.down(1);
    page.desk.opens_incidents = false;
    assert_eq!((page.down(2), page.back(1)), (vec![], vec![RESOLVED]));
    assert_eq!(page.desk.outages.down[&id(2)].incident, None);
}

#[test]
fn at_its_bounds_nothing_fails() {
    let mut page = Page::with(MAX_AFFECTED as u128 + 50);
    for n in 1..=MAX_AFFECTED as u128 + 50 {
        page.down(n);
    }
    assert_eq!(page.open(), 1);
    assert_eq!(page.newest().affected.len(), MAX_AFFECTED);
    assert_eq!(page.newest().updates.len(), MAX_UPDATES - 1, "one is left for the end");
    assert!(page.newest().title.chars().count() <= crate::incident::edit::MAX_TITLE);
    for n in 1..MAX_AFFECTED as u128 + 50 {
        page.back(n);
    }
    assert_eq!(page.back(MAX_AFFECTED as u128 + 50), [RESOLVED], "it was one of them, listed or not");
    assert_eq!(page.newest().updates.len(), MAX_UPDATES);

    let mut full = Page::with(2);
    full.desk.open = MAX_OPEN_INCIDENTS;
    assert_eq!((full.down(1), full.back(1)), (vec![], vec![]));
}

#[test]
fn events_mean_what_they_should() {
    let event = |what| Event { at: at(0), page: None, monitor: Some(id(1)), kind: what };
    let change = |from, to, alert, down_since| {
        let mut change = StatusChange::new(to, at(0));
        (change.from, change.alert, change.down_since) = (from, alert, down_since);
        event(EventKind::StatusChanged(change))
    };
    let back = Some(IncidentTrigger::Recovered(id(1), None));
    let recovered = change(MonitorStatus::Down, MonitorStatus::Up, Some(AlertKind::Recovered), Some(at(0)));
    assert_eq!(IncidentTrigger::of(&recovered), back);
    let covered = change(MonitorStatus::Down, MonitorStatus::Up, None, Some(at(0)));
    assert_eq!(IncidentTrigger::of(&covered), None, "the end of an outage in a window counts once announced");
    assert_eq!(
        IncidentTrigger::of(&change(MonitorStatus::Unknown, MonitorStatus::Up, None, None)),
        back,
        "it was paused meanwhile"
    );
    let silent = change(MonitorStatus::Up, MonitorStatus::Down, None, Some(at(0)));
    assert_eq!(IncidentTrigger::of(&silent), Some(IncidentTrigger::ScopeChanged(id(1), None)));
    assert_eq!(IncidentTrigger::of(&event(EventKind::MonitorEdited(EditKind::Deleted))), Some(IncidentTrigger::Edited));
    let went = change(MonitorStatus::Up, MonitorStatus::Down, Some(AlertKind::WentDown), Some(at(0)));
    assert!(matches!(IncidentTrigger::of(&went), Some(IncidentTrigger::WentDown(..))));
}

#[derive(Debug, Clone)]
enum Act {
    Down(u128),
    Back(u128),
    Pause(u128, bool),
    Rescope(u128, u8),
    Wait(i64),
    Opens(bool),
    Post(usize, bool),
    Delete(usize),
}

fn acts() -> impl Strategy<Value = Act> {
    let monitor = || 1..5_u128;
    prop_oneof![
        6 => monitor().prop_map(Act::Down),
        6 => monitor().prop_map(Act::Back),
        1 => (monitor(), any::<bool>()).prop_map(|(n, paused)| Act::Pause(n, paused)),
        1 => (monitor(), 0..6_u8).prop_map(|(n, region)| Act::Rescope(n, region)),
        3 => prop_oneof![Just(1_000_i64), Just(JOINABLE), 0..9_000_000_i64].prop_map(Act::Wait),
        1 => prop::bool::weighted(0.8).prop_map(Act::Opens),
        1 => (0..9_usize, any::<bool>()).prop_map(|(which, resolves)| Act::Post(which, resolves)),
        1 => (0..9_usize).prop_map(Act::Delete),
    ]
}

proptest! {
    #[test]
    fn an_outage_has_one_incident_at_most_which_ends_with_its_last_outage(
        acts in prop::collection::vec(acts(), 1..120),
    ) {
        let mut page = Page::with(4);
        let mut homes: BTreeMap<MonitorId, Option<IncidentId>> = BTreeMap::new();
        let mut resolved = 0;
        for act in acts {
            let before = page.desk.clone();
            let mut events = Vec::new();
            let person = |page: &Page, which: usize| {
                page.desk.incidents.values().filter(|it| it.is_open()).nth(which).map(|it| it.id)
            };
            match act {
                // A machine announces an outage once.
                Act::Down(n) if before.outages.down.contains_key(&id(n)) => {}
                Act::Down(n) => events = page.down(n),
                Act::Back(n) => events = page.back(n),
                Act::Pause(n, paused) => events = page.pause(n, paused),
                Act::Rescope(n, region) => {
                    let regions = RegionSet::only(Region::ALL[usize::from(region)]);
                    events = page.take(IncidentTrigger::ScopeChanged(id(n), Some(regions)));
                }
                Act::Wait(millis) => page.wait(millis),
                Act::Opens(opens) => page.desk.opens_incidents = opens,
                Act::Post(which, resolves) => {
                    if let Some(id) = person(&page, which) {
                        page.post(id, if resolves { "resolved" } else { "monitoring" });
                    }
                    continue;
                }
                Act::Delete(which) => {
                    if let Some(id) = person(&page, which) {
                        page.desk.incidents.remove(&id);
                        page.desk.open -= 1;
                    }
                    continue;
                }
            }
            let opened = page.desk.incidents.len() - before.incidents.len();
            prop_assert_eq!(events.iter().filter(|one| **one == OPENED).count(), opened);
            prop_assert!(opened <= 1);
            resolved += events.iter().filter(|one| one.0 == IncidentChange::Resolved).count();
            // An outage keeps the incident that it was assigned.
            homes.retain(|monitor, _| page.desk.outages.down.contains_key(monitor));
            for (monitor, outage) in &page.desk.outages.down {
                prop_assert_eq!(*homes.entry(*monitor).or_insert(outage.incident), outage.incident);
            }
            let checked: Vec<_> = page.desk.monitors.iter().filter(|(_, it)| !it.paused).collect();
            let all = checked.iter().all(|(id, _)| page.desk.outages.down.contains_key(id));
            for incident in page.desk.incidents.values() {
                let lasts = page.desk.outages.down.values().any(|outage| outage.incident == Some(incident.id));
                if incident.automatic {
                    let says_past = incident.title.ends_with(" was down") || incident.title.ends_with(" were down");
                    prop_assert_eq!(says_past, !incident.is_open(), "{}", incident.title);
                    prop_assert_eq!(incident.is_open(), lasts, "open while one of its monitors is down, no longer");
                }
                if incident.automatic && incident.is_open() {
                    prop_assert_eq!(incident.impact == Impact::Major, all);
                } else if let Some(same) = before.incidents.get(&incident.id).filter(|it| !it.automatic || !it.is_open()) {
                    prop_assert_eq!(incident, same, "a person's incident and a closed one are left alone");
                }
                prop_assert!(incident.updates.len() <= MAX_UPDATES);
            }
            prop_assert_eq!(page.desk.open, page.open());
            let outages = &page.desk.outages;
            prop_assert!(outages.widest_scope.keys().all(|monitor| outages.down.contains_key(monitor)));
        }
        let ended = page.desk.incidents.values().filter(|it| it.automatic && !it.is_open()).count();
        prop_assert_eq!(ended, resolved, "each is resolved once");
    }
}
