//! Health checks of this host: route, name resolution, descriptors and ports, permission to ping.

use crate::context::AgentContext;
use parallax_dial::{DialError, DnsResolver, is_exhausted};
use parallax_protocol::result::WireOwnFault;
use parallax_protocol::text::ShortText;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Interval of the health checks, and interval while the host is not fit.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
const UNFIT_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Time without any answer after which a resolver counts as dead.
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(6);

/// Minimum number of free descriptors.
const MIN_FREE_DESCRIPTORS: u64 = 64;

/// Remedy for a host that doesn't permit ICMP.
const PING_REMEDY: &str = "run `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`, or give the program CAP_NET_RAW \
                      (`setcap cap_net_raw+ep`, or AmbientCapabilities in its unit)";

/// Fault of a host whose public name servers are unreachable.
pub(crate) const RECORD_RESOLVER_FAULT: &str = "dns monitors can't be checked: no public name server answers; open port 53 to them, or set \
                                  `resolvers`";

/// Consecutive failed checks of the public name servers before dns monitors move to other agents: one may
/// just be slow.
const MAX_UNANSWERED: u32 = 3;

/// Logs the faults that keep this host from checking, as text; none means that it is fit again.
pub fn log_faults(faults: &[String]) {
    if faults == [WireOwnFault::NotPermitted.to_string()] {
        tracing::warn!("this host does not permit ping: {PING_REMEDY}; until then other agents check ping monitors");
    } else if faults.is_empty() {
        tracing::info!("this host is fit to check again");
    } else {
        tracing::warn!(faults = faults.join("; "), "this host is not fit to check{}", remedy(faults));
    }
}

/// Returns remedies for faults that the operator can fix.
fn remedy(faults: &[String]) -> String {
    let has = |text: &str| faults.iter().any(|fault| fault.contains(text));
    let mut remedy = String::new();
    if has(&DialError::OwnAddressesUnreadable.to_string()) {
        remedy.push_str(": allow it AF_NETLINK (RestrictAddressFamilies= in its unit)");
    }
    if has(&WireOwnFault::ResolverDead.to_string()) {
        remedy.push_str(": check its name servers (/etc/resolv.conf), or set `resolvers`");
    }
    remedy
}

