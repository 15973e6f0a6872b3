//! Each operator alert is in the journal once when it begins and once when it ends, across restarts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use parallax_core::operator_alert::MIN_DURATION;
use parallax_store::samples::{agent, at};

use super::*;

/// Inputs without any problem.
fn sources(store: &Store, clock: &Clock) -> HealthSources {
    HealthSources {
        store: store.clone(),
        clock: clock.clone(),
        counters: Arc::default(),
        agents: Arc::new(Vec::new),
        supervisor: Supervisor::default(),
        certificate_life: 9,
        authority_expiry: Arc::new(|| i64::MAX / 2_000),
        certificates: CertificateState::default(),
        own_addresses: None,
    }
}

fn notices(store: &Store) -> Vec<OperatorAlert> {
    let events = store.reader().events_after(0, 99).unwrap();
    let notice = |kind: &EventKind| match kind {
        EventKind::OperatorAlert(notice) => Some(notice.clone()),
        _ => None,
    };
    events.iter().filter_map(|recorded| notice(&recorded.event.kind)).collect()
}

#[test]
fn low_space_is_raised_and_cleared_at_different_bounds() {
    for (free, expected) in
        [(0, Some(true)), (LOW_SPACE - 1, Some(true)), (LOW_SPACE, None), (ENOUGH_SPACE, Some(false))]
    {
        assert_eq!(free_space(free).map(|(_, low)| low), expected, "{free}");
    }
}

#[test]
fn a_certificate_is_expiring_in_the_last_sixth_of_its_life() {
    let life = 30 * 86_400;
    let mut agent = agent(1);
    agent.identity.valid_from = 0;
    assert_eq!(agent_certificate(&agent, life, at(0)), None, "none was recorded");
    agent.identity.valid_from = 1;
    let ends = |now| agent_certificate(&agent, life, at(now)).map(|(_, ends)| ends);
    assert_eq!((ends(25 * DAY), ends(25 * DAY + 1001)), (Some(false), Some(true)));
}

#[tokio::test]
async fn each_problem_is_one_event_across_restarts() {
    let store = Store::in_memory().unwrap();
    let life = 30 * 86_400;
    let mut failing = agent(1);
    failing.identity.valid_from = 1;
    let mut batch = Batch::new();
    batch.write(failing.clone());
    store.commit(batch).await.unwrap();
    let clock = Clock::manual(at(29 * DAY));
    let health_checks = async || {
        let sources = HealthSources { certificate_life: life, ..sources(&store, &clock) };
        let mut health_checks = HealthChecks::start(sources).await.unwrap();
        // The in-memory store has no disk that could fill up.
        for _ in 0..3 {
            health_checks.runs = 1;
            health_checks.check().await.unwrap();
            clock.set(clock.now() + MIN_DURATION);
        }
    };
    health_checks().await;
    health_checks().await;
    let ends_at = at(life * SECOND + SECOND);
    let ending = |ends_at, ended| OperatorAlert {
        problem: OperatorProblem::AgentCertificateExpiring { agent: failing.id, ends_at },
        has_ended: ended,
    };
    assert_eq!(notices(&store), [ending(ends_at, false)]);
    let mut batch = Batch::new();
    let mut renewed = failing.clone();
    renewed.identity.valid_from = 29 * 86_400;
    batch.write(renewed);
    store.commit(batch).await.unwrap();
    health_checks().await;
    health_checks().await;
    assert_eq!(notices(&store)[1..], [ending(at(59 * DAY), true)]);
}

