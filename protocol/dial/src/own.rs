//! Addresses of this host and of its service, which checks and deliveries must not reach.
//!
//! A firewall does not stand between a host and itself: what is closed to the Internet is open to a connection that
//! starts here. So a guard refuses the addresses of the host's interfaces, the address that it has behind a NAT, and those
//! of the coordinator that it serves.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::{address, connect::is_exhausted, error::DialError};

/// How long the addresses of the interfaces are taken to stay the same.
const FRESH: Duration = Duration::from_secs(60);
/// How soon they are read again after that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Addresses that are kept of the NAT and of the coordinator, each; older ones are dropped. A carrier's NAT may show the
/// host under several in turn.
const LEARNED: usize = 16;

/// The addresses of this host: those of its interfaces, read again every minute, and those that it was told of. Clones
/// share them.
#[derive(Clone)]
pub struct OwnAddresses(Arc<Shared>);

struct Shared {
    /// Read by every check without a lock or an allocation.
    known: ArcSwap<Known>,
    state: Mutex<State>,
    read: Box<dyn Fn() -> io::Result<Vec<IpAddr>> + Send + Sync>,
}

#[derive(Debug)]
pub(crate) struct Known {
    /// Sorted; the reason where they can't be read.
    addresses: Result<Box<[IpAddr]>, DialError>,
    until: Instant,
}

#[derive(Default)]
struct State {
    interfaces: Option<Result<Vec<IpAddr>, DialError>>,
    /// Newest first.
    nat: Vec<IpAddr>,
    coordinator: Vec<IpAddr>,
}

impl OwnAddresses {
    /// Those of the host that this process runs on; nothing is read before the first address is judged.
    #[must_use]
    pub fn of_this_host() -> Self {
        Self::read_by(|| Ok(if_addrs::get_if_addrs()?.iter().map(if_addrs::Interface::ip).collect()))
    }

    /// Those that `read` gives, for tests.
    #[must_use]
    pub fn read_by(read: impl Fn() -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        let unread = Known { addresses: Err(DialError::OwnAddressesUnreadable), until: Instant::now() };
        Self(Arc::new(Shared {
            known: ArcSwap::from_pointee(unread),
            state: Mutex::default(),
            read: Box::new(read),
        }))
    }

    /// Adds an address under which others see this host.
    pub fn add_nat(&self, address: IpAddr) {
        self.learn(|state| &mut state.nat, [address]);
    }

    /// Adds addresses of the coordinator.
    pub fn add_coordinator(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.learn(|state| &mut state.coordinator, addresses);
    }

    /// The addresses under which others see this host, newest first.
    #[must_use]
    pub fn nat(&self) -> Vec<IpAddr> {
        self.state().nat.clone()
    }

    /// The coordinator's addresses, newest first.
    #[must_use]
    pub fn coordinator(&self) -> Vec<IpAddr> {
        self.state().coordinator.clone()
    }

    /// Fails where the interfaces' addresses can't be read.
    ///
    /// # Errors
    /// [`DialError::OwnAddressesUnreadable`], or [`DialError::NoDescriptors`] where that is the reason.
    pub fn check(&self) -> Result<(), DialError> {
        self.known().addresses.as_ref().map(drop).map_err(|fault| *fault)
    }

    /// The addresses that are known now, read again first where that is due.
    pub(crate) fn known(&self) -> arc_swap::Guard<Arc<Known>> {
        let known = self.0.known.load();
        if Instant::now() < known.until {
            return known;
        }
        let mut state = self.state();
        // Another thread may have read them meanwhile.
        if Instant::now() >= self.0.known.load().until {
            let read = (self.0.read)();
            state.interfaces = Some(read.map_err(|error| match is_exhausted(&error) {
                true => DialError::NoDescriptors,
                false => DialError::OwnAddressesUnreadable,
            }));
            let fresh = if matches!(state.interfaces, Some(Ok(_))) { FRESH } else { RETRY };
            self.publish(&state, Instant::now() + fresh);
        }
        self.0.known.load()
    }

    fn learn(
        &self,
        list: impl Fn(&mut State) -> &mut Vec<IpAddr>,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) {
        let mut state = self.state();
        for address in addresses {
            let address = address::unmapped(address);
            let list = list(&mut state);
            list.retain(|known| *known != address);
            list.insert(0, address);
            list.truncate(LEARNED);
        }
        let until = self.0.known.load().until;
        self.publish(&state, until);
    }

