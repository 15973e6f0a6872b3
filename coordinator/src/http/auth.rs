//! Authenticates API keys sent as bearer tokens (RFC 6750, section 2.1), and limits failed attempts per address.

use std::net::IpAddr;

use ::http::HeaderMap;
use ::http::header::AUTHORIZATION;
use parallax_core::rate_limit::RateLimitStatus;

use super::error::ApiError;
use super::{HttpContext, PeerAddress, error_hints};
use crate::service::secret_text::ApiKeyText;
use crate::service::{Caller, ServiceError};

/// Authenticates the request. If the key is invalid, writes the address's remaining failed attempts to `allowance`.
pub(super) fn authenticate(
    context: &HttpContext,
    headers: &HeaderMap,
    peer: Option<PeerAddress>,
    allowance: &mut Option<RateLimitStatus>,
) -> Result<Caller, ApiError> {
    let sent = bearer_token(headers);
    let found = sent.ok_or(ServiceError::Unauthenticated);
    match found.and_then(|text| context.service.keys.authenticate(text)) {
        Ok(caller) => Ok(caller),
        Err(ServiceError::Unauthenticated) => {
            if let Some(PeerAddress(address)) = peer {
                context.failed_auth_limit.admit(address_key(address), context.service.now(), allowance)?;
            }
            Err(ApiError::Unauthenticated(
                sent.map_or_else(|| error_hints::missing_key(headers), |text| ApiKeyText::explain(text).into()),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the bearer token; two `Authorization` headers are treated as none.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (first, more) = (values.next()?, values.next());
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (more.is_none() && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Rate limit key of an address: the IPv4 address, or the IPv6 /64, since one host has all of it.
pub(super) fn address_key(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) & !u128::from(u64::MAX),
    }
}

/// Rate limit key of a network that one party may control: an IPv4 /24, or an IPv6 /48, the usual customer allocation.
pub(super) fn network_key(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address) & !0xff),
        IpAddr::V6(address) => u128::from(address) & !(u128::MAX >> 48),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_well_formed_bearer_token_is_read() {
        let headers =
            |values: &[&str]| values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect::<HeaderMap>();
        assert_eq!(bearer_token(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer_token(&headers(&["bearer  abc"])), Some("abc"));
        for values in [&[][..], &["abc"], &["Bearer "], &["Basic abc"], &["Bearer"], &["Bearer a", "Bearer b"]] {
            assert_eq!(bearer_token(&headers(values)), None, "{values:?}");
        }
    }

    #[test]
    fn a_v6_network_counts_as_one() {
        let place = |text: &str| address_key(text.parse().unwrap());
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:1"));
        assert_ne!(place("2001:db8:0:1::1"), place("2001:db8::1"));
        assert_eq!(place("::ffff:192.0.2.1"), place("192.0.2.1"));
        assert_ne!(place("192.0.2.2"), place("192.0.2.1"));
        let network = |text: &str| network_key(text.parse().unwrap());
        assert_eq!(network("2001:db8:0:ffff::1"), network("2001:db8::1"));
        assert_ne!(network("2001:db8:1::1"), network("2001:db8::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.255"));
        assert_ne!(network("192.0.3.1"), network("192.0.2.1"));
    }
}
