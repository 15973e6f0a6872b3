//! Limits of connections and of their time, and the connection slots that follow from them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::connection_limit::ConnectionLimit;
use super::idle_connections::IdleConnections;

/// File descriptors that suffice for the rest of the process: store and mesh use some dozens, and outgoing connections
/// to mail servers, webhook receivers and vendors are limited to some hundreds.
const RESERVED_DESCRIPTORS: usize = 4096;
/// Time for which a new or just served connection is not evicted: a legitimate client on a busy machine may need a
/// while to send its request, and even 4,096 slots with this time allow 20,000 new connections a second.
const MIN_IDLE: Duration = Duration::from_millis(200);

/// Limits of the server.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct ServerLimits {
    /// Concurrent connections. A new one over the limit closes the one idle for longest, or waits if none is idle.
    pub(in crate::http) connections: usize,
    /// Concurrent connections of one address; more are closed at once. Loopback is exempt, since a proxy may run there.
    pub(in crate::http) per_address: usize,
    /// Time limit for a request's header section, from the start of the connection or the last response; so it also
    /// limits how long a connection may be silent. A header section that arrives in parts may take as long again from
    /// its first part on, since the fast path hands over to hyper, which starts its own timer.
    pub(in crate::http) header_timeout: Duration,
    /// Time limit for a write of a response to make progress.
    pub(in crate::http) write_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 1024,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
        }
    }
}

impl ServerLimits {
    /// Lowers the connection limit so that half of the file descriptors, at most [`RESERVED_DESCRIPTORS`], are left for
    /// other uses.
    fn with_descriptors(mut self, descriptors: usize) -> Self {
        let max = descriptors - (descriptors / 2).min(RESERVED_DESCRIPTORS);
        self.connections = self.connections.min(max).max(1);
        self
    }
}

/// Connection slots shared by all listeners.
#[derive(Debug, Clone)]
pub struct ConnectionSlots {
    pub(super) limits: ServerLimits,
    pub(super) per_address: ConnectionLimit,
    pub(super) slots: Arc<Semaphore>,
    pub(super) idle: IdleConnections,
}

impl ConnectionSlots {
    /// Creates as many slots as the file descriptor limit of this process allows.
    pub fn for_process() -> Self {
        Self::with_limits(match max_open_files() {
            Some(descriptors) => ServerLimits::default().with_descriptors(descriptors),
            None => ServerLimits::default(),
        })
    }

    pub(in crate::http) fn with_limits(limits: ServerLimits) -> Self {
        let (per_address, idle) = (ConnectionLimit::new(limits.per_address), IdleConnections::new(MIN_IDLE));
        Self { limits, per_address, slots: Arc::new(Semaphore::new(limits.connections)), idle }
    }
}

/// File descriptor limit of this process; `None` if it is unknown or unlimited.
fn max_open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    soft.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_process_keeps_enough_descriptors() {
        assert_eq!(ServerLimits::default().with_descriptors(256).connections, 128);
        assert_eq!(ServerLimits::default().with_descriptors(20_000).connections, 15_904);
        assert_eq!(ServerLimits::default().with_descriptors(1_000_000).connections, 16_384);
        assert_eq!(ServerLimits::default().with_descriptors(0).connections, 1);
        assert!(max_open_files().is_none_or(|limit| limit > 0));
    }
}
