//! Local agents: each joins by invitation like any other, stores its identity in `DIR/agents/NAME`, and runs.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use parallax_agent::config::{AgentConfig, NameServers};
use parallax_agent::data_folder::DataFolder;
use parallax_agent::error::AgentError;
use parallax_certs::files::ensure_private_folder;
use parallax_core::member::name_key;
use parallax_core::vantage::Region;
use parallax_mesh::members::{INVITATION_LIFE, InviteRequest, MemberError, MemberStore};
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use url::Url;

use super::UpError;
use crate::app::RunningCoordinator;

/// Spool of an agent on disk while the coordinator is unavailable, in bytes.
const SPOOL: u64 = 16 << 20;
/// Concurrent checks of one agent.
const CONCURRENCY: usize = 128;
/// Time limit for all agents together to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);
/// Time limit for them to connect before the welcome is printed without them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause before a failed agent is restarted.
const RESTART_DELAY: Duration = Duration::from_secs(5);
/// Interval of checking whether they are connected.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a local agent.
#[derive(Debug, Clone)]
pub(super) struct LocalAgent {
    /// Name of the agent and of its folder.
    pub(super) name: String,
    /// Region it reports.
    pub(super) region: Region,
    /// Label of its network.
    pub(super) network: String,
    /// Address it connects and checks from.
    pub(super) source: Option<IpAddr>,
    /// Allows checks of this host and of private addresses.
    pub(super) allow_local: bool,
    /// Root certificate it trusts in checks, in addition to the public ones.
    pub(super) trust: Option<CertificateDer<'static>>,
    /// Registry it queries about every domain, instead of the real ones.
    pub(super) rdap: Option<Url>,
}

/// Running local agents.
#[derive(Debug)]
pub(super) struct LocalAgents {
    names: BTreeSet<String>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl LocalAgents {
    /// Joins agents without an identity, then starts all.
    pub(super) async fn start(
        settings: &crate::config::CoordinatorConfig,
        running: &RunningCoordinator,
        locals: &[LocalAgent],
    ) -> Result<Self, UpError> {
        let folder = settings.data.join("agents");
        let mesh = reachable(running.mesh_addr).to_string();
        // A revoked agent stays away until its folder is deleted.
        let (revoked, locals): (Vec<_>, Vec<_>) = locals.iter().partition(|local| is_revoked(&folder, local));
        for local in revoked {
            tracing::warn!(agent = local.name, "a local agent was revoked; delete its folder to let it join again");
        }
        // One after another: agents are numbered in the order in which they join, and the demo's history names them.
        let mut configs = Vec::new();
        for local in &locals {
            let config = join(&folder, &mesh, &running.members, local).await?;
            configs.push(AgentConfig { secrets_key_file: settings.secrets_key_file.clone(), ..config });
        }
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (local, config) in locals.iter().zip(configs) {
            tasks.spawn(run(local.name.clone(), config, stopping.clone()));
        }
        Ok(Self { names: locals.iter().map(|local| local.name.clone()).collect(), tasks, stop })
    }

    /// Returns their names.
    pub(super) const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Waits until all are connected, up to a limit: a revoked agent never connects.
    pub(super) async fn wait_until_connected(&self, members: &MemberStore) {
        let mut ticks = interval(POLL_INTERVAL);
        let connecting = async {
            loop {
                ticks.tick().await;
                let live = members.connected_agents();
                let live = live.iter().filter(|view| view.connected_since.is_some());
                let live: BTreeSet<&str> = live.map(|view| view.agent.name.as_str()).collect();
                if self.names.iter().all(|name| live.contains(name.as_str())) {
                    return;
                }
            }
        };
        if timeout(CONNECT_TIMEOUT, connecting).await.is_err() {
            tracing::warn!("some local agents are not connected; see `parallax agent list`");
        }
    }

    /// Lets running checks finish and their results be delivered, then stops all agents.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP_TIMEOUT, ending).await.is_err() {
            tracing::warn!("some local agents did not stop in time");
        }
    }
}

/// Runs a local agent until shutdown, restarting it after failures.
async fn run(name: String, config: AgentConfig, mut stopping: watch::Receiver<bool>) {
    loop {
        let mut stop_signal = stopping.clone();
        let stop_signal = async move {
            // A dropped sender is a reason to stop, too.
            let _ = stop_signal.wait_for(|stop| *stop).await;
        };
        let Err(error) = parallax_agent::run(config.clone(), stop_signal).await else { return };
        if let AgentError::Departed { departure, .. } = error {
            tracing::warn!(agent = name, "a local agent stopped: {departure}");
            return;
        }
        tracing::error!(agent = name, %error, "a local agent failed; restarting it");
        if timeout(RESTART_DELAY, stopping.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

fn is_revoked(folder: &Path, local: &LocalAgent) -> bool {
    DataFolder::open(&folder.join(&local.name)).is_ok_and(|home| home.removal_reason().is_some())
}

async fn join(folder: &Path, mesh: &str, members: &MemberStore, local: &LocalAgent) -> Result<AgentConfig, UpError> {
    let fault = |source| UpError::Agent { name: local.name.clone(), source };
    // The folder above the agent's own must be equally private.
    ensure_private_folder(folder).map_err(|error| fault(error.into()))?;
    let mut config = AgentConfig::new(folder.join(&local.name));
    config.coordinator = Some(mesh.to_owned());
    config.source = local.source;
    config.allow_private = local.allow_local;
    config.allow_own_host = local.allow_local;
    // A trial works in any network, even if public name servers are unreachable.
    config.resolvers = NameServers::System;
    config.trust.extend(local.trust.clone());
    config.rdap.clone_from(&local.rdap);
    config.spool_bytes = SPOOL;
    config.concurrency = CONCURRENCY;
    // It would be logged once for each agent.
    config.logs_readiness = false;
    if DataFolder::open(&config.data).map_err(fault)?.is_member() {
        return Ok(config);
    }
    remove_lost_agent(members, &local.name).await?;
    let request = InviteRequest {
        name: local.name.clone(),
        region: local.region,
        network: local.network.clone(),
        lifetime: INVITATION_LIFE,
    };
    let (_, token) = members.invite(request).await?;
    parallax_agent::join::join(&config, mesh, &token.expose()).await.map_err(fault)?;
    Ok(config)
}

/// Frees the name of an agent whose identity was lost: it has joined or was invited, and its folder is missing.
async fn remove_lost_agent(members: &MemberStore, name: &str) -> Result<(), MemberError> {
    let key = name_key(name);
    for agent in members.agents().await?.iter().filter(|agent| name_key(&agent.name) == key) {
        members.remove(&agent.id.to_string()).await?;
    }
    match members.revoke_invitation(name).await {
        Ok(_) | Err(MemberError::UnknownInvitation(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the address at which a local agent reaches a listening address.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let host = match listening.ip() {
        IpAddr::V4(any) if any.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(any) if any.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host => host,
    };
    SocketAddr::new(host, listening.port())
}
