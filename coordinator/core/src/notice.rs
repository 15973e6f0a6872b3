//! Operator alerts: problems that an operator can fix, reported once they have lasted a while, and once when
//! they end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::place::Region;
use crate::time::{SECOND, Timestamp};

/// Milliseconds that a problem must last before it is reported, and be gone before its end is: agents that
/// reconnect after a coordinator restart are not reported.
pub const PATIENCE: i64 = 20 * SECOND;

/// A problem that an operator can fix. New variants are added only at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Matter {
    /// No agent of the region is connected; without a region, no agent at all.
    NobodyConnected(Option<Region>),
    /// The working agents of the region are all on one network; without a region, those of the whole mesh.
    OneNetwork(Option<Region>),
    /// The disk that holds the store is nearly full: free bytes.
    StoreLow(u64),
    /// An agent's certificate is long overdue for renewal.
    CertificateEnding {
        /// The agent.
        agent: AgentId,
        /// Expiry.
        ends_at: Timestamp,
    },
    /// The CA certificate of the mesh expires soon, at that time.
    AuthorityEnding(Timestamp),
    /// Supervised tasks of the coordinator crashed lately and were restarted: their number.
    PartsBroken(u32),
    /// ACME certificates are long overdue for renewal.
    HostsEnding {
        /// The hostname whose certificate expires first.
        first: String,
        /// Number of certificates that expire soon.
        count: u32,
        /// First expiry.
        ends_at: Timestamp,
    },
    /// The certificate from the operator's files expires soon, at that time.
    OwnEnding(Timestamp),
    /// All connected agents of the region are in quarantine; without a region, all of the mesh.
    Quarantined(Option<Region>),
    /// An agent's host has a fault that affects its checks.
    HostUnfit {
        /// The agent.
        agent: AgentId,
        /// The faults of the host, as the agent describes them.
        faults: String,
    },
    /// Nearly all host names fail to resolve on all agents.
    NamesFail,
    /// Only two networks have working agents: where they contradict each other, there is no third to decide.
    TwoNetworks,
    /// Other networks contradict an agent, which is not in quarantine because too many would be.
    Contradicted {
        /// The agent.
        agent: AgentId,
        /// The agents that contradict it, and how often.
        by: String,
    },
    /// The coordinator can't read its host's own addresses, so that nothing but mail is delivered.
    DeliveriesBlocked,
}

/// An operator alert: a problem that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The problem, with its present figures.
    pub matter: Matter,
    /// True if it is over.
    pub ended: bool,
}

/// The identity of a problem, regardless of its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// See [`Matter::NobodyConnected`].
    NobodyConnected(Option<Region>),
    /// See [`Matter::OneNetwork`].
    OneNetwork(Option<Region>),
    /// See [`Matter::StoreLow`].
    StoreLow,
    /// See [`Matter::CertificateEnding`].
    CertificateEnding(AgentId),
    /// See [`Matter::AuthorityEnding`].
    AuthorityEnding,
    /// See [`Matter::PartsBroken`].
    PartsBroken,
    /// See [`Matter::HostsEnding`].
    HostsEnding,
    /// See [`Matter::OwnEnding`].
    OwnEnding,
    /// See [`Matter::Quarantined`].
    Quarantined(Option<Region>),
    /// See [`Matter::HostUnfit`].
    HostUnfit(AgentId),
    /// See [`Matter::NamesFail`].
    NamesFail,
    /// See [`Matter::TwoNetworks`].
    TwoNetworks,
    /// See [`Matter::Contradicted`].
    Contradicted(AgentId),
    /// See [`Matter::DeliveriesBlocked`].
    DeliveriesBlocked,
}

impl Matter {
    /// Its identity.
    pub const fn topic(&self) -> Topic {
        match self {
            Self::NobodyConnected(region) => Topic::NobodyConnected(*region),
            Self::OneNetwork(region) => Topic::OneNetwork(*region),
            Self::StoreLow(_) => Topic::StoreLow,
            Self::CertificateEnding { agent, .. } => Topic::CertificateEnding(*agent),
            Self::AuthorityEnding(_) => Topic::AuthorityEnding,
            Self::PartsBroken(_) => Topic::PartsBroken,
            Self::HostsEnding { .. } => Topic::HostsEnding,
            Self::OwnEnding(_) => Topic::OwnEnding,
            Self::Quarantined(region) => Topic::Quarantined(*region),
            Self::HostUnfit { agent, .. } => Topic::HostUnfit(*agent),
            Self::NamesFail => Topic::NamesFail,
            Self::TwoNetworks => Topic::TwoNetworks,
            Self::Contradicted { agent, .. } => Topic::Contradicted(*agent),
            Self::DeliveriesBlocked => Topic::DeliveriesBlocked,
        }
    }
}

/// A unique name: the key of stored alerts.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, region) = match self {
            Self::NobodyConnected(region) => ("nobody-connected", region),
            Self::OneNetwork(region) => ("one-network", region),
            Self::StoreLow => ("store-low", &None),
            Self::AuthorityEnding => ("authority-ending", &None),
            Self::PartsBroken => ("parts-broken", &None),
            Self::HostsEnding => ("hosts-ending", &None),
            Self::OwnEnding => ("own-ending", &None),
            Self::Quarantined(region) => ("quarantined", region),
            Self::NamesFail => ("names-fail", &None),
            Self::TwoNetworks => ("two-networks", &None),
            Self::Contradicted(agent) => return write!(f, "contradicted-{agent}"),
            Self::DeliveriesBlocked => ("deliveries-blocked", &None),
            Self::CertificateEnding(agent) => return write!(f, "certificate-ending-{agent}"),
            Self::HostUnfit(agent) => return write!(f, "host-unfit-{agent}"),
        };
        match region {
            Some(region) => write!(f, "{name}-{region}"),
            None => f.write_str(name),
        }
    }
}

