//! Addresses of this host and of the coordinator, which checks and deliveries must not reach.
//!
//! No firewall separates a host from itself: a port that is closed to the Internet is open to a connection
//! that starts here. So a guard refuses the addresses of the host's interfaces, the address that it has
//! behind a NAT, and those of its coordinator.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::{
    address,
    error::{DialError, is_exhausted},
};

/// Time for which the interfaces' addresses are cached.
const INTERFACES_TTL: Duration = Duration::from_secs(60);
/// Retry interval after reading them failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of NAT and of coordinator addresses, each; older ones are dropped. A carrier's NAT may
/// alternate between several addresses for one host.
const MAX_LEARNED: usize = 16;
/// Lifetime of an address after it was last learned, unless it is the newest of its family: a NAT's old
/// address may belong to another host by then.
const LEARNED_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The addresses of this host: those of its interfaces, read again every minute, and those that were learned.
/// Clones share them.
#[derive(Clone)]
pub struct OwnAddresses(Arc<OwnAddressState>);

struct OwnAddressState {
    /// Read by every check without a lock or an allocation.
    current: ArcSwap<KnownAddresses>,
    state: Mutex<State>,
    read: Box<dyn Fn() -> io::Result<Vec<IpAddr>> + Send + Sync>,
}

#[derive(Debug)]
pub(crate) struct KnownAddresses {
    /// Sorted addresses, or the reason why they can't be read.
    addresses: Result<Box<[IpAddr]>, DialError>,
    until: Instant,
}

#[derive(Default)]
struct State {
    interfaces: Option<Result<Vec<IpAddr>, DialError>>,
    /// Newest first.
    nat: Vec<LearnedAddress>,
    coordinator: Vec<LearnedAddress>,
}

#[derive(Debug, Clone, Copy)]
struct LearnedAddress {
    address: IpAddr,
    /// The same instant for all that were learned together.
    until: Instant,
}

impl OwnAddresses {
    /// Returns those of the host that this process runs on; nothing is read until the first address is
    /// judged.
    #[must_use]
    pub fn of_this_host() -> Self {
        Self::from_reader(|| Ok(if_addrs::get_if_addrs()?.iter().map(if_addrs::Interface::ip).collect()))
    }

    /// Returns those that `read` returns, for tests.
    #[must_use]
    pub fn from_reader(read: impl Fn() -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        let unread = KnownAddresses { addresses: Err(DialError::OwnAddressesUnreadable), until: Instant::now() };
        Self(Arc::new(OwnAddressState {
            current: ArcSwap::from_pointee(unread),
            state: Mutex::default(),
            read: Box::new(read),
        }))
    }

    /// Adds an address under which others see this host.
    pub fn add_nat(&self, address: IpAddr) {
        self.add(|state| &mut state.nat, [address], Duration::ZERO);
    }

    /// Adds such an address that was learned some time ago, for example before a restart.
    pub fn restore_nat(&self, address: IpAddr, ago: Duration) {
        self.add(|state| &mut state.nat, [address], ago);
    }

    /// Adds addresses of the coordinator.
    pub fn add_coordinator(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.add(|state| &mut state.coordinator, addresses, Duration::ZERO);
    }

    /// Adds coordinator addresses that were learned some time ago.
    pub fn restore_coordinator(&self, addresses: impl IntoIterator<Item = IpAddr>, ago: Duration) {
        self.add(|state| &mut state.coordinator, addresses, ago);
    }

    /// Returns the addresses under which others see this host, newest first.
    #[must_use]
    pub fn nat(&self) -> Vec<IpAddr> {
        self.nat_with_ages().into_iter().map(|(address, _)| address).collect()
    }

    /// Returns the coordinator's addresses, newest first.
    #[must_use]
    pub fn coordinator(&self) -> Vec<IpAddr> {
        self.coordinator_with_ages().into_iter().map(|(address, _)| address).collect()
    }

    /// Returns the addresses under which others see this host, newest first, with their ages.
    #[must_use]
    pub fn nat_with_ages(&self) -> Vec<(IpAddr, Duration)> {
        with_ages(&self.state().nat)
    }

    /// Returns the coordinator's addresses, newest first, with their ages.
    #[must_use]
    pub fn coordinator_with_ages(&self) -> Vec<(IpAddr, Duration)> {
        with_ages(&self.state().coordinator)
    }

