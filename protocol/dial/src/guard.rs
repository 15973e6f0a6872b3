//! The guard: resolves a host once, judges every address, and returns the only value that can be dialled.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parallax_primitives::host::{Host, HostName};
use tokio::time::Instant;

use crate::{
    address::{self, BlockedClass},
    error::DialError,
    families::{LateFamily, ResolvedAddresses, alternate},
    own_addresses::OwnAddresses,
    resolve::DnsResolver,
};

/// Rules for the targets and the source of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DialPolicy {
    /// Allows targets on one's own networks (loopback, private, link-local, carrier-shared, benchmark).
    pub allow_private: bool,
    /// Allows targets on this host itself, within the other rules: see [`OwnAddresses`].
    pub allow_own_host: bool,
    /// Judges `64:ff9b::/96` by the IPv4 address inside, for hosts on IPv6-only networks behind NAT64.
    pub nat64: bool,
    /// Addresses that are never dialled, whatever else is allowed: the operator's list.
    pub deny: Vec<AddressPrefix>,
    /// Source addresses of connections.
    pub source: SourceAddresses,
}

/// The local address to dial from, for each family; `None` leaves it to the system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceAddresses {
    /// For IPv4 targets.
    pub v4: Option<Ipv4Addr>,
    /// For IPv6 targets.
    pub v6: Option<Ipv6Addr>,
}

/// Effect of one blocked address on a host that has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedAddressMode {
    /// For checks: blocked addresses are dropped; the host is refused if none is left.
    DropBlocked,
    /// For deliveries: one blocked address refuses the whole name.
    RefuseAny,
}

/// A range of addresses, written `192.0.2.0/24` or as one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPrefix {
    base: IpAddr,
    len: u8,
}

/// Syntax error of a [`AddressPrefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressPrefixError {
    /// Error before the slash.
    #[error("not an IP address before the slash")]
    Address,
    /// Error after the slash.
    #[error("the length after the slash is 0 to 32 for IPv4 and 0 to 128 for IPv6")]
    Length,
}

