//! Rate limits for login attempts with page passwords: wrong attempts per minute of one address, one network and one
//! page.
//!
//! An attempt is counted before the password is verified, so that concurrent attempts can't bypass the limits, and
//! refunded if it was right.

use std::net::IpAddr;

use parallax_core::rate_limit::KeyedRateLimit;
use parallax_core::time::Timestamp;

use super::client_ip::{ClientIp, address_key, network_key};

/// Wrong attempts per minute and address.
const MAX_PER_ADDRESS: u32 = 10;
/// Wrong attempts per minute and network, since addresses within a network cost an attacker nothing.
const MAX_PER_NETWORK: u32 = 40;
/// Wrong attempts per minute and page. Applies only to addresses and networks that have failed before, so that an
/// attacker can't lock out other visitors.
const MAX_PER_PAGE: u32 = 60;
/// Wrong attempts per minute and page from all forwarded addresses: a proxy that passes on headers set by its clients
/// would let each attempt appear to come from a new address.
const MAX_FORWARDED: u32 = 240;

/// Counts of login attempts.
#[derive(Debug)]
pub(in crate::http) struct LoginThrottle {
    addresses: KeyedRateLimit<u128>,
    networks: KeyedRateLimit<u128>,
    pages: KeyedRateLimit<u128>,
    forwarded: KeyedRateLimit<u128>,
}

/// Login attempt that has been counted.
#[derive(Debug)]
#[must_use]
pub(in crate::http) struct LoginAttempt {
    address: Option<IpAddr>,
    /// True if a proxy reported the address.
    is_forwarded: bool,
    page: u128,
    at: Timestamp,
}

impl LoginThrottle {
    pub(in crate::http) const fn new() -> Self {
        Self {
            addresses: KeyedRateLimit::new(MAX_PER_ADDRESS),
            networks: KeyedRateLimit::new(MAX_PER_NETWORK),
            pages: KeyedRateLimit::new(MAX_PER_PAGE),
            forwarded: KeyedRateLimit::new(MAX_FORWARDED),
        }
    }

    /// Counts an attempt to log in to a page. Without a client IP, because a proxy on this host reports none, it counts
    /// for the page alone.
    ///
    /// # Errors
    /// Seconds until the next attempt is allowed.
    pub(in crate::http) fn begin(
        &self,
        visitor: Option<ClientIp>,
        page: u128,
        now: Timestamp,
    ) -> Result<LoginAttempt, u32> {
        let address = visitor.map(|visitor| visitor.address);
        let is_forwarded = visitor.is_some_and(|visitor| visitor.is_forwarded);
        let of_page = self.pages.peek(page, now);
        let is_fresh = match address {
            None => false,
            Some(address) => {
                let address_usage = self.addresses.peek(address_key(address), now);
                let of_network = self.networks.peek(network_key(address), now);
                if let Some(outcome) = [address_usage, of_network].into_iter().find(|outcome| !outcome.allowed) {
                    return Err(outcome.reset_seconds);
                }
                address_usage.remaining == address_usage.limit && of_network.remaining == of_network.limit
            }
        };
        if !of_page.allowed && !is_fresh {
            return Err(of_page.reset_seconds);
        }
        if is_forwarded {
            self.forwarded.admit_many(page, 1, now).map_err(|outcome| outcome.reset_seconds)?;
        }
        if let Some(address) = address {
            for outcome in [
                self.addresses.admit_many(address_key(address), 1, now),
                self.networks.admit_many(network_key(address), 1, now),
            ] {
                outcome.map_err(|outcome| outcome.reset_seconds)?;
            }
        }
        // A client without failed attempts may exceed the limit of the page; the attempt is counted and allowed.
        let _ = self.pages.admit_many(page, 1, now);
        Ok(LoginAttempt { address, is_forwarded, page, at: now })
    }

