//! The only, guarded way to connect out: resolve a name, judge every address, connect only to judged
//! addresses.
//!
//! Customers choose the targets of checks and deliveries, so every one of those connections starts here:
//!
//! 1. [`Host::parse`] parses the host by a strict grammar: no form passes that only a lenient C library would
//!    take for an address.
//! 2. [`DialGuard::admit`] queries the resolver once, with no cache and no hosts file, and judges each address by
//!    the numeric table in [`address`].
//! 3. [`AdmittedAddresses::connect`] dials those addresses and no others, and a [`DialRoute`] dials one of them
//!    once more. An [`AdmittedAddresses`] can't be created in any other way, so a name that changes its answer
//!    between resolution and connection (DNS rebinding) gains nothing. An HTTP client that connects by itself
//!    gets one of these addresses from [`AdmittedAddresses::select`].
//!
//! A redirect starts again at step 1. Addresses of this host itself ([`OwnAddresses`]) are refused unless
//! [`DialPolicy::allow_own_host`] is set.

pub mod address;
mod connect;
mod dns_error;
mod error;
mod families;
mod guard;
mod liveness;
mod own_addresses;
mod records;
mod resolve;
#[cfg(feature = "stub")]
pub mod stub;

pub use address::BlockedClass;
pub use connect::{DialRoute, DialedConnection, HEAD_START};
pub use error::{DialError, FaultOrigin, is_exhausted};
pub use families::ResolvedAddresses;
pub use guard::{
    AddressPrefix, AddressPrefixError, AdmittedAddresses, BlockedAddressMode, DialGuard, DialPolicy, SourceAddresses,
};
pub use own_addresses::OwnAddresses;
pub use parallax_primitives::host::{Host, HostError, HostName};
pub use records::{DnsRecord, DnsRecordKind};
pub use resolve::{DnsResolver, ResolverSetupError};
