//! Process-wide logging: to standard error, filtered by level and target, as text or JSON.

use std::io::{self, IsTerminal};

use parallax_primitives::log_filter;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::TryInitError;

use crate::config::{LogConfig, LogFormat};

/// Logging setup failed.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter can't be parsed.
    #[error("log.filter: {0}")]
    Filter(&'static str),
    /// Logging is already set up.
    #[error("logging: {0}")]
    AlreadySet(#[from] TryInitError),
}

/// Crates whose lines strangers cause, each with the loudest level that is dropped and what is kept, unless the filter
/// names the crate.
///
/// `h2` logs a WARN line for each stream that a client resets beyond its own count, and similar ones: a client that
/// opens and cancels streams in a loop could fill the log for a few bytes a line. The server itself bounds and counts
/// such clients (`web/http/server/h2_guard.rs`), so nothing is lost. `webauthn_rs` and its parts log an ERROR line for
/// answers that are refused; the service reports those that matter.
const QUIET: [(&str, Level, LevelFilter); 2] =
    [("h2", Level::WARN, LevelFilter::ERROR), ("webauthn_rs", Level::ERROR, LevelFilter::OFF)];

/// Builds the operator's log filter, with less of the [quiet](QUIET) crates.
fn filter(text: &str) -> Result<Targets, TelemetryError> {
    let mut filter = Targets::from_iter(log_filter::parse(text).map_err(TelemetryError::Filter)?);
    for (name, dropped, kept) in QUIET {
        let is_named = text.split(',').any(|directive| directive.trim().starts_with(name));
        // A quieter filter is left alone.
        if !is_named && filter.would_enable(name, &dropped) {
            filter = filter.with_target(name, kept);
        }
    }
    Ok(filter)
}

/// Sets up logging for the whole process. Colours are used on terminals only, and not if `NO_COLOR` is set.
///
/// # Errors
/// [`TelemetryError`] if the filter can't be parsed, or on the second call.
pub(crate) fn start(log: &LogConfig) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;

    let filter = filter(&log.filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match log.format {
        LogFormat::Text => {
            let is_coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            tracing_subscriber::registry().with(filter).with(lines.with_ansi(is_coloured)).try_init()?;
        }
        LogFormat::Json => tracing_subscriber::registry().with(filter).with(lines.json()).try_init()?,
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

    /// The messages that pass the filter.
    fn passed(text: &str) -> Vec<&'static str> {
        let lines = Lines::default();
        let writer = lines.clone();
        let lines_written = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(filter(text).unwrap()).with(lines_written);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "h2::proto::streams::streams", "reset");
            tracing::error!(target: "h2::proto::connection", "broken");
            tracing::error!(target: "webauthn_rs_core::core", "refused");
            tracing::info!(target: "parallax_mesh::session", "begun");
            tracing::debug!(target: "parallax_mesh::session", "detail");
        });
        let output = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        ["reset", "broken", "refused", "begun", "detail"].into_iter().filter(|word| output.contains(word)).collect()
    }

    #[test]
    fn lines_that_strangers_cause_are_logged_only_on_request() {
        assert_eq!(passed("info"), ["broken", "begun"]);
        for filter in ["warn,parallax=debug", "warn,parallax_mesh=debug"] {
            assert_eq!(passed(filter), ["broken", "begun", "detail"], "{filter}");
        }
        assert_eq!(passed("info,h2=warn"), ["reset", "broken", "begun"]);
        assert_eq!(passed("info,webauthn_rs=error"), ["broken", "refused", "begun"]);
        assert_eq!(passed("off"), [""; 0]);
        assert!(filter("info,=").is_err());
    }
}
