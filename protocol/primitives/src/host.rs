//! Hosts, parsed strictly into an address or a name: a spelling that another parser could read as a different host is
//! rejected.
//!
//! This is the one place that decides whether a text is a literal address. A text that the rules accept and store is
//! read by the same code when an agent dials it, so no spelling can be a name to one and an address to the other.

use std::{fmt, net::IpAddr};

/// Target of a connection: a literal address or a host name, already validated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A literal address.
    Ip(IpAddr),
    /// A host name in lower-case ASCII without a trailing dot; at most 253 bytes.
    Name(HostName),
}

/// A validated host name. Only [`Host::parse`] and [`Host::from_url`] create one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Returns the DNS root, which can be queried but never dialled.
    #[must_use]
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Returns the name, lower case, without a trailing dot.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for `localhost` and everything below it, which never leave the host (RFC 6761, section
    /// 6.3).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }

    /// Returns true if only private networks use the name: `.local` (RFC 6762), `.internal`, `.home.arpa`
    /// (RFC 8375), the usual top-level names of internal networks (RFC 6762, appendix G), and the reverse
    /// zones of addresses that are not public (RFC 6303). Public name servers know none of them, and the
    /// answers of private ones must not leave their network.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let last = self.0.rsplit('.').next().unwrap_or_default();
        match last {
            "arpa" => PRIVATE_BELOW_ARPA.iter().any(|zone| self.is_in(zone)),
            _ => PRIVATE_TOP.contains(&last),
        }
    }

    fn is_in(&self, zone: &str) -> bool {
        self.0.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

/// Top-level domains that only private networks use.
const PRIVATE_TOP: [&str; 9] =
    ["local", "internal", "localhost", "localdomain", "intranet", "private", "corp", "home", "lan"];

/// Zones below `arpa` that only private networks use.
const PRIVATE_BELOW_ARPA: [&str; 29] = [
    "home.arpa",
    "0.in-addr.arpa",
    "10.in-addr.arpa",
    "127.in-addr.arpa",
    "254.169.in-addr.arpa",
    "168.192.in-addr.arpa",
    "16.172.in-addr.arpa",
    "17.172.in-addr.arpa",
    "18.172.in-addr.arpa",
    "19.172.in-addr.arpa",
    "20.172.in-addr.arpa",
    "21.172.in-addr.arpa",
    "22.172.in-addr.arpa",
    "23.172.in-addr.arpa",
    "24.172.in-addr.arpa",
    "25.172.in-addr.arpa",
    "26.172.in-addr.arpa",
    "27.172.in-addr.arpa",
    "28.172.in-addr.arpa",
    "29.172.in-addr.arpa",
    "30.172.in-addr.arpa",
    "31.172.in-addr.arpa",
    // fc00::/7, fe80::/10 and fec0::/10, and ::/96 with the loopback address in it.
    "c.f.ip6.arpa",
    "d.f.ip6.arpa",
    "8.e.f.ip6.arpa",
    "9.e.f.ip6.arpa",
    "a.e.f.ip6.arpa",
    "b.e.f.ip6.arpa",
    "0.0.0.0.0.0.0.0.ip6.arpa",
];

/// Syntax error of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is empty.
    #[error("host is empty")]
    Empty,
    /// `[::1]`: brackets belong to URLs.
    #[error("an IPv6 address is written here without brackets")]
    Brackets,
    /// `fe80::1%eth0`.
    #[error("an IPv6 address with a zone is not allowed")]
    Zone,
    /// Text with colons that is not valid by RFC 4291.
    #[error("not an IPv6 address")]
    BadIpv6,
    /// `127.1`, `0x7f.1`, `2130706433`: an address to some systems and a name to others.
    #[error("an IPv4 address is written as four decimal numbers")]
    NotCanonicalIpv4,
    /// A name that breaks the rules for host names (RFC 1123, section 2.1).
    #[error("not a host name")]
    BadName,
    /// A name over 253 bytes.
    #[error("host name is too long")]
    TooLong,
    /// A label over 63 bytes.
    #[error("a label of the host name is too long")]
    LabelTooLong,
}

