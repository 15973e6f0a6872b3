//! TCP connections to admitted addresses: staggered attempts, a deadline, and precise errors.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    pin::pin,
    task::Poll,
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    error::{DialError, is_exhausted},
    families::alternate,
    guard::{AdmittedAddresses, LateAddresses, SourceAddresses},
};

/// Time that an attempt runs alone before the next address is tried as well (RFC 8305, section 5).
pub const HEAD_START: Duration = Duration::from_millis(250);

/// A connection and its timing.
#[derive(Debug)]
pub struct DialedConnection {
    /// The open connection.
    pub stream: TcpStream,
    /// Remote address.
    pub peer: SocketAddr,
    /// Time from the first attempt to the end of the handshake, failed attempts included: the wait of a
    /// visitor.
    pub connect_time: Duration,
    route: DialRoute,
}

/// Route to an admitted address that has accepted a connection.
#[derive(Debug, Clone, Copy)]
pub struct DialRoute {
    address: SocketAddr,
    source: SourceAddresses,
}

impl DialRoute {
    /// Connects once more to exactly that address.
    ///
    /// # Errors
    /// The reason for the failure; [`DialError::Timeout`] at `deadline`.
    pub async fn connect(self, deadline: Instant) -> Result<DialedConnection, DialError> {
        let started = Instant::now();
        let attempt = timeout_at(deadline, attempt(self.address, self.source));
        let stream = attempt.await.map_err(|_| DialError::Timeout)??;
        Ok(DialedConnection::new(stream, self, started))
    }
}

impl DialedConnection {
    fn new(stream: TcpStream, route: DialRoute, started: Instant) -> Self {
        Self { stream, peer: route.address, connect_time: started.elapsed(), route }
    }

    /// Returns the route to the same address, for another connection.
    #[must_use]
    pub fn route(&self) -> DialRoute {
        self.route
    }

    /// Disables Nagle's algorithm (RFC 9293, section 3.7.4), for protocols that write more than once before a
    /// response.
    pub fn disable_nagle(&self) {
        // A connection that can't be tuned is already broken; the first write will fail.
        let _ = self.stream.set_nodelay(true);
    }
}

impl AdmittedAddresses {
    /// Connects to the first of the addresses that accepts. Attempts start one after another, each as soon as
    /// the previous one failed or had its [`HEAD_START`], so a dead address or family costs only a moment.
    ///
    /// # Errors
    /// Once all have failed, the failure most specific to the target; [`DialError::Timeout`] at `deadline`.
    pub async fn connect(&self, deadline: Instant) -> Result<DialedConnection, DialError> {
        let started = Instant::now();
        let late = self.take_late();
        if let (&[address], None) = (self.addresses(), &late) {
            return DialRoute { address, source: self.source() }.connect(deadline).await;
        }
        Box::pin(self.race(late, started, deadline)).await
    }

    /// Returns the address for an HTTP client that connects by itself: the only one that this host has a route
    /// to, or of several the first that accepts a connection, which is closed again. If a later
    /// connection to it fails, its error is a [`DialError::from_connect`].
    ///
    /// # Errors
    /// This host's fault, if it has a route to none of them; otherwise as [`Self::connect`].
    pub async fn select(&self, deadline: Instant) -> Result<SocketAddr, DialError> {
        if !self.has_late()
            && let &[address] = self.routable()?.as_slice()
        {
            return Ok(address);
        }
        Ok(self.connect(deadline).await?.peer)
    }

    /// Returns the addresses that this host has a route to.
    fn routable(&self) -> Result<Vec<SocketAddr>, DialError> {
        let mut fault = None;
        let mut routable = Vec::with_capacity(self.addresses().len());
        for address in self.addresses() {
            match route(*address, self.source()) {
                Ok(()) => routable.push(*address),
                Err(error) => {
                    let error = dial_error(&error, true);
                    fault = Some(fault.map_or(error, |earlier: DialError| earlier.more_informative(error)));
                }
            }
        }
        fault.filter(|_| routable.is_empty()).map_or(Ok(routable), Err)
    }

    async fn race(
        &self,
        mut late: Option<LateAddresses>,
        started: Instant,
        deadline: Instant,
    ) -> Result<DialedConnection, DialError> {
        let mut waiting: VecDeque<SocketAddr> = self.addresses().iter().copied().collect();
        let mut running = FuturesUnordered::new();
        let mut failed = None;
        let mut next_start = started;
        let mut upcoming = waiting.pop_front();
        loop {
            if let Some(address) = upcoming.take_if(|_| running.is_empty() || next_start <= Instant::now()) {
                let route = DialRoute { address, source: self.source() };
                running.push(async move { (route, attempt(route.address, route.source).await) });
                upcoming = waiting.pop_front();
                next_start = Instant::now() + HEAD_START;
            }
            tokio::select! {
                biased;
                Some((route, result)) = running.next() => match result {
                    Ok(stream) => return Ok(DialedConnection::new(stream, route, started)),
                    Err(error) => {
                        let informative = failed.map_or(error, |earlier: DialError| earlier.more_informative(error));
                        if running.is_empty() && upcoming.is_none() && late.is_none() {
                            return Err(informative);
                        }
                        failed = Some(informative);
                        next_start = Instant::now();
                    }
                },
                Some(more) = next_late(&mut late) => {
                    // The other family is next.
                    waiting = alternate(more, upcoming.take().into_iter().chain(waiting)).into();
                    upcoming = waiting.pop_front();
                    if let (true, None, Some(failed)) = (running.is_empty(), upcoming, failed) {
                        return Err(failed);
                    }
                }
                () = sleep_until(deadline) => {
                    let timeout = DialError::Timeout;
                    return Err(failed.map_or(timeout, |earlier| earlier.more_informative(timeout)));
                }
                () = sleep_until(next_start), if upcoming.is_some() => {}
            }
        }
    }
}

