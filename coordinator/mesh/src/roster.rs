//! The roster: enrolled agents, each with its vantage, connection, clock and quarantine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use parallax_core::check::CheckKind;
use parallax_core::id::AgentId;
use parallax_core::member::AgentRecord;
use parallax_core::quarantine::{Contradictions, SuspectedVantages};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{Mesh, Vantage, VantageNo};
use parallax_engine::Capabilities;
use parallax_protocol::id::BootId;
use parallax_protocol::result::WireOwnFault;

/// Take-overs of one identity within [`TAKEOVER_SPAN_MS`] from which on two hosts seem to share it, if one of them has
/// reconnected after the other. A restarting agent has a new boot id each time.
const SHARED_TAKEOVERS: usize = 3;

/// Time for which a take-over counts, in ms.
const TAKEOVER_SPAN_MS: i64 = 5 * MINUTE;

/// Clock skew from which on a host's clock is shown as off, in ms.
const MAX_SKEW_MS: i64 = 2_000;

/// All agents that are enrolled and not revoked.
#[derive(Debug, Default)]
pub(super) struct Roster {
    entries: BTreeMap<VantageNo, Entry>,
}

#[derive(Debug)]
struct Entry {
    agent: Arc<AgentRecord>,
    live: Option<LiveConnection>,
    is_quarantined: bool,
    /// The vantages that contradict it, if it is or would be in quarantine for that.
    contradicted: Option<Contradictions>,
    /// End of the time during which two hosts count as sharing the identity.
    shared_until: Option<Timestamp>,
    /// A renewal was requested with a certificate that has been replaced.
    is_superseded: bool,
    takeovers: VecDeque<(Timestamp, BootId)>,
    credentials: Option<HeldCredentials>,
    skew_ms: Option<i64>,
}

#[derive(Debug)]
struct LiveConnection {
    session: u64,
    since: Timestamp,
    remote: SocketAddr,
    software: String,
    boot: BootId,
    kinds: BTreeSet<CheckKind>,
    faults: Vec<String>,
    /// Faults with which its host can't check anything by name, or anything at all.
    unfit: Vec<String>,
}

/// An agent's data at connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionInfo {
    pub(super) session: u64,
    pub(super) at: Timestamp,
    pub(super) remote: SocketAddr,
    pub(super) software: String,
    pub(super) boot: BootId,
    pub(super) kinds: BTreeSet<CheckKind>,
    pub(super) faults: Vec<WireOwnFault>,
}

/// Result of registering a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectOutcome {
    /// The session that was replaced.
    pub(super) replaced: Option<u64>,
    /// Two hosts were just found to share the identity.
    pub(super) found_shared: bool,
    /// End of the sharing, if the record must be updated.
    pub(super) shared_until: Option<Timestamp>,
}

/// Certificates and authorities that an agent holds, as last reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCredentials {
    /// SHA-256 of the public key of each authority that it trusts.
    pub trusts: Vec<[u8; 32]>,
    /// SHA-256 of the public key of the authority that issued its newest certificate.
    pub certified_by: Option<[u8; 32]>,
}

/// Counts of one agent's results since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultCounts {
    /// Received, duplicates included.
    pub received: u64,
    /// Received a second time and dropped.
    pub duplicates: u64,
    /// Lost: the agent had no space for them.
    pub dropped: u64,
}

/// An agent as displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// Its record.
    pub agent: Arc<AgentRecord>,
    /// Start of its connection.
    pub connected_since: Option<Timestamp>,
    /// Its remote address.
    pub remote: Option<SocketAddr>,
    /// Its software version.
    pub software: Option<String>,
    /// Faults of its host, as text.
    pub faults: Vec<String>,
    /// Faults for which it confirms nothing. A host that permits no ICMP still checks everything else.
    pub unfit: Vec<String>,
    /// Its wall clock minus the coordinator's, in ms, as last reported.
    pub skew_ms: Option<i64>,
    /// True if `skew_ms` is more than 2 s either way.
    pub is_clock_off: bool,
    /// True if its rounds do not count, for any reason.
    pub is_quarantined: bool,
    /// The agents that contradict it and how often, if it is in quarantine for that, or would be if not too many were.
    pub contradicted: Option<String>,
    /// True if two hosts share its identity.
    pub is_shared: bool,
    /// True if a renewal was requested with a replaced certificate, and none was issued since.
    pub is_superseded: bool,
    /// Certificates it holds; `None` if it has not reported them since the start.
    pub credentials: Option<HeldCredentials>,
    /// Counts of its results.
    pub results: ResultCounts,
}

