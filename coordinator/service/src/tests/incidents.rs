//! Incidents through the service: journal events, and concurrent edits of one incident.

use std::collections::BTreeSet;

use parallax_core::event::MonitorStatus;
use parallax_core::headline::Indicator;
use parallax_core::id::IncidentId;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::{Incident, IncidentChange, MonitorImpact, UpdatePost};
use parallax_core::machine::MachineView;
use parallax_core::monitor::bulk_edit::MonitorBulkEdit;
use parallax_core::patch::PatchField;
use parallax_core::time::HOUR;
use parallax_core::vantage::{Region, RegionSet};
use parallax_store::{Expect, StoreError};

use super::*;
use crate::incidents::IncidentDetail as ShownIncident;
use crate::page_access::authorize::PageAddress;

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

fn titled() -> IncidentEdit {
    IncidentEdit { title: value("Broken"), ..IncidentEdit::default() }
}

fn fresh<T>(outcome: RequestOutcome<T>) -> T {
    match outcome {
        RequestOutcome::Fresh(value) => value,
        RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
    }
}

async fn open(world: &World, caller: &Caller, edit: IncidentEdit) -> IncidentId {
    let opened = world.service.incidents.open(caller, world.shop.id, &edit, &each_time()).await;
    fresh(opened.unwrap()).incident.id
}

async fn incident_events(world: &World) -> Vec<(IncidentChange, bool, bool)> {
    let incident_events = |kind: &EventKind| match kind {
        EventKind::Incident(incident_events) => {
            Some((incident_events.change, incident_events.update.is_some(), incident_events.notify))
        }
        _ => None,
    };
    events(world).await.iter().filter_map(incident_events).collect()
}

#[tokio::test]
async fn every_step_is_an_event_that_says_whether_to_notify() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (service, page) = (&world.service, world.shop.id);
    let id = open(&world, &caller, titled()).await;
    let silent_edit = IncidentEdit { notify: PatchField::Value(false), ..titled() };
    open(&world, &caller, silent_edit).await;
    let past = IncidentEdit { resolved_at: value(&service.now().to_string()), ..titled() };
    open(&world, &caller, past).await;
    for (status, notify) in [("identified", true), ("resolved", false)] {
        let notify = PatchField::Value(notify);
        let post = UpdatePost { status: value(status), message: value("x"), notify };
        service.incidents.post_update(&caller, page, id, &post, &each_time()).await.unwrap();
    }
    let edit = IncidentEdit { postmortem: value("Why"), ..IncidentEdit::default() };
    service.incidents.edit(&caller, page, id, &edit, &each_time()).await.unwrap();
    // An edit that changes nothing emits no event.
    service.incidents.edit(&caller, page, id, &edit, &each_time()).await.unwrap();
    service.incidents.delete(&caller, page, id, &each_time()).await.unwrap();
    assert_eq!(
        incident_events(&world).await,
        [
            (IncidentChange::Opened, true, true),
            (IncidentChange::Opened, true, false),
            (IncidentChange::Resolved, true, false),
            (IncidentChange::Updated, true, true),
            (IncidentChange::Resolved, true, false),
            (IncidentChange::Changed, false, false),
            (IncidentChange::Deleted, false, false),
        ]
    );
}

