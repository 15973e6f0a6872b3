//! Tests of check now: which vantages are probed, and the result for a region where none can be.

use std::collections::BTreeSet;

use parallax_core::check::CheckKind;

use super::*;
use crate::{Capabilities, CheckNowRequest, CheckNowResult, CheckNowSubject, UnsavedCheck};

async fn request(driver: &TestDriver, subject: CheckNowSubject) -> oneshot::Receiver<Vec<CheckNowResult>> {
    let (reply, results) = oneshot::channel();
    driver
        .inbox
        .send(Arrival::CheckNow(CheckNowRequest { subject, reply, progress: watch::Sender::default() }))
        .await
        .unwrap();
    results
}

async fn check_now(driver: &TestDriver) -> oneshot::Receiver<Vec<CheckNowResult>> {
    request(driver, CheckNowSubject::Monitor(MONITOR)).await
}

async fn set_capabilities(driver: &TestDriver, kinds: &[(u16, CheckKind)]) {
    let kinds_by_vantage = kinds.iter().map(|(no, kind)| (VantageNo(*no), BTreeSet::from([*kind])));
    driver.inbox.send(Arrival::CapabilitiesChanged(Arc::new(Capabilities::new(kinds_by_vantage)))).await.unwrap();
}

#[tokio::test]
async fn only_a_vantage_that_can_run_the_check_type_is_probed() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let regions: BTreeSet<Region> = mesh().vantages().iter().map(|vantage| vantage.region).collect();
    for region in regions {
        let in_region: Vec<VantageNo> =
            mesh().vantages().iter().filter(|vantage| vantage.region == region).map(|vantage| vantage.no).collect();
        let Some((capable, others)) = in_region.split_first() else { continue };
        let others: Vec<_> = others.iter().map(|vantage| (vantage.0, CheckKind::Http)).collect();
        set_capabilities(&driver, &others).await;
        // Vantages take turns, but only those that can run the check.
        for _ in 0..3 {
            let reply = check_now(&driver).await;
            let mut vantages = Vec::new();
            while vantages.len() < mesh().available_regions().iter().count() {
                let probe = driver.probes.recv().await.unwrap();
                vantages.push(probe.request.vantage);
                driver.respond(&probe, passed()).await;
            }
            let results = reply.await.unwrap();
            let result = results.iter().find(|result| result.region == region).unwrap();
            assert_eq!(
                (result.vantage, result.unsupported, result.observation.is_some()),
                (Some(*capable), false, true)
            );
        }
    }
    driver.stop().await;
}

#[tokio::test]
async fn a_region_without_a_capable_vantage_is_reported_and_not_probed() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let all: Vec<_> = mesh().vantages().iter().map(|vantage| (vantage.no.0, CheckKind::Ping)).collect();
    set_capabilities(&driver, &all).await;
    let results = check_now(&driver).await.await.unwrap();
    assert!(!results.is_empty());
    assert!(results.iter().all(|it| it.unsupported && it.vantage.is_none() && it.observation.is_none()), "{results:?}");
    assert!(driver.probes.try_recv().is_err());
    driver.stop().await;
}

#[tokio::test]
async fn an_unsaved_check_is_run_and_leaves_no_trace() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    // Everything sent before is durable once this returns.
    driver.send(VantageNo(0), Vec::new()).await;
    let (events, version) = (store.reader().last_event().unwrap(), driver.schedule.borrow().version());
    let check = Arc::new(Check::Tcp(TcpCheck { host: "new.example".to_owned(), port: 9 }));
    for (pinned, regions) in [(None, vec![Region::Europe, Region::Asia]), (Some(Region::Asia), vec![Region::Asia])] {
        let (id, account, check) = (MonitorId::from_u128(900), AccountId::from_u128(3), Arc::clone(&check));
        let unsaved = UnsavedCheck { id, account, check: Arc::clone(&check), pinned };
        let reply = request(&driver, CheckNowSubject::Unsaved(unsaved)).await;
        for _ in &regions {
            let probe = driver.next_probe().await;
            assert_eq!((probe.monitor, probe.account, &probe.check), (id, account, &check));
            assert_eq!(probe.request.reason, ProbeReason::Manual);
            driver.respond(&probe, refused()).await;
        }
        let results = reply.await.unwrap();
        assert_eq!(results.iter().map(|result| result.region).collect::<Vec<_>>(), regions);
        assert!(results.iter().all(|result| result.observation.as_ref().is_some_and(|it| it.outcome == refused())));
    }
    driver.send(VantageNo(0), Vec::new()).await;
    assert_eq!(driver.view().await.unwrap().status, MonitorStatus::Up, "no other monitor is concerned");
    assert_eq!((store.reader().last_event().unwrap(), driver.schedule.borrow().version()), (events, version));
    driver.stop().await;
}

#[tokio::test]
async fn results_arrive_one_by_one() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let (reply, results) = oneshot::channel();
    let (progress, mut partial) = watch::channel(Vec::new());
    let subject = CheckNowSubject::Monitor(MONITOR);
    driver.inbox.send(Arrival::CheckNow(CheckNowRequest { subject, reply, progress })).await.unwrap();
    let answered = |results: &[CheckNowResult]| results.iter().filter(|it| it.observation.is_some()).count();
    let regions = mesh().available_regions().iter().count();
    for count in 0..regions {
        partial.changed().await.unwrap();
        let now = partial.borrow_and_update().clone();
        assert_eq!((now.len(), answered(&now)), (regions, count));
        assert!(now.iter().all(|it| it.vantage.is_some()), "every region has an agent");
        let probe = driver.next_probe().await;
        driver.respond(&probe, passed()).await;
    }
    assert_eq!(answered(&results.await.unwrap()), regions);
    driver.stop().await;
}

#[tokio::test]
async fn a_vantage_that_will_not_answer_is_reported_while_others_are_asked() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let (reply, results) = oneshot::channel();
    let (progress, mut partial) = watch::channel(Vec::new());
    let subject = CheckNowSubject::Monitor(MONITOR);
    driver.inbox.send(Arrival::CheckNow(CheckNowRequest { subject, reply, progress })).await.unwrap();
    partial.changed().await.unwrap();
    assert!(partial.borrow_and_update().iter().all(|it| !it.unanswered), "all are asked");
    let lost = driver.next_probe().await;
    let response = ProbeResponse::NoResponse;
    driver.inbox.send(Arrival::ProbeResponse { slot: lost.slot, number: lost.request.number, response }).await.unwrap();
    partial.changed().await.unwrap();
    let unanswered = |results: &[CheckNowResult]| -> Vec<Option<VantageNo>> {
        results.iter().filter(|it| it.unanswered).map(|it| it.vantage).collect()
    };
    assert_eq!(unanswered(&partial.borrow_and_update()), [Some(lost.request.vantage)]);
    for _ in 1..mesh().available_regions().iter().count() {
        let probe = driver.next_probe().await;
        driver.respond(&probe, passed()).await;
    }
    assert_eq!(unanswered(&results.await.unwrap()), [Some(lost.request.vantage)]);
    driver.stop().await;
}
