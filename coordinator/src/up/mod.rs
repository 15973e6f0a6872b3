//! `parallax up`: one host, one process. A coordinator and its local agents, joined over mutual-TLS QUIC on
//! loopback like any others, with a first account, page and key; with `--demo`, a small simulated world around
//! them.

mod banner;
mod demo;
mod first_start;
mod host_readiness;
mod local_agents;
pub(crate) mod ready_file;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use parallax_core::effective::ConfirmationPolicy;
use parallax_core::time::SECOND;
use parallax_core::vantage::Region;
use parallax_engine::MESH_PROBLEMS_LOG_TARGET;
use parallax_mesh::FITNESS_LOG_TARGET;
use parallax_mesh::members::MemberError;
use parallax_service as service;
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

use self::demo::{Demo, DemoCertificate, DemoRegistry};
use self::first_start::FirstStart;
use self::local_agents::{LocalAgent, LocalAgents};
use self::ready_file::ReadyInfo;
use crate::app::{self, AppError, RunningCoordinator};
use crate::config::{CoordinatorConfig, MailTransport};
use crate::console;

/// Milliseconds between a demo monitor's rounds in one region: short, so that every state appears soon.
const DEMO_INTERVAL_MS: u32 = (10 * SECOND) as u32;

/// Folder below the data folder for mails, if no mail server is set.
const MAIL_FOLDER: &str = "mails";

/// Mode of `parallax up`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpMode {
    /// A single local agent.
    Single {
        /// Region of the agent.
        region: Region,
        /// Network label of the agent.
        network: String,
    },
    /// The simulated world.
    Demo,
}

