//! The smallest installation that can confirm an outage: two agents in one region on two networks.

use std::net::{Ipv4Addr, SocketAddr};

use crate::installation::{AgentProcess, CoordinatorProcess, TestAccount};

/// Starts a coordinator with the settings `config`, two agents, and an account on the largest plan.
pub async fn start(config: &str) -> (CoordinatorProcess, [AgentProcess; 2], TestAccount) {
    let coordinator = CoordinatorProcess::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config).await;
    let agents = join(&coordinator).await;
    let account = coordinator.create_account("pro");
    (coordinator, agents, account)
}

/// Adds two connected agents to a coordinator.
pub async fn join(coordinator: &CoordinatorProcess) -> [AgentProcess; 2] {
    let agents = [
        coordinator.start_agent("fra1", "europe", "AS64500", None),
        coordinator.start_agent("fra2", "europe", "AS64501", None),
    ];
    coordinator.wait_for_agents(agents.len()).await;
    agents
}
