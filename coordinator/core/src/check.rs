//! Checks: one struct for each monitor type, with the fields of the API.

pub mod edit;
pub mod unpublished_expiry;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;

/// The eight monitor types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CheckKind {
    /// HTTP request.
    Http,
    /// TCP connection.
    Tcp,
    /// DNS query.
    Dns,
    /// ICMP echo requests.
    Ping,
    /// Expiry of a TLS certificate.
    Certificate,
    /// Expiry of a domain's registration.
    Domain,
    /// Pings sent by the customer's job.
    Heartbeat,
    /// A vendor's status page.
    Component,
}

impl CheckKind {
    /// Every type, in the order of the API documentation.
    pub const ALL: [Self; 8] = [
        Self::Http,
        Self::Tcp,
        Self::Dns,
        Self::Ping,
        Self::Certificate,
        Self::Domain,
        Self::Heartbeat,
        Self::Component,
    ];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Dns => "dns",
            Self::Ping => "ping",
            Self::Certificate => "certificate",
            Self::Domain => "domain",
            Self::Heartbeat => "heartbeat",
            Self::Component => "component",
        }
    }

    /// Returns true if each region in use judges the monitor separately: a domain and a vendor's page look
    /// the same from everywhere.
    pub const fn is_regional(self) -> bool {
        match self {
            Self::Http | Self::Tcp | Self::Dns | Self::Ping | Self::Certificate => true,
            Self::Domain | Self::Heartbeat | Self::Component => false,
        }
    }

    /// Returns true if the check has a response time, which is shown and may be slow.
    pub const fn has_latency(self) -> bool {
        match self {
            Self::Http | Self::Tcp | Self::Dns | Self::Ping => true,
            Self::Certificate | Self::Domain | Self::Heartbeat | Self::Component => false,
        }
    }

    /// Returns true if uptime is the share of time not down, rather than of rounds passed.
    pub const fn has_downtime(self) -> bool {
        match self {
            Self::Heartbeat | Self::Component => true,
            Self::Http | Self::Tcp | Self::Dns | Self::Ping | Self::Certificate | Self::Domain => false,
        }
    }
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A monitor's check: its type and parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    /// HTTP request.
    Http(HttpCheck),
    /// TCP connection.
    Tcp(TcpCheck),
    /// DNS query.
    Dns(DnsCheck),
    /// ICMP echo requests.
    Ping(PingCheck),
    /// Expiry of a TLS certificate.
    Certificate(CertificateCheck),
    /// Expiry of a domain's registration.
    Domain(DomainCheck),
    /// Pings sent by the customer's job.
    Heartbeat(HeartbeatCheck),
    /// A vendor's status page.
    Component(ComponentCheck),
}

impl Check {
    /// The type of this check.
    pub const fn kind(&self) -> CheckKind {
        match self {
            Self::Http(_) => CheckKind::Http,
            Self::Tcp(_) => CheckKind::Tcp,
            Self::Dns(_) => CheckKind::Dns,
            Self::Ping(_) => CheckKind::Ping,
            Self::Certificate(_) => CheckKind::Certificate,
            Self::Domain(_) => CheckKind::Domain,
            Self::Heartbeat(_) => CheckKind::Heartbeat,
            Self::Component(_) => CheckKind::Component,
        }
    }

    /// Host that is checked, in lower-case ASCII and without its port; empty for a heartbeat.
    pub fn host(&self) -> String {
        match self {
            Self::Http(HttpCheck { url, .. }) | Self::Component(ComponentCheck { url, .. }) => {
                let parsed = url::Url::parse(url).ok();
                parsed.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
            }
            Self::Tcp(TcpCheck { host, .. })
            | Self::Dns(DnsCheck { host, .. })
            | Self::Ping(PingCheck { host })
            | Self::Certificate(CertificateCheck { host, .. })
            | Self::Domain(DomainCheck { host, .. }) => text::ascii_host(host),
            Self::Heartbeat(_) => String::new(),
        }
    }