/// A failure of `parallax up`.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The coordinator failed.
    #[error(transparent)]
    App(#[from] AppError),
    /// The first account, page or key could not be created.
    #[error("first start failed: {0}")]
    Service(#[from] service::ServiceError),
    /// The member records could not be read or written.
    #[error("local agents: {0}")]
    Members(#[from] MemberError),
    /// A local agent could not join or run.
    #[error("local agent {name}: {source}")]
    Agent {
        /// Name of the agent.
        name: String,
        /// Cause.
        source: parallax_agent::error::AgentError,
    },
    /// The welcome with the key could not be printed.
    #[error("standard output can't be written: {0}; create another key with `parallax key create`")]
    Output(#[source] io::Error),
    /// A demo target could not be served.
    #[error("could not serve a demo target: {0}")]
    Target(io::Error),
    /// The demo's certificate could not be created.
    #[error("could not create the demo's certificate: {0}")]
    Certificate(String),
    /// The demo's state could not be read or written.
    #[error("{path}: {reason}")]
    Memory {
        /// Path of the file.
        path: String,
        /// Cause.
        reason: String,
    },
    /// The ready file could not be written.
    #[error("could not write the ready file: {0}")]
    Ready(#[from] io::Error),
}

impl UpMode {
    /// Returns the default settings of this mode.
    pub(crate) fn defaults(&self) -> CoordinatorConfig {
        let mut config = CoordinatorConfig::default();
        // Faults stay visible. The engine's mesh alerts would be noise: until the local agents have joined there
        // are no vantages, and the welcome explains the limits of one network. Faults of hosts are logged by
        // `fitness`.
        config.log.filter = format!("warn,{MESH_PROBLEMS_LOG_TARGET}=error,{FITNESS_LOG_TARGET}=error");
        match self {
            Self::Single { .. } => config.confirmation = ConfirmationPolicy::Repeat,
            Self::Demo => {
                config.plans.interval_ms = [DEMO_INTERVAL_MS; 3];
                // The demo's receiver is on loopback.
                config.deliver.allow_private = true;
            }
        }
        config
    }

    fn agents(&self, trust: Option<&CertificateDer<'static>>, rdap: Option<&Url>) -> Vec<LocalAgent> {
        match self {
            Self::Single { region, network } => vec![LocalAgent {
                name: format!("local-{region}"),
                region: *region,
                network: network.clone(),
                source: None,
                allow_local: false,
                trust: None,
                rdap: None,
            }],
            Self::Demo => demo::DEMO_AGENTS
                .iter()
                .map(|agent| LocalAgent {
                    name: agent.name.to_owned(),
                    region: agent.region,
                    network: agent.network.to_owned(),
                    source: Some(IpAddr::V4(agent.address())),
                    allow_local: true,
                    trust: trust.cloned(),
                    rdap: rdap.cloned(),
                })
                .collect(),
        }
    }
}

/// Local agents and demo, which are stopped before the coordinator.
#[derive(Debug)]
struct LocalParts {
    agents: LocalAgents,
    /// Stops with this value.
    _fitness: JoinSet<()>,
    demo: Option<Demo>,
}

/// Starts everything, prints the welcome, and runs until shutdown.
///
/// # Errors
/// [`UpError`] if a part can't start or ends by itself; the others are stopped in order first.
pub(crate) async fn run(
    kind: UpMode,
    mut config: CoordinatorConfig,
    ready_file: Option<PathBuf>,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), UpError> {
    if config.mail.transport == MailTransport::None {
        // A trial has no mail server; mails can be read in a folder.
        config.mail.transport = MailTransport::Folder;
        config.mail.folder = Some(config.data.join(MAIL_FOLDER));
    }
    if kind == UpMode::Demo {
        demo::write_first_records(&config).await?;
    }
    let (stop, stopping) = watch::channel(false);
    let running = app::start(config.clone(), stopping).await?;
    let outcome = tokio::select! {
        biased;
        _ = shutdown.wait_for(|stop| *stop) => Ok(None),
        outcome = start_local_parts(&kind, &config, ready_file, &running) => outcome.map(Some),
    };
    let mut coordinator = tokio::spawn(running.wait());
    let (world, fault) = match outcome {
        Ok(world) => (world, None),
        Err(fault) => (None, Some(fault)),
    };
    let mut ended = None;
    if world.is_some() {
        tokio::select! {
            _ = shutdown.wait_for(|stop| *stop) => {}
            result = &mut coordinator => ended = Some(result),
        }
    }
    if let Some(world) = world {
        // The coordinator still accepts the agents' last results.
        world.agents.stop().await;
        if let Some(demo) = world.demo {
            demo.stop().await;
        }
    }
    stop.send_replace(true);
    let ended = match ended {
        Some(ended) => ended,
        None => coordinator.await,
    };
    ended.map_err(|_| AppError::PartEnded("the coordinator"))??;
    fault.map_or(Ok(()), Err)
}

/// Creates the first records, joins the agents, serves the demo's targets, and prints the welcome.
async fn start_local_parts(
    kind: &UpMode,
    config: &CoordinatorConfig,
    ready_file: Option<PathBuf>,
    running: &RunningCoordinator,
) -> Result<LocalParts, UpError> {
    let first = FirstStart::find_or_create(&running.service, kind).await?;
    let outside = match kind {
        UpMode::Demo => {
            let certificate = DemoCertificate::make(running.service.now())?;
            Some((certificate, DemoRegistry::bind().await.map_err(UpError::Target)?))
        }
        UpMode::Single { .. } => None,
    };
    let (root, rdap) = outside.as_ref().map(|(certificate, it)| (&certificate.root, &it.url)).unzip();
    let locals = kind.agents(root, rdap);
    // Targets are served before the agents check them.
    let demo = match outside {
        Some((certificate, registry)) => {
            Some(Demo::start(&config.data, &running.service, &first, &certificate, registry).await?)
        }
        None => None,
    };
    let agents = LocalAgents::start(config, running, &locals).await?;
    agents.wait_until_connected(&running.members).await;
    if let Some(path) = ready_file {
        ready_file::write(
            &path,
            &ReadyInfo::of(running, first.key.as_ref(), first.set_up_url.clone(), Some(&first.page)),
        )?;
    }
    // Includes the key, which is shown only once.
    let welcome = banner::welcome(kind, config, running, &first, demo.as_ref().map(|demo| demo.inbox));
    console::line(&welcome).map_err(UpError::Output)?;
    let mut fitness = JoinSet::new();
    fitness.spawn(host_readiness::watch_readiness(running.members.clone(), agents.names().clone()));
    Ok(LocalParts { agents, _fitness: fitness, demo })
}

#[cfg(test)]
mod tests;