    /// Fails if the interfaces' addresses can't be read.
    ///
    /// # Errors
    /// [`DialError::OwnAddressesUnreadable`], or [`DialError::NoDescriptors`] if that is the reason.
    pub fn check(&self) -> Result<(), DialError> {
        self.current().addresses.as_ref().map(drop).map_err(|fault| *fault)
    }

    /// Returns the current addresses, read again first if that is due.
    pub(crate) fn current(&self) -> arc_swap::Guard<Arc<KnownAddresses>> {
        let known = self.0.current.load();
        if Instant::now() < known.until {
            return known;
        }
        let mut state = self.state();
        // Another thread may have read them in the meantime.
        if Instant::now() >= self.0.current.load().until {
            let read = (self.0.read)();
            state.interfaces = Some(read.map_err(|error| match is_exhausted(&error) {
                true => DialError::NoDescriptors,
                false => DialError::OwnAddressesUnreadable,
            }));
            let fresh = if matches!(state.interfaces, Some(Ok(_))) { INTERFACES_TTL } else { RETRY_INTERVAL };
            self.publish(&mut state, Instant::now() + fresh);
        }
        self.0.current.load()
    }

    fn add(
        &self,
        list: impl Fn(&mut State) -> &mut Vec<LearnedAddress>,
        addresses: impl IntoIterator<Item = IpAddr>,
        ago: Duration,
    ) {
        let until = Instant::now() + LEARNED_TTL.saturating_sub(ago);
        let mut state = self.state();
        for address in addresses {
            let address = address::unmapped(address);
            let list = list(&mut state);
            list.retain(|known| known.address != address);
            list.insert(0, LearnedAddress { address, until });
            list.truncate(MAX_LEARNED);
        }
        let until = self.0.current.load().until;
        self.publish(&mut state, until);
    }

