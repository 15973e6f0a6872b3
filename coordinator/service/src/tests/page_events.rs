//! Events of a page's monitors: one request reads a bounded part of the journal, and the cursors miss nothing.

use parallax_core::event::Event;
use parallax_core::vantage::{Region, RegionSet};

use super::*;

#[tokio::test]
async fn a_long_quiet_time_is_read_in_parts() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (service, page) = (&world.service, world.shop.id);
    let mut monitors = Vec::new();
    for name in ["a", "b"] {
        monitors.push(world.make(&caller, name).await.unwrap().monitor.id);
    }
    let event = |monitor, kind| Event { at: START, page: Some(page), monitor: Some(monitor), kind };
    let listed = || EventKind::ScopeChanged(Some(RegionSet::only(Region::Asia)));
    let mut batch = Batch::new();
    batch.event(event(monitors[0], listed()));
    for n in 0..20_000 {
        batch.event(event(monitors[n % 2], EventKind::MonitorEdited(EditKind::Changed)));
    }
    batch.event(event(monitors[1], listed()));
    service.context.store().commit(batch).await.unwrap();
    let (mut found, mut cursor) = (Vec::new(), None);
    let mut sizes = Vec::new();
    loop {
        let slice = service.history.page_events(&caller, page, None, cursor, 50).await.unwrap();
        sizes.push(slice.items.len());
        found.extend(slice.items.into_iter().filter_map(|entry| entry.event.monitor));
        cursor = slice.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((found, sizes), (vec![monitors[1], monitors[0]], vec![1, 0, 1]));
}