impl Roster {
    /// Replaces the enrolled agents. Returns the sessions of those that no longer are.
    pub(super) fn set_agents(&mut self, agents: Vec<AgentRecord>) -> Vec<(VantageNo, u64)> {
        let mut previous = std::mem::take(&mut self.entries);
        for agent in agents.into_iter().filter(|agent| agent.revoked_at.is_none()) {
            let vantage = agent.vantage_no;
            let agent = Arc::new(agent);
            let shared_until = agent.identity.suspended_until;
            let entry = match previous.remove(&vantage) {
                Some(entry) if entry.agent.id == agent.id => Entry { agent, ..entry },
                _ => Entry {
                    agent,
                    live: None,
                    is_quarantined: false,
                    contradicted: None,
                    shared_until,
                    is_superseded: false,
                    takeovers: VecDeque::new(),
                    credentials: None,
                    skew_ms: None,
                },
            };
            self.entries.insert(vantage, entry);
        }
        previous.into_iter().filter_map(|(vantage, entry)| Some((vantage, entry.live?.session))).collect()
    }

    /// Returns the record of an enrolled agent.
    pub(super) fn agent(&self, id: AgentId) -> Option<Arc<AgentRecord>> {
        self.entries.values().find(|entry| entry.agent.id == id).map(|entry| Arc::clone(&entry.agent))
    }

    /// Registers a connection, which replaces an older one. Returns `None` if the agent is not enrolled.
    pub(super) fn connect(&mut self, vantage: VantageNo, connection: ConnectionInfo) -> Option<ConnectOutcome> {
        let entry = self.entries.get_mut(&vantage)?;
        let now = connection.at;
        let replaced = entry.live.as_ref().map(|live| live.session);
        let was_shared = entry.shared_until.is_some();
        let mut shared_until = None;
        // The same boot is the same process on a new network path.
        if entry.live.as_ref().is_some_and(|live| live.boot != connection.boot) {
            entry.takeovers.push_back((now, connection.boot));
            entry.expire_takeovers(now);
            let boots: BTreeSet<BootId> = entry.takeovers.iter().map(|(_, boot)| *boot).collect();
            let has_come_back = boots.len() < entry.takeovers.len();
            if was_shared || (has_come_back && entry.takeovers.len() >= SHARED_TAKEOVERS) {
                shared_until = Some(now + TAKEOVER_SPAN_MS);
                entry.shared_until = shared_until;
            }
        }
        entry.live = Some(LiveConnection {
            session: connection.session,
            since: now,
            remote: connection.remote,
            software: connection.software,
            boot: connection.boot,
            kinds: connection.kinds,
            faults: fault_texts(&connection.faults),
            unfit: fault_texts(connection.faults.iter().filter(|fault| is_unfit(fault))),
        });
        let found_shared = shared_until.is_some() && !was_shared;
        Some(ConnectOutcome { replaced, found_shared, shared_until })
    }

    /// Ends a session if it is still the current one. Returns true if it was.
    pub(super) fn disconnect(&mut self, vantage: VantageNo, session: u64) -> bool {
        match self.entries.get_mut(&vantage) {
            Some(entry) if entry.live.as_ref().is_some_and(|live| live.session == session) => {
                entry.live = None;
                true
            }
            _ => false,
        }
    }

    /// Puts the vantages in `suspects.quarantined` into quarantine and releases all others. Logs the changes.
    pub(super) fn set_suspects(&mut self, suspects: &SuspectedVantages) {
        let mut changed = Vec::new();
        for (vantage, entry) in &mut self.entries {
            let quarantined = suspects.quarantined.get(vantage);
            let contradictions = quarantined.or_else(|| suspects.spared.get(vantage)).cloned();
            let was_quarantined = std::mem::replace(&mut entry.is_quarantined, quarantined.is_some());
            let previous = std::mem::replace(&mut entry.contradicted, contradictions);
            if was_quarantined != quarantined.is_some() || previous.is_some() != entry.contradicted.is_some() {
                changed.push(*vantage);
            }
        }
        for entry in changed.iter().filter_map(|vantage| self.entries.get(vantage)) {
            let agent = entry.agent.name.as_str();
            match (&entry.contradicted, entry.is_quarantined) {
                (Some(contradictions), true) => {
                    let why = self.describe(contradictions);
                    tracing::warn!(agent, %why, "an agent is in quarantine: others contradict it");
                }
                (Some(contradictions), false) => tracing::warn!(
                    agent,
                    why = %self.describe(contradictions),
                    "others contradict an agent; it stays in service: at most a third may be in quarantine"
                ),
                (None, _) => tracing::info!(agent, "others no longer contradict an agent: its results count"),
            }
        }
    }

    /// Describes contradictions, with the names and networks of the agents.
    fn describe(&self, contradictions: &Contradictions) -> String {
        contradictions.describe(|vantage| match self.entries.get(&vantage) {
            Some(entry) => format!("{} ({})", entry.agent.name, entry.agent.network),
            None => format!("agent number {}", vantage.0),
        })
    }

    /// Records a host's clock skew. Returns true if it has just crossed the limit from which it is shown as off.
    pub(super) fn record_skew(&mut self, vantage: VantageNo, skew_ms: i64) -> bool {
        let is_off = |skew: i64| skew.unsigned_abs() > MAX_SKEW_MS.unsigned_abs();
        self.entries.get_mut(&vantage).is_some_and(|entry| {
            let previous = entry.skew_ms.replace(skew_ms);
            is_off(skew_ms) && !previous.is_some_and(is_off)
        })
    }