    /// Refunds an attempt that was right or was not verified.
    pub(in crate::http) fn refund(&self, attempt: LoginAttempt) {
        if let Some(address) = attempt.address {
            self.addresses.refund(address_key(address), attempt.at);
            self.networks.refund(network_key(address), attempt.at);
        }
        if attempt.is_forwarded {
            self.forwarded.refund(attempt.page, attempt.at);
        }
        self.pages.refund(attempt.page, attempt.at);
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::MINUTE;

    use super::*;

    fn peer(text: &str) -> Option<ClientIp> {
        Some(ClientIp { address: text.parse().unwrap(), is_forwarded: false })
    }

    const NOW: Timestamp = Timestamp::from_millis(5000);

    #[test]
    fn an_address_has_ten_attempts_and_correct_ones_do_not_count() {
        let throttle = LoginThrottle::new();
        for _ in 0..30 {
            let attempt = throttle.begin(peer("192.0.2.1"), 1, NOW).unwrap();
            throttle.refund(attempt);
        }
        for _ in 0..MAX_PER_ADDRESS - 1 {
            throttle.begin(peer("192.0.2.1"), 1, NOW).map(drop).unwrap();
        }
        throttle.begin(peer("192.0.2.1"), 1, NOW).map(drop).unwrap();
        assert_eq!(throttle.begin(peer("192.0.2.1"), 1, NOW + 1).map(drop), Err(60));
        assert_eq!(throttle.begin(peer("192.0.2.1"), 2, NOW + 30_000).map(drop), Err(30));
        throttle.begin(peer("192.0.2.1"), 1, NOW + MINUTE).map(drop).unwrap();
    }

    #[test]
    fn a_network_has_forty_attempts_across_pages() {
        for (addresses, other) in [("2001:db8:0:{}::1", "2001:db8:1::1"), ("192.0.2.{}", "192.0.3.1")] {
            let throttle = LoginThrottle::new();
            for n in 0..MAX_PER_NETWORK {
                throttle.begin(peer(&addresses.replace("{}", &n.to_string())), u128::from(n), NOW).map(drop).unwrap();
            }
            let another = peer(&addresses.replace("{}", "99"));
            assert_eq!(throttle.begin(another, 99, NOW).map(drop), Err(60), "{addresses}");
            throttle.begin(peer(other), 99, NOW).map(drop).unwrap();
        }
    }

    #[test]
    fn repeat_offenders_are_limited_per_page_and_nobody_else_is_locked_out() {
        let throttle = LoginThrottle::new();
        let other_visitor = |n: u32| peer(&format!("198.51.{n}.1"));
        for n in 0..MAX_PER_PAGE {
            throttle.begin(other_visitor(n), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(throttle.begin(other_visitor(0), 1, NOW).map(drop), Err(60));
        throttle.begin(other_visitor(0), 2, NOW).map(drop).unwrap();
        throttle.begin(other_visitor(100), 1, NOW).map(drop).unwrap();
        assert_eq!(
            throttle.begin(other_visitor(100), 1, NOW).map(drop),
            Err(60),
            "an address that failed before is limited"
        );
        assert_eq!(
            throttle.begin(None, 1, NOW).map(drop),
            Err(60),
            "a proxy that reports no address brings the attempts of all clients"
        );
        throttle.begin(None, 2, NOW).map(drop).unwrap();
    }

    #[test]
    fn a_forwarded_address_blocks_no_other_and_forged_ones_are_limited() {
        let forwarded =
            |n: u32| Some(ClientIp { address: IpAddr::from([10, (n >> 8) as u8, n as u8, 1]), is_forwarded: true });
        let throttle = LoginThrottle::new();
        for _ in 0..MAX_PER_ADDRESS {
            throttle.begin(forwarded(0), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(throttle.begin(forwarded(0), 1, NOW).map(drop), Err(60));
        for n in 1..=MAX_FORWARDED - MAX_PER_ADDRESS {
            throttle.begin(forwarded(n), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(throttle.begin(forwarded(999), 1, NOW).map(drop), Err(60));
        throttle.begin(forwarded(999), 2, NOW).map(drop).unwrap();
        throttle.begin(peer("198.51.100.1"), 1, NOW).map(drop).unwrap();
        let right = throttle.begin(forwarded(998), 3, NOW).unwrap();
        throttle.refund(right);
        assert_eq!(throttle.forwarded.peek(3, NOW).remaining, MAX_FORWARDED);
    }
}
