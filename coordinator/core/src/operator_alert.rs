//! Operator alerts: problems that an operator can fix, reported once they have lasted a while, and once when
//! they end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::time::{DAY, SECOND, Timestamp};
use crate::vantage::Region;

/// Milliseconds that a problem must last before it is reported, and be gone before its end is: agents that
/// reconnect after a coordinator restart are not reported.
pub const MIN_DURATION: i64 = 20 * SECOND;

/// Milliseconds before the authority's certificate expires at which the operator is alerted: time for every agent to
/// follow a rotation.
pub const AUTHORITY_EXPIRES_WITHIN: i64 = 90 * DAY;

/// A problem that an operator can fix. New variants are added only at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorProblem {
    /// No agent of the region is connected; without a region, no agent at all.
    NoAgentConnected(Option<Region>),
    /// The working agents of the region are all on one network; without a region, those of the whole mesh.
    SingleNetwork(Option<Region>),
    /// The disk that holds the store is nearly full: free bytes.
    DiskNearlyFull(u64),
    /// An agent's certificate is long overdue for renewal.
    AgentCertificateExpiring {
        /// The agent.
        agent: AgentId,
        /// Expiry.
        ends_at: Timestamp,
    },
    /// The CA certificate of the mesh expires soon, at that time.
    AuthorityExpiring(Timestamp),
    /// Supervised tasks of the coordinator crashed lately and were restarted: their number.
    TasksCrashed(u32),
    /// ACME certificates are long overdue for renewal.
    AcmeCertificatesExpiring {
        /// The hostname whose certificate expires first.
        first: String,
        /// Number of certificates that expire soon.
        count: u32,
        /// First expiry.
        ends_at: Timestamp,
    },
    /// The certificate from the operator's files expires soon, at that time.
    CertificateFileExpiring(Timestamp),
    /// All connected agents of the region are in quarantine; without a region, all of the mesh.
    AllQuarantined(Option<Region>),
    /// An agent's host has a fault that affects its checks.
    UnfitHost {
        /// The agent.
        agent: AgentId,
        /// The faults of the host, as the agent describes them.
        faults: String,
    },
    /// Nearly all host names fail to resolve on all agents.
    NameResolutionFails,
    /// Only two networks have working agents: where they contradict each other, there is no third to decide.
    OnlyTwoNetworks,
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
pub struct OperatorAlert {
    /// The problem, with its present figures.
    pub problem: OperatorProblem,
    /// True if it is over.
    pub has_ended: bool,
}

/// The identity of a problem, regardless of its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKey {
    /// See [`OperatorProblem::NoAgentConnected`].
    NoAgentConnected(Option<Region>),
    /// See [`OperatorProblem::SingleNetwork`].
    SingleNetwork(Option<Region>),
    /// See [`OperatorProblem::DiskNearlyFull`].
    DiskNearlyFull,
    /// See [`OperatorProblem::AgentCertificateExpiring`].
    AgentCertificateExpiring(AgentId),
    /// See [`OperatorProblem::AuthorityExpiring`].
    AuthorityExpiring,
    /// See [`OperatorProblem::TasksCrashed`].
    TasksCrashed,
    /// See [`OperatorProblem::AcmeCertificatesExpiring`].
    AcmeCertificatesExpiring,
    /// See [`OperatorProblem::CertificateFileExpiring`].
    CertificateFileExpiring,
    /// See [`OperatorProblem::AllQuarantined`].
    AllQuarantined(Option<Region>),
    /// See [`OperatorProblem::UnfitHost`].
    UnfitHost(AgentId),
    /// See [`OperatorProblem::NameResolutionFails`].
    NameResolutionFails,
    /// See [`OperatorProblem::OnlyTwoNetworks`].
    OnlyTwoNetworks,
    /// See [`OperatorProblem::Contradicted`].
    Contradicted(AgentId),
    /// See [`OperatorProblem::DeliveriesBlocked`].
    DeliveriesBlocked,
}