    fn publish(&self, state: &mut State, until: Instant) {
        remove_expired(&mut state.nat);
        remove_expired(&mut state.coordinator);
        let addresses = match &state.interfaces {
            None => Err(DialError::OwnAddressesUnreadable),
            Some(Err(fault)) => Err(*fault),
            Some(Ok(interfaces)) => {
                let interfaces = interfaces.iter().map(|ip| address::unmapped(*ip));
                let learned = state.nat.iter().chain(&state.coordinator).map(|known| known.address);
                let mut all: Vec<IpAddr> = interfaces.chain(learned).collect();
                all.sort_unstable();
                all.dedup();
                Ok(all.into_boxed_slice())
            }
        };
        self.0.current.store(Arc::new(KnownAddresses { addresses, until }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes expired addresses except the newest of each family: an open connection learns nothing new about
/// its addresses.
fn remove_expired(list: &mut Vec<LearnedAddress>) {
    let now = Instant::now();
    let newest = |v4: bool| list.iter().filter(|known| known.address.is_ipv4() == v4).map(|known| known.until).max();
    let newest = [newest(false), newest(true)];
    list.retain(|known| {
        known.until > now || newest.get(usize::from(known.address.is_ipv4())) == Some(&Some(known.until))
    });
}

fn with_ages(list: &[LearnedAddress]) -> Vec<(IpAddr, Duration)> {
    let now = Instant::now();
    let age = |known: &LearnedAddress| LEARNED_TTL.saturating_sub(known.until.saturating_duration_since(now));
    list.iter().map(|known| (known.address, age(known))).collect()
}

impl KnownAddresses {
    /// Returns true if `ip` is one of them. Every loopback address is.
    ///
    /// # Errors
    /// The reason why they are unknown.
    pub(crate) fn contains(&self, ip: IpAddr) -> Result<bool, DialError> {
        let ip = address::unmapped(ip);
        let addresses = self.addresses.as_ref().map_err(|fault| *fault)?;
        Ok(ip.is_loopback() || addresses.binary_search(&ip).is_ok())
    }
}

impl std::fmt::Debug for OwnAddresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnAddresses").field(&self.0.current.load()).finish()
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
        own.current().contains(ip(text))
    }

    #[test]
    fn the_interfaces_of_this_host_are_read() {
        let own = OwnAddresses::of_this_host();
        assert_eq!(own.check(), Ok(()));
        for interface in if_addrs::get_if_addrs().unwrap() {
            assert_eq!(own.current().contains(interface.ip()), Ok(true), "{interface:?}");
        }
        assert_eq!(is_own(&own, "127.200.1.1"), Ok(true));
        assert_eq!(is_own(&own, "198.51.100.77"), Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn interface_addresses_are_cached_for_a_minute() {
        let reads = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reads);
        let own = OwnAddresses::from_reader(move || {
            let n = count.fetch_add(1, Ordering::SeqCst);
            Ok(vec![ip(if n == 0 { "8.8.8.8" } else { "9.9.9.9" })])
        });
        assert_eq!(reads.load(Ordering::SeqCst), 0);
        for _ in 0..100 {
            assert_eq!(is_own(&own, "::ffff:8.8.8.8"), Ok(true));
        }
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        tokio::time::advance(INTERFACES_TTL).await;
        assert_eq!((is_own(&own, "8.8.8.8"), is_own(&own, "9.9.9.9")), (Ok(false), Ok(true)));
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_addresses_are_a_fault_until_the_next_read() {
        let reads = AtomicUsize::new(0);
        let own = OwnAddresses::from_reader(move || match reads.fetch_add(1, Ordering::SeqCst) {
            // EAFNOSUPPORT, as in a systemd unit without AF_NETLINK; EMFILE.
            0 => Err(io::Error::from_raw_os_error(97)),
            1 => Err(io::Error::from_raw_os_error(24)),
            _ => Ok(vec![ip("2600::1")]),
        });
        own.add_nat(ip("1.1.1.1"));
        assert_eq!(is_own(&own, "8.8.8.8"), Err(DialError::OwnAddressesUnreadable));
        assert_eq!(is_own(&own, "1.1.1.1"), Err(DialError::OwnAddressesUnreadable));
        tokio::time::advance(RETRY_INTERVAL).await;
        assert_eq!(own.check(), Err(DialError::NoDescriptors));
        tokio::time::advance(RETRY_INTERVAL).await;
        assert_eq!((is_own(&own, "2600::1"), is_own(&own, "1.1.1.1")), (Ok(true), Ok(true)));
    }

    #[tokio::test(start_paused = true)]
    async fn learned_addresses_expire_a_day_after_newer_ones() {
        let own = OwnAddresses::from_reader(|| Ok(Vec::new()));
        own.add_nat(ip("5.5.5.1"));
        own.add_nat(ip("2600::1"));
        own.add_coordinator([ip("6.6.6.1"), ip("6.6.6.2")]);
        tokio::time::advance(3 * LEARNED_TTL).await;
        let all = |addresses: [&str; 4]| addresses.map(|address| is_own(&own, address).unwrap());
        let first = ["5.5.5.1", "2600::1", "6.6.6.1", "6.6.6.2"];
        assert_eq!(all(first), [true; 4], "no newer address was learned");
        own.add_nat(ip("5.5.5.2"));
        own.add_coordinator([ip("6.6.6.2"), ip("6.6.6.3")]);
        tokio::time::advance(INTERFACES_TTL).await;
        assert_eq!(all(first), [false, true, false, true]);
        // From a previous run: it has an hour left.
        own.restore_nat(ip("5.5.5.3"), LEARNED_TTL - Duration::from_secs(3600));
        assert_eq!(all(["5.5.5.2", "5.5.5.3", "6.6.6.3", "6.6.6.2"]), [true; 4]);
        let (address, age) = own.nat_with_ages()[0];
        assert_eq!((address, age), (ip("5.5.5.3"), LEARNED_TTL - Duration::from_secs(3600)));
        tokio::time::advance(Duration::from_secs(3601)).await;
        assert_eq!(all(["5.5.5.2", "5.5.5.3", "6.6.6.3", "6.6.6.2"]), [true, false, true, true]);
    }

    #[test]
    fn learned_addresses_are_bounded_and_the_newest_stay() {
        let own = OwnAddresses::from_reader(|| Ok(Vec::new()));
        for n in 0..40 {
            own.add_nat(IpAddr::from([5, 5, 5, n]));
            own.add_coordinator([IpAddr::from([6, 6, 6, n])]);
        }
        own.add_nat(ip("5.5.5.30"));
        assert_eq!((own.nat().len(), own.coordinator().len()), (MAX_LEARNED, MAX_LEARNED));
        assert_eq!(own.nat().first(), Some(&ip("5.5.5.30")));
        for (address, known) in [("5.5.5.39", true), ("6.6.6.24", true), ("6.6.6.3", false)] {
            assert_eq!(is_own(&own, address), Ok(known), "{address}");
        }
    }
}
