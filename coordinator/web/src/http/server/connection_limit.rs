//! Connection limit per address, so that one client can't take all connection slots; the limit of all connections is in
//! `limits.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts open connections by address. Its size is bounded by the number of open connections.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLimit {
    max_per_address: usize,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// Permit of one connection; released when dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limit: ConnectionLimit,
    peer: Option<IpAddr>,
}

impl ConnectionLimit {
    /// Creates a limit of `max` connections per address.
    pub(super) fn new(max: usize) -> Self {
        Self { max_per_address: max, open: Arc::default() }
    }

    /// Returns a permit for a connection, or `None` if its address is at the limit. Loopback is not counted, since a
    /// proxy on this host forwards the connections of all clients.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = address_key(peer);
        if peer.is_loopback() {
            return Some(ConnectionPermit { limit: self.clone(), peer: None });
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&peer).copied().unwrap_or(0);
        if count >= self.max_per_address {
            return None;
        }
        open.insert(peer, count + 1);
        Some(ConnectionPermit { limit: self.clone(), peer: Some(peer) })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut open = self.limit.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get(&peer).copied() {
            Some(count) if count > 1 => open.insert(peer, count - 1),
            _ => open.remove(&peer),
        };
    }
}

/// Key that connections are counted by: the IPv4 address, or the IPv6 /64, since one host has all of it.
fn address_key(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_per_address_are_limited_and_released() {
        let limit = ConnectionLimit::new(2);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let first = limit.admit(one);
        let second = limit.admit(one);
        assert!(first.is_some() && second.is_some());
        assert!(limit.admit(one).is_none());
        assert!(limit.admit(other).is_some());
        drop(first);
        assert!(limit.admit(one).is_some());
        drop(second);
        assert!(limit.open.lock().unwrap().is_empty());
    }

    #[test]
    fn an_ipv6_network_shares_one_limit_and_loopback_has_none() {
        let limit = ConnectionLimit::new(1);
        let _held = limit.admit("2001:db8::1".parse().unwrap());
        assert!(limit.admit("2001:db8::2".parse().unwrap()).is_none());
        assert!(limit.admit("2001:db8:0:1::1".parse().unwrap()).is_some());
        let _held = limit.admit("::ffff:192.0.2.1".parse().unwrap());
        assert!(limit.admit("192.0.2.1".parse().unwrap()).is_none());
        let _free = ["127.0.0.1", "127.0.0.1", "::1", "::1"].map(|it| limit.admit(it.parse().unwrap()).unwrap());
    }
}
