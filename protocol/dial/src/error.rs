//! Why there is no connection, and whose fault that is.

use crate::address::Class;

/// Whose fault a failure is. A place that can't reach anything must not accuse a healthy target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The target, its name servers or the way to it.
    Target,
    /// This host: no route, no descriptors, a dead resolver.
    Own,
}

/// Why a host could not be resolved, admitted or connected to.
///
/// The words name a class only: no address, banner or system text, since they are shown to whoever chose the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// Every address (or, under [`Mode::RefuseAny`](crate::Mode), one of them) is one we don't connect to.
    #[error("address not allowed ({0})")]
    AddressNotAllowed(Class),
    /// NXDOMAIN: the name does not exist.
    #[error("name not found")]
    NotFound,
    /// The name exists and has neither an A nor an AAAA record.
    #[error("name has no address")]
    NoAddress,
    /// The resolver answered with an error (SERVFAIL and the like): the name's own servers are broken.
    #[error("name servers answer with code {code}")]
    ServFail {
        /// The response code (RFC 6895); 0 where the answer itself could not be read.
        code: u16,
    },
    /// No answer for this name in time, from a resolver that answers others.
    #[error("name resolution timed out")]
    DnsTimeout,
    /// The resolver answers nothing at all.
    #[error("the resolver does not answer")]
    ResolverDead,
    /// The target answered with a refusal: no one listens there.
    #[error("connection refused")]
    Refused,
    /// The target broke the connection off while it was being made.
    #[error("connection reset")]
    Reset,
    /// A router on the way said that the host can't be reached.
    #[error("host unreachable")]
    Unreachable,
    /// No connection by the deadline.
    #[error("timed out")]
    Timeout,
    /// This host has no route for that address family, or no address of it.
    #[error("no route from here")]
    NoRoute,
    /// Descriptors, ports or socket memory are used up here.
    #[error("out of descriptors or ports here")]
    NoDescriptors,
    /// The source address to dial from is not an address of this host.
    #[error("the source address is not on this host")]
    NoSource,
    /// The addresses of this host's interfaces can't be read, so nobody can tell whether a target is this host.
    #[error("this host's own addresses can't be read")]
    OwnAddressesUnreadable,
    /// A rule on this host forbids the connection.
    #[error("not permitted on this host")]
    NotPermitted,
}

impl DialError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(self) -> Fault {
        match self {
            Self::AddressNotAllowed(_)
            | Self::NotFound
            | Self::NoAddress
            | Self::ServFail { .. }
            | Self::DnsTimeout
            | Self::Refused
            | Self::Reset
            | Self::Unreachable
            | Self::Timeout => Fault::Target,
            Self::ResolverDead
            | Self::NoRoute
            | Self::NoDescriptors
            | Self::NoSource
            | Self::OwnAddressesUnreadable
            | Self::NotPermitted => Fault::Own,
        }
    }

    /// Of two failed attempts at one host, the one that says more about the host: its own answer before
    /// silence, silence before our troubles.
    pub(crate) fn more_telling(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }

    fn weight(self) -> u8 {
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
            // Many hosts lack one of the two families: what ails the other is the reason.
            Self::NoRoute => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_more_than_silence_and_silence_more_than_our_own_trouble() {
        assert_eq!(DialError::NoRoute.more_telling(DialError::Refused), DialError::Refused);
        assert_eq!(DialError::Refused.more_telling(DialError::Timeout), DialError::Refused);
        assert_eq!(DialError::NoRoute.more_telling(DialError::Timeout), DialError::Timeout);
        assert_eq!(DialError::NoDescriptors.more_telling(DialError::Timeout), DialError::Timeout);
    }

    #[test]
    fn a_family_that_the_host_lacks_hides_no_other_trouble_of_it() {
        for (one, other) in
            [(DialError::NoRoute, DialError::NoDescriptors), (DialError::NoDescriptors, DialError::NoRoute)]
        {
            assert_eq!(one.more_telling(other), DialError::NoDescriptors);
        }
        assert_eq!(DialError::NoRoute.more_telling(DialError::NotPermitted), DialError::NotPermitted);
    }
}
