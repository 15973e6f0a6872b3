//! The least installation that judges: two agents that look from one region over two networks.

use std::net::{Ipv4Addr, SocketAddr};

use crate::installation::{Account, Agent, Coordinator};

/// A coordinator with the lines of `config` and a pair of agents, and an account that may have the most.
pub async fn start(config: &str) -> (Coordinator, [Agent; 2], Account) {
    let coordinator = Coordinator::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config).await;
    let agents = join(&coordinator).await;
    let account = coordinator.account("pro");
    (coordinator, agents, account)
}

/// A pair of agents for a coordinator that has none, connected.
pub async fn join(coordinator: &Coordinator) -> [Agent; 2] {
    let agents = [
        coordinator.agent("fra1", "europe", "AS64500", None),
        coordinator.agent("fra2", "europe", "AS64501", None),
    ];
    coordinator.connected(agents.len()).await;
    agents
}