impl Host {
    /// Parses a bare host: a canonical dotted quad, RFC 4291 text, or a name (international names are
    /// converted to their ASCII form; one trailing dot is dropped).
    ///
    /// # Errors
    /// [`HostError`] for every form that only a lenient parser would accept.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.starts_with('[') || text.ends_with(']') {
            return Err(HostError::Brackets);
        }
        if text.contains('%') {
            return Err(if text.contains(':') { HostError::Zone } else { HostError::BadName });
        }
        if text.contains(':') {
            return text.parse().map(Self::Ip).map_err(|_| HostError::BadIpv6);
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        if text.is_ascii() {
            return name(text).map(Self::Name);
        }
        // Some characters of other scripts normalise to digits and dots: those must not become an address.
        match url::Host::parse(text) {
            Ok(url::Host::Domain(ascii)) => name(&ascii).map(Self::Name),
            Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => Err(HostError::NotCanonicalIpv4),
            Err(_) => Err(HostError::BadName),
        }
    }

    /// Returns the host of a parsed URL. The URL parser has already turned every numeric form into an
    /// address, so the guard judges the address that would be dialled.
    ///
    /// # Errors
    /// [`HostError`] for an invalid host name.
    pub fn from_url(host: &url::Host<&str>) -> Result<Self, HostError> {
        match host {
            url::Host::Domain(text) => name(text).map(Self::Name),
            url::Host::Ipv4(ip) => Ok(Self::Ip(IpAddr::V4(*ip))),
            url::Host::Ipv6(ip) => Ok(Self::Ip(IpAddr::V6(*ip))),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn name(text: &str) -> Result<HostName, HostError> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > 253 {
        return Err(HostError::TooLong);
    }
    if text.rsplit('.').next().is_some_and(is_numeric) {
        return Err(HostError::NotCanonicalIpv4);
    }
    if text.split('.').any(|label| label.len() > 63) {
        return Err(HostError::LabelTooLong);
    }
    if text.split('.').all(is_label) { Ok(HostName(text)) } else { Err(HostError::BadName) }
}

/// Returns true for a last label that systems read as a number, which makes them treat the whole as an
/// address (URL standard, "ends in a number").
fn is_numeric(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// Accepts letters, digits, inner hyphens, and the underscore, which real service names use.
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_names_are_parsed() {
        assert_eq!(Host::parse("192.0.2.7"), Ok(Host::Ip("192.0.2.7".parse().unwrap())));
        assert_eq!(Host::parse("2001:db8::7"), Ok(Host::Ip("2001:db8::7".parse().unwrap())));
        assert_eq!(Host::parse("::ffff:1.2.3.4"), Ok(Host::Ip("::ffff:1.2.3.4".parse().unwrap())));
        assert_eq!(Host::parse("Example.COM.").unwrap().to_string(), "example.com");
        assert_eq!(Host::parse("_sip._tcp.example.com").unwrap().to_string(), "_sip._tcp.example.com");
        assert_eq!(Host::parse("bücher.example").unwrap().to_string(), "xn--bcher-kva.example");
    }

    #[test]
    fn lenient_host_forms_are_refused() {
        let table = [
            ("", HostError::Empty),
            (".", HostError::Empty),
            ("127.1", HostError::NotCanonicalIpv4),
            ("0", HostError::NotCanonicalIpv4),
            ("0x7f.1", HostError::NotCanonicalIpv4),
            ("0x7f000001", HostError::NotCanonicalIpv4),
            ("0x", HostError::NotCanonicalIpv4),
            ("2130706433", HostError::NotCanonicalIpv4),
            ("017700000001", HostError::NotCanonicalIpv4),
            ("0177.0.0.1", HostError::NotCanonicalIpv4),
            ("127.0.0.1.", HostError::NotCanonicalIpv4),
            ("127.0.0.0x1", HostError::NotCanonicalIpv4),
            ("256.1.1.1", HostError::NotCanonicalIpv4),
            ("１２７.０.０.１", HostError::NotCanonicalIpv4),
            ("127。0。0。1", HostError::NotCanonicalIpv4),
            ("fe80::1%eth0", HostError::Zone),
            ("[::1]", HostError::Brackets),
            ("1::2::3", HostError::BadIpv6),
            ("host:80", HostError::BadIpv6),
            ("a..b", HostError::BadName),
            ("-a.example", HostError::BadName),
            ("a b.example", HostError::BadName),
            ("a/b", HostError::BadName),
            ("a%2eb", HostError::BadName),
            // Lenient parsers decode the escape, since the name is not ASCII.
            ("b\u{fc}ch%65r.example", HostError::BadName),
            ("user@host", HostError::BadName),
        ];
        for (text, error) in table {
            assert_eq!(Host::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(Host::parse(&format!("{}.example", "a".repeat(64))), Err(HostError::LabelTooLong));
        assert_eq!(Host::parse(&"abcd.".repeat(60)), Err(HostError::TooLong));
    }

    #[test]
    fn only_names_of_private_networks_are_private() {
        let is_private = |text: &str| match Host::parse(text) {
            Ok(Host::Name(name)) => name.is_private(),
            other => panic!("{text}: {other:?}"),
        };
        for text in [
            "nas.local",
            "VAULT.Internal.",
            "a.b.corp",
            "lan",
            "router.home.arpa",
            "home.arpa",
            "1.0.10.in-addr.arpa",
            "7.31.172.in-addr.arpa",
            "1.168.192.in-addr.arpa",
            "0.0.d.f.ip6.arpa",
            "a.localhost",
        ] {
            assert!(is_private(text), "{text}");
        }
        for text in [
            "local.example",
            "notlocal",
            "internal.example.com",
            "8.8.8.in-addr.arpa",
            "110.in-addr.arpa",
            "32.172.in-addr.arpa",
            "1.0.0.2.ip6.arpa",
            "site.test",
            "com",
        ] {
            assert!(!is_private(text), "{text}");
        }
        assert!(!HostName::root().is_private());
    }

    #[test]
    fn localhost_is_recognized_at_every_depth() {
        for text in ["localhost", "LOCALHOST.", "a.localhost", "a.b.localhost."] {
            let Ok(Host::Name(name)) = Host::parse(text) else { panic!("{text}") };
            assert!(name.is_localhost(), "{text}");
        }
        let Ok(Host::Name(name)) = Host::parse("notlocalhost") else { panic!() };
        assert!(!name.is_localhost());
    }
}