#[tokio::test]
async fn an_unfit_host_is_alerted_once_and_stays_so_while_its_agent_is_away() {
    let store = Store::in_memory().unwrap();
    let clock = Clock::manual(at(0));
    let enrolled = agent(1);
    let mut batch = Batch::new();
    batch.write(enrolled.clone());
    store.commit(batch).await.unwrap();
    let view = Arc::new(Mutex::new(connected(enrolled)));
    let shown_view = Arc::clone(&view);
    let agents = Arc::new(move || vec![shown_view.lock().unwrap().clone()]);
    let mut health_checks = HealthChecks::start(HealthSources { agents, ..sources(&store, &clock) }).await.unwrap();
    let mut check = async |connected: bool, faults: &[&str]| {
        {
            let mut view = view.lock().unwrap();
            view.connected_since = connected.then_some(at(0));
            view.unfit = faults.iter().map(|fault| (*fault).to_owned()).collect();
            // There are other faults too.
            let icmp = "this host may not send ICMP".to_owned();
            view.faults = view.unfit.iter().cloned().chain([icmp]).collect();
        }
        for _ in 0..2 {
            health_checks.runs = 1;
            health_checks.check().await.unwrap();
            clock.set(clock.now() + MIN_DURATION);
        }
        let alerts = notices(&store).into_iter().filter_map(|notice| match notice.problem {
            OperatorProblem::UnfitHost { faults, .. } => Some((faults, notice.has_ended)),
            _ => None,
        });
        alerts.collect::<Vec<_>>()
    };
    assert_eq!(check(true, &[]).await, []);
    let no_resolver = ("this host's resolver does not answer".to_owned(), false);
    assert_eq!(check(true, &[&no_resolver.0]).await, std::slice::from_ref(&no_resolver));
    assert_eq!(check(false, &[]).await, std::slice::from_ref(&no_resolver), "its state is unknown");
    assert_eq!(check(true, &["this host has no route", &no_resolver.0]).await, std::slice::from_ref(&no_resolver));
    assert_eq!(check(true, &[]).await, [no_resolver, (String::new(), true)]);
}

/// A connected agent without faults.
fn connected(agent: AgentRecord) -> AgentView {
    AgentView {
        agent: Arc::new(agent),
        connected_since: Some(at(0)),
        remote: None,
        software: None,
        faults: Vec::new(),
        unfit: Vec::new(),
        skew_ms: None,
        is_clock_off: false,
        is_quarantined: false,
        contradicted: None,
        is_shared: false,
        is_superseded: false,
        credentials: None,
        results: Default::default(),
    }
}

