//! Readiness of hosts, logged after the welcome: faults of this host once for all local agents, and faults of every
//! agent that joined from another host.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parallax_agent::readiness;
use parallax_core::id::AgentId;
use parallax_mesh::FITNESS_LOG_TARGET;
use parallax_mesh::members::MemberStore;
use tokio::time::interval;
use tracing::Level;

/// Pause between two checks. Agents assess their host every 30 s.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Faults reported by a connected agent.
#[derive(Debug, Clone, Copy)]
struct HostReport<'a> {
    agent: AgentId,
    name: &'a str,
    faults: &'a [String],
}

/// Faults that were logged last.
#[derive(Debug, Default)]
struct LoggedFaults {
    /// Faults of this host.
    host: Vec<String>,
    /// Faults of other hosts.
    remote: BTreeMap<AgentId, Vec<String>>,
}

/// Changed faults; empty once a host is ready again.
#[derive(Debug, PartialEq, Eq)]
enum FaultChange {
    /// Faults of this host.
    Host(Vec<String>),
    /// Faults of an agent's host.
    Remote { agent: AgentId, name: String, faults: Vec<String> },
}

/// Logs the faults of hosts whenever they change. Never returns. Started once the local agents had time to connect,
/// so those connected represent this host.
pub(super) async fn watch_readiness(members: MemberStore, names: BTreeSet<String>) {
    let mut logged = LoggedFaults::default();
    let mut ticks = interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let agents = members.connected_agents();
        let connected = agents.iter().filter(|it| it.connected_since.is_some());
        let reports: Vec<HostReport<'_>> =
            connected.map(|it| HostReport { agent: it.agent.id, name: &it.agent.name, faults: &it.faults }).collect();
        for change in logged.record(&reports, &names) {
            change.log();
        }
    }
}

impl LoggedFaults {
    /// Records the faults of the connected agents, of which those with these names are local. Returns the changes.
    fn record(&mut self, connected: &[HostReport<'_>], names: &BTreeSet<String>) -> Vec<FaultChange> {
        let (local, remote): (Vec<&HostReport<'_>>, Vec<_>) = connected.iter().partition(|it| names.contains(it.name));
        let mut changes = Vec::new();
        let faults: BTreeSet<&String> = local.iter().flat_map(|it| it.faults).collect();
        let faults: Vec<String> = faults.into_iter().cloned().collect();
        // Without a local agent nothing is known about this host.
        if !local.is_empty() && faults != self.host {
            self.host.clone_from(&faults);
            changes.push(FaultChange::Host(faults));
        }
        for HostReport { agent, name, faults } in remote.into_iter().copied() {
            if self.remote.get(&agent).map_or(&[][..], Vec::as_slice) == faults {
                continue;
            }
            if faults.is_empty() {
                self.remote.remove(&agent);
            } else {
                self.remote.insert(agent, faults.to_vec());
            }
            changes.push(FaultChange::Remote { agent, name: name.to_owned(), faults: faults.to_vec() });
        }
        changes
    }
}

impl FaultChange {
    fn log(self) {
        match self {
            Self::Host(faults) => readiness::log_faults(&faults),
            // A custom log filter may let the session log it already.
            Self::Remote { .. } if tracing::enabled!(target: FITNESS_LOG_TARGET, Level::WARN) => {}
            Self::Remote { agent, name, faults } if faults.is_empty() => {
                tracing::info!(%agent, name, "an agent's host is fit to check again");
            }
            Self::Remote { agent, name, faults } => {
                tracing::warn!(%agent, name, faults = faults.join("; "), "an agent's host is not fit to check");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> BTreeSet<String> {
        (0..12).map(|number| format!("local-{number:02}")).collect()
    }

    fn reports<'a>(names: &'a BTreeSet<String>, faults: &'a [String]) -> Vec<HostReport<'a>> {
        let agents = (1..).map(AgentId::from_u128);
        names.iter().zip(agents).map(|(name, agent)| HostReport { agent, name, faults }).collect()
    }

    #[test]
    fn faults_of_this_host_are_logged_once_for_all_local_agents() {
        let (names, mut logged) = (names(), LoggedFaults::default());
        let no_resolver = ["the resolver answers nobody".to_owned()];
        let mut connected = reports(&names, &no_resolver);
        assert_eq!(logged.record(&connected, &names), [FaultChange::Host(no_resolver.to_vec())]);
        assert_eq!(logged.record(&connected, &names), []);
        let both = ["no leave to ping".to_owned(), no_resolver[0].clone()];
        connected[3].faults = &both;
        assert_eq!(logged.record(&connected, &names), [FaultChange::Host(both.to_vec())]);
        assert_eq!(logged.record(&[], &names), [], "nobody is there to judge this host");
        assert_eq!(logged.record(&reports(&names, &[]), &names), [FaultChange::Host(Vec::new())]);
    }

    #[test]
    fn a_revoked_local_agent_does_not_silence_the_others() {
        let (names, mut logged) = (names(), LoggedFaults::default());
        let no_resolver = ["the resolver answers nobody".to_owned()];
        let connected = reports(&names, &no_resolver);
        assert_eq!(logged.record(&connected[1..], &names), [FaultChange::Host(no_resolver.to_vec())]);
    }

    #[test]
    fn faults_of_other_hosts_are_logged_for_each_agent_as_they_change() {
        let (names, mut logged) = (names(), LoggedFaults::default());
        let no_resolver = ["the resolver answers nobody".to_owned()];
        let mut connected = reports(&names, &[]);
        let (agent, name) = (AgentId::from_u128(99), "fra1");
        connected.push(HostReport { agent, name, faults: &[] });
        assert_eq!(logged.record(&connected, &names), []);
        let change = |faults: &[String]| FaultChange::Remote { agent, name: name.to_owned(), faults: faults.to_vec() };
        connected[12].faults = &no_resolver;
        assert_eq!(logged.record(&connected, &names), [change(&no_resolver)]);
        assert_eq!(logged.record(&connected[..12], &names), [], "it is not connected");
        assert_eq!(logged.record(&connected, &names), []);
        connected[12].faults = &[];
        assert_eq!(logged.record(&connected, &names), [change(&[])]);
        assert!(logged.remote.is_empty());
    }
}
