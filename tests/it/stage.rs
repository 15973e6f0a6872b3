//! What the scenarios of namespaces share: a strict coordinator, agents on their spots, a site and a monitor of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::{Account, Agent, Coordinator};
use parallax_tests::netns::{COORDINATOR, TARGET, World};
use parallax_tests::site::{Names, Site};
use serde_json::{Value, json};

/// Longest wait for a new monitor's first verdict.
pub(crate) const FIRST_VERDICT: Duration = Duration::from_secs(60);

/// A mesh in a world, with everything well.
pub(crate) struct Stage {
    pub(crate) account: Account,
    pub(crate) site: Site,
    /// The monitor of the site, up.
    pub(crate) monitor: Value,
    pub(crate) agents: Vec<Agent>,
    pub(crate) coordinator: Coordinator,
    _names: Names,
}

impl Stage {
    /// Sets it up with the agents of `networks`, an account on `plan` and the coordinator's `config`. `monitor` holds
    /// further fields of the monitor.
    pub(crate) async fn set(
        world: &World,
        networks: &[&str],
        plan: &str,
        config: &str,
        monitor: Value,
    ) -> Self {
        let site = Site::start(world).await;
        let table = [
            ("site.test", TARGET),
            ("private.test", Ipv4Addr::new(10, 0, 0, 1)),
            ("loop.test", Ipv4Addr::LOCALHOST),
            ("metadata.test", Ipv4Addr::new(169, 254, 169, 254)),
        ];
        let names = Names::start(world, &table).await;
        let coordinator = Coordinator::serve(SocketAddr::from((COORDINATOR, 7443)), config).await;
        let spots = world.spots.iter().filter(|spot| networks.contains(&spot.network.as_str()));
        let agents: Vec<Agent> = spots
            .map(|spot| coordinator.agent(&spot.name, spot.region.name(), &spot.network, Some(&spot.netns)))
            .collect();
        coordinator.connected(agents.len()).await;
        let account = coordinator.account(plan);
        let mut body = json!({"name": "site", "url": site.url()});
        for (field, value) in monitor.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let monitor = account.client.create_monitor(&account.page, &body).await;
        let mut stage = Self { account, site, monitor, agents, coordinator, _names: names };
        stage.until("up", FIRST_VERDICT).await;
        stage
    }

    /// The monitor as it is now.
    pub(crate) async fn look(&self) -> Value {
        self.account.client.monitor(&self.account.page, &self.monitor).await
    }

    /// Waits until the monitor's status is `status`; gives how long it took, and every `lastCheck` seen meanwhile.
    pub(crate) async fn until(&mut self, status: &str, limit: Duration) -> (Duration, Vec<Value>) {
        let begun = Instant::now();
        let mut checks = Vec::new();
        let monitor = eventually_every(API_PERIOD, &format!("the monitor is {status}"), limit, async || {
            let monitor = self.look().await;
            checks.push(monitor["lastCheck"].clone());
            (monitor["status"] == status).then_some(monitor)
        })
        .await;
        self.monitor = monitor;
        (begun.elapsed(), checks)
    }
}

/// Whether the reason given for a failure says that the address is not a public one.
pub(crate) fn says_not_public(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["not allowed", "not public", "private", "loopback", "link-local"]
        .iter()
        .any(|words| reason.contains(words))
}

/// A moment in an answer.
pub(crate) fn moment(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no moment"));
    Timestamp::parse_iso(text).unwrap_or_else(|| panic!("{text} is not ISO 8601"))
}