#[test]
fn agents_of_one_host_raise_one_alert() {
    let [no_resolver, unrouted] = ["this host's resolver does not answer", "this host has no route"];
    let views: Vec<AgentView> = [
        ("127.0.1.9:4000", Some(no_resolver)),
        ("127.0.1.7:4001", Some(no_resolver)),
        ("[::1]:4002", Some(no_resolver)),
        ("127.0.1.7:4003", Some(unrouted)),
        ("127.0.1.7:4004", None),
        ("192.0.2.7:4005", Some(no_resolver)),
        ("[::ffff:192.0.2.7]:4006", Some(no_resolver)),
        ("192.0.2.8:4007", Some(no_resolver)),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (remote, fault))| {
        let mut view = connected(AgentRecord { id: AgentId::from_u128(number as u128), ..agent(1) });
        view.remote = Some(remote.parse().unwrap());
        view.unfit = fault.into_iter().map(str::to_owned).collect();
        view
    })
    .collect();
    let topics = unfit_hosts(&views).into_iter().map(|(problem, is_present)| match problem {
        OperatorProblem::UnfitHost { agent, .. } => (agent.to_u128(), is_present),
        other => panic!("{other:?}"),
    });
    let expected = [(0, true), (3, true), (4, false), (5, true), (7, true)];
    assert_eq!(topics.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_expiring_authority_is_alerted_three_months_before_and_ended_by_rotation() {
    let store = Store::in_memory().unwrap();
    let clock = Clock::manual(at(0));
    let ends = Arc::new(AtomicI64::new(100 * 86_400));
    let current = Arc::clone(&ends);
    let authority_ends = Arc::new(move || current.load(Ordering::Relaxed));
    let sources = HealthSources { authority_expiry: authority_ends, ..sources(&store, &clock) };
    let mut health_checks = HealthChecks::start(sources).await.unwrap();
    let mut check = async |days: i64| {
        clock.set(at(days * DAY));
        for _ in 0..2 {
            health_checks.runs = 1;
            health_checks.check().await.unwrap();
            clock.set(clock.now() + MIN_DURATION);
        }
        notices(&store).len()
    };
    assert_eq!((check(9).await, check(11).await, check(12).await), (0, 1, 1));
    ends.store(7_000 * 86_400, Ordering::Relaxed);
    assert_eq!(check(13).await, 2);
    let [first, second] = notices(&store).try_into().unwrap();
    let summary = |notice: OperatorAlert| (notice.problem, notice.has_ended);
    assert_eq!(summary(first), (OperatorProblem::AuthorityExpiring(at(100 * DAY)), false));
    assert_eq!(summary(second), (OperatorProblem::AuthorityExpiring(at(7_000 * DAY)), true));
}

#[tokio::test]
async fn crashed_tasks_and_an_expiring_file_are_alerted_once_and_ended_once() {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    let certified_key = |until| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["status.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        CertificateAndKey::read(&params.self_signed(&key).unwrap().pem(), &key.serialize_pem()).unwrap()
    };
    let (old, new) = (certified_key(2021), certified_key(2030));
    let (old_ends, new_ends) = (old.not_after, new.not_after);
    let store = Store::in_memory().unwrap();
    let clock = Clock::manual(old_ends - 20 * DAY);
    let sources = sources(&store, &clock);
    let resolver = sources.certificates.resolver.clone();
    resolver.set_operator(old);
    let mut group = sources.supervisor.task_group();
    let supervisor = sources.supervisor.clone();
    let mut health_checks = HealthChecks::start(sources).await.unwrap();
    let mut check = async |at: Timestamp| {
        clock.set(at);
        for _ in 0..2 {
            health_checks.runs = 1;
            health_checks.check().await.unwrap();
            clock.set(clock.now() + MIN_DURATION);
        }
        notices(&store).into_iter().map(|notice| (notice.problem, notice.has_ended)).collect::<Vec<_>>()
    };
    assert_eq!(check(old_ends - 15 * DAY).await, []);
    let expiring = (OperatorProblem::CertificateFileExpiring(old_ends), false);
    assert_eq!(check(old_ends - 14 * DAY + 1).await, std::slice::from_ref(&expiring));
    resolver.set_operator(new);
    let alerts = [expiring, (OperatorProblem::CertificateFileExpiring(new_ends), true)];
    assert_eq!(check(old_ends - 13 * DAY).await, alerts);
    group.spawn_once("guest", async { panic!("on purpose") });
    supervisor.first_failure().await;
    let broken = [&alerts[..], &[(OperatorProblem::TasksCrashed(1), false)]].concat();
    assert_eq!(check(old_ends - 12 * DAY).await, broken);
    assert_eq!(check(old_ends - 11 * DAY).await, broken);
}

#[test]
fn a_contradicted_agent_that_is_not_quarantined_is_a_problem() {
    let contradicting = || Some("5 of 5 results contradicted".to_owned());
    let topics = |view: AgentView| contradiction(&view);
    let (free, throttled) = (
        AgentView { contradicted: contradicting(), ..connected(agent(1)) },
        AgentView { contradicted: contradicting(), is_quarantined: true, ..connected(agent(1)) },
    );
    let problem = OperatorProblem::Contradicted { agent: agent(1).id, by: contradicting().unwrap() };
    assert_eq!((topics(free), topics(throttled).1), ((problem, true), false));
    assert!(!topics(connected(agent(1))).1);
}

#[tokio::test]
async fn unreadable_own_addresses_are_alerted_until_they_are_read() {
    let (store, clock) = (Store::in_memory().unwrap(), Clock::manual(at(0)));
    let works = Arc::new(AtomicI64::new(0));
    let current = Arc::clone(&works);
    let own_addresses = OwnAddresses::from_reader(move || match current.load(Ordering::Relaxed) {
        // EAFNOSUPPORT, as in a systemd unit without AF_NETLINK.
        0 => Err(std::io::Error::from_raw_os_error(97)),
        _ => Ok(Vec::new()),
    });
    let addresses = own_addresses.clone();
    let sources = HealthSources { own_addresses: Some(own_addresses), ..sources(&store, &clock) };
    let mut health_checks = HealthChecks::start(sources).await.unwrap();
    let mut alerts = Vec::new();
    for works_now in [0, 1] {
        works.store(works_now, Ordering::Relaxed);
        // They are read again after a second.
        while addresses.check().is_ok() != (works_now == 1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for _ in 0..2 {
            health_checks.runs = 1;
            health_checks.check().await.unwrap();
            clock.set(clock.now() + MIN_DURATION);
        }
        alerts = notices(&store).into_iter().map(|notice| (notice.problem, notice.has_ended)).collect();
    }
    assert_eq!(alerts, [(OperatorProblem::DeliveriesBlocked, false), (OperatorProblem::DeliveriesBlocked, true)]);
}
