//! Tests of DNS failures next to names that never resolved.

use super::*;

fn name_not_found() -> ProbeOutcome {
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
async fn a_new_dns_failure_next_to_names_that_never_resolved_is_confirmed() {
    let (store, clock) = (store_with_dead_names().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    while driver.view().await.is_none_or(|view| view.status != MonitorStatus::Up) {
        while let Ok(probe) = driver.probes.try_recv() {
            let outcome = if probe.slot == 0 { passed() } else { name_not_found() };
            driver.respond(&probe, outcome).await;
        }
        driver.send(VantageNo(0), Vec::new()).await;
    }
    for vantage in 0..4 {
        let failed = DEAD.map(|slot| (slot, driver.observation(vantage, Some(ROUND), name_not_found())));
        driver.send(VantageNo(vantage), failed.collect()).await;
        while driver.probes.try_recv().is_ok() {}
    }
    driver.result(0, ROUND, name_not_found()).await;
    let mut requests = Vec::new();
    while let Ok(probe) = driver.probes.try_recv() {
        requests.push((probe.slot, probe.request.reason));
    }
    assert!(requests.contains(&(0, ProbeReason::Confirm)), "{requests:?}");
    driver.stop().await;
}