    /// The target in words, as the API's `target` and lists show it.
    pub fn target(&self) -> String {
        match self {
            Self::Http(check) => check.url.clone(),
            Self::Tcp(check) => format!("{}:{}", bracketed(&check.host), check.port),
            Self::Dns(check) => format!("{} {}", check.record.name(), check.host),
            Self::Ping(check) => check.host.clone(),
            Self::Certificate(check) => format!("{}:{}", bracketed(&check.host), check.port),
            Self::Domain(check) => check.host.clone(),
            Self::Heartbeat(check) => format!("every {} min", check.period_seconds / 60),
            Self::Component(check) => match &check.component {
                Some(component) => format!("{component} on {}", check.url),
                None => check.url.clone(),
            },
        }
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// HTTP methods that the API accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// GET, the default.
    #[default]
    Get,
    /// HEAD: the response has no body.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Method {
    /// Every method, in the order of the API documentation.
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The method's token (RFC 9110 section 9).
    pub const fn name(self) -> &'static str {
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

/// Expected presence of the keyword in the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeywordMode {
    /// The body must contain it.
    #[default]
    Present,
    /// The body must not contain it.
    Absent,
}

impl KeywordMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Present, Self::Absent];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
        }
    }
}

/// An HTTP request and the expected response. Headers and body are secrets: never returned, never logged.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCheck {
    /// Absolute http or https URL.
    pub url: String,
    /// Request method.
    pub method: Method,
    /// Request headers, name and value, in the order given.
    pub headers: Vec<(String, String)>,
    /// Value of the Authorization header taken from the URL's user info. It is kept apart from the headers,
    /// so that it is removed with its URL and never sent to another host.
    pub credentials: Option<String>,
    /// Request body, sent unchanged.
    pub body: Option<String>,
    /// Exact status expected; none means any 2xx.
    pub expect_status: Option<u16>,
    /// Text that the body must contain, or must not.
    pub keyword: Option<String>,
    /// Expected presence of the keyword.
    pub keyword_mode: KeywordMode,
}

impl HttpCheck {
    /// Headers of the request: those given, with the URL's credentials in place of an Authorization header.
    #[must_use]
    pub fn sent_headers(&self) -> Vec<(String, String)> {
        let Some(credentials) = &self.credentials else { return self.headers.clone() };
        let others = self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        others.cloned().chain([("Authorization".to_owned(), credentials.clone())]).collect()
    }

    /// Check of the certificate that its host presents, for any time that is left; none for a URL without TLS.
    #[must_use]
    pub fn certificate_check(&self) -> Option<CertificateCheck> {
        let url = url::Url::parse(&self.url).ok().filter(|url| url.scheme() == "https")?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some(CertificateCheck { host, port: url.port_or_known_default()?, warn_days: 1 })
    }
}

impl fmt::Debug for HttpCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCheck")
            .field("method", &self.method)
            .field("expect_status", &self.expect_status)
            .field("keyword_mode", &self.keyword_mode)
            .finish_non_exhaustive()
    }
}

/// A TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCheck {
    /// Host name, in the script in which it was entered, or an address literal (without brackets).
    pub host: String,
    /// Port.
    pub port: u16,
}

/// DNS record types that the API accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordType {
    /// IPv4 address, the default.
    #[default]
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

impl RecordType {
    /// Every record type, in the order of the API documentation.
    pub const ALL: [Self; 6] = [Self::A, Self::Aaaa, Self::Cname, Self::Mx, Self::Txt, Self::Ns];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
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

/// A DNS query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsCheck {
    /// Name to query, in the script in which it was entered; `.` is the root.
    pub host: String,
    /// Record type to query.
    pub record: RecordType,
    /// Text that one of the records in the response must contain.
    pub expect: Option<String>,
}

/// ICMP echo requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingCheck {
    /// Host name or address literal.
    pub host: String,
}

/// Expiry of a TLS certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateCheck {
    /// Host name or address literal.
    pub host: String,
    /// Port, 443 unless given.
    pub port: u16,
    /// Fails this many days before expiry.
    pub warn_days: u16,
}

/// Expiry of a domain's registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainCheck {
    /// Domain name.
    pub host: String,
    /// Fails this many days before expiry.
    pub warn_days: u16,
}

/// Pings sent by the customer's job. The token is a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatCheck {
    /// Seconds between expected pings.
    pub period_seconds: u32,
    /// Seconds of grace after the period.
    pub grace_seconds: u32,
    /// Last segment of the ping URL: 128 random bits as text.
    pub token: String,
}

impl fmt::Debug for HeartbeatCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeartbeatCheck")
            .field("period_seconds", &self.period_seconds)
            .field("grace_seconds", &self.grace_seconds)
            .finish_non_exhaustive()
    }
}

/// A vendor's status page, or one component on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentCheck {
    /// URL of the vendor's status page.
    pub url: String,
    /// A component by name; none means the whole page.
    pub component: Option<String>,
}
