//! Errors of a coordinator that can't start or has stopped.

use std::io;
use std::net::SocketAddr;

use parallax_engine::history;
use parallax_mesh as mesh;
use parallax_runtime::supervisor::TaskFailure;
use parallax_store::StoreError;

/// Reason why the coordinator can't start or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The data directory is unusable.
    #[error("the data directory can't be used: {0}")]
    Data(String),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key file for secrets is unusable.
    #[error("secrets_key_file can't be used: {0}")]
    SecretsKey(String),
    /// The store needs the operator's attention first.
    #[error("{problem}\n{remedy}")]
    NeedsRecovery {
        /// The problem.
        problem: String,
        /// The remedy; its last indented line is a command.
        remedy: String,
    },
    /// The history in the store could not be read.
    #[error(transparent)]
    History(#[from] history::HistoryError),
    /// The mesh's authority could not be created or read.
    #[error("the mesh's authority can't be used: {0}")]
    Authority(#[from] parallax_certs::CertsError),
    /// An address could not be bound.
    #[error("can't listen on {address} for {listener}: {source}")]
    Listen {
        /// Purpose of the listener.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The mesh could not start.
    #[error(transparent)]
    Mesh(#[from] mesh::MeshError),
    /// The admin socket could not be opened.
    #[error("the admin socket can't be used: {0}")]
    Admin(io::Error),
    /// The mail settings are unusable.
    #[error("[mail] can't be used: {0}")]
    Mail(String),
    /// The TLS settings are unusable.
    #[error("[tls] can't be used: {0}")]
    Tls(String),
    /// The settings for custom domains are unusable.
    #[error("[domains] can't be used: {0}")]
    Domains(String),
    /// Deliveries could not be set up.
    #[error(transparent)]
    Deliver(#[from] parallax_notify::deliver::DeliveryError),
    /// A part ended that should run as long as the coordinator does.
    #[error("{0} ended unexpectedly; see the log")]
    PartEnded(&'static str),
    /// A supervised task crashed too often, or can't be restarted.
    #[error(transparent)]
    TaskFailed(#[from] TaskFailure),
}

impl AppError {
    /// An address that can't be bound, and its purpose.
    pub(super) const fn listen(listener: &'static str, address: SocketAddr, source: io::Error) -> Self {
        Self::Listen { listener, address, source }
    }
}