impl OperatorProblem {
    /// Its identity.
    pub const fn key(&self) -> ProblemKey {
        match self {
            Self::NoAgentConnected(region) => ProblemKey::NoAgentConnected(*region),
            Self::SingleNetwork(region) => ProblemKey::SingleNetwork(*region),
            Self::DiskNearlyFull(_) => ProblemKey::DiskNearlyFull,
            Self::AgentCertificateExpiring { agent, .. } => ProblemKey::AgentCertificateExpiring(*agent),
            Self::AuthorityExpiring(_) => ProblemKey::AuthorityExpiring,
            Self::TasksCrashed(_) => ProblemKey::TasksCrashed,
            Self::AcmeCertificatesExpiring { .. } => ProblemKey::AcmeCertificatesExpiring,
            Self::CertificateFileExpiring(_) => ProblemKey::CertificateFileExpiring,
            Self::AllQuarantined(region) => ProblemKey::AllQuarantined(*region),
            Self::UnfitHost { agent, .. } => ProblemKey::UnfitHost(*agent),
            Self::NameResolutionFails => ProblemKey::NameResolutionFails,
            Self::OnlyTwoNetworks => ProblemKey::OnlyTwoNetworks,
            Self::Contradicted { agent, .. } => ProblemKey::Contradicted(*agent),
            Self::DeliveriesBlocked => ProblemKey::DeliveriesBlocked,
        }
    }
}

/// A unique name: the key of stored alerts.
impl fmt::Display for ProblemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, region) = match self {
            Self::NoAgentConnected(region) => ("nobody-connected", region),
            Self::SingleNetwork(region) => ("one-network", region),
            Self::DiskNearlyFull => ("store-low", &None),
            Self::AuthorityExpiring => ("authority-ending", &None),
            Self::TasksCrashed => ("parts-broken", &None),
            Self::AcmeCertificatesExpiring => ("hosts-ending", &None),
            Self::CertificateFileExpiring => ("own-ending", &None),
            Self::AllQuarantined(region) => ("quarantined", region),
            Self::NameResolutionFails => ("names-fail", &None),
            Self::OnlyTwoNetworks => ("two-networks", &None),
            Self::Contradicted(agent) => return write!(f, "contradicted-{agent}"),
            Self::DeliveriesBlocked => ("deliveries-blocked", &None),
            Self::AgentCertificateExpiring(agent) => return write!(f, "certificate-ending-{agent}"),
            Self::UnfitHost(agent) => return write!(f, "host-unfit-{agent}"),
        };
        match region {
            Some(region) => write!(f, "{name}-{region}"),
            None => f.write_str(name),
        }
    }
}

/// The reported problems that are not over, and those whose state has changed since.
#[derive(Debug, Clone, Default)]
pub struct AlertTracker {
    reported: BTreeSet<ProblemKey>,
    /// Problems whose state differs from what was reported, and since when.
    pending: BTreeMap<ProblemKey, i64>,
}

impl AlertTracker {
    /// Creates a tracker for which these problems are already reported.
    pub fn with_reported(reported: BTreeSet<ProblemKey>) -> Self {
        Self { reported, pending: BTreeMap::new() }
    }

    /// Takes each problem that can be judged now and whether it holds; returns the alerts to send. `steady`
    /// is monotonic time in milliseconds. An alert is returned again until [`AlertTracker::mark_sent`] confirms that it
    /// was sent.
    pub fn update(&mut self, problems: &[(OperatorProblem, bool)], steady: i64) -> Vec<OperatorAlert> {
        let mut notices = Vec::new();
        // A problem that can't be judged now does not accumulate time.
        self.pending.retain(|topic, _| problems.iter().any(|(problem, _)| problem.key() == *topic));
        for (problem, holds) in problems {
            let topic = problem.key();
            if self.reported.contains(&topic) == *holds {
                self.pending.remove(&topic);
            } else if steady - *self.pending.entry(topic).or_insert(steady) >= MIN_DURATION {
                notices.push(OperatorAlert { problem: problem.clone(), has_ended: !holds });
            }
        }
        notices
    }

    /// Records that an alert was sent.
    pub fn mark_sent(&mut self, notice: &OperatorAlert) {
        let topic = notice.problem.key();
        self.pending.remove(&topic);
        if notice.has_ended {
            self.reported.remove(&topic);
        } else {
            self.reported.insert(topic);
        }
    }

