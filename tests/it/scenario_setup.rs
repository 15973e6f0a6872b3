//! Common set-up of the scenarios in network namespaces: a strict coordinator, agents on their hosts, a site and its
//! monitor.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::namespace_site::{NamespaceNameServer, NamespaceSite};
use parallax_tests::netns::{COORDINATOR, TARGET, Topology};
use serde_json::{Value, json};

/// Longest wait for a new monitor's first verdict.
pub(crate) const FIRST_VERDICT: Duration = Duration::from_secs(60);

/// A mesh in a topology, with everything up.
pub(crate) struct TopologyScene {
    pub(crate) account: TestAccount,
    pub(crate) site: NamespaceSite,
    /// The monitor of the site, up.
    pub(crate) monitor: Value,
    pub(crate) agents: Vec<AgentProcess>,
    pub(crate) coordinator: CoordinatorProcess,
    _names: NamespaceNameServer,
}

impl TopologyScene {
    /// Starts the agents of `networks`, an account on `plan`, and a coordinator with the settings `config`. `monitor`
    /// holds further fields of the monitor.
    pub(crate) async fn start(world: &Topology, networks: &[&str], plan: &str, config: &str, monitor: Value) -> Self {
        let site = NamespaceSite::start(world).await;
        let table = [
            ("site.test", TARGET),
            ("private.test", Ipv4Addr::new(10, 0, 0, 1)),
            ("loop.test", Ipv4Addr::LOCALHOST),
            ("metadata.test", Ipv4Addr::new(169, 254, 169, 254)),
        ];
        let names = NamespaceNameServer::start(world, &table).await;
        let coordinator = CoordinatorProcess::serve(SocketAddr::from((COORDINATOR, 7443)), config).await;
        let spots = world.agent_hosts.iter().filter(|spot| networks.contains(&spot.network.as_str()));
        let agents: Vec<AgentProcess> = spots
            .map(|spot| coordinator.start_agent(&spot.name, spot.region.name(), &spot.network, Some(&spot.netns)))
            .collect();
        coordinator.wait_for_agents(agents.len()).await;
        let account = coordinator.create_account(plan);
        let mut body = json!({"name": "site", "url": site.url()});
        for (field, value) in monitor.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let monitor = account.client.create_monitor(&account.page, &body).await;
        let mut stage = Self { account, site, monitor, agents, coordinator, _names: names };
        stage.wait_for_status("up", FIRST_VERDICT).await;
        stage
    }

    /// Returns the current state of the monitor.
    pub(crate) async fn monitor(&self) -> Value {
        self.account.client.monitor(&self.account.page, &self.monitor).await
    }

    /// Waits until the monitor has `status`; returns how long it took, and every `lastCheck` seen meanwhile.
    pub(crate) async fn wait_for_status(&mut self, status: &str, limit: Duration) -> (Duration, Vec<Value>) {
        let begun = Instant::now();
        let mut checks = Vec::new();
        let monitor = eventually_every(API_PERIOD, &format!("the monitor is {status}"), limit, async || {
            let monitor = self.monitor().await;
            checks.push(monitor["lastCheck"].clone());
            (monitor["status"] == status).then_some(monitor)
        })
        .await;
        self.monitor = monitor;
        (begun.elapsed(), checks)
    }
}

/// Returns true if the reason of a failure says that the address is not public.
pub(crate) fn says_not_public(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["not allowed", "not public", "private", "loopback", "link-local"].iter().any(|words| reason.contains(words))
}

/// Parses a time in a response.
pub(crate) fn parse_time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no moment"));
    Timestamp::parse_iso(text).unwrap_or_else(|| panic!("{text} is not ISO 8601"))
}
