//! Undo of a new order: exact, around monitors that came, went or were changed since, and never against an order that
//! somebody else chose.

use super::*;

/// Monitors of the shop with these names, in this order.
async fn with_order(names: &[&str]) -> (World, Caller, Vec<MonitorId>) {
    let world = world().await;
    world.service.accounts.set_plan(world.owner.id, Plan::Pro).await.unwrap();
    let caller = person(&world, Role::Editor).await;
    let mut ids = Vec::new();
    for name in names {
        ids.push(world.make(&caller, name).await.unwrap().monitor.id);
    }
    (world, caller, ids)
}

/// Names of the shop's monitors in page order. Each has a position of its own.
fn order(world: &World) -> String {
    let monitors = world.service.context.store().reader().monitors_of(world.shop.id).unwrap();
    let positions: std::collections::BTreeSet<u32> = monitors.iter().map(|it| it.value.position).collect();
    assert_eq!(positions.len(), monitors.len(), "two monitors have one position: {monitors:?}");
    monitors.into_iter().map(|it| it.value.name).collect()
}

/// Saves an order, and returns the token.
async fn reorder(world: &World, caller: &Caller, ids: &[MonitorId]) -> Option<String> {
    let edit = MonitorOrderEdit { monitor_ids: PatchField::Value(ids.iter().map(ToString::to_string).collect()) };
    let page = world.shop.id;
    offered(|once| async move { world.service.monitors.reorder(caller, page, &edit, &once).await }).await
}

async fn delete(world: &World, caller: &Caller, id: MonitorId) {
    world.service.monitors.delete(caller, world.shop.id, id, false, &each_time()).await.unwrap();
}

#[tokio::test]
async fn an_order_is_undone_around_monitors_that_came_went_and_changed() {
    let (world, caller, ids) = with_order(&["a", "b", "c", "d", "e"]).await;
    // With a gap between the positions.
    delete(&world, &caller, ids[1]).await;
    let [a, c, d, e] = [0, 2, 3, 4].map(|at| ids[at]);
    let token = reorder(&world, &caller, &[e, d, a, c]).await.unwrap();
    assert_eq!(order(&world), "edac");
    let new = world.make(&caller, "f").await.unwrap().monitor.id;
    world.make(&caller, "g").await.unwrap();
    delete(&world, &caller, d).await;
    let set = MonitorEdit { group: text("Shop"), name: text("A"), ..MonitorEdit::default() };
    world.service.monitors.edit(&caller, world.shop.id, a, &set, &each_time()).await.unwrap();
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(order(&world), "Acefg");
    assert_eq!(stored(&world, a).group.as_deref(), Some("Shop"), "the order alone was undone");
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::UndoneBefore));
    let last = world.make(&caller, "h").await.unwrap().monitor.id;
    assert_eq!(order(&world), "Acefgh");
    assert!(stored(&world, last).position > stored(&world, new).position);
    assert_eq!(reorder(&world, &caller, &world.order_ids()).await, None, "nothing to undo");
}

#[tokio::test]
async fn an_order_that_somebody_changed_since_is_not_undone() {
    let (world, caller, ids) = with_order(&["a", "b", "c"]).await;
    let [a, b, c] = [0, 1, 2].map(|at| ids[at]);
    let token = reorder(&world, &caller, &[b, a, c]).await.unwrap();
    let other = world.caller(KeyAccess::Write).await;
    let later = MonitorOrderEdit { monitor_ids: PatchField::Value([b, c, a].map(|id| id.to_string()).to_vec()) };
    world.service.monitors.reorder(&other, world.shop.id, &later, &each_time()).await.unwrap();
    let UndoOutcome::Refused(obstacles) = undo(&world, &caller, &token).await else { panic!("it was undone") };
    let reasons: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
    assert_eq!(reasons, ["The order of the monitors was changed since by Robot."]);
    assert_eq!(order(&world), "bca");
    // Back as the first change left it: then that can be undone.
    let second = reorder(&world, &caller, &[b, a, c]).await.unwrap();
    assert!(matches!(undo(&world, &caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(order(&world), "abc");
    let UndoOutcome::Refused(obstacles) = undo(&world, &caller, &second).await else { panic!("it was undone") };
    assert_eq!(obstacles[0].by.as_deref(), Some("you"), "by the undo");
}

impl World {
    fn order_ids(&self) -> Vec<MonitorId> {
        let monitors = self.service.context.store().reader().monitors_of(self.shop.id).unwrap();
        monitors.into_iter().map(|it| it.value.id).collect()
    }
}
