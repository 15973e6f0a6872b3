//! Check specifications on the wire: one variant for each monitor type that an agent can probe.

use crate::text::SecretText;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Check to run. New types go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireCheckSpec {
    /// Request a URL.
    Http(WireHttpCheck),
    /// Open a TCP connection.
    Tcp(WireTcpCheck),
    /// Query a DNS record.
    Dns(WireDnsCheck),
    /// Send an ICMP echo.
    Ping(WirePingCheck),
    /// Read the expiry of the certificate a host serves.
    Certificate(WireCertificateCheck),
    /// Read the expiry of a domain's registration.
    Domain(WireDomainCheck),
    /// Read a component's state from a vendor's status page.
    Component(WireComponentCheck),
}

impl WireCheckSpec {
    /// The type of this check.
    pub fn kind(&self) -> WireCheckKind {
        match self {
            Self::Http(_) => WireCheckKind::Http,
            Self::Tcp(_) => WireCheckKind::Tcp,
            Self::Dns(_) => WireCheckKind::Dns,
            Self::Ping(_) => WireCheckKind::Ping,
            Self::Certificate(_) => WireCheckKind::Certificate,
            Self::Domain(_) => WireCheckKind::Domain,
            Self::Component(_) => WireCheckKind::Component,
        }
    }
}

/// Check types, as an agent lists those it supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WireCheckKind {
    /// `http`
    Http,
    /// `tcp`
    Tcp,
    /// `dns`
    Dns,
    /// `ping`
    Ping,
    /// `certificate`
    Certificate,
    /// `domain`
    Domain,
    /// `component`
    Component,
}

impl WireCheckKind {
    /// All types, in the order of their wire numbers.
    pub const ALL: [Self; 7] =
        [Self::Http, Self::Tcp, Self::Dns, Self::Ping, Self::Certificate, Self::Domain, Self::Component];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Dns => "dns",
            Self::Ping => "ping",
            Self::Certificate => "certificate",
            Self::Domain => "domain",
            Self::Component => "component",
        }
    }
}

impl fmt::Display for WireCheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An http check. At most 5 redirects are followed; none if `expect_status` is a 3xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireHttpCheck {
    /// An http or https URL.
    pub url: String,
    /// Request method.
    pub method: WireMethod,
    /// Request headers in order; values are secrets. At most 4000 characters in all.
    pub headers: Vec<WireHeader>,
    /// Request body, sent as it is with methods that take one; at most 10,000 characters.
    pub body: Option<SecretText>,
    /// The exact status expected, 100 to 599; `None` for any 2xx.
    pub expect_status: Option<u16>,
    /// Keyword that is searched in the body; at most 200 characters.
    pub keyword: Option<String>,
    /// Required presence or absence of the keyword.
    pub keyword_mode: WireKeywordMode,
}

impl WireHttpCheck {
    /// Number of bytes of a body that are searched for a keyword, as sent and as decoded.
    pub const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
}

/// A request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireHeader {
    /// Letters, digits and hyphens.
    pub name: String,
    /// No control characters.
    pub value: SecretText,
}

/// Request methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireMethod {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl WireMethod {
    /// The method's token in a request line (RFC 9110).
    pub fn token(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Condition on the keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireKeywordMode {
    /// The body must contain the keyword.
    Present,
    /// The body must not contain the keyword.
    Absent,
}

/// A tcp check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireTcpCheck {
    /// Host name or address literal.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A dns check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireDnsCheck {
    /// Name to query; `.` is the root.
    pub host: String,
    /// Record type to query.
    pub record: WireRecordType,
    /// Text that an answer must contain; at most 500 characters.
    pub expect: Option<String>,
}

/// DNS record types that a check can query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireRecordType {
    /// IPv4 address.
    A,
    /// IPv6 address.
    Aaaa,
    /// Alias.
    Cname,
    /// Mail exchange.
    Mx,
    /// Text.
    Txt,
    /// Name server.
    Ns,
}

impl WireRecordType {
    /// The type's name in zone files.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Cname => "CNAME",
            Self::Mx => "MX",
            Self::Txt => "TXT",
            Self::Ns => "NS",
        }
    }
}

/// A ping check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WirePingCheck {
    /// Host name or address literal.
    pub host: String,
}

/// A certificate check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireCertificateCheck {
    /// Host name, which the certificate must also cover.
    pub host: String,
    /// TLS port.
    pub port: u16,
    /// Days before expiry from which the check fails.
    pub warn_days: u16,
}

/// A domain check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireDomainCheck {
    /// A name in the domain; its registrable part is looked up.
    pub host: String,
    /// Days before expiry from which the check fails.
    pub warn_days: u16,
}

/// A component check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireComponentCheck {
    /// The vendor's status page.
    pub vendor_url: String,
    /// A component by name, at most 200 characters; `None` follows the whole page.
    pub component: Option<String>,
}
