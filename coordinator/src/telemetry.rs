//! Logging, set up once for the process: to standard error, by level and target, for people or as JSON.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

use crate::config::{Log, LogFormat};

/// Logging can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter can't be read.
    #[error("log.filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// It is set up already.
    #[error("logging: {0}")]
    Twice(#[from] TryInitError),
}

/// Sets up logging for the whole process. Colours are for terminals, and not where `NO_COLOR` is set.
///
/// # Errors
/// [`TelemetryError`] for a filter that can't be read, and the second time.
pub fn start(log: &Log) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;

    let filter = EnvFilter::builder().parse(&log.filter)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match log.format {
        LogFormat::Text => {
            let is_coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            lines.with_ansi(is_coloured).finish().try_init()?;
        }
        LogFormat::Json => lines.json().finish().try_init()?,
    }
    Ok(())
}