/// Returns the late addresses, once; never completes if there are none.
async fn next_late(late: &mut Option<LateAddresses>) -> Option<Vec<SocketAddr>> {
    let more = late.as_mut()?.await;
    *late = None;
    Some(more)
}

async fn attempt(address: SocketAddr, source: SourceAddresses) -> Result<TcpStream, DialError> {
    let socket = open(address, source)?;
    let mut connecting = pin!(socket.connect(address));
    // An error in the connect call itself comes from this host's own routing table; a later one came over the
    // network.
    let at_once = poll_fn(|cx| Poll::Ready(connecting.as_mut().poll(cx))).await;
    match at_once {
        Poll::Ready(result) => result.map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable if has_address_for(address, source) => DialError::NoDescriptors,
            _ => dial_error(&error, true),
        }),
        Poll::Pending => connecting.await.map_err(|error| dial_error(&error, false)),
    }
}

fn open(address: SocketAddr, source: SourceAddresses) -> Result<TcpSocket, DialError> {
    let (socket, source) = match address {
        SocketAddr::V4(_) => (TcpSocket::new_v4(), source.v4.map(IpAddr::V4)),
        SocketAddr::V6(_) => (TcpSocket::new_v6(), source.v6.map(IpAddr::V6)),
    };
    let socket = socket.map_err(|error| dial_error(&error, true))?;
    if let Some(source) = source {
        // Allows the kernel to reuse ports whose last connection is in TIME_WAIT.
        let _ = socket.set_reuseaddr(true);
        socket.bind(SocketAddr::new(source, 0)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable => DialError::NoSource,
            io::ErrorKind::AddrInUse => DialError::NoDescriptors,
            _ => dial_error(&error, true),
        })?;
    }
    Ok(socket)
}

impl DialError {
    /// Returns the reason for a failed connection to the address of [`AdmittedAddresses::select`]: this host had a
    /// route and an address then, so errors that mean their lack came over the network or mean something else.
    #[must_use]
    pub fn from_connect(error: &io::Error) -> Self {
        match (error.kind(), error.raw_os_error()) {
            // No port is left: this host has an address.
            (io::ErrorKind::AddrNotAvailable, _) => Self::NoDescriptors,
            // EPERM is the packet filter of this host; EACCES is a router's answer.
            (_, Some(1)) => Self::NotPermitted,
            _ => dial_error(error, false),
        }
    }
}

/// Returns true if this host has a source address for `to`; a failed connection then lacks a free port.
fn has_address_for(to: SocketAddr, source: SourceAddresses) -> bool {
    route(to, source).is_ok()
}

/// Looks up the route to an address and sends nothing: UDP has no handshake, and ports of its own.
fn route(to: SocketAddr, source: SourceAddresses) -> io::Result<()> {
    let from = match to {
        SocketAddr::V4(_) => IpAddr::V4(source.v4.unwrap_or(Ipv4Addr::UNSPECIFIED)),
        SocketAddr::V6(_) => IpAddr::V6(source.v6.unwrap_or(Ipv6Addr::UNSPECIFIED)),
    };
    UdpSocket::bind(SocketAddr::new(from, 0)).and_then(|socket| socket.connect(to))
}

