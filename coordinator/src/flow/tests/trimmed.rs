//! Tests of edits whose events were trimmed before the driver read them: every monitor is reloaded.

use std::collections::BTreeSet;

use super::*;
use crate::flow::warmup;
use crate::storage::Op;

#[tokio::test]
async fn a_journal_that_was_trimmed_before_it_was_read_makes_the_driver_look_at_every_monitor() {
    let store = store_with_a_monitor().await;
    let (cursor, next) = (store.reader().last_event().unwrap(), MonitorId::from_u128(78));
    let edits = |cursor| {
        let judging = Judging::default();
        warmup::edits(store.reader().as_ref(), cursor, &judging, Shard::WHOLE).unwrap()
    };
    assert!(!edits(cursor).whole, "nothing was missed yet");
    let created = Event {
        at: START,
        page: Some(PAGE),
        monitor: Some(next),
        what: What::MonitorEdited(Edited::Created),
    };
    let mut batch = storage::Batch::new();
    batch.write(Op::DeleteMonitor(MONITOR)).write(Monitor { id: next, slot: 1, ..monitor() }).event(created);
    store.commit(batch).await.unwrap();
    assert!(!edits(cursor).whole, "nor yet");
    store.commit(storage::Batch::new().write(Op::TrimEvents(u64::MAX)).clone()).await.unwrap();
    let found = edits(cursor);
    let put: BTreeSet<MonitorId> = found.put.iter().map(|(monitor, _)| monitor.id).collect();
    assert_eq!((found.whole, found.cursor, put), (true, cursor + 1, BTreeSet::from([next])));
    assert_eq!(found.covered, BTreeMap::from([(next, false)]));

    let (mesh, mut harvest, mut machines) = (mesh(), Harvest::default(), Machines::default());
    let mut cx = Cx { now: START, mesh: &mesh, harvest: &mut harvest };
    let (monitor, watch) = found.put.into_iter().next().unwrap();
    machines.put(&monitor, watch.clone(), &mut cx);
    machines.put(&Monitor { id: MONITOR, slot: 0, ..monitor }, Watch { monitor: MONITOR, ..watch }, &mut cx);
    assert_eq!(
        machines.others(&BTreeSet::from([next])),
        [MONITOR],
        "a monitor missing in the store is deleted"
    );
}
