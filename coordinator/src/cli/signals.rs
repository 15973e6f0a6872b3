//! SIGTERM and SIGINT: the first shuts down gracefully, the second exits immediately.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::console;

/// Returns a channel that turns true when the process is asked to stop.
pub(super) fn shutdown() -> io::Result<watch::Receiver<bool>> {
    let (stop, shutdown) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.send_replace(true) {
                console::error("second signal: stopping immediately");
                std::process::exit(1);
            }
        }
    });
    Ok(shutdown)
}
