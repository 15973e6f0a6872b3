//! The ping probe: up to three ICMP echoes (RFC 792, RFC 4443), of which one reply is enough.
//!
//! The first echo is sent at once, the next ones only after a second without a reply, so that a healthy host
//! costs one packet. If a name has addresses of both families, the second one joins after the head start of
//! RFC 8305. All checks share one socket per family.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use parallax_dial::{HEAD_START, Host, SourceAddresses, is_exhausted};
use parallax_protocol::{
    check::WirePingCheck,
    result::{ProbeReport, WireFailure, WireOutcome, WireOwnFault},
    text::ShortText,
};
use rand::Rng;
use surge_ping::{Client, Config, ICMP, IcmpPacket, PingIdentifier, PingSequence, SurgeError};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target, micros},
};

/// Maximum number of echoes to an address, and the time between them.
const ECHOES: u32 = 3;
const ECHO_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for the replies to all echoes, from the first one on.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// The same size as that of the usual ping tool.
const PAYLOAD: [u8; 56] = [0x2a; 56];

/// Sends echoes until there is a reply. The latency is that echo's round trip.
pub(super) async fn run(check: &WirePingCheck, pingers: &Pingers, context: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let result = ping(check, pingers, context, &mut facts).await;
    facts.report(judge(result))
}

/// A socket for each family, opened on first use; cheap to share.
#[derive(Debug)]
pub(super) struct Pingers {
    source: SourceAddresses,
    v4: SocketSlot,
    v6: SocketSlot,
    next_sequence: AtomicU16,
}

#[derive(Default)]
struct SocketSlot(Mutex<Option<Client>>);

impl Pingers {
    /// Creates an instance without open sockets.
    pub(super) fn new(source: SourceAddresses) -> Self {
        let next_sequence = AtomicU16::new(rand::rng().random());
        Self { source, v4: SocketSlot::default(), v6: SocketSlot::default(), next_sequence }
    }

    /// Returns the client for a family. After a permission error, the next check tries again.
    fn client(&self, family: IpAddr) -> io::Result<Client> {
        let (slot, kind, source) = match family {
            IpAddr::V4(_) => (&self.v4, ICMP::V4, self.source.v4.map(IpAddr::V4)),
            IpAddr::V6(_) => (&self.v6, ICMP::V6, self.source.v6.map(IpAddr::V6)),
        };
        let mut slot = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = slot.as_ref() {
            return Ok(client.clone());
        }
        let mut config = Config::builder().kind(kind);
        if let Some(source) = source {
            config = config.bind(SocketAddr::new(source, 0));
        }
        let client = Client::new(&config.build())?;
        *slot = Some(client.clone());
        Ok(client)
    }

    /// Returns true if a socket can be opened, as far as permissions go.
    pub(super) fn may_send(&self) -> bool {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        !self.client(IpAddr::V4(Ipv4Addr::LOCALHOST)).is_err_and(refused)
    }

    /// Returns a unique sequence number: unprivileged sockets match replies by it alone.
    fn sequence(&self) -> PingSequence {
        PingSequence(self.next_sequence.fetch_add(1, Ordering::Relaxed))
    }
}

impl std::fmt::Debug for SocketSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot")
    }
}

async fn ping(
    check: &WirePingCheck,
    pingers: &Pingers,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<(), CheckError> {
    let deadline = context.deadline();
    let host = Host::parse(&check.host).map_err(|error| bad_target(error.to_string()))?;
    // Echoes have no port; the guard judges addresses.
    let admitted = context.admit(&host, 0, deadline).await?;
    facts.record_resolution(&admitted);
    // The time of an echo begins when it is sent.
    let admitted = admitted.with_late_addresses().await;
    let started = Instant::now();
    let deadline = deadline.min(started + REPLY_TIMEOUT);
    let mut echoes = FuturesUnordered::new();
    let targets: Vec<IpAddr> = first_of_each_family(admitted.addresses()).collect();
    for (index, &target) in targets.iter().enumerate() {
        let head_start = if index == 0 { Duration::ZERO } else { HEAD_START };
        for turn in 0..ECHOES {
            echoes.push(echo(pingers, target, started + head_start + ECHO_INTERVAL * turn, deadline));
        }
    }
    let mut worst = EchoFailure::Own(WireOwnFault::NoRoute);
    while let Some(result) = echoes.next().await {
        match result {
            Ok((target, round_trip)) => {
                facts.address = Some(target);
                facts.phases.connect_us = Some(micros(round_trip));
                facts.duration = Some(round_trip);
                return Ok(());
            }
            Err(failure) => {
                // A send that fails now fails in a second too.
                let is_over = targets.len() == 1 && matches!(failure, EchoFailure::Own(_));
                worst = worst.more_informative(failure);
                if is_over {
                    break;
                }
            }
        }
    }
    Err(match worst {
        EchoFailure::Own(fault) => CheckError::Own(fault),
        EchoFailure::Silence => WireFailure::NoReply.into(),
        EchoFailure::Unreachable => WireFailure::Unreachable.into(),
    })
}

/// Returns the first address of each family, in the order given.
fn first_of_each_family(addresses: &[SocketAddr]) -> impl Iterator<Item = IpAddr> {
    let first = addresses.first().map(SocketAddr::ip);
    let second = addresses.iter().map(SocketAddr::ip).find(|ip| Some(ip.is_ipv4()) != first.map(|ip| ip.is_ipv4()));
    first.into_iter().chain(second)
}

/// Result of an echo without a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EchoFailure {
    /// It could not be sent.
    Own(WireOwnFault),
    /// No response by the deadline.
    Silence,
    /// A router reports the host as unreachable.
    Unreachable,
}

