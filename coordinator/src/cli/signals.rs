//! SIGTERM and SIGINT: the first asks for an orderly end, the second ends at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::out;

/// True once the process was asked to end.
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
                out::fault("asked twice to stop: ending at once");
                std::process::exit(1);
            }
        }
    });
    Ok(shutdown)
}
