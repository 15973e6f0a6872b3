//! Tests of the roster: connections, shared identities, and the state of each agent.

use parallax_core::member::IdentityState;
use parallax_core::vantage::{NetworkNo, Region};

use super::*;

fn agent(no: u16) -> AgentRecord {
    AgentRecord {
        id: AgentId::from_u128(u128::from(no)),
        vantage_no: VantageNo(no),
        name: format!("a{no}"),
        region: Region::Asia,
        network: "AS1".to_owned(),
        network_no: NetworkNo(1),
        joined_at: Timestamp::from_millis(0),
        revoked_at: None,
        serial: Vec::new(),
        identity: IdentityState::default(),
    }
}

fn connection_info(session: u64, at: i64) -> ConnectionInfo {
    ConnectionInfo {
        session,
        at: Timestamp::from_millis(at),
        remote: SocketAddr::from(([127, 0, 0, 1], 9)),
        software: "1".to_owned(),
        boot: BootId(session % 2),
        kinds: BTreeSet::new(),
        faults: Vec::new(),
    }
}

fn connected(roster: &Roster, no: u16) -> Option<bool> {
    roster.mesh().vantage(VantageNo(no)).map(|vantage| vantage.connected)
}

#[test]
fn an_agent_is_in_the_mesh_from_enrolment_and_connected_while_its_connection_lasts() {
    let mut roster = Roster::default();
    assert_eq!(roster.connect(VantageNo(1), connection_info(1, 0)), None);
    roster.set_agents(vec![agent(1)]);
    assert_eq!(connected(&roster, 1), Some(false));
    roster.connect(VantageNo(1), connection_info(1, 0));
    assert_eq!(connected(&roster, 1), Some(true));
    assert!(roster.disconnect(VantageNo(1), 1));
    assert_eq!(connected(&roster, 1), Some(false));
}

#[test]
fn the_end_of_a_replaced_connection_does_not_disconnect_the_newest() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    roster.connect(VantageNo(1), connection_info(1, 0));
    let outcome = roster.connect(VantageNo(1), connection_info(2, 10)).unwrap();
    assert_eq!(outcome, ConnectOutcome { replaced: Some(1), found_shared: false, shared_until: None });
    assert!(!roster.disconnect(VantageNo(1), 1));
    assert_eq!(connected(&roster, 1), Some(true));
}

#[test]
fn revoked_agents_are_removed_and_their_sessions_returned() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1), agent(2)]);
    roster.connect(VantageNo(1), connection_info(5, 0));
    let revoked = AgentRecord { revoked_at: Some(Timestamp::from_millis(1)), ..agent(1) };
    assert_eq!(roster.set_agents(vec![revoked, agent(2)]), [(VantageNo(1), 5)]);
    assert_eq!(connected(&roster, 1), None);
    assert_eq!(roster.agent(AgentId::from_u128(1)), None);
}

#[test]
fn enrolling_other_agents_keeps_connections() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    roster.connect(VantageNo(1), connection_info(5, 0));
    assert_eq!(roster.set_agents(vec![agent(1), agent(2)]), []);
    assert_eq!(connected(&roster, 1), Some(true));
}

#[test]
fn a_shared_identity_is_quarantined_and_released_after_a_quiet_time() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let found_shared: Vec<bool> = (0..6)
        .map(|n| {
            roster.connect(VantageNo(1), connection_info(n, i64::try_from(n).unwrap() * 1_000)).unwrap().found_shared
        })
        .collect();
    assert_eq!(found_shared, [false, false, false, true, false, false]);
    assert!(roster.mesh().vantage(VantageNo(1)).is_some_and(|vantage| vantage.quarantined && vantage.connected));
    assert_eq!(roster.release_settled(Timestamp::from_millis(100_000)), []);
    let end = Timestamp::from_millis(5_000 + TAKEOVER_SPAN_MS + 1);
    assert_eq!(roster.release_settled(end), [AgentId::from_u128(1)]);
    assert_eq!(roster.release_settled(end), [], "reported once");
    assert!(roster.mesh().vantage(VantageNo(1)).is_some_and(|vantage| !vantage.quarantined));
}

#[test]
fn restarts_and_bad_connections_are_no_shared_identity() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    for n in 0..20 {
        let restarted = ConnectionInfo { boot: BootId(n), ..connection_info(n, 0) };
        assert!(!roster.connect(VantageNo(1), restarted).unwrap().found_shared);
    }
    for n in 20..40 {
        let moved = ConnectionInfo { boot: BootId(99), ..connection_info(n, 0) };
        assert!(!roster.connect(VantageNo(1), moved).unwrap().found_shared);
    }
}

