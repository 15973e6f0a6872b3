//! Tests of whole agents on hosts with a wrong wall clock: they join, their results have the right time, and the
//! skew is shown.

use parallax_agent::config::{AgentConfig, NameServers};
use parallax_core::observation::ProbeOutcome;
use parallax_core::time::{HOUR, MINUTE};
use tokio::sync::oneshot;

use super::*;

/// Tolerance for a result's times on a busy host; the smallest skew tested here is ten minutes.
const NEAR_MS: i64 = 60_000;

/// Runs an agent whose host clock is ahead of the coordinator's by `ahead_ms`, until it has proved to work.
async fn run_on_a_host_that_is_ahead(ahead_ms: i64) {
    let coordinator_time = move || Timestamp::from_millis(Clock::system().now().as_millis() - ahead_ms);
    let authority = MeshAuthority::generate(coordinator_time().as_millis().div_euclid(SECOND)).unwrap();
    let lifetime = 20;
    let mut test_mesh = TestMesh::with_certificate_life(authority, lifetime).await;
    let clock = test_mesh.clock.clone();
    clock.set(coordinator_time());
    let ticking = tokio::spawn(async move {
        let mut tick = interval(Duration::from_millis(2));
        loop {
            tick.tick().await;
            clock.set(coordinator_time());
        }
    });
    let target = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let check = Check::Tcp(TcpCheck { host: "127.0.0.1".to_owned(), port: target.local_addr().unwrap().port() });
    test_mesh.schedule([ScheduledMonitor { check: Arc::new(check), interval_ms: 1_000, ..monitor(1, 1) }]);

    let token = test_mesh.invite(1);
    test_mesh.set_expiry(1, coordinator_time() + HOUR);
    let folder = tempfile::tempdir().unwrap();
    let config = AgentConfig {
        allow_private: true,
        allow_own_host: true,
        resolvers: NameServers::Servers(vec![(Ipv4Addr::LOCALHOST, 9).into()]),
        ..AgentConfig::new(folder.path().join("agent"))
    };
    let address = test_mesh.mesh.address().to_string();
    parallax_agent::join::join(&config, &address, &token.expose()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let agent = tokio::spawn(parallax_agent::run(config, async {
        let _ = stopped.await;
    }));

    let mut rounds = Vec::new();
    while rounds.len() < 4 {
        let batch = test_mesh.batch().await;
        let now = coordinator_time();
        for (_, observation) in &batch.observations {
            assert!(matches!(observation.outcome, ProbeOutcome::Passed(_)), "{ahead_ms}: {observation:?}");
            for time in [observation.started, observation.ended] {
                let off = now.since(time);
                assert!(off.abs() < NEAR_MS, "{ahead_ms}: a result of now is {off} ms off");
            }
            rounds.push(observation.round.unwrap());
        }
        let _ = batch.on_durable.send(());
    }
    assert!(rounds.windows(2).all(|pair| pair[0] < pair[1]), "{ahead_ms}: {rounds:?}");
    let skew_reported = async {
        while test_mesh.mesh.agents()[0].skew_ms.is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, skew_reported).await.expect("the skew is reported");
    let view = test_mesh.mesh.agents().remove(0);
    let skew = view.skew_ms.unwrap();
    assert!((skew - ahead_ms).abs() < NEAR_MS, "{skew} ms shown of {ahead_ms}");
    assert_eq!(view.is_clock_off, ahead_ms.abs() > 2_000 + NEAR_MS, "{ahead_ms}");

    // Its certificate, which is valid for seconds, is renewed by the coordinator's time.
    let renewed = async {
        while test_mesh.mesh.counters().renewed.load(Ordering::Relaxed) == 0 {
            let batch = test_mesh.batch().await;
            let _ = batch.on_durable.send(());
        }
    };
    timeout(Duration::from_secs(30), renewed).await.expect("it is renewed in time");
    stop.send(()).unwrap();
    drop(test_mesh);
    ticking.abort();
    let _ = timeout(LIMIT, agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_clock_is_wrong_by_minutes_days_or_decades_works_like_any_other() {
    let day = 24 * HOUR;
    let cases = [0, 10 * MINUTE, -10 * MINUTE, day, -day, 56 * 365 * day, -73 * 365 * day];
    futures_util::future::join_all(cases.map(run_on_a_host_that_is_ahead)).await;
}
