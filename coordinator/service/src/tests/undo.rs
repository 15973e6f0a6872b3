//! Undo of changes: one batch with the change, all or nothing, once, by the same person, for ten minutes.

mod opt_outs;
mod order;

use parallax_core::deploy::DeployEdit;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::destination::{Destination, MAX_DESTINATIONS};
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::monitor::Monitor;
use parallax_core::monitor::bulk_edit::MonitorBulkEdit;
use parallax_core::monitor::order_edit::MonitorOrderEdit;
use parallax_core::role::Role;
use parallax_core::undo::UNDO_WINDOW;

use super::*;
use crate::undo::UndoOutcome;
use crate::undo_offer::UndoOffer;

/// Person of that role in the owner's account.
async fn person(world: &World, role: Role) -> Caller {
    let session = world.signed_in(role).await;
    world.service.people.authenticate(&session.token).unwrap().unwrap().caller()
}

fn text(value: &str) -> PatchField<String> {
    PatchField::Value(value.to_owned())
}

fn fresh<T>(outcome: RequestOutcome<T>) -> T {
    match outcome {
        RequestOutcome::Fresh(value) => value,
        RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
    }
}

/// Makes a change with an offer to undo it, and returns the token.
async fn offered<T, F>(change: impl FnOnce(IdempotentRequest<'static, T>) -> F) -> Option<String>
where
    T: 'static,
    F: Future<Output = ServiceResult<RequestOutcome<T>>>,
{
    // Leaked: the request borrows it, and the closure returns a future of its own.
    let offer: &'static UndoOffer = Box::leak(Box::default());
    change(each_time().undoable(offer)).await.unwrap();
    offer.token().map(str::to_owned)
}

async fn undo(world: &World, caller: &Caller, token: &str) -> UndoOutcome {
    world.service.undo.undo(caller, token, &each_time()).await.unwrap()
}

fn stored(world: &World, id: MonitorId) -> Monitor {
    world.service.context.store().reader().monitor(id).unwrap().unwrap().value
}

/// A world with two monitors of the shop.
async fn with_monitors() -> (World, Caller, [MonitorId; 2]) {
    let world = world().await;
    let caller = person(&world, Role::Editor).await;
    let first = world.make(&caller, "Website").await.unwrap().monitor.id;
    let second = world.make(&caller, "Payments").await.unwrap().monitor.id;
    (world, caller, [first, second])
}

fn bulk(ids: &[MonitorId], set: MonitorEdit) -> MonitorBulkEdit {
    let monitor_ids = PatchField::Value(ids.iter().map(ToString::to_string).collect());
    MonitorBulkEdit { monitor_ids, set: PatchField::Value(set), ..MonitorBulkEdit::default() }
}

fn paused() -> MonitorEdit {
    MonitorEdit { paused: PatchField::Value(true), ..MonitorEdit::default() }
}

/// Pauses monitors, and returns the token.
async fn pause(world: &World, caller: &Caller, ids: &[MonitorId]) -> Option<String> {
    let (edit, page) = (bulk(ids, paused()), world.shop.id);
    offered(|once| async move { world.service.monitors.change_many(caller, page, &edit, &once).await }).await
}

#[tokio::test]
async fn the_change_and_its_inverse_are_one_commit_and_so_is_the_undo() {
    let (world, caller, ids) = with_monitors().await;
    let before = ids.map(|id| stored(&world, id));
    let revision = world.revision().await;
    let token = pause(&world, &caller, &ids).await.unwrap();
    // One commit has the change and its inverse: a crash leaves both or none.
    assert_eq!(world.revision().await, revision + 2);
    assert!(ids.iter().all(|id| stored(&world, *id).paused));
    let revision = world.revision().await;
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::Undone(RequestOutcome::Fresh(()))));
    assert_eq!(world.revision().await, revision + 2);
    assert_eq!(ids.map(|id| stored(&world, id)), before);
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::UndoneBefore));
    assert_eq!(world.service.undo.pending(&caller, &token), Ok(None));
    assert_eq!(world.service.undo.is_undone(&caller, &token), Ok(true));
    // Monitors that are so already have no change to undo.
    pause(&world, &caller, &ids).await.unwrap();
    assert_eq!(pause(&world, &caller, &ids).await, None);
}

#[tokio::test]
async fn a_change_that_was_not_committed_leaves_no_inverse() {
    let (world, caller, ids) = with_monitors().await;
    let offer = UndoOffer::default();
    let once = each_time::<()>().undoable(&offer);
    let before = stored(&world, ids[0]);
    let after = Monitor { paused: true, ..before.clone() };
    let mut batch = Batch::new();
    batch.expect(parallax_store::Expect::Monitor(ids[0], parallax_store::Presence::At(0))).write(after.clone());
    let earlier = vec![parallax_core::undo::EarlierMonitor::of(&before, &after).unwrap()];
    let inverse = || parallax_core::undo::InverseChange::Monitors(world.shop.id, earlier);
    world.service.context.record_undo(&caller, &once, inverse, &mut batch);
    assert!(world.service.context.store().commit(batch).await.is_err());
    let token = offer.token().unwrap();
    assert!(matches!(undo(&world, &caller, token).await, UndoOutcome::Expired));
    assert_eq!(stored(&world, ids[0]), before);
}

