//! Limits refused join attempts per source, so that tokens can't be guessed.

use std::net::{IpAddr, Ipv6Addr};

use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::time::{MINUTE, Timestamp};

/// Refused attempts per source in [`WINDOW_MS`], after which further ones are rejected.
const MAX_ATTEMPTS: u32 = 10;

/// Window in which a source's refused attempts count, in ms.
const WINDOW_MS: i64 = MINUTE;

/// Sources tracked, at most.
const MAX_SOURCES: usize = 4_096;

/// Recent refused attempts by source.
#[derive(Debug)]
pub(super) struct JoinAttempts(FixedWindowLimit<IpAddr>);

impl Default for JoinAttempts {
    fn default() -> Self {
        Self(FixedWindowLimit::evicting(WINDOW_MS, MAX_SOURCES))
    }
}

impl JoinAttempts {
    /// Returns true if a source has used up its attempts.
    pub(super) fn is_exhausted(&self, source: IpAddr, now: Timestamp) -> bool {
        !self.0.would_admit(MAX_ATTEMPTS, &source_network(source), now)
    }

    /// Counts a refused attempt.
    pub(super) fn record_refusal(&mut self, source: IpAddr, now: Timestamp) {
        self.0.count(MAX_ATTEMPTS, &source_network(source), 1, now);
    }
}

/// Returns an IPv4 address as it is, or the /64 network of an IPv6 address, since a host can choose any address in
/// it.
pub(super) fn source_network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    #[test]
    fn a_source_is_blocked_for_a_minute_after_ten_refusals() {
        let mut attempts = JoinAttempts::default();
        let (one, same_net, other): (IpAddr, IpAddr, IpAddr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), "192.0.2.1".parse().unwrap());
        for _ in 0..10 {
            assert!(!attempts.is_exhausted(one, NOW));
            attempts.record_refusal(one, NOW);
        }
        assert!(attempts.is_exhausted(one, NOW) && attempts.is_exhausted(same_net, NOW));
        assert!(!attempts.is_exhausted(other, NOW));
        assert!(!attempts.is_exhausted(one, NOW + WINDOW_MS));
        // The clock went back by more than threads differ in.
        assert!(!attempts.is_exhausted(one, NOW - 1_001));
    }

    #[test]
    fn sources_are_bounded() {
        let mut attempts = JoinAttempts::default();
        for n in 0..10_000_u32 {
            attempts.record_refusal(IpAddr::from(n.to_be_bytes()), NOW + i64::from(n) / 1_000);
        }
        assert_eq!(attempts.0.key_count(), MAX_SOURCES);
    }
}