    fn publish(&self, state: &State, until: Instant) {
        let addresses = match &state.interfaces {
            None => Err(DialError::OwnAddressesUnreadable),
            Some(Err(fault)) => Err(*fault),
            Some(Ok(interfaces)) => {
                let interfaces = interfaces.iter().map(|ip| address::unmapped(*ip));
                let learned = state.nat.iter().chain(&state.coordinator).copied();
                let mut all: Vec<IpAddr> = interfaces.chain(learned).collect();
                all.sort_unstable();
                all.dedup();
                Ok(all.into_boxed_slice())
            }
        };
        self.0.known.store(Arc::new(Known { addresses, until }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// True where `ip` is one of them. Every loopback address is.
    ///
    /// # Errors
    /// Why they are not known.
    pub(crate) fn contains(&self, ip: IpAddr) -> Result<bool, DialError> {
        let ip = address::unmapped(ip);
        let addresses = self.addresses.as_ref().map_err(|fault| *fault)?;
        Ok(ip.is_loopback() || addresses.binary_search(&ip).is_ok())
    }
}

impl std::fmt::Debug for OwnAddresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnAddresses").field(&self.0.known.load()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_own(own: &OwnAddresses, text: &str) -> Result<bool, DialError> {
        own.known().contains(ip(text))
    }

    #[test]
    fn the_interfaces_of_this_host_are_read() {
        let own = OwnAddresses::of_this_host();
        assert_eq!(own.check(), Ok(()));
        for interface in if_addrs::get_if_addrs().unwrap() {
            assert_eq!(own.known().contains(interface.ip()), Ok(true), "{interface:?}");
        }
        assert_eq!(is_own(&own, "127.200.1.1"), Ok(true));
        assert_eq!(is_own(&own, "198.51.100.77"), Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_read_again_once_a_minute_and_not_for_each_check() {
        let reads = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reads);
        let own = OwnAddresses::read_by(move || {
            let n = count.fetch_add(1, Ordering::SeqCst);
            Ok(vec![ip(if n == 0 { "8.8.8.8" } else { "9.9.9.9" })])
        });
        assert_eq!(reads.load(Ordering::SeqCst), 0);
        for _ in 0..100 {
            assert_eq!(is_own(&own, "::ffff:8.8.8.8"), Ok(true));
        }
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        tokio::time::advance(FRESH).await;
        assert_eq!((is_own(&own, "8.8.8.8"), is_own(&own, "9.9.9.9")), (Ok(false), Ok(true)));
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_can_not_be_read_are_a_fault_until_they_can() {
        let reads = AtomicUsize::new(0);
        let own = OwnAddresses::read_by(move || match reads.fetch_add(1, Ordering::SeqCst) {
            // EAFNOSUPPORT, as of a unit without AF_NETLINK; EMFILE.
            0 => Err(io::Error::from_raw_os_error(97)),
            1 => Err(io::Error::from_raw_os_error(24)),
            _ => Ok(vec![ip("2600::1")]),
        });
        own.add_nat(ip("1.1.1.1"));
        assert_eq!(is_own(&own, "8.8.8.8"), Err(DialError::OwnAddressesUnreadable));
        assert_eq!(is_own(&own, "1.1.1.1"), Err(DialError::OwnAddressesUnreadable));
        tokio::time::advance(RETRY).await;
        assert_eq!(own.check(), Err(DialError::NoDescriptors));
        tokio::time::advance(RETRY).await;
        assert_eq!((is_own(&own, "2600::1"), is_own(&own, "1.1.1.1")), (Ok(true), Ok(true)));
    }

    #[test]
    fn learned_addresses_are_bounded_and_the_newest_stay() {
        let own = OwnAddresses::read_by(|| Ok(Vec::new()));
        for n in 0..40 {
            own.add_nat(IpAddr::from([5, 5, 5, n]));
            own.add_coordinator([IpAddr::from([6, 6, 6, n])]);
        }
        own.add_nat(ip("5.5.5.30"));
        assert_eq!((own.nat().len(), own.coordinator().len()), (LEARNED, LEARNED));
        assert_eq!(own.nat().first(), Some(&ip("5.5.5.30")));
        for (address, known) in [("5.5.5.39", true), ("6.6.6.24", true), ("6.6.6.3", false)] {
            assert_eq!(is_own(&own, address), Ok(known), "{address}");
        }
    }
}
