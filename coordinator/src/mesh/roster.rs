//! Who is enrolled and who is here: each agent's place, connection, clock and quarantine.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use parallax_core::id::AgentId;
use parallax_core::member::Agent;
use parallax_core::place::{Mesh, Place, PlaceNo};
use parallax_core::time::{MINUTE, Timestamp};

/// Take-overs of one identity within [`TAKEOVER_SPAN_MS`] from which two hosts seem to share it.
const MOST_TAKEOVERS: usize = 3;

/// How long a take-over counts, in ms.
const TAKEOVER_SPAN_MS: i64 = 5 * MINUTE;

/// From this on a host's clock is shown as off, in ms.
const SKEW_SHOWN_MS: i64 = 2_000;

/// All agents that are enrolled and not revoked.
#[derive(Debug, Default)]
pub(super) struct Roster {
    entries: BTreeMap<PlaceNo, Entry>,
}

#[derive(Debug)]
struct Entry {
    agent: Arc<Agent>,
    live: Option<Live>,
    is_quarantined: bool,
    is_shared: bool,
    takeovers: VecDeque<Timestamp>,
    skew_ms: Option<i64>,
}

#[derive(Debug)]
struct Live {
    session: u64,
    since: Timestamp,
    remote: SocketAddr,
    software: String,
    faults: Vec<String>,
}

/// What an agent tells of itself when it connects.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) session: u64,
    pub(super) at: Timestamp,
    pub(super) remote: SocketAddr,
    pub(super) software: String,
    pub(super) faults: Vec<String>,
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seated {
    /// The session that had the place before.
    pub(super) replaced: Option<u64>,
    /// Two hosts have now been found to share the identity.
    pub(super) found_shared: bool,
}

/// One agent as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// Its record.
    pub agent: Arc<Agent>,
    /// Since when it is connected.
    pub connected_since: Option<Timestamp>,
    /// Where it connects from.
    pub remote: Option<SocketAddr>,
    /// Its software version.
    pub software: Option<String>,
    /// What ails it, in words.
    pub faults: Vec<String>,
    /// Its wall clock minus the coordinator's in ms, as last told.
    pub skew_ms: Option<i64>,
    /// Whether that is more than 2 s either way.
    pub is_clock_off: bool,
    /// Whether its rounds do not count, for whatever reason.
    pub is_quarantined: bool,
    /// Whether two hosts take its identity from each other.
    pub is_shared: bool,
}

impl Roster {
    /// Sets who is enrolled. Gives the sessions of those that no longer are.
    pub(super) fn enrol(&mut self, agents: Vec<Agent>) -> Vec<(PlaceNo, u64)> {
        let mut before = std::mem::take(&mut self.entries);
        for agent in agents.into_iter().filter(|agent| agent.revoked_at.is_none()) {
            let place = agent.place;
            let agent = Arc::new(agent);
            let entry = match before.remove(&place) {
                Some(entry) if entry.agent.id == agent.id => Entry { agent, ..entry },
                _ => Entry {
                    agent,
                    live: None,
                    is_quarantined: false,
                    is_shared: false,
                    takeovers: VecDeque::new(),
                    skew_ms: None,
                },
            };
            self.entries.insert(place, entry);
        }
        before.into_iter().filter_map(|(place, entry)| Some((place, entry.live?.session))).collect()
    }

    /// The record of an enrolled agent.
    pub(super) fn agent(&self, id: AgentId) -> Option<Arc<Agent>> {
        self.entries.values().find(|entry| entry.agent.id == id).map(|entry| Arc::clone(&entry.agent))
    }

    /// Seats a connection. The newest has the place; none where the agent is not enrolled.
    pub(super) fn connect(&mut self, place: PlaceNo, arrived: Arrived) -> Option<Seated> {
        let entry = self.entries.get_mut(&place)?;
        let now = arrived.at;
        let replaced = entry.live.as_ref().map(|live| live.session);
        let was_shared = entry.is_shared;
        if replaced.is_some() {
            entry.takeovers.push_back(now);
            entry.forget_takeovers(now);
            entry.is_shared |= entry.takeovers.len() > MOST_TAKEOVERS;
        }
        entry.live = Some(Live {
            session: arrived.session,
            since: now,
            remote: arrived.remote,
            software: arrived.software,
            faults: arrived.faults,
        });
        Some(Seated { replaced, found_shared: entry.is_shared && !was_shared })
    }