#[tokio::test]
async fn an_undo_after_anothers_change_says_why_and_changes_nothing() {
    let (world, caller, ids) = with_monitors().await;
    let token = pause(&world, &caller, &ids).await.unwrap();
    let (other, page) = (world.caller(KeyAccess::Write).await, world.shop.id);
    let rename = MonitorEdit { name: text("Payments API"), ..MonitorEdit::default() };
    world.service.monitors.edit(&other, page, ids[1], &rename, &each_time()).await.unwrap();
    let refused = async || match undo(&world, &caller, &token).await {
        UndoOutcome::Refused(obstacles) => obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused().await, ["Payments API was changed since by Robot."]);
    assert!(ids.iter().all(|id| stored(&world, *id).paused));
    world.service.monitors.delete(&caller, page, ids[0], false, &each_time()).await.unwrap();
    let expected = ["Website was deleted since by you.", "Payments API was changed since by Robot."];
    assert_eq!(refused().await, expected);
}

#[tokio::test]
async fn groups_and_settings_are_undone() {
    let (world, caller, ids) = with_monitors().await;
    let (service, page) = (&world.service, world.shop.id);
    let before = ids.map(|id| stored(&world, id));
    let set = MonitorEdit { group: text("Shop"), slow_threshold_ms: PatchField::Value(400), ..MonitorEdit::default() };
    let edit = bulk(&ids, set);
    let caller = &caller;
    let token =
        offered(|once| async move { service.monitors.change_many(caller, page, &edit, &once).await }).await.unwrap();
    assert_ne!(ids.map(|id| stored(&world, id)), before);
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(ids.map(|id| stored(&world, id)), before);
    // The undo of a pause of one monitor, and of its resumption.
    for is_paused in [true, false] {
        let edit = MonitorEdit { paused: PatchField::Value(is_paused), ..MonitorEdit::default() };
        let token =
            offered(|once| async move { service.monitors.edit(caller, page, ids[0], &edit, &once).await }).await;
        if is_paused {
            assert!(matches!(undo(&world, caller, &token.unwrap()).await, UndoOutcome::Undone(_)));
        } else {
            assert_eq!(token, None, "it was not paused");
        }
        assert!(!stored(&world, ids[0]).paused);
    }
}

#[tokio::test]
async fn only_the_same_person_undoes_and_only_for_ten_minutes() {
    let (world, caller, ids) = with_monitors().await;
    let token = pause(&world, &caller, &ids).await.unwrap();
    let others = [
        person(&world, Role::Owner).await,
        world.caller(KeyAccess::Write).await,
        Caller { account: world.foreign.account, ..caller.clone() },
    ];
    for other in &others {
        assert!(matches!(undo(&world, other, &token).await, UndoOutcome::Expired));
    }
    for wrong in ["", "x", &"a".repeat(65), "../../etc"] {
        assert!(matches!(undo(&world, &caller, wrong).await, UndoOutcome::Expired), "{wrong}");
    }
    let Actor::Person { id, name, is_operator, .. } = caller.actor.clone() else { panic!("a person") };
    let lowered = Caller { actor: Actor::Person { id, name, role: Role::Viewer, is_operator }, ..caller.clone() };
    assert_eq!(world.service.undo.pending(&lowered, &token), Ok(None));
    assert_eq!(world.service.undo.is_undone(&lowered, &token), Ok(false));
    let refused = world.service.undo.undo(&lowered, &token, &each_time()).await;
    assert_eq!(refused.unwrap_err(), ServiceError::RoleForbids { role: Role::Viewer });
    world.clock.set(world.service.now() + UNDO_WINDOW - 1);
    assert!(world.service.undo.pending(&caller, &token).unwrap().is_some());
    world.clock.set(world.service.now() + 1);
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::Expired));
    assert!(ids.iter().all(|id| stored(&world, *id).paused));
}

#[tokio::test]
async fn a_deleted_destination_comes_back_with_its_secret_unless_the_page_is_full() {
    let world = world().await;
    let (caller, service, page) = (&person(&world, Role::Owner).await, &world.service, world.shop.id);
    let hook = DestinationEdit {
        name: text("Team"),
        kind: text("webhook"),
        url: text("https://hooks.example.com/x"),
        ..DestinationEdit::default()
    };
    let create = async || fresh(service.destinations.create(caller, page, &hook, &each_time()).await.unwrap());
    let delete = async |destination: &Destination| {
        let id = destination.id;
        offered(|once| async move { service.destinations.delete(caller, page, id, &once).await }).await.unwrap()
    };
    let before = create().await;
    let token = delete(&before).await;
    assert!(service.destinations.get(caller, page, before.id).is_err());
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(service.destinations.get(caller, page, before.id).unwrap(), before);
    let token = delete(&before).await;
    while service.destinations.list(caller, page).await.unwrap().len() < MAX_DESTINATIONS {
        create().await;
    }
    let refused = service.undo.undo(caller, &token, &each_time()).await;
    assert!(matches!(refused, Err(ServiceError::PlanLimit(_))), "{refused:?}");
    assert_eq!(service.destinations.list(caller, page).await.unwrap().len(), MAX_DESTINATIONS);
}

