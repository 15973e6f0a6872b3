//! Logging, set up once for the process: to standard error, by level and target, for people or as JSON.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
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

/// What the operator's filter lets through; of HTTP/2's own lines, errors alone, unless it names them.
///
/// The crate `h2` writes a WARN line for each stream that a client resets beyond what it keeps count of, and others of that
/// kind: whoever opens and cancels streams without a pause would write our log, a line for a few bytes of his. What such a
/// client may do is bounded and counted where connections are served (`http/streams.rs`), so nothing is lost by that.
fn filter(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let filter = EnvFilter::builder().parse(text)?;
    let is_named = text.split(',').any(|directive| directive.trim().starts_with("h2"));
    // What is quieter already stays so.
    let is_quiet = filter.max_level_hint().is_some_and(|level| level <= LevelFilter::ERROR);
    if is_named || is_quiet { Ok(filter) } else { Ok(filter.add_directive("h2=error".parse()?)) }
}

/// Sets up logging for the whole process. Colours are for terminals, and not where `NO_COLOR` is set.
///
/// # Errors
/// [`TelemetryError`] for a filter that can't be read, and the second time.
pub fn start(log: &Log) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;

    let filter = filter(&log.filter)?;
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The words of the lines that pass.
    fn passed(text: &str) -> Vec<&'static str> {
        let lines = Lines::default();
        let written = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter(text).unwrap())
            .with_writer(move || written.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "h2::proto::streams::streams", "reset");
            tracing::error!(target: "h2::proto::connection", "broken");
            tracing::info!(target: "parallax_coordinator::app", "begun");
            tracing::debug!(target: "parallax_coordinator::app", "detail");
        });
        let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        ["reset", "broken", "begun", "detail"].into_iter().filter(|word| told.contains(word)).collect()
    }

    #[test]
    fn a_client_that_resets_streams_writes_no_lines_unless_they_are_asked_for() {
        assert_eq!(passed("info"), ["broken", "begun"]);
        assert_eq!(passed("warn,parallax_coordinator=debug"), ["broken", "begun", "detail"]);
        assert_eq!(passed("info,h2=warn"), ["reset", "broken", "begun"]);
        assert_eq!(passed("off"), [""; 0]);
        assert!(filter("info,=").is_err());
    }
}
