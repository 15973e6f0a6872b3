//! Errors of certificates, keys, files and tokens.

use std::io;
use std::path::PathBuf;

/// All errors of this crate; each text names the object and the rule it breaks.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    /// A file or folder could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A secret file or folder is accessible to others than its owner.
    #[error("{path}: mode is {mode:03o}, users other than the owner have access; it must be {wanted:03o}", path = path.display())]
    LooseMode {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Required mode.
        wanted: u32,
    },
    /// A file is not a regular file, or longer than any file this crate writes.
    #[error("{path}: {rule}", path = path.display())]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// PEM text lacks the required block, or contains one too many.
    #[error("PEM text: {0}")]
    Pem(&'static str),
    /// A certificate breaks one of this crate's rules.
    #[error("certificate: {0}")]
    Certificate(&'static str),
    /// A signing request breaks one of this crate's rules.
    #[error("signing request: {0}")]
    Request(&'static str),
    /// An agent id is not 1 to 64 letters, digits, `-` or `_`.
    #[error("agent id: must be 1 to 64 ASCII letters, digits, '-' or '_'")]
    AgentId,
    /// A time is outside the range that a certificate can state.
    #[error("validity: time is outside the years a certificate can state")]
    Time,
    /// The authority's certificate and key don't match.
    #[error("authority: the key does not belong to the certificate")]
    KeyMismatch,
    /// The number of trusted authorities is not one, or two during a rotation.
    #[error("authorities: {0} given, one or two can be trusted")]
    TooManyRoots(usize),
    /// A rotation step that is not possible in its phase.
    #[error("the rotation {0}")]
    RotationPhase(&'static str),
    /// A join token is not of the form `id.secret.hash`.
    #[error("join token: {0}")]
    Token(&'static str),
    /// The system's source of randomness failed.
    #[error("the system's source of randomness failed")]
    Random,
    /// Creating or signing a certificate failed.
    #[error("certificate could not be created: {0}")]
    Sign(#[from] rcgen::Error),
    /// rustls rejected the settings.
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
}
