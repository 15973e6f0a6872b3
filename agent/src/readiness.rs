//! Whether this host itself is fit to check: route, name resolution, descriptors, leave to ping.

use crate::shared::Shared;
use parallax_protocol::result::OwnFault;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often the host is judged.
const EVERY: Duration = Duration::from_secs(30);

/// A resolver that answers nothing for this long is dead.
const RESOLVER: Duration = Duration::from_secs(6);

/// Fewer free descriptors than this are too few.
const DESCRIPTORS: u64 = 64;

/// What an operator can do about a host that lets nobody ping.
const PERMIT: &str = "run `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`, or give the program CAP_NET_RAW \
                      (`setcap cap_net_raw+ep`, or AmbientCapabilities in its unit)";

/// Judges the host again and again; what changes is told to the coordinator and logged.
pub(crate) async fn watch(shared: Arc<Shared>) {
    loop {
        let faults = judge(&shared).await;
        let changed = shared.faults.send_if_modified(|known| {
            let changed = *known != faults;
            known.clone_from(&faults);
            changed
        });
        if changed && faults == [OwnFault::NotPermitted] {
            tracing::warn!(
                "this host does not let us ping: {PERMIT}; until then ping monitors go to other agents"
            );
        } else if changed && faults.is_empty() {
            tracing::info!("this host is fit to check again");
        } else if changed {
            let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
            tracing::warn!(faults = told.join("; "), "this host is not fit to check");
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn judge(shared: &Shared) -> Vec<OwnFault> {
    let mut faults = Vec::new();
    if !has_route(shared.config.source) {
        faults.push(OwnFault::NoRoute);
    } else if !shared.net.guard().resolver().is_alive(Instant::now() + RESOLVER).await {
        faults.push(OwnFault::ResolverDead);
    }
    if !shared.net.may_ping() {
        faults.push(OwnFault::NotPermitted);
    }
    if free_descriptors().is_some_and(|free| free < DESCRIPTORS) {
        faults.push(OwnFault::NoDescriptors);
    }
    faults
}

/// Whether the system knows a way out: connecting a UDP socket looks the route up and sends nothing. A host
/// that checks from a loopback address, as in a trial on one machine, needs none.
fn has_route(source: Option<IpAddr>) -> bool {
    if source.is_some_and(|source| source.is_loopback()) {
        return true;
    }
    // Addresses of root name servers: any public address would do.
    let v4 = SocketAddr::from((Ipv4Addr::new(198, 41, 0, 4), 53));
    let v6 = SocketAddr::from((Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 0x2, 0x30), 53));
    [v4, v6].into_iter().any(|to| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let from = SocketAddr::new(source.unwrap_or(any), 0);
        UdpSocket::bind(from).and_then(|socket| socket.connect(to)).is_ok()
    })
}

/// Descriptors that may still be opened; `None` where the system does not tell.
fn free_descriptors() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(limit.saturating_sub(u64::try_from(open).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_on_loopback_needs_no_route() {
        assert!(has_route(Some(Ipv4Addr::new(127, 0, 0, 2).into())));
    }

    #[test]
    fn an_address_that_is_not_this_hosts_has_no_route() {
        assert!(!has_route(Some(Ipv4Addr::new(203, 0, 113, 9).into())));
    }
}