    /// Ends a session's seat, where it still has it. Says whether it had.
    pub(super) fn disconnect(&mut self, place: PlaceNo, session: u64) -> bool {
        match self.entries.get_mut(&place) {
            Some(entry) if entry.live.as_ref().is_some_and(|live| live.session == session) => {
                entry.live = None;
                true
            }
            _ => false,
        }
    }

    /// Puts a place into quarantine or lets it out. Says whether that changed anything.
    pub(super) fn quarantine(&mut self, place: PlaceNo, quarantined: bool) -> bool {
        self.entries
            .get_mut(&place)
            .is_some_and(|entry| std::mem::replace(&mut entry.is_quarantined, quarantined) != quarantined)
    }

    /// Notes how far a host's wall clock is ahead. Says whether it has now crossed what is shown as off.
    pub(super) fn note_skew(&mut self, place: PlaceNo, skew_ms: i64) -> bool {
        let is_off = |skew: i64| skew.unsigned_abs() > SKEW_SHOWN_MS.unsigned_abs();
        self.entries.get_mut(&place).is_some_and(|entry| {
            let before = entry.skew_ms.replace(skew_ms);
            is_off(skew_ms) && !before.is_some_and(is_off)
        })
    }

    /// Notes what ails an agent.
    pub(super) fn note_faults(&mut self, place: PlaceNo, session: u64, faults: Vec<String>) {
        let live = self.entries.get_mut(&place).and_then(|entry| entry.live.as_mut());
        if let Some(live) = live.filter(|live| live.session == session) {
            live.faults = faults;
        }
    }

    /// Lets those out whose identity has stayed with one host for a while. Says whether anything changed.
    pub(super) fn settle(&mut self, now: Timestamp) -> bool {
        let mut changed = false;
        for entry in self.entries.values_mut().filter(|entry| entry.is_shared) {
            entry.forget_takeovers(now);
            if entry.takeovers.is_empty() {
                entry.is_shared = false;
                changed = true;
            }
        }
        changed
    }

    /// The mesh as the rules see it.
    pub(super) fn mesh(&self) -> Mesh {
        Mesh::new(self.entries.values().map(|entry| Place {
            no: entry.agent.place,
            region: entry.agent.region,
            network: entry.agent.network_no,
            connected: entry.live.is_some(),
            quarantined: entry.is_quarantined || entry.is_shared,
        }))
    }

    /// The agents as people see them, in the order of their places.
    pub(super) fn view(&self) -> Vec<AgentView> {
        let one = |entry: &Entry| AgentView {
            agent: Arc::clone(&entry.agent),
            connected_since: entry.live.as_ref().map(|live| live.since),
            remote: entry.live.as_ref().map(|live| live.remote),
            software: entry.live.as_ref().map(|live| live.software.clone()),
            faults: entry.live.as_ref().map(|live| live.faults.clone()).unwrap_or_default(),
            skew_ms: entry.skew_ms,
            is_clock_off: entry
                .skew_ms
                .is_some_and(|skew| skew.unsigned_abs() > SKEW_SHOWN_MS.unsigned_abs()),
            is_quarantined: entry.is_quarantined || entry.is_shared,
            is_shared: entry.is_shared,
        };
        self.entries.values().map(one).collect()
    }
}

