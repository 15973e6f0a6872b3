//! Determines the client IP for rate limits: the peer address, or the address forwarded by a proxy on this host.
//!
//! Only loopback peers are trusted, since any client can send the header. Only the last entry counts: the proxy itself
//! has added it, while earlier ones came with the request. So a proxy must set or extend `X-Forwarded-For` (Caddy does;
//! nginx with `proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for`): one that passes it on unchanged lets its
//! clients choose their address. Limits that could be bypassed that way are backed by a second one (see `MAX_FORWARDED` in `login_throttle`).

use std::net::{IpAddr, SocketAddr};

use ::http::HeaderMap;
use ::http::header::{FORWARDED, HeaderName};

use super::PeerAddress;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the client IP of a request, or `None` if it is unknown.
pub(super) fn client_ip(peer: Option<PeerAddress>, headers: &HeaderMap) -> Option<ClientIp> {
    let peer = peer?.0.to_canonical();
    if !peer.is_loopback() {
        return Some(ClientIp { address: peer, is_forwarded: false });
    }
    let address = forwarded(headers)?.to_canonical();
    (!address.is_loopback()).then_some(ClientIp { address, is_forwarded: true })
}

/// Address that a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientIp {
    /// The address.
    pub(super) address: IpAddr,
    /// True if a proxy reported it.
    pub(super) is_forwarded: bool,
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

    fn seen(peer: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let pair = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let headers: HeaderMap = headers.iter().map(pair).collect();
        client_ip(Some(PeerAddress(peer.parse().unwrap())), &headers).map(|visitor| visitor.address.to_string())
    }

    #[test]
    fn a_proxy_on_this_host_is_believed_what_it_says_last() {
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
                assert_eq!(seen(peer, headers).as_deref(), Some(expected), "{headers:?}");
            }
        }
    }

    #[test]
    fn what_is_no_address_counts_for_nobody() {
        for headers in [
            &[][..],
            &[("x-forwarded-for", "")],
            &[("x-forwarded-for", "192.0.2.1, unknown")],
            &[("x-forwarded-for", "127.0.0.1")],
            &[("x-forwarded-for", "x"), ("forwarded", "for=192.0.2.1")],
            &[("forwarded", "for=_hidden")],
            &[("forwarded", "by=192.0.2.1")],
        ] {
            assert_eq!(seen("127.0.0.1", headers), None, "{headers:?}");
        }
        assert_eq!(client_ip(None, &HeaderMap::new()), None);
    }

    #[test]
    fn who_comes_by_himself_is_who_he_is_whatever_he_says() {
        for peer in ["203.0.113.7", "10.0.0.1", "2001:db8::7"] {
            let headers = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")];
            assert_eq!(seen(peer, &headers).as_deref(), Some(peer));
        }
    }
}
