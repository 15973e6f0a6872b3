//! Uptime of monitors without rounds of their own, on a page with more windows than the limit.

use parallax_core::downtime::Downtime;
use parallax_core::id::IncidentId;
use parallax_core::incident::{Incident, MAX_COUNTED_WINDOWS, MonitorImpact};
use parallax_core::time::HOUR;
use parallax_store::samples;

use super::*;
use crate::page_access::authorize::PageAddress;

#[tokio::test]
async fn windows_of_other_monitors_do_not_displace_a_monitors_own() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let created = world.service.monitors.create(&caller, world.shop.id, &component(), &each_time()).await.unwrap();
    let RequestOutcome::Fresh(created) = created else { panic!("nothing was sent twice") };
    let id = created.monitor.id;
    let window = |number: u128, from: Timestamp, to: Timestamp, monitor: MonitorId| Incident {
        id: IncidentId::from_u128(number),
        page: world.shop.id,
        started_at: from,
        ends_at: Some(to),
        resolved_at: Some(to),
        affected: vec![MonitorImpact { monitor, impact: None }],
        ..samples::window(number, 1, 0, false)
    };
    let mut batch = Batch::new();
    batch.write(window(1, START + HOUR, START + 2 * HOUR, id));
    for number in 0..MAX_COUNTED_WINDOWS as u128 {
        let other = MonitorId::from_u128(99);
        batch.write(window(2 + number, START + 3 * HOUR, START + 4 * HOUR, other));
    }
    world.service.context.store().commit(batch).await.unwrap();
    // Down for that hour, and for half of another.
    let time = |hours: i64| serde_json::to_value(START + hours * HOUR).unwrap();
    let half = serde_json::to_value(START + 5 * HOUR + 30 * MINUTE).unwrap();
    let downtime: Downtime = serde_json::from_value(serde_json::json!({
        "recorded_since": time(0), "down_since": null, "paused_since": null, "pauses": [],
        "outages": [{ "from": time(1), "to": time(2) }, { "from": time(5), "to": half }],
    }))
    .unwrap();
    let view = MachineView { downtime: Some(downtime), ..MachineView::default() };
    world.views.lock().unwrap().insert(id, view);
    world.clock.set(START + 6 * HOUR);
    let date = chrono::NaiveDate::from_ymd_opt(2026, 11, 27);
    let days = world.service.history.days(&caller, (world.shop.id, id), date, date).await.unwrap();
    assert_eq!(days[0].uptime, Some(90.0), "half an hour of the five that count");
    let shop = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let board =
        world.service.public_pages.view(&shop, Some(parallax_core::page_view::TimeRange::Quarter)).await.unwrap();
    assert_eq!(board.monitors[0].history.days.last().unwrap().uptime, Some(90.0));
}
