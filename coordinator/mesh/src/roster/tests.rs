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

fn arrived(session: u64, at: i64) -> ConnectionInfo {
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
    roster.mesh().vantage(VantageNo(no)).map(|place| place.connected)
}

#[test]
fn an_agent_is_in_the_mesh_from_its_enrolment_and_connected_while_it_is() {
    let mut roster = Roster::default();
    assert_eq!(roster.connect(VantageNo(1), arrived(1, 0)), None);
    roster.set_agents(vec![agent(1)]);
    assert_eq!(connected(&roster, 1), Some(false));
    roster.connect(VantageNo(1), arrived(1, 0));
    assert_eq!(connected(&roster, 1), Some(true));
    assert!(roster.disconnect(VantageNo(1), 1));
    assert_eq!(connected(&roster, 1), Some(false));
}

#[test]
fn the_newest_connection_has_the_place_and_the_older_ones_end_does_not_matter() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    roster.connect(VantageNo(1), arrived(1, 0));
    let seated = roster.connect(VantageNo(1), arrived(2, 10)).unwrap();
    assert_eq!(seated, ConnectOutcome { replaced: Some(1), found_shared: false, shared_until: None });
    assert!(!roster.disconnect(VantageNo(1), 1));
    assert_eq!(connected(&roster, 1), Some(true));
}

#[test]
fn the_revoked_are_gone_and_their_sessions_are_named() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1), agent(2)]);
    roster.connect(VantageNo(1), arrived(5, 0));
    let revoked = AgentRecord { revoked_at: Some(Timestamp::from_millis(1)), ..agent(1) };
    assert_eq!(roster.set_agents(vec![revoked, agent(2)]), [(VantageNo(1), 5)]);
    assert_eq!(connected(&roster, 1), None);
    assert_eq!(roster.agent(AgentId::from_u128(1)), None);
}

#[test]
fn enrolling_others_leaves_connections_alone() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    roster.connect(VantageNo(1), arrived(5, 0));
    assert_eq!(roster.set_agents(vec![agent(1), agent(2)]), []);
    assert_eq!(connected(&roster, 1), Some(true));
}

#[test]
fn a_flapping_pair_is_set_aside_and_let_out_when_it_rests() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let found: Vec<bool> = (0..6)
        .map(|n| roster.connect(VantageNo(1), arrived(n, i64::try_from(n).unwrap() * 1_000)).unwrap().found_shared)
        .collect();
    assert_eq!(found, [false, false, false, true, false, false]);
    assert!(roster.mesh().vantage(VantageNo(1)).is_some_and(|place| place.quarantined && place.connected));
    assert_eq!(roster.release_settled(Timestamp::from_millis(100_000)), []);
    let over = Timestamp::from_millis(5_000 + TAKEOVER_SPAN_MS + 1);
    assert_eq!(roster.release_settled(over), [AgentId::from_u128(1)]);
    assert_eq!(roster.release_settled(over), [], "reported once");
    assert!(roster.mesh().vantage(VantageNo(1)).is_some_and(|place| !place.quarantined));
}

#[test]
fn an_agent_that_is_killed_and_started_again_is_no_pair_and_neither_is_one_on_a_bad_line() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    for n in 0..20 {
        let restarted = ConnectionInfo { boot: BootId(n), ..arrived(n, 0) };
        assert!(!roster.connect(VantageNo(1), restarted).unwrap().found_shared);
    }
    for n in 20..40 {
        let moved = ConnectionInfo { boot: BootId(99), ..arrived(n, 0) };
        assert!(!roster.connect(VantageNo(1), moved).unwrap().found_shared);
    }
}

#[test]
fn a_clock_that_is_off_is_told_once() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let told = [1_999, -2_001, -9_000, 0, i64::MIN].map(|skew| roster.record_skew(VantageNo(1), skew));
    assert_eq!(told, [false, true, false, false, true]);
    assert!(roster.agent_views()[0].is_clock_off);
}

#[test]
fn a_pair_that_was_set_aside_before_a_restart_stays_aside_for_the_rest_of_its_time_and_is_told_of_no_more() {
    let until = Timestamp::from_millis(TAKEOVER_SPAN_MS);
    let standing = IdentityState { suspended_until: Some(until), ..IdentityState::default() };
    let mut roster = Roster::default();
    roster.set_agents(vec![AgentRecord { identity: standing, ..agent(1) }]);
    assert!(roster.agent_views()[0].is_shared);
    roster.connect(VantageNo(1), arrived(1, 1));
    assert_eq!(roster.release_settled(until), []);
    let seated = roster.connect(VantageNo(1), arrived(2, 10)).unwrap();
    assert_eq!(seated.shared_until, Some(until + 10), "each take-over lengthens it");
    assert!(!seated.found_shared);
    assert_eq!(roster.release_settled(until + 1), []);
    assert_eq!(roster.release_settled(until + 11), [AgentId::from_u128(1)]);
}

#[test]
fn a_clock_that_was_set_back_keeps_no_pair_aside_for_longer() {
    let until = Some(Timestamp::from_millis(9 * TAKEOVER_SPAN_MS));
    let mut roster = Roster::default();
    roster.set_agents(vec![AgentRecord {
        identity: IdentityState { suspended_until: until, ..IdentityState::default() },
        ..agent(1)
    }]);
    assert_eq!(roster.release_settled(Timestamp::from_millis(0)), [AgentId::from_u128(1)]);
}

#[test]
fn a_host_that_can_not_check_confirms_nobody_until_it_can() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1)]);
    let unfit = |roster: &Roster| roster.mesh().vantage(VantageNo(1)).map(|place| place.unfit);
    roster.connect(VantageNo(1), ConnectionInfo { faults: vec![WireOwnFault::NoRoute], ..arrived(1, 0) });
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
        let shown = &roster.agent_views()[0].unfit;
        assert_eq!(!shown.is_empty(), expected, "the operator is notified of what the rules judge by: {faults:?}");
        assert!(!shown.contains(&WireOwnFault::NotPermitted.to_string()));
    }
    roster.disconnect(VantageNo(1), 1);
    assert_eq!(unfit(&roster), Some(false), "it may come back another");
}

#[test]
fn an_agent_that_is_contradicted_is_shown_with_those_that_do() {
    let mut roster = Roster::default();
    roster.set_agents(vec![agent(1), agent(2), agent(3)]);
    let found = Contradictions { outcomes: 6, contradicted: 5, by: vec![(VantageNo(2), 5), (VantageNo(9), 3)] };
    let (held, spared) = ([(VantageNo(1), found.clone())].into(), [(VantageNo(3), found)].into());
    roster.set_suspects(&SuspectedVantages { quarantined: held, spared });
    let shown = |roster: &Roster| {
        let one = |view: AgentView| (view.is_quarantined, view.contradicted);
        roster.agent_views().into_iter().map(one).collect::<Vec<_>>()
    };
    let words = Some("5 of 6 results contradicted, 5 by a2 (AS1), 3 by agent number 9".to_owned());
    assert_eq!(shown(&roster), [(true, words.clone()), (false, None), (false, words)]);
    assert!(roster.mesh().vantage(VantageNo(1)).unwrap().quarantined);
    assert!(!roster.mesh().vantage(VantageNo(3)).unwrap().quarantined);
    roster.set_suspects(&SuspectedVantages::default());
    assert_eq!(shown(&roster), vec![(false, None); 3]);
}