    /// Records the certificates that an agent holds.
    pub(super) fn record_credentials(&mut self, vantage: VantageNo, credentials: HeldCredentials) {
        if let Some(entry) = self.entries.get_mut(&vantage) {
            entry.credentials = Some(credentials);
        }
    }

    /// Records whether a renewal was requested with a replaced certificate.
    pub(super) fn record_superseded(&mut self, vantage: VantageNo, is_superseded: bool) {
        if let Some(entry) = self.entries.get_mut(&vantage) {
            entry.is_superseded = is_superseded;
        }
    }

    /// Records an agent's faults. Returns true if they changed.
    pub(super) fn record_faults(&mut self, vantage: VantageNo, session: u64, faults: &[WireOwnFault]) -> bool {
        let live = self.entries.get_mut(&vantage).and_then(|entry| entry.live.as_mut());
        let Some(live) = live.filter(|live| live.session == session) else { return false };
        live.unfit = fault_texts(faults.iter().filter(|fault| is_unfit(fault)));
        let faults = fault_texts(faults);
        let changed = live.faults != faults;
        live.faults = faults;
        changed
    }

    /// Releases agents whose identity has stayed with one host for a while, and returns them.
    pub(super) fn release_settled(&mut self, now: Timestamp) -> Vec<AgentId> {
        let mut released = Vec::new();
        for entry in self.entries.values_mut() {
            // If the clock was set back, a stored time may lie further ahead than any that is ever set.
            let is_over = |until: Timestamp| !(0..=TAKEOVER_SPAN_MS).contains(&until.since(now));
            if entry.shared_until.is_some_and(is_over) {
                entry.shared_until = None;
                entry.expire_takeovers(now);
                released.push(entry.agent.id);
            }
        }
        released
    }

    /// Returns the capabilities of the connected vantages.
    pub(super) fn capabilities(&self) -> Capabilities {
        let live = self.entries.iter().filter_map(|(vantage, entry)| Some((*vantage, entry.live.as_ref()?)));
        Capabilities::new(live.map(|(vantage, live)| (vantage, live.kinds.clone())))
    }

    /// Returns the mesh as the rules see it.
    pub(super) fn mesh(&self) -> Mesh {
        Mesh::new(self.entries.values().map(|entry| Vantage {
            no: entry.agent.vantage_no,
            region: entry.agent.region,
            network: entry.agent.network_no,
            connected: entry.live.is_some(),
            quarantined: entry.is_quarantined || entry.shared_until.is_some(),
            unfit: entry.live.as_ref().is_some_and(|live| !live.unfit.is_empty()),
        }))
    }

    /// Returns the agents for display, in the order of their vantage numbers.
    pub(super) fn agent_views(&self) -> Vec<AgentView> {
        let view = |entry: &Entry| AgentView {
            agent: Arc::clone(&entry.agent),
            connected_since: entry.live.as_ref().map(|live| live.since),
            remote: entry.live.as_ref().map(|live| live.remote),
            software: entry.live.as_ref().map(|live| live.software.clone()),
            faults: entry.live.as_ref().map(|live| live.faults.clone()).unwrap_or_default(),
            unfit: entry.live.as_ref().map(|live| live.unfit.clone()).unwrap_or_default(),
            skew_ms: entry.skew_ms,
            is_clock_off: entry.skew_ms.is_some_and(|skew| skew.unsigned_abs() > MAX_SKEW_MS.unsigned_abs()),
            is_quarantined: entry.is_quarantined || entry.shared_until.is_some(),
            contradicted: entry.contradicted.as_ref().map(|contradictions| self.describe(contradictions)),
            is_shared: entry.shared_until.is_some(),
            is_superseded: entry.is_superseded,
            credentials: entry.credentials.clone(),
            results: ResultCounts::default(),
        };
        self.entries.values().map(view).collect()
    }
}

impl Entry {
    fn expire_takeovers(&mut self, now: Timestamp) {
        while self.takeovers.front().is_some_and(|(at, _)| now.since(*at) > TAKEOVER_SPAN_MS) {
            self.takeovers.pop_front();
        }
        // A clock that was set back must not keep take-overs forever.
        self.takeovers.retain(|(at, _)| *at <= now);
    }
}

/// Returns true for faults with which a host can't confirm a failure. A host that may not ping still checks everything
/// else.
const fn is_unfit(fault: &WireOwnFault) -> bool {
    // `Internal` comes from the address guard: it refuses every target while the host's own addresses are unknown.
    matches!(
        fault,
        WireOwnFault::NoRoute
            | WireOwnFault::NoDescriptors
            | WireOwnFault::ResolverDead
            | WireOwnFault::Internal { .. }
    )
}

fn fault_texts<'a>(faults: impl IntoIterator<Item = &'a WireOwnFault>) -> Vec<String> {
    faults.into_iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