/// Checks the host periodically; reports changes to the coordinator and logs them.
pub(crate) async fn check_periodically(shared: Arc<AgentContext>) {
    let mut exhausted = 0;
    let mut unanswered = 0;
    loop {
        let faults = check_host(&shared, &mut exhausted).await;
        if faults.iter().all(|fault| *fault == WireOwnFault::NotPermitted)
            && let Some(resolver) = shared.probes.guard().separate_record_resolver()
            && check_record_resolver(resolver, &mut unanswered, &shared.resolves_records).await
            && shared.config.logs_readiness
        {
            log_record_resolver(*shared.resolves_records.borrow());
        }
        let changed = shared.faults.send_if_modified(|known| {
            let changed = *known != faults;
            known.clone_from(&faults);
            changed
        });
        if changed && shared.config.logs_readiness {
            log_faults(&faults.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        // A host that permits no pings doesn't change on its own.
        let is_settled = faults.iter().all(|fault| *fault == WireOwnFault::NotPermitted);
        let is_settled = is_settled && unanswered == 0;
        tokio::time::sleep(if is_settled { CHECK_INTERVAL } else { UNFIT_CHECK_INTERVAL }).await;
    }
}

/// Checks the resolver that only dns monitors use, on a host whose own one works; returns true if `resolves`
/// has changed. `unanswered` counts consecutive failed checks. The host stays fit for other monitors; the
/// session notifies the coordinator to move dns monitors.
async fn check_record_resolver(resolver: &DnsResolver, unanswered: &mut u32, resolves: &watch::Sender<bool>) -> bool {
    let alive = resolver.check_alive(Instant::now() + RESOLVER_TIMEOUT).await;
    *unanswered = if alive == Err(DialError::ResolverDead) { unanswered.saturating_add(1) } else { 0 };
    let now = *unanswered < MAX_UNANSWERED;
    resolves.send_if_modified(|known| std::mem::replace(known, now) != now)
}

fn log_record_resolver(resolves: bool) {
    if resolves {
        tracing::info!("public name servers answer again: this host checks dns monitors");
    } else {
        tracing::warn!("{RECORD_RESOLVER_FAULT}; until then other agents check them");
    }
}

/// Returns the host's faults. `exhausted` is the number of checks that had failed for lack of descriptors or
/// ports at the previous call.
async fn check_host(shared: &AgentContext, exhausted: &mut u64) -> Vec<WireOwnFault> {
    let failed = shared.counters.exhausted.load(Ordering::Relaxed);
    let mut lacks_descriptors = std::mem::replace(exhausted, failed) != failed
        || free_descriptors().is_some_and(|free| free < MIN_FREE_DESCRIPTORS);
    let mut faults = Vec::new();
    match route_fault(shared.config.source) {
        Some(fault @ WireOwnFault::NoRoute) => faults.push(fault),
        Some(_) => lacks_descriptors = true,
        None => match shared.probes.guard().resolver().check_alive(Instant::now() + RESOLVER_TIMEOUT).await {
            Ok(()) => {}
            Err(DialError::NoDescriptors) => lacks_descriptors = true,
            Err(_) => faults.push(WireOwnFault::ResolverDead),
        },
    }
    match shared.probes.guard().check() {
        Ok(()) => {}
        Err(DialError::NoDescriptors) => lacks_descriptors = true,
        Err(error) => faults.push(WireOwnFault::Internal { detail: ShortText::new(&error.to_string()) }),
    }
    if !shared.probes.may_ping() {
        faults.push(WireOwnFault::NotPermitted);
    }
    if lacks_descriptors {
        faults.push(WireOwnFault::NoDescriptors);
    }
    faults
}

/// Returns the fault if the system has no route to the Internet: connecting a UDP socket looks the route up
/// but sends nothing. A host that checks from a loopback address, as in a trial on one machine, needs none.
fn route_fault(source: Option<IpAddr>) -> Option<WireOwnFault> {
    if source.is_some_and(|source| source.is_loopback()) {
        return None;
    }
    // Addresses of root name servers: any public address would do.
    let v4 = SocketAddr::from((Ipv4Addr::new(198, 41, 0, 4), 53));
    let v6 = SocketAddr::from((Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 0x2, 0x30), 53));
    let try_out = |to: SocketAddr| {
        let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let from = SocketAddr::new(source.unwrap_or(any), 0);
        UdpSocket::bind(from).and_then(|socket| socket.connect(to))
    };
    combined_route_fault([try_out(v4), try_out(v6)])
}

/// Returns the fault after two route lookups: none if one succeeds, no route if both fail so.
fn combined_route_fault(tries: [io::Result<()>; 2]) -> Option<WireOwnFault> {
    let mut fault = WireOwnFault::NoRoute;
    for tried in tries {
        match tried {
            Ok(()) => return None,
            // There may be a route, but no socket to look it up with.
            Err(error) if is_exhausted(&error) => fault = WireOwnFault::NoDescriptors,
            Err(_) => {}
        }
    }
    Some(fault)
}

/// Number of descriptors that can still be opened; `None` if the system does not report it.
fn free_descriptors() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(limit.saturating_sub(u64::try_from(open).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_the_operator_can_fix_names_the_remedy() {
        let unreadable =
            WireOwnFault::Internal { detail: ShortText::new(&DialError::OwnAddressesUnreadable.to_string()) };
        assert!(remedy(&[unreadable.to_string()]).contains("AF_NETLINK"));
        assert!(remedy(&[WireOwnFault::ResolverDead.to_string()]).contains("`resolvers`"));
        assert_eq!(remedy(&[WireOwnFault::NoRoute.to_string()]), "");
    }

    #[test]
    fn a_host_on_loopback_needs_no_route() {
        assert_eq!(route_fault(Some(Ipv4Addr::new(127, 0, 0, 2).into())), None);
    }

    #[test]
    fn an_address_that_is_not_this_hosts_has_no_route() {
        assert_eq!(route_fault(Some(Ipv4Addr::new(203, 0, 113, 9).into())), Some(WireOwnFault::NoRoute));
    }

    #[test]
    fn exhausted_resources_are_not_reported_as_no_route() {
        let os = |code| Err(io::Error::from_raw_os_error(code));
        for (v4, v6, fault) in [
            (Ok(()), os(101), None),
            (os(101), os(101), Some(WireOwnFault::NoRoute)),
            (os(24), os(24), Some(WireOwnFault::NoDescriptors)),
            (os(23), os(101), Some(WireOwnFault::NoDescriptors)),
            (os(101), os(98), Some(WireOwnFault::NoDescriptors)),
        ] {
            assert_eq!(combined_route_fault([v4, v6]), fault);
        }
    }

    #[tokio::test]
    async fn public_name_servers_that_do_not_answer_take_dns_monitors_from_a_host() {
        // Nothing listens there.
        let resolver = DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        let resolves = watch::Sender::new(true);
        let mut unanswered = 0;
        for look in 1..=MAX_UNANSWERED {
            let changed = check_record_resolver(&resolver, &mut unanswered, &resolves).await;
            assert_eq!(changed, look == MAX_UNANSWERED, "look {look}");
        }
        assert!(!*resolves.borrow());
        assert!(!check_record_resolver(&resolver, &mut unanswered, &resolves).await, "logged once");
    }
}
