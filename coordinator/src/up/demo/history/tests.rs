//! The simulated history: the same each time, and in itself as consistent as a real one.

use std::collections::BTreeSet;

use parallax_core::event::{Event, EventKind};
use parallax_core::id::{AccountId, PageId};
use parallax_core::incident::Incident;
use parallax_core::observation::RoundOutcome;
use parallax_core::time::MINUTE;
use parallax_core::vantage::Region;

use super::incidents::PastIncidents;
use super::script::{DEPLOYS, DISPUTED, OUTAGES, SLOW, UNATTENDED, WINDOWS};
use super::stories::STORIES;
use super::*;

/// Milliseconds between two rounds of the demo.
const INTERVAL: u32 = 10_000;

/// Moments at the edges of a day, and one within.
fn presents() -> [Timestamp; 3] {
    ["2026-11-30T00:00:00Z", "2026-11-30T11:17:23.456Z", "2026-11-30T23:59:59.999Z"]
        .map(|text| Timestamp::parse_iso(text).unwrap())
}

fn page(now: Timestamp) -> Page {
    Page::blank(PageId::from_u128(7), AccountId::from_u128(8), "demo".to_owned(), now)
}

fn monitors(calendar: Calendar) -> Vec<SimulatedMonitor> {
    let subject = HistorySubject {
        plan: parallax_core::plan::Plan::Pro,
        page: page(calendar.now),
        page_url: String::new(),
        monitors: BTreeMap::new(),
        limits: PlanLimits { interval_ms: [INTERVAL; 3], ..PlanLimits::default() },
        now: calendar.now,
    };
    let monitor = |(slot, spec): (u32, &super::super::monitors::MonitorSpec)| {
        let new = parallax_core::monitor::NewMonitor {
            id: MonitorId::from_u128(0x9e37_79b9 * u128::from(slot + 1)),
            page: subject.page.id,
            slot,
            position: slot,
            now: calendar.now,
        };
        let record = Monitor::new(new, spec.edit(Some(8000)).validate(None, "token").unwrap());
        simulated(spec.key, spec.base_ms(), record, &subject, calendar, VantageNo(3))
    };
    (0..).zip(SPECS).map(monitor).collect()
}

fn incidents(calendar: Calendar, monitors: &[SimulatedMonitor]) -> PastIncidents {
    IncidentWriter { calendar, page: &page(calendar.now), monitors }.write().unwrap()
}

fn calendar() -> Calendar {
    Calendar::new(presents()[1])
}

#[test]
fn the_same_present_has_the_same_past() {
    let all = monitors(calendar());
    for key in ["search", "domain", "backup"] {
        let monitor = all.iter().find(|monitor| monitor.key == key).unwrap();
        let hours: Vec<_> = monitor.hours(calendar()).collect();
        assert_eq!(hours, monitor.hours(calendar()).collect::<Vec<_>>(), "{key}");
        assert_eq!(hours.is_empty(), key == "backup", "{key}");
        let rounds: Vec<_> =
            hours.iter().flat_map(|hour| hour.readings.iter().map(|it| (hour.region, it.round))).collect();
        assert_eq!(rounds.len(), rounds.iter().collect::<BTreeSet<_>>().len(), "{key}: each round once");
    }
    assert_eq!(incidents(calendar(), &all).incidents, incidents(calendar(), &all).incidents);
}

#[test]
fn failed_rounds_add_up_to_the_outages() {
    for monitor in monitors(calendar()) {
        let mut failed_ms = 0;
        let mut disputed = Vec::new();
        for hour in monitor.hours(calendar()) {
            let of = |outcome| hour.readings.iter().filter(move |reading| reading.outcome == outcome);
            failed_ms += i64::try_from(of(RoundOutcome::Failed).count()).unwrap() * calendar().cadence(hour.hour);
            disputed.extend(of(RoundOutcome::Disputed).map(|_| hour.region));
            assert!(of(RoundOutcome::Failed).all(|reading| reading.latency_ms.is_none()));
        }
        if monitor.component.is_some() {
            continue;
        }
        let outages = OUTAGES.iter().filter(|outage| outage.monitors.contains(&monitor.key));
        let minutes: i64 = outages.map(|outage| outage.minutes * i64::try_from(outage.regions.len()).unwrap()).sum();
        assert_eq!(failed_ms, minutes * MINUTE, "{}", monitor.key);
        let expected: &[Region] = if monitor.key == DISPUTED.monitor { &[DISPUTED.region] } else { &[] };
        assert_eq!(disputed, expected, "{}", monitor.key);
    }
}

#[test]
fn only_the_scripted_afternoon_is_slow() {
    let all = monitors(calendar());
    let slow = calendar().span(SLOW.start, SLOW.minutes);
    for monitor in &all {
        let Some(threshold) = monitor.record.slow_threshold_ms else { continue };
        for hour in monitor.hours(calendar()) {
            for reading in hour.readings.iter().filter(|reading| reading.latency_ms.is_some()) {
                let is_slow = reading.latency_ms.is_some_and(|latency| latency > threshold);
                let is_scripted =
                    monitor.key == SLOW.monitor && hour.region == SLOW.region && slow.contains(reading.due);
                assert_eq!(is_slow, is_scripted, "{} {} {}", monitor.key, hour.region, reading.due);
            }
        }
    }
}

