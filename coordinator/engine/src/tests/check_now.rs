//! Tests of check now: which vantages are probed, and the result for a region where none can be.

use std::collections::BTreeSet;

use parallax_core::check::CheckKind;

use super::*;
use crate::{Capabilities, CheckNowRequest, CheckNowResult};

async fn look(stream: &TestDriver) -> oneshot::Receiver<Vec<CheckNowResult>> {
    let (answer, told) = oneshot::channel();
    stream.inbox.send(Arrival::CheckNow(CheckNowRequest { monitor: MONITOR, reply: answer })).await.unwrap();
    told
}

async fn able(stream: &TestDriver, kinds: &[(u16, CheckKind)]) {
    let places = kinds.iter().map(|(no, kind)| (VantageNo(*no), BTreeSet::from([*kind])));
    stream.inbox.send(Arrival::CapabilitiesChanged(Arc::new(Capabilities::new(places)))).await.unwrap();
}

#[tokio::test]
async fn only_a_place_that_can_run_the_type_is_asked() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    come_up(&mut stream).await;
    let regions: BTreeSet<Region> = mesh().vantages().iter().map(|place| place.region).collect();
    for region in regions {
        let here: Vec<VantageNo> =
            mesh().vantages().iter().filter(|place| place.region == region).map(|place| place.no).collect();
        let Some((able_one, others)) = here.split_first() else { continue };
        let others: Vec<_> = others.iter().map(|place| (place.0, CheckKind::Http)).collect();
        able(&stream, &others).await;
        // Vantages take turns, but only those that can run the check.
        for _ in 0..3 {
            let told = look(&stream).await;
            let mut asked = Vec::new();
            while asked.len() < mesh().available_regions().iter().count() {
                let question = stream.questions.recv().await.unwrap();
                asked.push(question.request.vantage);
                stream.answer(&question, passed()).await;
            }
            let sightings = told.await.unwrap();
            let seen = sightings.iter().find(|sighting| sighting.region == region).unwrap();
            assert_eq!((seen.vantage, seen.unsupported, seen.observation.is_some()), (Some(*able_one), false, true));
        }
    }
    stream.stop().await;
}

#[tokio::test]
async fn a_region_where_none_can_says_so_and_nobody_there_is_asked() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    come_up(&mut stream).await;
    let all: Vec<_> = mesh().vantages().iter().map(|place| (place.no.0, CheckKind::Ping)).collect();
    able(&stream, &all).await;
    let sightings = look(&stream).await.await.unwrap();
    assert!(!sightings.is_empty());
    assert!(
        sightings.iter().all(|it| it.unsupported && it.vantage.is_none() && it.observation.is_none()),
        "{sightings:?}"
    );
    assert!(stream.questions.try_recv().is_err());
    stream.stop().await;
}
