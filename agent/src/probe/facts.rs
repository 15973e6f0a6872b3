//! Measurements of a check, and the conversion of its errors to wire types.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use parallax_dial::{Admitted, Class, Connected, DialError};
use parallax_protocol::{
    result::{AddressClass, Failure, Outcome, OwnFault, Phase, Phases, Report},
    text::Detail,
};

/// Measurements so far; a phase that did not happen stays `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Phases of the newest connection.
    pub(super) phases: Phases,
    /// Address of the newest connection or attempt.
    pub(super) address: Option<IpAddr>,
    /// Status of the newest response.
    pub(super) status: Option<u16>,
    /// Time from the start of the check to the last byte it needed, once received.
    pub(super) took: Option<Duration>,
}

impl Facts {
    /// Records a name resolution; discards the previous connection.
    pub(super) fn admitted(&mut self, admitted: &Admitted) {
        let resolved_in = admitted.resolved_in();
        self.phases =
            Phases { dns_us: (!resolved_in.is_zero()).then(|| micros(resolved_in)), ..Phases::default() };
        self.address = admitted.addresses().first().map(SocketAddr::ip);
    }

    /// Records the connection.
    pub(super) fn connected(&mut self, connected: &Connected) {
        self.phases.connect_us = Some(micros(connected.connected_in));
        self.address = Some(connected.peer.ip());
    }

    /// Returns the report with these measurements.
    pub(super) fn report(self, outcome: Outcome) -> Report {
        Report {
            latency_ms: self.took.map(millis),
            phases: self.phases,
            status_code: self.status,
            address: self.address,
            ..Report::bare(outcome)
        }
    }
}

/// Error that ended a check before there was a response to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A fault of the target.
    Target(Failure),
    /// A fault on the agent's side.
    Own(OwnFault),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Target(failure)
    }
}

impl From<Trouble> for Outcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Target(failure) => Self::Failed(failure),
            Trouble::Own(fault) => Self::Inconclusive(fault),
        }
    }
}

impl From<DialError> for Trouble {
    fn from(error: DialError) -> Self {
        match error {
            DialError::AddressNotAllowed(class) => {
                Failure::AddressNotAllowed { class: address_class(class) }.into()
            }
            DialError::NotFound => Failure::DnsNotFound.into(),
            DialError::NoAddress => Failure::DnsNoRecord.into(),
            DialError::ServFail { code } => Failure::DnsFailed { code }.into(),
            DialError::DnsTimeout => Failure::Timeout { phase: Phase::Dns }.into(),
            DialError::Refused => Failure::Refused.into(),
            DialError::Reset => Failure::Reset.into(),
            DialError::Unreachable => Failure::Unreachable.into(),
            DialError::Timeout => Failure::Timeout { phase: Phase::Connect }.into(),
            DialError::ResolverDead => Self::Own(OwnFault::ResolverDead),
            DialError::NoRoute => Self::Own(OwnFault::NoRoute),
            DialError::NoDescriptors => Self::Own(OwnFault::NoDescriptors),
            DialError::NotPermitted => Self::Own(OwnFault::NotPermitted),
            // Reported with the dialler's text.
            DialError::NoSource | DialError::OwnAddressesUnreadable => {
                Self::Own(OwnFault::Internal { detail: Detail::new(&error.to_string()) })
            }
        }
    }
}

/// Converts a duration to whole microseconds.
pub(super) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Returns the failure for a target that breaks a rule of its type.
pub(super) fn bad_target(rule: impl AsRef<str>) -> Failure {
    Failure::BadTarget { detail: Detail::new(rule.as_ref()) }
}

/// Converts to whole milliseconds, at least 1: a measured time must not look like none.
fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn address_class(class: Class) -> AddressClass {
    match class {
        Class::Loopback => AddressClass::Loopback,
        Class::Private | Class::Cgnat | Class::PrivateName => AddressClass::Private,
        Class::LinkLocal => AddressClass::LinkLocal,
        Class::Multicast => AddressClass::Multicast,
        Class::Unspecified => AddressClass::Unspecified,
        Class::Documentation | Class::Benchmark | Class::Translated | Class::Platform | Class::Reserved => {
            AddressClass::Reserved
        }
        Class::Denied | Class::OwnHost => AddressClass::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_faults_never_accuse_the_target() {
        for error in [
            DialError::ResolverDead,
            DialError::NoRoute,
            DialError::NoDescriptors,
            DialError::NoSource,
            DialError::OwnAddressesUnreadable,
            DialError::NotPermitted,
        ] {
            assert!(matches!(Outcome::from(Trouble::from(error)), Outcome::Inconclusive(_)), "{error}");
        }
    }

    #[test]
    fn a_measured_time_is_at_least_one_millisecond() {
        let facts = Facts { took: Some(Duration::from_micros(12)), ..Facts::default() };
        assert_eq!(facts.report(Outcome::Passed).latency_ms, Some(1));
        assert_eq!(Facts::default().report(Outcome::Passed).latency_ms, None);
    }
}
