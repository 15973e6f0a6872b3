//! Determines the client IP for rate limits, and the keys under which limits count it: the peer address, or the
//! address forwarded by a proxy on this host.
//!
//! Only loopback peers are trusted, since any client can send the header. Only the last entry counts: the proxy itself
//! has added it, while earlier ones came with the request. So a proxy must set or extend `X-Forwarded-For` (Caddy does;
//! nginx with `proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for`): one that passes it on unchanged lets its
//! clients choose their address. Limits that could be bypassed that way are backed by a second one (see
//! `MAX_FORWARDED` in `login_throttle`).

use std::net::{IpAddr, SocketAddr};

use ::http::HeaderMap;
use ::http::header::{FORWARDED, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Peer address of the connection, which the server adds to each request.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct PeerAddress(pub(in crate::http) IpAddr);

/// Returns the client IP of a request, or `None` if it is unknown.
pub(in crate::http) fn client_ip(peer: Option<PeerAddress>, headers: &HeaderMap) -> Option<ClientIp> {
    let peer = peer?.0.to_canonical();
    if !peer.is_loopback() {
        return Some(ClientIp { address: peer, is_forwarded: false });
    }
    let address = forwarded(headers)?.to_canonical();
    (!address.is_loopback()).then_some(ClientIp { address, is_forwarded: true })
}

/// Returns the address of a request's client, or `None` if it is unknown.
pub(in crate::http) fn client_address(peer: Option<PeerAddress>, headers: &HeaderMap) -> Option<IpAddr> {
    client_ip(peer, headers).map(|client| client.address)
}

/// Address that a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct ClientIp {
    /// The address.
    pub(in crate::http) address: IpAddr,
    /// True if a proxy reported it.
    pub(in crate::http) is_forwarded: bool,
}

/// Rate limit key of an address: the IPv4 address, or the IPv6 /64, since one host has all of it.
pub(in crate::http) fn address_key(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) & !u128::from(u64::MAX),
    }
}

/// Rate limit key of a network that one party may control: an IPv4 /24, or an IPv6 /48, the usual customer allocation.
pub(in crate::http) fn network_key(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address) & !0xff),
        IpAddr::V6(address) => u128::from(address) & !(u128::MAX >> 48),
    }
}

/// Last address in `X-Forwarded-For`, or else in `Forwarded` (RFC 7239).
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = |name| headers.get_all(name).iter().next_back()?.to_str().ok()?.rsplit(',').next();
    if headers.contains_key(X_FORWARDED_FOR) {
        return parse_address(last(X_FORWARDED_FOR)?);
    }
    let is_for = |part: &str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.to_owned())
    };
    parse_address(&last(FORWARDED)?.split(';').find_map(is_for)?)
}

/// Parses an address as written in these headers: with or without quotes, brackets (IPv6) and port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_ip_of(peer: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let header = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let headers: HeaderMap = headers.iter().map(header).collect();
        client_ip(Some(PeerAddress(peer.parse().unwrap())), &headers).map(|visitor| visitor.address.to_string())
    }

    #[test]
    fn the_last_address_from_a_local_proxy_counts() {
        for (headers, expected) in [
            (&[("x-forwarded-for", "192.0.2.1")][..], "192.0.2.1"),
            (&[("x-forwarded-for", "198.51.100.9, 192.0.2.1")], "192.0.2.1"),
            (&[("x-forwarded-for", "2001:db8::1")], "2001:db8::1"),
            (&[("x-forwarded-for", "[2001:db8::1]:443")], "2001:db8::1"),
            (&[("x-forwarded-for", "::ffff:192.0.2.1")], "192.0.2.1"),
            (&[("x-forwarded-for", "192.0.2.1:50000"), ("forwarded", "for=192.0.2.2")], "192.0.2.1"),
            (&[("forwarded", "for=198.51.100.9, For=\"[2001:db8::1]:4711\";proto=https")], "2001:db8::1"),
            (&[("forwarded", "proto=https;for=192.0.2.1")], "192.0.2.1"),
        ] {
            for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
                assert_eq!(client_ip_of(peer, headers).as_deref(), Some(expected), "{headers:?}");
            }
        }
    }

    #[test]
    fn an_invalid_forwarded_address_is_ignored() {
        for headers in [
            &[][..],
            &[("x-forwarded-for", "")],
            &[("x-forwarded-for", "192.0.2.1, unknown")],
            &[("x-forwarded-for", "127.0.0.1")],
            &[("x-forwarded-for", "x"), ("forwarded", "for=192.0.2.1")],
            &[("forwarded", "for=_hidden")],
            &[("forwarded", "by=192.0.2.1")],
        ] {
            assert_eq!(client_ip_of("127.0.0.1", headers), None, "{headers:?}");
        }
        assert_eq!(client_ip(None, &HeaderMap::new()), None);
    }

    #[test]
    fn headers_of_a_remote_peer_are_ignored() {
        for peer in ["203.0.113.7", "10.0.0.1", "2001:db8::7"] {
            let headers = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")];
            assert_eq!(client_ip_of(peer, &headers).as_deref(), Some(peer));
        }
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let key_of = |text: &str| address_key(text.parse().unwrap());
        assert_eq!(key_of("2001:db8::1"), key_of("2001:db8::ffff:1"));
        assert_ne!(key_of("2001:db8:0:1::1"), key_of("2001:db8::1"));
        assert_eq!(key_of("::ffff:192.0.2.1"), key_of("192.0.2.1"));
        assert_ne!(key_of("192.0.2.2"), key_of("192.0.2.1"));
        let network = |text: &str| network_key(text.parse().unwrap());
        assert_eq!(network("2001:db8:0:ffff::1"), network("2001:db8::1"));
        assert_ne!(network("2001:db8:1::1"), network("2001:db8::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.255"));
        assert_ne!(network("192.0.3.1"), network("192.0.2.1"));
    }
}
