//! Lookup of one type of records, for checks of the name service itself.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name as DnsName, RData, RecordType};
use parallax_primitives::host::{Host, HostName};
use tokio::time::{Instant, timeout_at};

use crate::{
    address::{self, BlockedClass},
    dns_error::dns_error,
    error::DialError,
    guard::DialGuard,
    resolve::DnsResolver,
};

/// Record types that can be queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsRecordKind {
    /// IPv4 address (RFC 1035).
    A,
    /// IPv6 address (RFC 3596).
    Aaaa,
    /// Alias (RFC 1035).
    Cname,
    /// Mail exchange (RFC 1035).
    Mx,
    /// Text (RFC 1035).
    Txt,
    /// Name server (RFC 1035).
    Ns,
}

/// Data of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsRecord {
    /// Data of A and AAAA.
    Address(IpAddr),
    /// Data of CNAME and NS: lower case, no trailing dot; the root is `.`.
    Name(String),
    /// Data of MX.
    Exchange {
        /// Preference; the lowest is tried first.
        preference: u16,
        /// Host, as in [`DnsRecord::Name`].
        host: String,
    },
    /// Data of TXT: the strings of the record joined, in order (RFC 7208, section 3.3); invalid UTF-8 is
    /// replaced.
    Text(String),
}

impl DnsRecord {
    /// Maximum number of records of one answer; more are dropped.
    pub const MAX_RECORDS: usize = 256;
}

impl DnsResolver {
    /// Queries the records of `name` of one type once, following aliases, without a cache. UDP first, TCP if
    /// the answer is truncated.
    ///
    /// # Errors
    /// [`DialError::NotFound`] (NXDOMAIN), [`DialError::NoAddress`] (the name has no record of this type),
    /// [`DialError::ServFail`] or [`DialError::DnsTimeout`] if the name is at fault;
    /// [`DialError::ResolverDead`] if the resolver answers nothing beyond its cache.
    pub async fn records(
        &self,
        name: &HostName,
        kind: DnsRecordKind,
        deadline: Instant,
    ) -> Result<Vec<DnsRecord>, DialError> {
        let fqdn = DnsName::from_ascii(format!("{}.", name.as_str())).map_err(|_| DialError::NotFound)?;
        let started = Instant::now();
        let within = deadline.min(started + self.limit);
        let query = timeout_at(within, self.inner.lookup(fqdn, record_type(kind)));
        let answer = match self.await_with_liveness_check(query, deadline).await {
            Err(_) => Err(DialError::DnsTimeout),
            Ok(Err(error)) => Err(dns_error(&error)),
            Ok(Ok(lookup)) => {
                let all = lookup.answers().iter().filter_map(|record| parse_record(kind, &record.data));
                Ok(all.take(DnsRecord::MAX_RECORDS).collect::<Vec<_>>())
            }
        };
        match self.confirm_name_at_fault(answer, started, deadline).await? {
            none if none.is_empty() => Err(DialError::NoAddress),
            records => Ok(records),
        }
    }
}

impl DialGuard {
    /// Returns the records that may be shown to the customer who chose the name. Unless private targets are
    /// allowed, names that only private networks use are not queried, and records with such a name or a
    /// private address are dropped: a name server's view of its own network is not for strangers.
    ///
    /// # Errors
    /// [`DialError::AddressNotAllowed`] for such a name; otherwise as [`DnsResolver::records`].
    pub async fn records(
        &self,
        name: &HostName,
        kind: DnsRecordKind,
        deadline: Instant,
    ) -> Result<Vec<DnsRecord>, DialError> {
        self.judge_name(name)?;
        let mut records = self.record_resolver().records(name, kind, deadline).await?;
        if !self.policy().allow_private {
            records.retain(|record| !self.is_private(record));
        }
        if records.is_empty() { Err(DialError::NoAddress) } else { Ok(records) }
    }

    fn is_private(&self, record: &DnsRecord) -> bool {
        match record {
            DnsRecord::Address(ip) => {
                address::blocked_class(self.policy().effective_address(*ip)).is_some_and(|class| match class {
                    BlockedClass::Unspecified | BlockedClass::Translated | BlockedClass::Platform => true,
                    class => class.is_own_network(),
                })
            }
            DnsRecord::Name(host) | DnsRecord::Exchange { host, .. } => {
                matches!(Host::parse(host), Ok(Host::Name(name)) if name.is_private())
            }
            DnsRecord::Text(_) => false,
        }
    }
}

fn record_type(kind: DnsRecordKind) -> RecordType {
    match kind {
        DnsRecordKind::A => RecordType::A,
        DnsRecordKind::Aaaa => RecordType::AAAA,
        DnsRecordKind::Cname => RecordType::CNAME,
        DnsRecordKind::Mx => RecordType::MX,
        DnsRecordKind::Txt => RecordType::TXT,
        DnsRecordKind::Ns => RecordType::NS,
    }
}

/// Returns a record of the queried type, or `None` for an alias on the way to it.
fn parse_record(kind: DnsRecordKind, data: &RData) -> Option<DnsRecord> {
    Some(match (kind, data) {
        (DnsRecordKind::A, RData::A(a)) => DnsRecord::Address(IpAddr::V4(a.0)),
        (DnsRecordKind::Aaaa, RData::AAAA(aaaa)) => DnsRecord::Address(IpAddr::V6(aaaa.0)),
        (DnsRecordKind::Cname, RData::CNAME(name)) => DnsRecord::Name(text(&name.0)),
        (DnsRecordKind::Ns, RData::NS(name)) => DnsRecord::Name(text(&name.0)),
        (DnsRecordKind::Mx, RData::MX(mx)) => {
            DnsRecord::Exchange { preference: mx.preference, host: text(&mx.exchange) }
        }
        (DnsRecordKind::Txt, RData::TXT(txt)) => {
            DnsRecord::Text(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned())
        }
        _ => return None,
    })
}

fn text(name: &DnsName) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    match text.strip_suffix('.') {
        Some(bare) if !bare.is_empty() => bare.to_owned(),
        Some(_) | None => text,
    }
}