impl AddressPrefix {
    /// Returns true if `ip` is in the range. Mapped IPv4 counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.base, address::unmapped(ip)) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => {
                let shift = u32::from(32 - self.len);
                base.to_bits().checked_shr(shift) == ip.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(base), IpAddr::V6(ip)) => {
                let shift = u32::from(128 - self.len);
                base.to_bits().checked_shr(shift) == ip.to_bits().checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl From<IpAddr> for AddressPrefix {
    fn from(ip: IpAddr) -> Self {
        let base = address::unmapped(ip);
        Self { base, len: if base.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for AddressPrefix {
    type Err = AddressPrefixError;

    fn from_str(text: &str) -> Result<Self, AddressPrefixError> {
        let Some((base, len)) = text.split_once('/') else {
            return text.parse::<IpAddr>().map(Self::from).map_err(|_| AddressPrefixError::Address);
        };
        let base: IpAddr = base.parse().map_err(|_| AddressPrefixError::Address)?;
        let len: u8 = len.parse().map_err(|_| AddressPrefixError::Length)?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        if len > most { Err(AddressPrefixError::Length) } else { Ok(Self { base, len }) }
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.len)
    }
}

impl DialPolicy {
    /// Returns the class for which `ip` is not dialled under this policy, or `None` if it may be. Only a
    /// [`DialGuard`] knows this host's own addresses.
    #[must_use]
    pub fn blocked_class(&self, ip: IpAddr) -> Option<BlockedClass> {
        let ip = self.effective_address(ip);
        if self.deny.iter().any(|prefix| prefix.contains(ip)) {
            return Some(BlockedClass::Denied);
        }
        address::blocked_class(ip).filter(|class| !(self.allow_private && class.is_own_network()))
    }

    pub(crate) fn effective_address(&self, ip: IpAddr) -> IpAddr {
        match ip {
            IpAddr::V6(v6) if self.nat64 => address::nat64_embedded(v6).map_or(ip, IpAddr::V4),
            IpAddr::V4(_) | IpAddr::V6(_) => ip,
        }
    }
}

/// A resolver and a policy: the only source of [`AdmittedAddresses`].
#[derive(Debug, Clone)]
pub struct DialGuard {
    resolver: DnsResolver,
    /// Resolver of the records that customers see; if `None`, `resolver`.
    records: Option<DnsResolver>,
    policy: DialPolicy,
    own_addresses: OwnAddresses,
}

/// The admitted addresses of one host: at least one, in the order to try them. Late addresses of the other
/// family are judged as they arrive, and are tried along with the others.
#[derive(Debug, Clone)]
pub struct AdmittedAddresses {
    addresses: Vec<SocketAddr>,
    late: SharedLateAddresses,
    source: SourceAddresses,
    resolution_time: Duration,
}

/// Judged addresses that have not arrived yet.
pub(crate) type LateAddresses = Pin<Box<dyn Future<Output = Vec<SocketAddr>> + Send>>;

/// Late addresses until their first use; clones share them.
#[derive(Clone, Default)]
struct SharedLateAddresses(Option<Arc<Mutex<Option<LateAddresses>>>>);

impl SharedLateAddresses {
    fn new(judged: Option<LateAddresses>) -> Self {
        Self(judged.map(|judged| Arc::new(Mutex::new(Some(judged)))))
    }

    fn take(&self) -> Option<LateAddresses> {
        self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for SharedLateAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Pending" } else { "None" })
    }
}

impl DialGuard {
    /// Creates a guard that resolves with `resolver` and judges by `policy`.
    #[must_use]
    pub fn new(resolver: DnsResolver, policy: DialPolicy) -> Self {
        Self { resolver, records: None, policy, own_addresses: OwnAddresses::of_this_host() }
    }

    /// Sets another resolver for [`DialGuard::records`].
    #[must_use]
    pub fn with_record_resolver(mut self, resolver: DnsResolver) -> Self {
        self.records = Some(resolver);
        self
    }

    /// Sets this host's own addresses.
    #[must_use]
    pub fn with_own_addresses(mut self, own: OwnAddresses) -> Self {
        self.own_addresses = own;
        self
    }

    /// Returns the addresses of this host.
    #[must_use]
    pub fn own_addresses(&self) -> &OwnAddresses {
        &self.own_addresses
    }

    /// Fails if the guard can't judge addresses at all.
    ///
    /// # Errors
    /// As [`OwnAddresses::check`], if the policy needs them.
    pub fn check(&self) -> Result<(), DialError> {
        if self.policy.allow_own_host { Ok(()) } else { self.own_addresses.check() }
    }

    /// Returns the class for which `ip` is not dialled, or `None` if it may be.
    ///
    /// # Errors
    /// As [`OwnAddresses::check`], for an address that the policy allows.
    pub fn blocked_class(&self, ip: IpAddr) -> Result<Option<BlockedClass>, DialError> {
        let refused = self.policy.blocked_class(ip);
        if refused.is_some() || self.policy.allow_own_host {
            return Ok(refused);
        }
        Ok(self.own_addresses.current().contains(self.policy.effective_address(ip))?.then_some(BlockedClass::OwnHost))
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &DialPolicy {
        &self.policy
    }

    /// Returns the resolver for the hosts that it dials.
    #[must_use]
    pub fn resolver(&self) -> &DnsResolver {
        &self.resolver
    }

    /// Returns the separate resolver for records that customers see, if there is one.
    #[must_use]
    pub fn separate_record_resolver(&self) -> Option<&DnsResolver> {
        self.records.as_ref()
    }

    /// Returns the resolver for records that customers see.
    pub(crate) fn record_resolver(&self) -> &DnsResolver {
        self.records.as_ref().unwrap_or(&self.resolver)
    }

    /// Resolves `host` (unless it is a literal) and judges every address.
    ///
    /// # Errors
    /// [`DialError::AddressNotAllowed`] with the class of the first blocked address,
    /// [`DialError::OwnAddressesUnreadable`] if this host's addresses are unknown, or the reason why the name
    /// could not be resolved.
    pub async fn admit(
        &self,
        host: &Host,
        port: u16,
        mode: BlockedAddressMode,
        deadline: Instant,
    ) -> Result<AdmittedAddresses, DialError> {
        let started = Instant::now();
        let source = self.policy.source;
        let name = match host {
            Host::Ip(ip) => {
                let addresses = self.judge(&[*ip], port, mode)?;
                return Ok(AdmittedAddresses {
                    addresses,
                    late: SharedLateAddresses::default(),
                    source,
                    resolution_time: Duration::ZERO,
                });
            }
            Host::Name(name) => name,
        };
        // A `localhost` name is not resolved, and its address is refused.
        if !name.is_localhost() {
            self.judge_name(name)?;
        }
        // Boxed, so that the future for a literal is not as large as the one that resolves a name.
        let (mut found, mut late) = match mode {
            BlockedAddressMode::DropBlocked => Box::pin(self.resolver.first_addresses(name, deadline)).await?,
            // A late address may still refuse the name.
            BlockedAddressMode::RefuseAny => (Box::pin(self.resolver.addresses(name, deadline)).await?, None),
        };
        let mut judged = self.judge(&interleaved(&found), port, mode);
        if judged.is_err()
            && let Some(late) = late.take()
        {
            found.add(late.await);
            judged = self.judge(&interleaved(&found), port, mode);
        }
        let late = late.map(|late| self.clone().judge_late(late, port));
        Ok(AdmittedAddresses {
            addresses: judged?,
            late: SharedLateAddresses::new(late),
            source,
            resolution_time: started.elapsed(),
        })
    }

    fn judge_late(self, late: LateFamily, port: u16) -> LateAddresses {
        Box::pin(async move { self.judge(&late.await, port, BlockedAddressMode::DropBlocked).unwrap_or_default() })
    }

    /// Refuses a name of private networks unless the policy allows private targets.
    pub(crate) fn judge_name(&self, name: &HostName) -> Result<(), DialError> {
        if !self.policy.allow_private && name.is_private() {
            return Err(DialError::AddressNotAllowed(BlockedClass::PrivateName));
        }
        Ok(())
    }

    fn judge(&self, found: &[IpAddr], port: u16, mode: BlockedAddressMode) -> Result<Vec<SocketAddr>, DialError> {
        let mut allowed = Vec::with_capacity(found.len());
        let mut blocked = None;
        for ip in found {
            match self.blocked_class(*ip)? {
                // Dialled in the form in which it was judged.
                None => allowed.push(SocketAddr::new(address::unmapped(*ip), port)),
                Some(class) => blocked = blocked.or(Some(class)),
            }
        }
        match (blocked, mode) {
            (Some(class), BlockedAddressMode::RefuseAny) => Err(DialError::AddressNotAllowed(class)),
            (Some(class), BlockedAddressMode::DropBlocked) if allowed.is_empty() => {
                Err(DialError::AddressNotAllowed(class))
            }
            (None, _) if allowed.is_empty() => Err(DialError::NoAddress),
            (Some(_) | None, _) => Ok(allowed),
        }
    }
}

impl AdmittedAddresses {
    /// Returns the addresses to dial, in order of preference; never empty.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for the late family's addresses and adds them, for callers that can't wait for them while dialling.
    pub async fn with_late_addresses(mut self) -> Self {
        if let Some(late) = self.late.take() {
            self.addresses.extend(late.await);
        }
        self
    }

    /// Returns true if addresses of the other family were late.
    pub(crate) fn has_late(&self) -> bool {
        self.late.0.is_some()
    }

    /// Returns the late addresses to the first caller.
    pub(crate) fn take_late(&self) -> Option<LateAddresses> {
        self.late.take()
    }

    /// Returns the source addresses of connections.
    #[must_use]
    pub fn source(&self) -> SourceAddresses {
        self.source
    }

    /// Returns the time that the resolution took; zero for a literal.
    #[must_use]
    pub fn resolution_time(&self) -> Duration {
        self.resolution_time
    }
}

/// Alternates IPv6 and IPv4, IPv6 first, so that the second attempt is of the other family (RFC 8305, section 4).
fn interleaved(found: &ResolvedAddresses) -> Vec<IpAddr> {
    alternate(found.v6.iter().copied().map(IpAddr::V6), found.v4.iter().copied().map(IpAddr::V4))
}

#[cfg(test)]
impl AdmittedAddresses {
    /// Creates a value from addresses and late addresses.
    pub(crate) fn from_parts(addresses: Vec<SocketAddr>, late: Option<LateAddresses>) -> Self {
        let late = SharedLateAddresses::new(late);
        Self { addresses, late, source: SourceAddresses::default(), resolution_time: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests;
