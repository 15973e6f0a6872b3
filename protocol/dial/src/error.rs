//! Reasons for a failed resolution or connection, and the side at fault.

use std::io;

use crate::address::BlockedClass;

/// Side at fault. A vantage without connectivity must not blame a healthy target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOrigin {
    /// The target, its name servers or the network in between.
    Target,
    /// This host: no route, no descriptors, a dead resolver.
    Own,
}

/// Reason why a host could not be resolved, admitted or connected to.
///
/// The texts name a class only: no address, banner or system text, since they are shown to the person who
/// chose the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// Every address (or, under [`BlockedAddressMode::RefuseAny`](crate::BlockedAddressMode::RefuseAny), one of them) is blocked.
    #[error("address not allowed ({0})")]
    AddressNotAllowed(BlockedClass),
    /// NXDOMAIN: the name does not exist.
    #[error("name not found")]
    NotFound,
    /// The name exists and has neither an A nor an AAAA record.
    #[error("name has no address")]
    NoAddress,
    /// The resolver answered with an error (such as SERVFAIL): the name's own servers are broken.
    #[error("name servers answer with code {code}")]
    ServFail {
        /// Response code (RFC 6895); 0 if the answer itself could not be read.
        code: u16,
    },
    /// No answer for this name in time, from a resolver that answers others.
    #[error("name resolution timed out")]
    DnsTimeout,
    /// The resolver answers no query at all.
    #[error("the resolver does not answer")]
    ResolverDead,
    /// The target refused the connection: nothing listens there.
    #[error("connection refused")]
    Refused,
    /// The target reset the connection during the handshake.
    #[error("connection reset")]
    Reset,
    /// A router on the path reported the host as unreachable.
    #[error("host unreachable")]
    Unreachable,
    /// No connection by the deadline.
    #[error("timed out")]
    Timeout,
    /// This host has no route for that address family, or no address of it.
    #[error("no route from here")]
    NoRoute,
    /// This host has no descriptors, ports or socket memory left.
    #[error("out of descriptors or ports here")]
    NoDescriptors,
    /// The configured source address is not an address of this host.
    #[error("the source address is not on this host")]
    NoSource,
    /// The addresses of this host's interfaces can't be read, so a target can't be compared with them.
    #[error("this host's own addresses can't be read")]
    OwnAddressesUnreadable,
    /// A rule on this host forbids the connection.
    #[error("not permitted on this host")]
    NotPermitted,
}

impl DialError {
    /// Returns the side at fault.
    #[must_use]
    pub fn fault_origin(self) -> FaultOrigin {
        match self {
            Self::AddressNotAllowed(_)
            | Self::NotFound
            | Self::NoAddress
            | Self::ServFail { .. }
            | Self::DnsTimeout
            | Self::Refused
            | Self::Reset
            | Self::Unreachable
            | Self::Timeout => FaultOrigin::Target,
            Self::ResolverDead
            | Self::NoRoute
            | Self::NoDescriptors
            | Self::NoSource
            | Self::OwnAddressesUnreadable
            | Self::NotPermitted => FaultOrigin::Own,
        }
    }

    /// Returns the more informative of two failed attempts at one host: its own response before silence,
    /// silence before this host's faults.
    pub(crate) fn more_informative(self, other: Self) -> Self {
        if other.informativeness() > self.informativeness() { other } else { self }
    }

    fn informativeness(self) -> u8 {
        match self {
            Self::Refused => 7,
            Self::Reset => 6,
            Self::Unreachable => 5,
            Self::Timeout => 4,
            Self::AddressNotAllowed(_)
            | Self::NotFound
            | Self::NoAddress
            | Self::ServFail { .. }
            | Self::DnsTimeout => 3,
            Self::NoDescriptors => 2,
            Self::ResolverDead | Self::NoSource | Self::OwnAddressesUnreadable | Self::NotPermitted => 1,
            // Many hosts lack one of the two families: the failure of the other is the reason.
            Self::NoRoute => 0,
        }
    }
}

/// Returns true if the host has run out of descriptors, ports or memory for sockets: ENOMEM, ENFILE, EMFILE,
/// EADDRINUSE, ENOBUFS.
#[must_use]
pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 98 | 105))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_errors_are_more_informative_than_timeouts_and_own_faults() {
        assert_eq!(DialError::NoRoute.more_informative(DialError::Refused), DialError::Refused);
        assert_eq!(DialError::Refused.more_informative(DialError::Timeout), DialError::Refused);
        assert_eq!(DialError::NoRoute.more_informative(DialError::Timeout), DialError::Timeout);
        assert_eq!(DialError::NoDescriptors.more_informative(DialError::Timeout), DialError::Timeout);
    }

    #[test]
    fn a_missing_family_hides_no_other_fault_of_the_host() {
        for (first, other) in
            [(DialError::NoRoute, DialError::NoDescriptors), (DialError::NoDescriptors, DialError::NoRoute)]
        {
            assert_eq!(first.more_informative(other), DialError::NoDescriptors);
        }
        assert_eq!(DialError::NoRoute.more_informative(DialError::NotPermitted), DialError::NotPermitted);
    }
}
