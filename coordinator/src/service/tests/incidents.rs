//! Incidents by their service: what the journal hears, and many hands on one incident.

use std::collections::BTreeSet;

use parallax_core::given::Given;
use parallax_core::id::IncidentId;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::{News, UpdatePost};

use super::*;
use crate::service::incidents::Shown as ShownIncident;

fn value(text: &str) -> Given<String> {
    Given::Value(text.to_owned())
}

fn titled() -> IncidentEdit {
    IncidentEdit { title: value("Broken"), ..IncidentEdit::default() }
}

fn now<T>(done: Done<T>) -> T {
    match done {
        Done::Now(value) => value,
        Done::Before(_) => panic!("nothing was sent twice"),
    }
}

async fn open(world: &World, caller: &Caller, edit: IncidentEdit) -> IncidentId {
    let opened = world.service.open_incident(caller, world.shop.id, &edit, &each_time()).await;
    now(opened.unwrap()).incident.id
}

async fn told(world: &World) -> Vec<(News, bool, bool)> {
    let told = |what: &What| match what {
        What::Incident(told) => Some((told.news, told.update.is_some(), told.notify)),
        _ => None,
    };
    world.events().await.iter().filter_map(told).collect()
}

#[tokio::test]
async fn the_journal_hears_of_every_step_and_who_is_to_be_told() {
    let world = world().await;
    let caller = world.caller(Access::Write).await;
    let (service, page) = (&world.service, world.shop.id);
    let id = open(&world, &caller, titled()).await;
    let quiet = IncidentEdit { notify: Given::Value(false), ..titled() };
    open(&world, &caller, quiet).await;
    let past = IncidentEdit { resolved_at: value(&service.now().to_string()), ..titled() };
    open(&world, &caller, past).await;
    for (status, notify) in [("identified", true), ("resolved", false)] {
        let notify = Given::Value(notify);
        let post = UpdatePost { status: value(status), message: value("x"), notify };
        service.post_update(&caller, page, id, &post, &each_time()).await.unwrap();
    }
    let edit = IncidentEdit { postmortem: value("Why"), ..IncidentEdit::default() };
    service.edit_incident(&caller, page, id, &edit, &each_time()).await.unwrap();
    // What changes nothing is no news.
    service.edit_incident(&caller, page, id, &edit, &each_time()).await.unwrap();
    service.delete_incident(&caller, page, id, &each_time()).await.unwrap();
    assert_eq!(
        told(&world).await,
        [
            (News::Opened, true, true),
            (News::Opened, true, false),
            (News::Resolved, true, false),
            (News::Updated, true, true),
            (News::Resolved, true, false),
            (News::Changed, false, false),
            (News::Deleted, false, false),
        ]
    );
}

#[tokio::test]
async fn fifty_updates_at_once_are_all_there_in_the_end() {
    let world = Arc::new(world().await);
    let caller = world.caller(Access::Write).await;
    let id = open(&world, &caller, titled()).await;
    let posts = (0..50).map(|number| {
        let (world, caller) = (Arc::clone(&world), caller.clone());
        tokio::spawn(async move {
            let post = UpdatePost { message: value(&number.to_string()), ..UpdatePost::default() };
            let posted = world.service.post_update(&caller, world.shop.id, id, &post, &each_time()).await;
            let _: ShownIncident = now(posted.unwrap());
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
    let shown = world.service.incident(&caller, world.shop.id, id).await.unwrap();
    let bodies: BTreeSet<&str> = shown.incident.updates.iter().map(|update| update.body.as_str()).collect();
    assert_eq!((shown.incident.updates.len(), bodies.len()), (51, 51));
    assert!(shown.incident.updates.windows(2).all(|pair| pair[0].created_at <= pair[1].created_at));
}
