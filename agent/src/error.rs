//! Errors of an agent outside of checks.

use crate::departure::Departure;
use parallax_protocol::ProtocolError;
use parallax_protocol::close::CloseReason;
use std::path::PathBuf;

/// A fault of the agent, its folder, its settings or its connection.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A setting of the command line or the environment breaks a rule.
    #[error("{field}: {rule}")]
    Setting {
        /// The setting.
        field: String,
        /// The rule, in words.
        rule: String,
    },
    /// The settings file is faulty, or one of its settings breaks a rule.
    #[error("{field}: {rule}")]
    SettingsFile {
        /// The setting, or the file.
        field: String,
        /// The rule, in words.
        rule: String,
    },
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    File {
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file is not in the form that this agent writes.
    #[error("{path}: {rule}")]
    Damaged {
        /// File or folder.
        path: PathBuf,
        /// Rule that it breaks.
        rule: &'static str,
    },
    /// The data folder has no identity.
    #[error("{0}: no identity yet; join a mesh first: parallax-agent join --coordinator HOST:PORT --token TOKEN")]
    NotJoined(PathBuf),
    /// The data folder already has an identity.
    #[error("{0}: already joined; use another --data folder, or remove this one")]
    AlreadyJoined(PathBuf),
    /// The agent is no longer a member of its mesh.
    #[error(
        "{departure}. To join again: parallax-agent join --coordinator HOST:PORT --token TOKEN --data {}",
        folder.display()
    )]
    Departed {
        /// Reason.
        departure: Departure,
        /// Its data folder.
        folder: PathBuf,
    },
    /// Another process uses this data folder.
    #[error("{0}: in use by another process")]
    InUse(PathBuf),
    /// Errors of keys and certificates.
    #[error(transparent)]
    Certs(#[from] parallax_certs::CertsError),
    /// An invalid frame.
    #[error("coordinator: {0}")]
    Protocol(#[from] ProtocolError),
    /// The coordinator refused to enrol this host.
    #[error("not enrolled: {0}")]
    Refused(CloseReason),
    /// The coordinator cannot be reached or can't prove its identity.
    #[error("coordinator {address}: {reason}")]
    Unreachable {
        /// Address as configured.
        address: String,
        /// Reason, in words.
        reason: String,
    },
    /// A task of the agent crashed; continuing without it would hide the failure.
    #[error("{0} crashed; see the log")]
    TaskCrashed(&'static str),
    /// Standard output can't be written.
    #[error("standard output can't be written: {0}")]
    Output(#[source] std::io::Error),
    /// The probes cannot be set up.
    #[error("probes: {0}")]
    Probes(String),
}

impl AgentError {
    /// Returns a conversion that adds the path to an IO error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