impl EchoFailure {
    /// Returns the failure that is more informative about the target. A lack of permission is more informative
    /// about this host than a family without a route.
    fn more_informative(self, other: Self) -> Self {
        if other.informativeness() > self.informativeness() { other } else { self }
    }

    fn informativeness(&self) -> u8 {
        match self {
            Self::Own(WireOwnFault::NoRoute) => 0,
            Self::Own(_) => 1,
            Self::Silence => 2,
            Self::Unreachable => 3,
        }
    }
}

async fn echo(
    pingers: &Pingers,
    target: IpAddr,
    at: Instant,
    deadline: Instant,
) -> Result<(IpAddr, Duration), EchoFailure> {
    sleep_until(at).await;
    if at >= deadline {
        return Err(EchoFailure::Silence);
    }
    let client = pingers.client(target).map_err(|error| EchoFailure::Own(own_fault(&error)))?;
    let identifier = PingIdentifier(rand::rng().random());
    let mut pinger = client.pinger(target, identifier).await;
    pinger.timeout(REPLY_TIMEOUT);
    let sent = Instant::now();
    match timeout_at(deadline, pinger.ping(pingers.sequence(), &PAYLOAD)).await {
        Err(_) | Ok(Err(SurgeError::Timeout { .. })) => Err(EchoFailure::Silence),
        Ok(Ok((packet, _))) if is_reply(&packet) => Ok((target, sent.elapsed())),
        Ok(Ok(_)) => Err(EchoFailure::Unreachable),
        Ok(Err(SurgeError::IOError(error))) => Err(EchoFailure::Own(own_fault(&error))),
        Ok(Err(error)) => Err(EchoFailure::Own(WireOwnFault::Internal { detail: ShortText::new(&error.to_string()) })),
    }
}

/// Returns true if a packet for an echo is its reply, not a router's error.
fn is_reply(packet: &IcmpPacket) -> bool {
    match packet {
        IcmpPacket::V4(packet) => packet.get_icmp_type().0 == 0,
        IcmpPacket::V6(packet) => packet.get_icmpv6_type().0 == 129,
    }
}

fn own_fault(error: &io::Error) -> WireOwnFault {
    match error.kind() {
        io::ErrorKind::PermissionDenied => WireOwnFault::NotPermitted,
        io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::Unsupported => WireOwnFault::NoRoute,
        _ => match error.raw_os_error() {
            // EAFNOSUPPORT: the family is disabled on this host.
            Some(97) => WireOwnFault::NoRoute,
            _ if is_exhausted(error) => WireOwnFault::NoDescriptors,
            _ => WireOwnFault::Internal { detail: ShortText::new("an echo can't be sent") },
        },
    }
}

fn judge(result: Result<(), CheckError>) -> WireOutcome {
    match result {
        Ok(()) => WireOutcome::Passed,
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn faults_of_this_host_are_inconclusive() {
        let os = |code| own_fault(&io::Error::from_raw_os_error(code));
        assert_eq!(os(1), WireOwnFault::NotPermitted);
        assert_eq!(os(13), WireOwnFault::NotPermitted);
        assert_eq!(os(101), WireOwnFault::NoRoute);
        assert_eq!(os(97), WireOwnFault::NoRoute);
        for exhausted in [12, 23, 24, 98, 105] {
            assert_eq!(os(exhausted), WireOwnFault::NoDescriptors, "{exhausted}");
        }
        let fault = CheckError::Own(WireOwnFault::NotPermitted);
        assert_eq!(judge(Err(fault)), WireOutcome::Inconclusive(WireOwnFault::NotPermitted));
        assert_eq!(judge(Ok(())), WireOutcome::Passed);
    }

    #[test]
    fn the_failure_most_informative_about_the_target_counts() {
        let no_route = || EchoFailure::Own(WireOwnFault::NoRoute);
        let not_permitted = || EchoFailure::Own(WireOwnFault::NotPermitted);
        assert_eq!(no_route().more_informative(not_permitted()), not_permitted());
        assert_eq!(not_permitted().more_informative(no_route()), not_permitted());
        assert_eq!(no_route().more_informative(EchoFailure::Silence), EchoFailure::Silence);
        assert_eq!(EchoFailure::Silence.more_informative(EchoFailure::Unreachable), EchoFailure::Unreachable);
        assert_eq!(EchoFailure::Unreachable.more_informative(no_route()), EchoFailure::Unreachable);
    }

    #[test]
    fn one_address_of_each_family_is_pinged() {
        let all: Vec<SocketAddr> = ["[::1]:0", "[::2]:0", "127.0.0.1:0"].iter().map(|a| a.parse().unwrap()).collect();
        let chosen: Vec<IpAddr> = first_of_each_family(&all).collect();
        assert_eq!(chosen, [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    }
}
