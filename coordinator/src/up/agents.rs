//! Local agents: each joins with an invitation like any other, keeps its identity in `DIR/agents/NAME`, and runs.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use futures_util::future::try_join_all;
use parallax_agent::config::Config;
use parallax_agent::error::Error;
use parallax_agent::home::Home;
use parallax_certs::files::private_folder;
use parallax_core::place::Region;
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use url::Url;

use super::UpError;
use crate::app::Running;
use crate::members::{INVITATION_LIFE, MemberError, Roll, Wish};

/// Results that an agent keeps on disk while the coordinator does not take them, in bytes.
const SPOOL: u64 = 16 << 20;
/// Checks of one agent at once.
const CONCURRENCY: usize = 128;
/// How long all agents together may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(8);
/// How long they may take to connect before the newcomer is told without them.
const CONNECT: Duration = Duration::from_secs(15);
/// Pause before one that does not run is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(50);

/// A local agent as it is wanted.
#[derive(Debug, Clone)]
pub(super) struct Local {
    /// Its name, and its folder's.
    pub(super) name: String,
    /// Where it says it stands.
    pub(super) region: Region,
    /// Label of its network.
    pub(super) network: String,
    /// The address it connects and checks from.
    pub(super) source: Option<IpAddr>,
    /// Whether it checks addresses that are not public.
    pub(super) allow_private: bool,
    /// A root that it trusts in checks beside those that browsers trust.
    pub(super) trust: Option<CertificateDer<'static>>,
    /// The registry that it asks about every domain, instead of the domains' own.
    pub(super) rdap: Option<Url>,
}

/// Local agents that run.
#[derive(Debug)]
pub(super) struct Agents {
    names: BTreeSet<String>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Agents {
    /// Joins those that have no identity yet, and starts them all.
    pub(super) async fn start(data: &Path, running: &Running, locals: &[Local]) -> Result<Self, UpError> {
        let folder = data.join("agents");
        let mesh = reachable(running.mesh_addr).to_string();
        // One that was revoked stays away until its folder is deleted.
        let (gone, locals): (Vec<_>, Vec<_>) = locals.iter().partition(|local| was_removed(&folder, local));
        for local in gone {
            tracing::warn!(
                agent = local.name,
                "a local agent was revoked; delete its folder to have it join again"
            );
        }
        let joining = locals.iter().map(|local| join(&folder, &mesh, &running.members, local));
        let configs = try_join_all(joining).await?;
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (local, config) in locals.iter().zip(configs) {
            tasks.spawn(run(local.name.clone(), config, stopping.clone()));
        }
        Ok(Self { names: locals.iter().map(|local| local.name.clone()).collect(), tasks, stop })
    }

    /// Their names.
    pub(super) const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Waits until all are connected, within limits: one that the operator revoked never is.
    pub(super) async fn wait_until_connected(&self, members: &Roll) {
        let mut look = interval(LOOK);
        let connecting = async {
            loop {
                look.tick().await;
                let live = members.connected();
                let live = live.iter().filter(|view| view.connected_since.is_some());
                let live: BTreeSet<&str> = live.map(|view| view.agent.name.as_str()).collect();
                if self.names.iter().all(|name| live.contains(name.as_str())) {
                    return;
                }
            }
        };
        if timeout(CONNECT, connecting).await.is_err() {
            tracing::warn!("not every local agent is connected; `parallax agent list` shows which");
        }
    }

    /// Lets running checks end and their results be taken, and ends them all.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FAREWELL, ending).await.is_err() {
            tracing::warn!("not every local agent ended in time");
        }
    }
}

/// Runs a local agent until it is told to stop, as often as it has to be begun.
async fn run(name: String, config: Config, mut stopping: watch::Receiver<bool>) {
    loop {
        let mut told = stopping.clone();
        let told = async move {
            // Whoever would tell is gone: that too is a reason to stop.
            let _ = told.wait_for(|stop| *stop).await;
        };
        let Err(error) = parallax_agent::run(config.clone(), told).await else { return };
        if let Error::Departed { departure, .. } = error {
            tracing::warn!(agent = name, "a local agent ends: {departure}");
            return;
        }
        tracing::error!(agent = name, %error, "a local agent does not run; trying again");
        if timeout(AGAIN, stopping.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

fn was_removed(folder: &Path, local: &Local) -> bool {
    Home::open(&folder.join(&local.name)).is_ok_and(|home| home.departure().is_some())
}

async fn join(folder: &Path, mesh: &str, members: &Roll, local: &Local) -> Result<Config, UpError> {
    let fault = |source| UpError::Agent { name: local.name.clone(), source };
    // The folder above the agent's own must be as private.
    private_folder(folder).map_err(|error| fault(error.into()))?;
    let mut config = Config::new(folder.join(&local.name));
    config.coordinator = Some(mesh.to_owned());
    config.source = local.source;
    config.allow_private = local.allow_private;
    config.trust.extend(local.trust.clone());
    config.rdap.clone_from(&local.rdap);
    config.spool_bytes = SPOOL;
    config.concurrency = CONCURRENCY;
    // It would be said as often as there are agents.
    config.logs_readiness = false;
    if Home::open(&config.data).map_err(fault)?.is_member() {
        return Ok(config);
    }
    forget_ghosts(members, &local.name).await?;
    let wish = Wish {
        name: local.name.clone(),
        region: local.region,
        network: local.network.clone(),
        life: INVITATION_LIFE,
    };
    let (_, token) = members.invite(wish).await?;
    parallax_agent::join::join(&config, mesh, &token.expose()).await.map_err(fault)?;
    Ok(config)
}

/// Agents of that name whose identity is lost: they joined, and their folder did not live to tell.
async fn forget_ghosts(members: &Roll, name: &str) -> Result<(), MemberError> {
    for agent in members.agents().await? {
        if agent.name == name && agent.revoked_at.is_none() {
            members.forget(&agent.id.to_string()).await?;
        }
    }
    Ok(())
}

/// Where a local agent reaches what is listened on.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let host = match listening.ip() {
        IpAddr::V4(any) if any.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(any) if any.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host => host,
    };
    SocketAddr::new(host, listening.port())
}