fn dial_error(error: &io::Error, at_once: bool) -> DialError {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => DialError::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => DialError::Reset,
        ErrorKind::TimedOut => DialError::Timeout,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable if at_once => DialError::NoRoute,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => DialError::Unreachable,
        // No source address of that family; `attempt` distinguishes it from having no free port.
        ErrorKind::AddrNotAvailable | ErrorKind::NetworkDown => DialError::NoRoute,
        ErrorKind::Unsupported => DialError::NoRoute,
        ErrorKind::PermissionDenied if at_once => DialError::NotPermitted,
        ErrorKind::PermissionDenied => DialError::Unreachable,
        _ => match error.raw_os_error() {
            // EAFNOSUPPORT: the family is disabled on this host.
            Some(97) => DialError::NoRoute,
            _ if is_exhausted(error) => DialError::NoDescriptors,
            // For example EINVAL for a link-local address without an interface: this host has no route there.
            _ if at_once => DialError::NoRoute,
            _ => DialError::Reset,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn own_faults_are_distinguished_from_the_targets() {
        assert_eq!(dial_error(&os(101), true), DialError::NoRoute);
        assert_eq!(dial_error(&os(101), false), DialError::Unreachable);
        assert_eq!(dial_error(&os(113), false), DialError::Unreachable);
        assert_eq!(dial_error(&os(111), true), DialError::Refused);
        assert_eq!(dial_error(&os(104), false), DialError::Reset);
        assert_eq!(dial_error(&os(110), false), DialError::Timeout);
        assert_eq!(dial_error(&os(24), true), DialError::NoDescriptors);
        assert_eq!(dial_error(&os(23), true), DialError::NoDescriptors);
        assert_eq!(dial_error(&os(105), true), DialError::NoDescriptors);
        assert_eq!(dial_error(&os(97), true), DialError::NoRoute);
        assert_eq!(dial_error(&os(99), true), DialError::NoRoute);
        assert_eq!(dial_error(&os(1), true), DialError::NotPermitted);
        assert_eq!(dial_error(&os(12), true), DialError::NoDescriptors);
        // EINVAL: a link-local address without an interface says nothing about this host's resources.
        assert_eq!(dial_error(&os(22), true), DialError::NoRoute);
        assert_eq!(dial_error(&os(22), false), DialError::Reset);
    }

    #[test]
    fn a_connection_to_a_routable_address_fails_by_the_network_or_for_lack_of_ports() {
        for (code, error) in [
            (1, DialError::NotPermitted),
            (13, DialError::Unreachable),
            (24, DialError::NoDescriptors),
            (99, DialError::NoDescriptors),
            (101, DialError::Unreachable),
            (104, DialError::Reset),
            (110, DialError::Timeout),
            (111, DialError::Refused),
            (113, DialError::Unreachable),
        ] {
            assert_eq!(DialError::from_connect(&os(code)), error, "{code}");
        }
    }

    #[tokio::test]
    async fn an_address_without_a_route_is_left_out_and_alone_it_is_this_hosts_fault() {
        let here = "127.0.0.1:0".parse().unwrap();
        // A link-local address without an interface: no host has a route to it.
        let nowhere = "[fe80::1]:0".parse().unwrap();
        let admitted = |all: &[SocketAddr]| AdmittedAddresses::from_parts(all.to_vec(), None);
        let deadline = Instant::now() + Duration::from_secs(60);
        // Nothing can accept at port 0: the only one left is not connected to.
        assert_eq!(admitted(&[nowhere, here]).select(deadline).await, Ok(here));
        assert_eq!(admitted(&[nowhere]).select(deadline).await, Err(DialError::NoRoute));
    }

    #[tokio::test]
    async fn the_address_that_accepts_is_selected_also_if_it_is_late() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let several = AdmittedAddresses::from_parts(vec![closed(), open], None);
        assert_eq!(several.select(deadline).await, Ok(open));
        let late: LateAddresses = Box::pin(async move { vec![open] });
        assert_eq!(AdmittedAddresses::from_parts(vec![closed()], Some(late)).select(deadline).await, Ok(open));
        let dead = AdmittedAddresses::from_parts(vec![closed(), closed()], None);
        assert_eq!(dead.select(deadline).await, Err(DialError::Refused));
    }

    fn closed() -> SocketAddr {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn another_connection_goes_to_the_address_that_answered() {
        let answering = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = answering.local_addr().unwrap();
        let silent = closed();
        let deadline = Instant::now() + Duration::from_secs(60);
        let connected = AdmittedAddresses::from_parts(vec![silent, peer], None).connect(deadline).await.unwrap();
        // The address that was tried first accepts connections again by now.
        let _back = std::net::TcpListener::bind(silent).unwrap();
        assert_eq!(connected.route().connect(deadline).await.unwrap().peer, peer);
        drop(answering);
        assert_eq!(connected.route().connect(deadline).await.err(), Some(DialError::Refused));
    }

    #[tokio::test]
    async fn late_addresses_join_the_attempts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        for late in [vec![open], vec![closed(), open]] {
            let late: LateAddresses = Box::pin(async move {
                tokio::task::yield_now().await;
                late
            });
            let connected = AdmittedAddresses::from_parts(vec![closed()], Some(late)).connect(deadline).await.unwrap();
            assert_eq!(connected.peer, open);
        }
        for late in [vec![], vec![closed()]] {
            let late: LateAddresses = Box::pin(async move {
                tokio::task::yield_now().await;
                late
            });
            let failed = AdmittedAddresses::from_parts(vec![closed()], Some(late)).connect(deadline).await.err();
            assert_eq!(failed, Some(DialError::Refused));
        }
        // The families alternate: the other family's addresses are tried before the last late one.
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let many = std::iter::repeat_with(closed).take(15).chain([other.local_addr().unwrap()]).collect();
        let admitted =
            AdmittedAddresses::from_parts(vec![closed(), closed(), open], Some(Box::pin(std::future::ready(many))));
        assert_eq!(admitted.connect(deadline).await.unwrap().peer, open);
        // A connection does not wait for late addresses, and a second one does not use them.
        let admitted = AdmittedAddresses::from_parts(vec![open], Some(Box::pin(std::future::pending())));
        for _ in 0..2 {
            assert_eq!(admitted.connect(deadline).await.unwrap().peer, open);
        }
    }
}