#[test]
fn a_wrong_clock_is_reported_once() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let reported = [1_999, -2_001, -9_000, 0, i64::MIN].map(|skew| roster.record_skew(VantageNo(1), skew));
    assert_eq!(reported, [false, true, false, false, true]);
    assert!(roster.agent_views()[0].is_clock_off);
}

#[test]
fn a_shared_identity_stays_in_quarantine_over_a_restart_without_another_report() {
    let until = Timestamp::from_millis(TAKEOVER_SPAN_MS);
    let identity = IdentityState { suspended_until: Some(until), ..IdentityState::default() };
    let mut roster = Roster::default();
    roster.set_agents(vec![AgentRecord { identity, ..agent(1) }]);
    assert!(roster.agent_views()[0].is_shared);
    roster.connect(VantageNo(1), connection_info(1, 1));
    assert_eq!(roster.release_settled(until), []);
    let outcome = roster.connect(VantageNo(1), connection_info(2, 10)).unwrap();
    assert_eq!(outcome.shared_until, Some(until + 10), "each take-over lengthens it");
    assert!(!outcome.found_shared);
    assert_eq!(roster.release_settled(until + 1), []);
    assert_eq!(roster.release_settled(until + 11), [AgentId::from_u128(1)]);
}

#[test]
fn a_clock_set_back_does_not_lengthen_the_quarantine_of_a_shared_identity() {
    let until = Some(Timestamp::from_millis(9 * TAKEOVER_SPAN_MS));
    let mut roster = Roster::default();
    roster.set_agents(vec![AgentRecord {
        identity: IdentityState { suspended_until: until, ..IdentityState::default() },
        ..agent(1)
    }]);
    assert_eq!(roster.release_settled(Timestamp::from_millis(0)), [AgentId::from_u128(1)]);
}

#[test]
fn an_unfit_host_confirms_nothing_until_it_is_fit() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let unfit = |roster: &Roster| roster.mesh().vantage(VantageNo(1)).map(|vantage| vantage.unfit);
    roster.connect(VantageNo(1), ConnectionInfo { faults: vec![WireOwnFault::NoRoute], ..connection_info(1, 0) });
    assert_eq!(unfit(&roster), Some(true));
    for (faults, expected) in [
        (vec![], false),
        (vec![WireOwnFault::ResolverDead], true),
        // It checks everything else.
        (vec![WireOwnFault::NotPermitted], false),
        (vec![WireOwnFault::NotPermitted, WireOwnFault::NoDescriptors], true),
        // A busy host still confirms, and the operator is not notified.
        (vec![WireOwnFault::Overloaded], false),
    ] {
        assert!(roster.record_faults(VantageNo(1), 1, &faults));
        assert_eq!(unfit(&roster), Some(expected), "{faults:?}");
        let displayed = &roster.agent_views()[0].unfit;
        assert_eq!(!displayed.is_empty(), expected, "the operator is notified of what the rules judge by: {faults:?}");
        assert!(!displayed.contains(&WireOwnFault::NotPermitted.to_string()));
    }
    roster.disconnect(VantageNo(1), 1);
    assert_eq!(unfit(&roster), Some(false), "it may come back another");
}

#[test]
fn a_contradicted_agent_is_shown_with_the_agents_that_contradict_it() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1), agent(2), agent(3)]);
    let contradictions =
        Contradictions { outcomes: 6, contradicted: 5, by: vec![(VantageNo(2), 5), (VantageNo(9), 3)] };
    let (quarantined, spared) =
        ([(VantageNo(1), contradictions.clone())].into(), [(VantageNo(3), contradictions)].into());
    roster.set_suspects(&SuspectedVantages { quarantined, spared });
    let displayed = |roster: &Roster| {
        let display_state = |view: AgentView| (view.is_quarantined, view.contradicted);
        roster.agent_views().into_iter().map(display_state).collect::<Vec<_>>()
    };
    let text = Some("5 of 6 results contradicted, 5 by a2 (AS1), 3 by agent number 9".to_owned());
    assert_eq!(displayed(&roster), [(true, text.clone()), (false, None), (false, text)]);
    assert!(roster.mesh().vantage(VantageNo(1)).unwrap().quarantined);
    assert!(!roster.mesh().vantage(VantageNo(3)).unwrap().quarantined);
    roster.set_suspects(&SuspectedVantages::default());
    assert_eq!(displayed(&roster), vec![(false, None); 3]);
}