/// The reported problems that are not over, and those whose state has changed since.
#[derive(Debug, Clone, Default)]
pub struct Board {
    told: BTreeSet<Topic>,
    /// Problems whose state differs from what was reported, and since when.
    pending: BTreeMap<Topic, i64>,
}

impl Board {
    /// Creates a tracker for which these problems are already reported.
    pub fn with(told: BTreeSet<Topic>) -> Self {
        Self { told, pending: BTreeMap::new() }
    }

    /// Takes each problem that can be judged now and whether it holds; returns the alerts to send. `steady`
    /// is monotonic time in milliseconds. An alert is returned again until [`Board::note`] confirms that it
    /// was sent.
    pub fn look(&mut self, matters: &[(Matter, bool)], steady: i64) -> Vec<Notice> {
        let mut notices = Vec::new();
        // A problem that can't be judged now does not accumulate time.
        self.pending.retain(|topic, _| matters.iter().any(|(matter, _)| matter.topic() == *topic));
        for (matter, holds) in matters {
            let topic = matter.topic();
            if self.told.contains(&topic) == *holds {
                self.pending.remove(&topic);
            } else if steady - *self.pending.entry(topic).or_insert(steady) >= PATIENCE {
                notices.push(Notice { matter: matter.clone(), ended: !holds });
            }
        }
        notices
    }

    /// Records that an alert was sent.
    pub fn note(&mut self, notice: &Notice) {
        let topic = notice.matter.topic();
        self.pending.remove(&topic);
        if notice.ended {
            self.told.remove(&topic);
        } else {
            self.told.insert(topic);
        }
    }

    /// Removes reported problems of agents that no longer exist, and returns them.
    pub fn forget_others(&mut self, agents: &BTreeSet<AgentId>) -> Vec<Topic> {
        let is_gone = |topic: &Topic| match topic {
            Topic::CertificateEnding(agent) | Topic::HostUnfit(agent) | Topic::Contradicted(agent) => {
                !agents.contains(agent)
            }
            _ => false,
        };
        self.pending.retain(|topic, _| !is_gone(topic));
        self.told.extract_if(.., is_gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Matter = Matter::NobodyConnected(Some(Region::Asia));

    fn look(board: &mut Board, holds: bool, steady: i64) -> Vec<Notice> {
        let notices = board.look(&[(NOBODY, holds)], steady);
        notices.iter().for_each(|notice| board.note(notice));
        notices
    }

    #[test]
    fn a_matter_is_told_once_it_lasts_and_once_when_it_is_over() {
        let mut board = Board::default();
        let mut told = Vec::new();
        for second in 0..100 {
            // A short gap does not end it, and a short relapse does not restart it.
            let holds = (10..60).contains(&second) && second != 45 || second == 70;
            let notices = look(&mut board, holds, second * SECOND);
            told.extend(notices.into_iter().map(|notice| (second, notice.ended)));
        }
        assert_eq!(told, [(30, false), (91, true)]);
    }

    #[test]
    fn what_could_not_be_judged_for_a_while_begins_to_last_after_it() {
        let mut board = Board::default();
        assert_eq!(look(&mut board, true, 0), []);
        assert_eq!(board.look(&[], 10 * SECOND), []);
        assert_eq!(look(&mut board, true, 60 * SECOND), []);
        assert_eq!(look(&mut board, true, 80 * SECOND).len(), 1);
    }

    #[test]
    fn what_was_told_before_a_restart_is_not_told_again() {
        let mut board = Board::with([NOBODY.topic()].into());
        assert_eq!((look(&mut board, true, 0), look(&mut board, true, 99 * SECOND)), (vec![], vec![]));
        assert_eq!(look(&mut board, false, 100 * SECOND), []);
        assert_eq!(look(&mut board, false, 120 * SECOND), [Notice { matter: NOBODY, ended: true }]);
    }

    #[test]
    fn what_could_not_be_noted_is_given_again() {
        let mut board = Board::default();
        let now = [(NOBODY, true)];
        assert_eq!((board.look(&now, 0).len(), board.look(&now, PATIENCE).len()), (0, 1));
        assert_eq!(board.look(&now, PATIENCE + 1).len(), 1);
    }

    #[test]
    fn topics_have_names_of_their_own() {
        let agent = AgentId::from_u128(7);
        let topics = [
            Topic::NobodyConnected(None),
            Topic::NobodyConnected(Some(Region::Asia)),
            Topic::OneNetwork(None),
            Topic::OneNetwork(Some(Region::Asia)),
            Topic::StoreLow,
            Topic::AuthorityEnding,
            Topic::PartsBroken,
            Topic::HostsEnding,
            Topic::OwnEnding,
            Topic::NamesFail,
            Topic::TwoNetworks,
            Topic::DeliveriesBlocked,
            Topic::Quarantined(None),
            Topic::Quarantined(Some(Region::Asia)),
            Topic::CertificateEnding(agent),
            Topic::HostUnfit(agent),
            Topic::Contradicted(agent),
        ];
        let names: BTreeSet<String> = topics.iter().map(Topic::to_string).collect();
        assert_eq!(names.len(), topics.len(), "{names:?}");
        let mut board = Board::with(topics.into());
        assert_eq!(board.forget_others(&[agent].into()), []);
        let gone = [Topic::CertificateEnding(agent), Topic::HostUnfit(agent), Topic::Contradicted(agent)];
        assert_eq!(board.forget_others(&BTreeSet::new()), gone);
    }
}
