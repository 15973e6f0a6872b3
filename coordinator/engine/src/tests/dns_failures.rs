//! Tests of DNS failures next to names that never resolved.

use super::*;

fn missing() -> ProbeOutcome {
    ProbeOutcome::Failed(Measurements::default(), Failure::NameNotFound)
}

/// Slots of monitors with unregistered names.
const DEAD: std::ops::RangeInclusive<u32> = 1..=20;

async fn store_with_dead_names() -> Store {
    let store = store_with_a_monitor().await;
    let mut batch = storage::Batch::new();
    for slot in DEAD {
        let check = Check::Tcp(TcpCheck { host: format!("dead-{slot}.com"), port: 443 });
        let id = MonitorId::from_u128(100 + u128::from(slot));
        batch.write(Monitor { id, slot, check, ..monitor() });
    }
    store.commit(batch).await.unwrap();
    store
}

#[tokio::test]
async fn a_name_that_dies_beside_many_that_never_resolved_is_confirmed_as_any_other() {
    let (store, clock) = (store_with_dead_names().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    while stream.view().await.is_none_or(|view| view.status != MonitorStatus::Up) {
        while let Ok(question) = stream.questions.try_recv() {
            let outcome = if question.slot == 0 { passed() } else { missing() };
            stream.answer(&question, outcome).await;
        }
        stream.send(VantageNo(0), Vec::new()).await;
    }
    for place in 0..4 {
        let failed = DEAD.map(|slot| (slot, stream.seen(place, Some(ROUND), missing())));
        stream.send(VantageNo(place), failed.collect()).await;
        while stream.questions.try_recv().is_ok() {}
    }
    stream.result(0, ROUND, missing()).await;
    let mut asked = Vec::new();
    while let Ok(question) = stream.questions.try_recv() {
        asked.push((question.slot, question.request.reason));
    }
    assert!(asked.contains(&(0, ProbeReason::Confirm)), "{asked:?}");
    stream.stop().await;
}