#[test]
fn every_outage_of_the_last_month_has_its_events_and_every_outage_an_incident() {
    let all = monitors(calendar());
    let past = incidents(calendar(), &all);
    let events = events::past_events(calendar(), &all, past.events);
    let changes: Vec<(&Event, _)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::StatusChanged(change) => Some((event, change)),
            _ => None,
        })
        .collect();
    for outage in OUTAGES {
        let span = calendar().span(outage.start, outage.minutes);
        let affected = |monitor: &&SimulatedMonitor| outage.monitors.contains(&monitor.key);
        let ids: BTreeSet<MonitorId> = all.iter().filter(affected).map(|monitor| monitor.record.id).collect();
        let is_about = |incident: &&Incident| {
            let of_incident: BTreeSet<MonitorId> = incident.affected.iter().map(|it| it.monitor).collect();
            of_incident == ids && span.contains(incident.started_at)
        };
        let incident = past.incidents.iter().find(is_about).unwrap_or_else(|| panic!("{}", outage.key));
        assert!(incident.resolved_at.unwrap() >= span.to && !incident.is_open(), "{}", outage.key);
        assert_eq!(incident.automatic, UNATTENDED.contains(&outage.key));
        let is_recent = calendar().now.since(span.from) < 30 * DAY;
        for id in ids {
            let of_outage = changes
                .iter()
                .filter(|(event, change)| event.monitor == Some(id) && span.contains(change.down_since.unwrap()));
            let lengths: Vec<_> = of_outage.map(|(_, change)| (change.to.name(), change.duration_ms)).collect();
            let length = Some(u64::try_from(outage.minutes * MINUTE).unwrap());
            let expected = [("down", None), ("up", length)];
            assert_eq!(lengths, if is_recent { &expected[..] } else { &[] }, "{}", outage.key);
        }
    }
    let (down, change) = changes.iter().find(|(_, change)| change.down_from.is_some()).unwrap();
    assert_eq!(change.evidence.len(), 2, "two rounds of the only region");
    assert!(change.evidence.iter().all(|report| report.started <= down.at && report.region == Region::Asia));
}

#[test]
fn nothing_of_the_past_is_in_the_future() {
    for now in presents() {
        let calendar = Calendar::new(now);
        let all = monitors(calendar);
        let past = incidents(calendar, &all);
        for incident in &past.incidents {
            let ahead = incident.started_at > now;
            assert_eq!(ahead, incident.is_open(), "{}", incident.title);
            assert!(incident.created_at <= now && incident.last_change() <= now, "{}", incident.title);
            assert_eq!(ahead, incident.title == WINDOWS[1].title);
            assert!(!incident.is_imported(), "{}: it was written when it happened", incident.title);
        }
        assert_eq!(past.incidents.len(), STORIES.len() + WINDOWS.len() + UNATTENDED.len());
        assert!(past.incidents.iter().any(|incident| incident.postmortem.is_some()));
        let events = events::past_events(calendar, &all, past.events);
        assert!(events.iter().all(|event| event.at < now) && events.is_sorted_by_key(|event| event.at));
        let writer = IncidentWriter { calendar, page: &page(now), monitors: &all };
        let deploys = writer.deploys();
        assert!(deploys.len() == DEPLOYS.len() && deploys.iter().all(|deploy| deploy.at < now));
        let newest = all[0].hours(calendar).flat_map(|hour| hour.readings).map(|reading| reading.due).max().unwrap();
        assert!(newest < now && now.since(newest) <= 2 * MINUTE, "{newest}");
        let people = subscribers::subscribers(calendar, page(now).id, &[], || [1; 16]);
        let contacts: BTreeSet<_> = people.iter().map(|it| it.fingerprint).collect();
        assert_eq!((people.len(), contacts.len()), (220, 220));
        assert!(people.iter().all(|it| it.confirmed_at.is_some_and(|at| it.created_at < at && at < now)));
    }
}

#[test]
fn no_maintenance_touches_a_monitor_of_the_subscribers() {
    let chosen = |key: &&str| subscribers::CHOSEN.contains(key);
    assert!(WINDOWS.iter().all(|window| !window.monitors.iter().any(chosen)));
    let keys: BTreeSet<&str> = SPECS.iter().map(|spec| spec.key).collect();
    let named = WINDOWS.iter().map(|it| it.monitors).chain(OUTAGES.iter().map(|it| it.monitors));
    let named = named.chain(DEPLOYS.iter().map(|it| it.monitors)).flatten().chain(&subscribers::CHOSEN);
    named.for_each(|key| assert!(keys.contains(key), "{key}"));
}
