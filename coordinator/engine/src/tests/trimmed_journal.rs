//! Tests of edits whose events were trimmed before the driver read them: every monitor is reloaded.

use std::collections::BTreeSet;

use parallax_store::Op;

use super::*;
use crate::restore;

#[tokio::test]
async fn a_journal_trimmed_before_it_was_read_makes_the_driver_reload_every_monitor() {
    let store = store_with_a_monitor().await;
    let (cursor, next) = (store.reader().last_event().unwrap(), MonitorId::from_u128(78));
    let edits = |cursor| {
        let verdict_settings = VerdictSettings::default();
        restore::read_edits(store.reader().as_ref(), cursor, &verdict_settings, Shard::WHOLE).unwrap()
    };
    assert!(!edits(cursor).is_full_reload, "nothing was missed yet");
    let created =
        Event { at: START, page: Some(PAGE), monitor: Some(next), kind: EventKind::MonitorEdited(EditKind::Created) };
    let mut batch = storage::Batch::new();
    batch.write(Op::DeleteMonitor(MONITOR)).write(Monitor { id: next, slot: 1, ..monitor() }).event(created);
    store.commit(batch).await.unwrap();
    assert!(!edits(cursor).is_full_reload, "nor yet");
    store.commit(storage::Batch::new().write(Op::TrimEvents(u64::MAX)).clone()).await.unwrap();
    let reloaded = edits(cursor);
    let changed: BTreeSet<MonitorId> = reloaded.changed.iter().map(|(monitor, _)| monitor.id).collect();
    assert_eq!((reloaded.is_full_reload, reloaded.cursor, changed), (true, cursor + 1, BTreeSet::from([next])));
    assert_eq!(reloaded.covered, BTreeMap::from([(next, false)]));

    let (mesh, mut pending, mut machines) = (mesh(), PendingCommit::default(), Machines::default());
    let mut cx = Cx { now: START, mesh: &mesh, pending: &mut pending };
    let (monitor, settings) = reloaded.changed.into_iter().next().unwrap();
    machines.upsert(&monitor, settings.clone(), &mut cx);
    machines.upsert(
        &Monitor { id: MONITOR, slot: 0, ..monitor },
        EffectiveSettings { monitor: MONITOR, ..settings },
        &mut cx,
    );
    assert_eq!(machines.except(&BTreeSet::from([next])), [MONITOR], "a monitor missing in the store is deleted");
}