impl Entry {
    fn forget_takeovers(&mut self, now: Timestamp) {
        while self.takeovers.front().is_some_and(|at| now.since(*at) > TAKEOVER_SPAN_MS) {
            self.takeovers.pop_front();
        }
        // A clock that was set back must not keep them for ever.
        self.takeovers.retain(|at| *at <= now);
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::place::{NetworkNo, Region};

    use super::*;

    fn agent(no: u16) -> Agent {
        Agent {
            id: AgentId::from_u128(u128::from(no)),
            place: PlaceNo(no),
            name: format!("a{no}"),
            region: Region::Asia,
            network: "AS1".to_owned(),
            network_no: NetworkNo(1),
            joined_at: Timestamp::from_millis(0),
            revoked_at: None,
            serial: Vec::new(),
        }
    }

    fn arrived(session: u64, at: i64) -> Arrived {
        Arrived {
            session,
            at: Timestamp::from_millis(at),
            remote: SocketAddr::from(([127, 0, 0, 1], 9)),
            software: "1".to_owned(),
            faults: Vec::new(),
        }
    }

    fn connected(roster: &Roster, no: u16) -> Option<bool> {
        roster.mesh().place(PlaceNo(no)).map(|place| place.connected)
    }

    #[test]
    fn an_agent_is_in_the_mesh_from_its_enrolment_and_connected_while_it_is() {
        let mut roster = Roster::default();
        assert_eq!(roster.connect(PlaceNo(1), arrived(1, 0)), None);
        roster.enrol(vec![agent(1)]);
        assert_eq!(connected(&roster, 1), Some(false));
        roster.connect(PlaceNo(1), arrived(1, 0));
        assert_eq!(connected(&roster, 1), Some(true));
        assert!(roster.disconnect(PlaceNo(1), 1));
        assert_eq!(connected(&roster, 1), Some(false));
    }

    #[test]
    fn the_newest_connection_has_the_place_and_the_older_ones_end_does_not_matter() {
        let mut roster = Roster::default();
        roster.enrol(vec![agent(1)]);
        roster.connect(PlaceNo(1), arrived(1, 0));
        let seated = roster.connect(PlaceNo(1), arrived(2, 10)).unwrap();
        assert_eq!(seated, Seated { replaced: Some(1), found_shared: false });
        assert!(!roster.disconnect(PlaceNo(1), 1));
        assert_eq!(connected(&roster, 1), Some(true));
    }

    #[test]
    fn the_revoked_are_gone_and_their_sessions_are_named() {
        let mut roster = Roster::default();
        roster.enrol(vec![agent(1), agent(2)]);
        roster.connect(PlaceNo(1), arrived(5, 0));
        let revoked = Agent { revoked_at: Some(Timestamp::from_millis(1)), ..agent(1) };
        assert_eq!(roster.enrol(vec![revoked, agent(2)]), [(PlaceNo(1), 5)]);
        assert_eq!(connected(&roster, 1), None);
        assert_eq!(roster.agent(AgentId::from_u128(1)), None);
    }

    #[test]
    fn enrolling_others_leaves_connections_alone() {
        let mut roster = Roster::default();
        roster.enrol(vec![agent(1)]);
        roster.connect(PlaceNo(1), arrived(5, 0));
        assert_eq!(roster.enrol(vec![agent(1), agent(2)]), []);
        assert_eq!(connected(&roster, 1), Some(true));
    }

    #[test]
    fn a_flapping_pair_is_set_aside_and_let_out_when_it_rests() {
        let mut roster = Roster::default();
        roster.enrol(vec![agent(1)]);
        let found: Vec<bool> = (0..6)
            .map(|n| {
                roster
                    .connect(PlaceNo(1), arrived(n, i64::try_from(n).unwrap() * 1_000))
                    .unwrap()
                    .found_shared
            })
            .collect();
        assert_eq!(found, [false, false, false, false, true, false]);
        assert!(roster.mesh().place(PlaceNo(1)).is_some_and(|place| place.quarantined && place.connected));
        assert!(!roster.settle(Timestamp::from_millis(100_000)));
        assert!(roster.settle(Timestamp::from_millis(5_000 + TAKEOVER_SPAN_MS + 1)));
        assert!(roster.mesh().place(PlaceNo(1)).is_some_and(|place| !place.quarantined));
    }

    #[test]
    fn a_clock_that_is_off_is_told_once() {
        let mut roster = Roster::default();
        roster.enrol(vec![agent(1)]);
        let told = [1_999, -2_001, -9_000, 0, i64::MIN].map(|skew| roster.note_skew(PlaceNo(1), skew));
        assert_eq!(told, [false, true, false, false, true]);
        assert!(roster.view()[0].is_clock_off);
    }
}