#[tokio::test]
async fn fifty_concurrent_updates_are_all_stored() {
    let world = Arc::new(world().await);
    let caller = world.caller(KeyAccess::Write).await;
    let id = open(&world, &caller, titled()).await;
    let posts = (0..50).map(|number| {
        let (world, caller) = (Arc::clone(&world), caller.clone());
        tokio::spawn(async move {
            let post = UpdatePost { message: value(&number.to_string()), ..UpdatePost::default() };
            let outcome = world.service.incidents.post_update(&caller, world.shop.id, id, &post, &each_time()).await;
            let _: ShownIncident = fresh(outcome.unwrap());
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
    let view = world.service.incidents.get(&caller, world.shop.id, id).await.unwrap();
    let bodies: BTreeSet<&str> = view.incident.updates.iter().map(|update| update.body.as_str()).collect();
    assert_eq!((view.incident.updates.len(), bodies.len()), (51, 51));
    assert!(view.incident.updates.windows(2).all(|pair| pair[0].created_at <= pair[1].created_at));
}

#[tokio::test]
async fn a_deleted_window_is_cancelled_with_a_higher_version_than_its_last() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (service, page) = (&world.service, &world.shop);
    let later = |after: i64| value(&(service.now() + after).to_string());
    let window = IncidentEdit {
        kind: value("maintenance"),
        message: value("We move"),
        starts_at: later(HOUR),
        ends_at: later(2 * HOUR),
        ..titled()
    };
    let id = open(&world, &caller, window).await;
    let early = service.incidents.deletion(page, id).unwrap();
    let post = UpdatePost { message: value("Still to come"), ..UpdatePost::default() };
    service.incidents.post_update(&caller, page.id, id, &post, &each_time()).await.unwrap();
    let refusal = service.context.store().commit(early).await;
    assert!(matches!(refusal, Err(StoreError::Conflict(Expect::Incident(..)))), "{refusal:?}");
    let last = service.context.store().reader().incident(id).unwrap().unwrap().revision;
    service.incidents.delete(&caller, page.id, id, &each_time()).await.unwrap();
    let admitted = service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let cancelled = service.public_pages.cancelled_windows(&admitted).await.unwrap();
    assert_eq!(cancelled.iter().map(|window| window.version).collect::<Vec<_>>(), [last + 1]);
}

/// A page with three monitors, and an automatic incident with that title for all of them.
async fn automatic(title: &str) -> (World, Caller, Vec<MonitorId>, IncidentId) {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let mut ids = Vec::new();
    for name in ["API", "Shop", "Mail"] {
        ids.push(world.make(&caller, name).await.unwrap().monitor.id);
    }
    let id = open(&world, &caller, titled()).await;
    let opened = world.service.context.store().reader().incident(id).unwrap().unwrap().value;
    let affected = ids.iter().map(|monitor| MonitorImpact { monitor: *monitor, impact: None }).collect();
    let mut batch = Batch::new();
    batch.write(Incident { automatic: true, title: title.to_owned(), affected, ..opened });
    world.service.context.store().commit(batch).await.unwrap();
    (world, caller, ids, id)
}

#[tokio::test]
async fn the_headline_of_an_automatic_incident_names_monitors_that_are_down() {
    use MonitorStatus::{Down, Slow, Unknown, Up};

    let (world, caller, ids, _) = automatic("API and 2 others are down").await;
    let headline = async |states: [MonitorStatus; 3], asia: bool, unseen: bool| {
        for (id, status) in ids.iter().zip(states) {
            let down_from = (asia && status == Down).then_some(RegionSet::only(Region::Asia));
            let outage_since = (unseen && status == Unknown).then_some(START);
            let view = MachineView { status, down_from, outage_since, ..MachineView::default() };
            world.views.lock().unwrap().insert(*id, view);
        }
        let overview = world.service.public_pages.overview(&caller, world.shop.id).await.unwrap();
        assert_eq!(overview.indicator, Indicator::Partial, "the indicator follows the incident");
        overview.headline
    };
    world.mesh.set_in_service(&[Region::Asia]);
    for (states, asia, unseen, expected) in [
        ([Down, Up, Up], false, false, "API is down"),
        ([Up, Down, Up], true, false, "Shop is down from Asia"),
        ([Up, Down, Down], true, false, "Shop and 1 other are down"),
        ([Down, Down, Down], false, false, "API and 2 others are down"),
        ([Down, Down, Down], true, false, "API and 2 others are down"),
        // None is down now: the incident is still open.
        ([Up, Slow, Up], false, false, "API and 2 others are down"),
        ([Unknown, Up, Down], false, true, "Mail is down"),
        ([Unknown, Up, Up], false, true, "API and 2 others are down"),
    ] {
        assert_eq!(headline(states, asia, unseen).await, expected, "{states:?}");
    }
    // Without agents, not all monitors are known to be down.
    world.mesh.set_in_service(&[]);
    assert_eq!(headline([Up, Down, Down], false, false).await, "Shop and 1 other are down");
    let (world, caller, _, _) = automatic("A cable is cut").await;
    assert_eq!(world.service.public_pages.overview(&caller, world.shop.id).await.unwrap().headline, "A cable is cut");
}

/// The same, with announced outages of those monitors.
async fn with_outages(title: &str, down: &[usize]) -> (World, Caller, Vec<MonitorId>, IncidentId) {
    let (world, caller, ids, id) = automatic(title).await;
    let down: Vec<MonitorId> = down.iter().map(|at| ids[*at]).collect();
    world.open_automatically(world.shop.id, id, &down).await;
    (world, caller, ids, id)
}

#[tokio::test]
async fn an_incident_drops_deleted_names_and_ends_with_its_last_monitor() {
    const TITLE: &str = "API and 2 others are down";
    let rename = |to: &str| MonitorEdit { name: value(to), ..MonitorEdit::default() };
    let pause = |notify| MonitorEdit { paused: PatchField::Value(true), notify, ..MonitorEdit::default() };
    let last = async |world: &World, id: IncidentId| {
        let incident = world.service.context.store().reader().incident(id).unwrap().unwrap().value;
        let body = incident.updates.last().unwrap().body.clone();
        (incident.title.clone(), incident.is_open(), body)
    };
    let (world, caller, ids, id) = with_outages(TITLE, &[0, 1]).await;
    let (service, page) = (&world.service, world.shop.id);
    service.monitors.edit(&caller, page, ids[0], &rename("Core"), &each_time()).await.unwrap();
    assert_eq!(last(&world, id).await.0, "Core and 2 others are down");
    service.monitors.edit(&caller, page, ids[1], &rename("Store"), &each_time()).await.unwrap();
    assert_eq!(last(&world, id).await.0, "Core and 2 others are down", "the title does not name that one");
    service.monitors.delete(&caller, page, ids[0], false, &each_time()).await.unwrap();
    let (title, is_open, _) = last(&world, id).await;
    assert_eq!((title.as_str(), is_open), ("Store and 1 other are down", true), "another one is still down");
    service.monitors.edit(&caller, page, ids[1], &pause(PatchField::Absent), &each_time()).await.unwrap();
    let (title, is_open, body) = last(&world, id).await;
    assert_eq!((title.as_str(), is_open), ("Store and 1 other were down", false));
    assert_eq!(body, "Store is no longer monitored.");
    assert_eq!(incident_events(&world).await.last(), Some(&(IncidentChange::Resolved, true, false)));
    for notify in [false, true] {
        let (world, caller, ids, id) = with_outages(TITLE, &[2]).await;
        let deleted = world.service.monitors.delete(&caller, world.shop.id, ids[2], notify, &each_time()).await;
        deleted.unwrap();
        let (title, is_open, body) = last(&world, id).await;
        assert_eq!((title.as_str(), is_open), ("API and 2 others were down", false));
        assert_eq!(body, "Mail is no longer monitored.");
        assert_eq!(incident_events(&world).await.last(), Some(&(IncidentChange::Resolved, true, notify)));
        let (world, caller, ids, _) = with_outages(TITLE, &[0]).await;
        let pause = pause(PatchField::Value(notify));
        world.service.monitors.edit(&caller, world.shop.id, ids[0], &pause, &each_time()).await.unwrap();
        assert_eq!(incident_events(&world).await.last(), Some(&(IncidentChange::Resolved, true, notify)));
    }
    let (world, caller, ids, id) = with_outages("A cable is cut", &[0, 1]).await;
    world.service.monitors.delete(&caller, world.shop.id, ids[0], false, &each_time()).await.unwrap();
    assert_eq!(last(&world, id).await.0, "A cable is cut", "a person wrote it");
}

#[tokio::test]
async fn a_change_of_many_ends_an_incident_once() {
    const TITLE: &str = "API and 2 others are down";
    let pause = || MonitorEdit { paused: PatchField::Value(true), ..MonitorEdit::default() };
    for (down, changed, deletes, title, body) in [
        // The last one that is down ends it.
        (vec![0, 1], vec![0, 1], false, "API and 2 others were down", Some("Shop is no longer monitored.")),
        (vec![0, 1], vec![1, 0], false, "API and 2 others were down", Some("API is no longer monitored.")),
        (vec![0, 1], vec![0, 1], true, "Shop and 1 other were down", Some("Shop is no longer monitored.")),
        // A change after the end leaves it as it is.
        (vec![0], vec![0, 1, 2], false, "API and 2 others were down", Some("API is no longer monitored.")),
        // Another one is still down.
        (vec![0, 1], vec![0], true, "Shop and 1 other are down", None),
    ] {
        let (world, caller, ids, id) = with_outages(TITLE, &down).await;
        let before = incident_events(&world).await.len();
        let edit = MonitorBulkEdit {
            monitor_ids: PatchField::Value(changed.iter().map(|at| ids[*at].to_string()).collect()),
            set: if deletes { PatchField::Absent } else { PatchField::Value(pause()) },
            delete: PatchField::Value(deletes),
            notify: PatchField::Value(true),
        };
        let report = world.service.monitors.change_many(&caller, world.shop.id, &edit, &each_time()).await.unwrap();
        assert!(fresh(report).results.iter().all(|result| result.outcome == Ok(true)));
        let incident = world.service.context.store().reader().incident(id).unwrap().unwrap().value;
        assert_eq!((incident.title.as_str(), incident.is_open()), (title, body.is_none()), "{down:?} {changed:?}");
        let changes = incident_events(&world).await.split_off(before);
        match body {
            Some(body) => {
                assert_eq!(incident.updates.last().unwrap().body, body);
                assert_eq!(changes, [(IncidentChange::Resolved, true, true)]);
            }
            None => assert_eq!(changes, [(IncidentChange::Changed, false, false)]),
        }
    }
}

#[tokio::test]
async fn a_pause_with_a_new_name_replaces_the_old_name() {
    let paused =
        |name: &str| MonitorEdit { name: value(name), paused: PatchField::Value(true), ..MonitorEdit::default() };
    for (title, down, at, expected, body) in [
        ("API and 2 others are down", vec![0], 0, "Core and 2 others were down", Some("Core")),
        ("API and 2 others are down", vec![2], 2, "API and 2 others were down", Some("Core")),
        // Another one is still down.
        ("API and 2 others are down", vec![0, 1], 0, "Core and 2 others are down", None),
        ("API and 2 others are down", vec![0, 1], 1, "API and 2 others are down", None),
        ("A cable is cut", vec![0], 0, "A cable is cut", Some("Core")),
    ] {
        let (world, caller, ids, id) = with_outages(title, &down).await;
        let edit = paused("Core");
        world.service.monitors.edit(&caller, world.shop.id, ids[at], &edit, &each_time()).await.unwrap();
        let incident = world.service.context.store().reader().incident(id).unwrap().unwrap().value;
        assert_eq!((incident.title.as_str(), incident.is_open()), (expected, body.is_none()), "{down:?} {at}");
        if let Some(name) = body {
            let last = &incident.updates.last().unwrap().body;
            assert_eq!(*last, format!("{name} is no longer monitored."));
        }
    }
}

#[tokio::test]
async fn a_renamed_monitor_keeps_the_flapping_title() {
    let (world, caller, ids, id) = with_outages("API is down", &[0]).await;
    world
        .change_incident(id, |incident| {
            incident.affected.truncate(1);
            incident.title = "API is flapping".to_owned();
        })
        .await;
    let edit = MonitorEdit { name: value("Core"), ..MonitorEdit::default() };
    world.service.monitors.edit(&caller, world.shop.id, ids[0], &edit, &each_time()).await.unwrap();
    let incident = world.service.context.store().reader().incident(id).unwrap().unwrap().value;
    assert_eq!(incident.title, "Core is flapping");
}

#[tokio::test]
async fn a_window_moved_into_the_past_is_completed_and_announced() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let at = |minutes: i64| value(&(world.service.now() + minutes * 60_000).to_string());
    let window = IncidentEdit { kind: value("maintenance"), starts_at: at(-30), ends_at: at(30), ..titled() };
    let id = open(&world, &caller, window).await;
    world.change_incident(id, |incident| incident.has_begun = true).await;
    let edit = IncidentEdit { ends_at: at(-10), ..IncidentEdit::default() };
    world.service.incidents.edit(&caller, world.shop.id, id, &edit, &each_time()).await.unwrap();
    assert_eq!(incident_events(&world).await.last(), Some(&(IncidentChange::Completed, false, true)));
}

#[tokio::test]
async fn resolving_an_automatic_incident_keeps_its_generated_title() {
    for (title, status, expected) in [
        ("API and 2 others are down", "resolved", "API and 2 others were down"),
        ("API and 2 others are down", "monitoring", "API and 2 others are down"),
        ("The API is down", "resolved", "The API is down"),
    ] {
        let (world, caller, _, id) = automatic(title).await;
        let post = UpdatePost { status: value(status), message: value("x"), ..UpdatePost::default() };
        let outcome = world.service.incidents.post_update(&caller, world.shop.id, id, &post, &each_time()).await;
        let incident = fresh(outcome.unwrap()).incident;
        assert_eq!((incident.title.as_str(), incident.automatic), (expected, false), "{title} {status}");
    }
}

#[tokio::test]
async fn a_title_that_is_edited_while_resolving_is_kept() {
    for (title, expected) in
        [("A cable was cut", "A cable was cut"), ("API and 2 others are down", "API and 2 others were down")]
    {
        let (world, caller, _, id) = automatic("API and 2 others are down").await;
        let edit = IncidentEdit { title: value(title), ..IncidentEdit::default() };
        let post = UpdatePost { status: value("resolved"), message: value("x"), ..UpdatePost::default() };
        let of_page = (world.shop.id, id);
        let outcome = world.service.incidents.edit_and_post(&caller, of_page, &edit, &post, &each_time()).await;
        assert_eq!(fresh(outcome.unwrap()).incident.title, expected);
    }
}
