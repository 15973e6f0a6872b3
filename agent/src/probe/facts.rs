//! Measurements of a check, and the conversion of its errors to wire types.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use parallax_dial::{AdmittedAddresses, BlockedClass, DialError, DialedConnection};
use parallax_protocol::{
    result::{AddressClass, ProbeReport, WireFailure, WireOutcome, WireOwnFault, WirePhase, WirePhases},
    text::ShortText,
};

/// Measurements so far; a phase that did not happen stays `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CheckFacts {
    /// Phases of the newest connection.
    pub(super) phases: WirePhases,
    /// Address of the newest connection or attempt.
    pub(super) address: Option<IpAddr>,
    /// Status of the newest response.
    pub(super) status: Option<u16>,
    /// Time from the start of the check to the last byte it needed, once received.
    pub(super) duration: Option<Duration>,
}

impl CheckFacts {
    /// Records a name resolution; discards the previous connection.
    pub(super) fn record_resolution(&mut self, admitted: &AdmittedAddresses) {
        let resolved_in = admitted.resolution_time();
        self.phases =
            WirePhases { dns_us: (!resolved_in.is_zero()).then(|| micros(resolved_in)), ..WirePhases::default() };
        self.address = admitted.addresses().first().map(SocketAddr::ip);
    }

    /// Records the connection.
    pub(super) fn record_connection(&mut self, connected: &DialedConnection) {
        self.phases.connect_us = Some(micros(connected.connect_time));
        self.address = Some(connected.peer.ip());
    }

    /// Returns the report with these measurements.
    pub(super) fn report(self, outcome: WireOutcome) -> ProbeReport {
        ProbeReport {
            latency_ms: self.duration.map(millis),
            phases: self.phases,
            status_code: self.status,
            address: self.address,
            ..ProbeReport::outcome_only(outcome)
        }
    }
}

/// Error that ended a check before there was a response to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckError {
    /// A fault of the target.
    Target(WireFailure),
    /// A fault on the agent's side.
    Own(WireOwnFault),
}

impl From<WireFailure> for CheckError {
    fn from(failure: WireFailure) -> Self {
        Self::Target(failure)
    }
}

impl From<CheckError> for WireOutcome {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Target(failure) => Self::Failed(failure),
            CheckError::Own(fault) => Self::Inconclusive(fault),
        }
    }
}

impl From<DialError> for CheckError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::AddressNotAllowed(class) => {
                WireFailure::AddressNotAllowed { class: address_class(class) }.into()
            }
            DialError::NotFound => WireFailure::DnsNotFound.into(),
            DialError::NoAddress => WireFailure::DnsNoRecord.into(),
            DialError::ServFail { code } => WireFailure::DnsFailed { code }.into(),
            DialError::DnsTimeout => WireFailure::Timeout { phase: WirePhase::Dns }.into(),
            DialError::Refused => WireFailure::Refused.into(),
            DialError::Reset => WireFailure::Reset.into(),
            DialError::Unreachable => WireFailure::Unreachable.into(),
            DialError::Timeout => WireFailure::Timeout { phase: WirePhase::Connect }.into(),
            DialError::ResolverDead => Self::Own(WireOwnFault::ResolverDead),
            DialError::NoRoute => Self::Own(WireOwnFault::NoRoute),
            DialError::NoDescriptors => Self::Own(WireOwnFault::NoDescriptors),
            DialError::NotPermitted => Self::Own(WireOwnFault::NotPermitted),
            // Reported with the dialler's text.
            DialError::NoSource | DialError::OwnAddressesUnreadable => {
                Self::Own(WireOwnFault::Internal { detail: ShortText::new(&error.to_string()) })
            }
        }
    }
}

/// Converts a duration to whole microseconds.
pub(super) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Returns the failure for a target that breaks a rule of its type.
pub(super) fn bad_target(rule: impl AsRef<str>) -> WireFailure {
    WireFailure::BadTarget { detail: ShortText::new(rule.as_ref()) }
}

/// Converts to whole milliseconds, at least 1: a measured time must not look like none.
fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn address_class(class: BlockedClass) -> AddressClass {
    match class {
        BlockedClass::Loopback => AddressClass::Loopback,
        BlockedClass::Private | BlockedClass::Cgnat | BlockedClass::PrivateName => AddressClass::Private,
        BlockedClass::LinkLocal => AddressClass::LinkLocal,
        BlockedClass::Multicast => AddressClass::Multicast,
        BlockedClass::Unspecified => AddressClass::Unspecified,
        BlockedClass::Documentation
        | BlockedClass::Benchmark
        | BlockedClass::Translated
        | BlockedClass::Platform
        | BlockedClass::Reserved => AddressClass::Reserved,
        BlockedClass::Denied | BlockedClass::OwnHost => AddressClass::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_faults_are_inconclusive() {
        for error in [
            DialError::ResolverDead,
            DialError::NoRoute,
            DialError::NoDescriptors,
            DialError::NoSource,
            DialError::OwnAddressesUnreadable,
            DialError::NotPermitted,
        ] {
            assert!(matches!(WireOutcome::from(CheckError::from(error)), WireOutcome::Inconclusive(_)), "{error}");
        }
    }

    #[test]
    fn a_measured_time_is_at_least_one_millisecond() {
        let facts = CheckFacts { duration: Some(Duration::from_micros(12)), ..CheckFacts::default() };
        assert_eq!(facts.report(WireOutcome::Passed).latency_ms, Some(1));
        assert_eq!(CheckFacts::default().report(WireOutcome::Passed).latency_ms, None);
    }
}