    /// Removes reported problems of agents that no longer exist, and returns them.
    pub fn retain_agents(&mut self, agents: &BTreeSet<AgentId>) -> Vec<ProblemKey> {
        let is_gone = |topic: &ProblemKey| match topic {
            ProblemKey::AgentCertificateExpiring(agent)
            | ProblemKey::UnfitHost(agent)
            | ProblemKey::Contradicted(agent) => !agents.contains(agent),
            _ => false,
        };
        self.pending.retain(|topic, _| !is_gone(topic));
        self.reported.extract_if(.., is_gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: OperatorProblem = OperatorProblem::NoAgentConnected(Some(Region::Asia));

    fn look(board: &mut AlertTracker, holds: bool, steady: i64) -> Vec<OperatorAlert> {
        let notices = board.update(&[(NOBODY, holds)], steady);
        notices.iter().for_each(|notice| board.mark_sent(notice));
        notices
    }

    #[test]
    fn a_problem_is_reported_once_it_lasts_and_once_it_is_over() {
        let mut board = AlertTracker::default();
        let mut reported = Vec::new();
        for second in 0..100 {
            // A short gap does not end it, and a short relapse does not restart it.
            let holds = (10..60).contains(&second) && second != 45 || second == 70;
            let notices = look(&mut board, holds, second * SECOND);
            reported.extend(notices.into_iter().map(|notice| (second, notice.has_ended)));
        }
        assert_eq!(reported, [(30, false), (91, true)]);
    }

    #[test]
    fn an_unjudged_period_begins_after_its_minimum_duration() {
        let mut board = AlertTracker::default();
        assert_eq!(look(&mut board, true, 0), []);
        assert_eq!(board.update(&[], 10 * SECOND), []);
        assert_eq!(look(&mut board, true, 60 * SECOND), []);
        assert_eq!(look(&mut board, true, 80 * SECOND).len(), 1);
    }

    #[test]
    fn problems_reported_before_a_restart_are_not_reported_again() {
        let mut board = AlertTracker::with_reported([NOBODY.key()].into());
        assert_eq!((look(&mut board, true, 0), look(&mut board, true, 99 * SECOND)), (vec![], vec![]));
        assert_eq!(look(&mut board, false, 100 * SECOND), []);
        assert_eq!(look(&mut board, false, 120 * SECOND), [OperatorAlert { problem: NOBODY, has_ended: true }]);
    }

    #[test]
    fn a_problem_that_could_not_be_recorded_is_returned_again() {
        let mut board = AlertTracker::default();
        let now = [(NOBODY, true)];
        assert_eq!((board.update(&now, 0).len(), board.update(&now, MIN_DURATION).len()), (0, 1));
        assert_eq!(board.update(&now, MIN_DURATION + 1).len(), 1);
    }

    #[test]
    fn topics_have_names_of_their_own() {
        let agent = AgentId::from_u128(7);
        let topics = [
            ProblemKey::NoAgentConnected(None),
            ProblemKey::NoAgentConnected(Some(Region::Asia)),
            ProblemKey::SingleNetwork(None),
            ProblemKey::SingleNetwork(Some(Region::Asia)),
            ProblemKey::DiskNearlyFull,
            ProblemKey::AuthorityExpiring,
            ProblemKey::TasksCrashed,
            ProblemKey::AcmeCertificatesExpiring,
            ProblemKey::CertificateFileExpiring,
            ProblemKey::NameResolutionFails,
            ProblemKey::OnlyTwoNetworks,
            ProblemKey::DeliveriesBlocked,
            ProblemKey::AllQuarantined(None),
            ProblemKey::AllQuarantined(Some(Region::Asia)),
            ProblemKey::AgentCertificateExpiring(agent),
            ProblemKey::UnfitHost(agent),
            ProblemKey::Contradicted(agent),
        ];
        let names: BTreeSet<String> = topics.iter().map(ProblemKey::to_string).collect();
        assert_eq!(names.len(), topics.len(), "{names:?}");
        let mut board = AlertTracker::with_reported(topics.into());
        assert_eq!(board.retain_agents(&[agent].into()), []);
        let gone = [
            ProblemKey::AgentCertificateExpiring(agent),
            ProblemKey::UnfitHost(agent),
            ProblemKey::Contradicted(agent),
        ];
        assert_eq!(board.retain_agents(&BTreeSet::new()), gone);
    }
}
