//! What can go wrong in an agent outside of a check.

use crate::departure::Departure;
use parallax_protocol::ProtocolError;
use parallax_protocol::close::CloseReason;
use std::path::PathBuf;

/// A fault of the agent, its folder, its settings or its connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what this agent wrote.
    #[error("{path}: {rule}")]
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        rule: &'static str,
    },
    /// The data folder holds no identity.
    #[error(
        "{0}: no identity yet; join a mesh first: parallax-agent join --coordinator HOST:PORT --token TOKEN"
    )]
    NotJoined(PathBuf),
    /// The data folder already holds an identity.
    #[error("{0}: already joined; use another --data folder, or remove this one")]
    AlreadyJoined(PathBuf),
    /// The agent is no longer a member of its mesh.
    #[error(
        "{departure}. To join again: parallax-agent join --coordinator HOST:PORT --token TOKEN --data {}",
        folder.display()
    )]
    Departed {
        /// Why.
        departure: Departure,
        /// Its data folder.
        folder: PathBuf,
    },
    /// Another process runs on this data folder.
    #[error("{0}: in use by another process")]
    InUse(PathBuf),
    /// Keys and certificates.
    #[error(transparent)]
    Certs(#[from] parallax_certs::Error),
    /// A frame that is not what it should be.
    #[error("coordinator: {0}")]
    Protocol(#[from] ProtocolError),
    /// The coordinator refused to enrol this host.
    #[error("not enrolled: {0}")]
    Refused(CloseReason),
    /// The coordinator cannot be reached or does not prove itself.
    #[error("coordinator {address}: {reason}")]
    Unreachable {
        /// As configured.
        address: String,
        /// Why, in words.
        reason: String,
    },
    /// A part of the agent broke off; without it the agent would go on in silence, and wrongly.
    #[error("{0} broke off; the log says why")]
    Died(&'static str),
    /// The probes cannot be set up.
    #[error("probes: {0}")]
    Probes(String),
}

impl Error {
    /// Names the file in an input or output fault.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