#[tokio::test]
async fn a_deploy_and_a_key_come_back_with_their_ids() {
    let world = world().await;
    let (caller, service, page) = (&person(&world, Role::Owner).await, &world.service, world.shop.id);
    let edit = DeployEdit { version: text("v1"), ..DeployEdit::default() };
    let deploy = fresh(service.deploys.create(caller, page, &edit, &each_time()).await.unwrap());
    let id = deploy.id;
    let token = offered(|once| async move { service.deploys.delete(caller, page, id, &once).await }).await.unwrap();
    assert!(service.deploys.list(caller, page).await.unwrap().is_empty());
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(service.deploys.list(caller, page).await.unwrap(), [deploy]);

    let key = world.key(KeyAccess::Read, Some(&world.blog)).await;
    let id = service.keys.authenticate(key.reveal()).unwrap().key().unwrap().id;
    let revoke =
        async || offered(|once| async move { service.keys.revoke_as_member(caller, id, &once).await }).await.unwrap();
    let token = revoke().await;
    assert_eq!(service.keys.authenticate(key.reveal()).unwrap_err(), ServiceError::Unauthenticated);
    assert_eq!(service.undo.pending(caller, &token).unwrap().unwrap().revoked_key.unwrap().0, "Robot");
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(service.keys.authenticate(key.reveal()).unwrap().key().unwrap().id, id);
}

#[tokio::test]
async fn a_pause_that_ended_an_incident_offers_no_undo() {
    let (world, caller, ids) = with_monitors().await;
    let (caller, service, page) = (&caller, &world.service, world.shop.id);
    let incident = IncidentEdit {
        title: text("Website is down"),
        monitor_ids: PatchField::Value(vec![ids[0].to_string()]),
        ..IncidentEdit::default()
    };
    let incident = fresh(service.incidents.open(caller, page, &incident, &each_time()).await.unwrap());
    world.open_automatically(page, incident.incident.id, &ids[..1]).await;
    let ending = async |ids: &[MonitorId]| service.monitors.ending_incidents(caller, page, ids).await.unwrap();
    assert_eq!(ending(&ids[..1]).await, ["Website is down"]);
    assert!(ending(&ids[1..]).await.is_empty());
    let other = pause(&world, caller, &ids[1..]).await.unwrap();
    assert_eq!(pause(&world, caller, &ids).await, None, "the incident stays resolved");
    assert!(ids.iter().all(|id| stored(&world, *id).paused));
    assert!(ending(&ids).await.is_empty());
    assert!(matches!(undo(&world, caller, &other).await, UndoOutcome::Undone(_)));
    // Nor does the undo of a resumption resolve one.
    let resume = MonitorEdit { paused: PatchField::Value(false), ..MonitorEdit::default() };
    let edit = bulk(&ids, resume);
    let resumed = offered(|once| async move { service.monitors.change_many(caller, page, &edit, &once).await }).await;
    world.change_incident(incident.incident.id, |it| *it = incident.incident.clone()).await;
    world.open_automatically(page, incident.incident.id, &ids[..1]).await;
    let UndoOutcome::Refused(obstacles) = undo(&world, caller, &resumed.unwrap()).await else { panic!("undone") };
    assert_eq!(obstacles[0].to_string(), "“Website is down” was opened since.");
    assert!(!stored(&world, ids[0]).paused);
    // The same for a change of one.
    let edit = paused();
    let token = offered(|once| async move { service.monitors.edit(caller, page, ids[0], &edit, &once).await }).await;
    assert_eq!(token, None);
}

#[tokio::test]
async fn a_key_is_found_as_long_as_its_record_is_stored() {
    let world = world().await;
    let (keys, store) = (&world.service.keys, world.service.context.store());
    let text = world.key(KeyAccess::Read, None).await;
    let key = keys.authenticate(text.reveal()).unwrap().key().unwrap().clone();
    let found = || keys.authenticate(text.reveal()).is_ok();
    // A request that brings it back, and that ends right after its commit.
    keys.revoke(key.id).await.unwrap();
    keys.index(&key).unwrap();
    assert!(!found(), "nothing is stored yet");
    store.commit(Batch::new().write(key.clone()).clone()).await.unwrap();
    assert!(found());
    // A revocation from before cleans up late.
    keys.evict(&key);
    assert!(found());
    // One that could not be stored.
    store.commit(Batch::new().write(parallax_store::Op::DeleteKey(key.id)).clone()).await.unwrap();
    assert!(!found());
    keys.evict(&key);
    store.commit(Batch::new().write(key).clone()).await.unwrap();
    assert!(!found(), "it left the index");
}
