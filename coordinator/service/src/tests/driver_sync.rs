//! Edits and the driver: an answer shows the effect of the edit on monitors.

use parallax_core::event::MonitorStatus;
use parallax_core::incident::edit::IncidentEdit;

use super::*;

fn view(status: MonitorStatus) -> MachineView {
    MachineView { status, ..MachineView::default() }
}

#[tokio::test]
async fn a_change_and_its_repetition_return_the_resulting_status() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let id = world.make(&caller, "Cart").await.unwrap().monitor.id;
    world.views.lock().unwrap().insert(id, view(MonitorStatus::Up));
    world.views_after_edit.lock().unwrap().insert(id, view(MonitorStatus::Slow));
    let edit = MonitorEdit { slow_threshold_ms: PatchField::Value(5), ..MonitorEdit::default() };
    let answer = |view: &MonitorWithState| view.view.status.name().as_bytes().to_vec();
    let idempotency_key = IdempotencyKey::new(caller.limit_id(), "once", &[b"PATCH"]);
    let send = async || {
        let once = IdempotentRequest::new(Some(idempotency_key.clone()), &answer);
        world.service.monitors.edit(&caller, world.shop.id, id, &edit, &once).await.unwrap()
    };
    let RequestOutcome::Fresh(view) = send().await else { panic!("it was not sent before") };
    assert_eq!(view.view.status, MonitorStatus::Slow);
    let RequestOutcome::Replayed(repeated) = send().await else { panic!("it was sent before") };
    assert_eq!(repeated, b"slow");
}

#[tokio::test]
async fn an_edit_of_settings_is_answered_after_the_driver_read_it() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (service, page) = (&world.service, world.shop.id);
    let put = || world.views_after_edit.lock().unwrap().insert(MonitorId::from_u128(1), view(MonitorStatus::Up));
    let is_read = || world.views_after_edit.lock().unwrap().is_empty();
    put();
    let created = world.make(&caller, "Cart").await.unwrap().monitor.id;
    assert!(is_read(), "a new monitor");
    put();
    let regions = PatchField::Value(vec!["asia".to_owned()]);
    let edit = PageEdit { uptime_regions: regions, ..PageEdit::default() };
    service.pages.edit(&caller, page, &edit, &each_time()).await.unwrap();
    assert!(is_read(), "the page's regions");
    put();
    let text = |text: &str| PatchField::Value(text.to_owned());
    let window = IncidentEdit {
        kind: text("maintenance"),
        title: text("x"),
        starts_at: text(&service.now().to_string()),
        ends_at: text(&(service.now() + MINUTE).to_string()),
        ..IncidentEdit::default()
    };
    service.incidents.open(&caller, page, &window, &each_time()).await.unwrap();
    assert!(is_read(), "a window");
    put();
    service.accounts.set_plan(world.owner.id, Plan::Hobby).await.unwrap();
    assert!(is_read(), "the plan");
    put();
    service.monitors.delete(&caller, page, created, false, &each_time()).await.unwrap();
    assert!(is_read(), "a monitor that is gone");
}
