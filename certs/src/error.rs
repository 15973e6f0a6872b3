//! What can be wrong with a certificate, a key, a file or a token.

use std::io;
use std::path::PathBuf;

/// Every failure of this crate; each text names the thing and the rule it breaks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A secret file or folder can be reached by others than its owner.
    #[error("{path}: mode is {mode:03o}, others than the owner may reach it; it must be {wanted:03o}", path = path.display())]
    LooseMode {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The mode it must have.
        wanted: u32,
    },
    /// A file is no regular file, or longer than anything this crate writes.
    #[error("{path}: {rule}", path = path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// PEM text lacks the block that was looked for, or holds one too many.
    #[error("PEM text: {0}")]
    Pem(&'static str),
    /// A certificate does not keep one of our rules.
    #[error("certificate: {0}")]
    Certificate(&'static str),
    /// A signing request does not keep one of our rules.
    #[error("signing request: {0}")]
    Request(&'static str),
    /// An agent id is not 1 to 64 letters, digits, `-` or `_`.
    #[error("agent id: must be 1 to 64 ASCII letters, digits, '-' or '_'")]
    AgentId,
    /// A time is outside what a certificate can say.
    #[error("validity: time is outside the years a certificate can state")]
    Time,
    /// The authority's certificate and key do not belong together.
    #[error("authority: the key does not belong to the certificate")]
    KeyMismatch,
    /// Trust must be in one authority, or two while they are being exchanged.
    #[error("authorities: {0} given, one or two can be trusted")]
    TooManyRoots(usize),
    /// A step of a rotation that does not fit its phase.
    #[error("the rotation {0}")]
    Phase(&'static str),
    /// A join token is not of the form `id.secret.hash`.
    #[error("join token: {0}")]
    Token(&'static str),
    /// The system's source of randomness failed.
    #[error("the system gives no random bytes")]
    Random,
    /// Making or signing a certificate failed.
    #[error("certificate could not be made: {0}")]
    Sign(#[from] rcgen::Error),
    /// rustls refused the settings.
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
}
