//! The only, guarded way to connect out: resolve a name, judge every address, connect only to judged
//! addresses.
//!
//! Customers choose the targets of checks and deliveries, so every one of those connections starts here:
//!
//! 1. [`Host::parse`] parses the host by a strict grammar: no form passes that only a lenient C library would
//!    take for an address.
//! 2. [`Guard::admit`] queries the resolver once, with no cache and no hosts file, and judges each address by
//!    the numeric table in [`address`].
//! 3. [`Admitted::connect`] dials those addresses and no others, and a [`Route`] dials one of them once more.
//!    An [`Admitted`] can't be created in any other way, so a name that changes its answer between resolution
//!    and connection (DNS rebinding) gains nothing.
//!
//! A redirect starts again at step 1. Addresses of this host itself ([`OwnAddresses`]) are refused unless
//! [`Policy::allow_own_host`] is set.

pub mod address;
mod alive;
mod connect;
mod error;
mod families;
mod guard;
mod host;
mod own;
mod records;
mod resolve;
#[cfg(feature = "stub")]
pub mod stub;

pub use address::Class;
pub use connect::{Connected, HEAD_START, Route, is_exhausted};
pub use error::{DialError, Fault};
pub use guard::{Admitted, Guard, Mode, Policy, Prefix, PrefixError, Source};
pub use host::{Host, HostError, Name};
pub use own::OwnAddresses;
pub use records::{Record, RecordKind};
pub use resolve::{Addresses, Resolver, SetupError};
