//! Lookup of one type of records, for checks of the name service itself.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name as DnsName, RData, RecordType};
use tokio::time::{Instant, timeout_at};

use crate::{
    address::{self, Class},
    error::DialError,
    guard::Guard,
    host::{Host, Name},
    resolve::{Resolver, reason},
};

/// Record types that can be queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
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
pub enum Record {
    /// Data of A and AAAA.
    Address(IpAddr),
    /// Data of CNAME and NS: lower case, no trailing dot; the root is `.`.
    Name(String),
    /// Data of MX.
    Exchange {
        /// Preference; the lowest is tried first.
        preference: u16,
        /// Host, as in [`Record::Name`].
        host: String,
    },
    /// Data of TXT: the strings of the record joined, in order (RFC 7208, section 3.3); invalid UTF-8 is
    /// replaced.
    Text(String),
}

impl Record {
    /// Maximum number of records of one answer; more are dropped.
    pub const MOST: usize = 256;
}

impl Resolver {
    /// Queries the records of `name` of one type once, following aliases, without a cache. UDP first, TCP if
    /// the answer is truncated.
    ///
    /// # Errors
    /// [`DialError::NotFound`] (NXDOMAIN), [`DialError::NoAddress`] (the name has no record of this type),
    /// [`DialError::ServFail`] or [`DialError::DnsTimeout`] if the name is at fault;
    /// [`DialError::ResolverDead`] if the resolver answers nothing beyond its cache.
    pub async fn records(
        &self,
        name: &Name,
        kind: RecordKind,
        deadline: Instant,
    ) -> Result<Vec<Record>, DialError> {
        let fqdn = DnsName::from_ascii(format!("{}.", name.as_str())).map_err(|_| DialError::NotFound)?;
        let asked = Instant::now();
        let within = deadline.min(asked + self.limit);
        let question = timeout_at(within, self.inner.lookup(fqdn, wire(kind)));
        let answer = match self.watched(question, deadline).await {
            Err(_) => Err(DialError::DnsTimeout),
            Ok(Err(error)) => Err(reason(&error)),
            Ok(Ok(lookup)) => {
                let all = lookup.answers().iter().filter_map(|record| read(kind, &record.data));
                Ok(all.take(Record::MOST).collect::<Vec<_>>())
            }
        };
        match self.accuse(answer, asked, deadline).await? {
            none if none.is_empty() => Err(DialError::NoAddress),
            records => Ok(records),
        }
    }
}

impl Guard {
    /// Returns the records that may be shown to the customer who chose the name. Unless private targets are
    /// allowed, names that only private networks use are not queried, and records with such a name or a
    /// private address are dropped: a name server's view of its own network is not for strangers.
    ///
    /// # Errors
    /// [`DialError::AddressNotAllowed`] for such a name; otherwise as [`Resolver::records`].
    pub async fn records(
        &self,
        name: &Name,
        kind: RecordKind,
        deadline: Instant,
    ) -> Result<Vec<Record>, DialError> {
        self.judge_name(name)?;
        let mut records = self.record_resolver().records(name, kind, deadline).await?;
        if !self.policy().allow_private {
            records.retain(|record| !self.is_private(record));
        }
        if records.is_empty() { Err(DialError::NoAddress) } else { Ok(records) }
    }

    fn is_private(&self, record: &Record) -> bool {
        match record {
            Record::Address(ip) => {
                address::refusal(self.policy().judged_as(*ip)).is_some_and(|class| match class {
                    Class::Unspecified | Class::Translated | Class::Platform => true,
                    class => class.is_own_network(),
                })
            }
            Record::Name(host) | Record::Exchange { host, .. } => {
                matches!(Host::parse(host), Ok(Host::Name(name)) if name.is_private())
            }
            Record::Text(_) => false,
        }
    }
}

fn wire(kind: RecordKind) -> RecordType {
    match kind {
        RecordKind::A => RecordType::A,
        RecordKind::Aaaa => RecordType::AAAA,
        RecordKind::Cname => RecordType::CNAME,
        RecordKind::Mx => RecordType::MX,
        RecordKind::Txt => RecordType::TXT,
        RecordKind::Ns => RecordType::NS,
    }
}

/// Returns a record of the queried type, or `None` for an alias on the way to it.
fn read(kind: RecordKind, data: &RData) -> Option<Record> {
    Some(match (kind, data) {
        (RecordKind::A, RData::A(a)) => Record::Address(IpAddr::V4(a.0)),
        (RecordKind::Aaaa, RData::AAAA(aaaa)) => Record::Address(IpAddr::V6(aaaa.0)),
        (RecordKind::Cname, RData::CNAME(name)) => Record::Name(text(&name.0)),
        (RecordKind::Ns, RData::NS(name)) => Record::Name(text(&name.0)),
        (RecordKind::Mx, RData::MX(mx)) => {
            Record::Exchange { preference: mx.preference, host: text(&mx.exchange) }
        }
        (RecordKind::Txt, RData::TXT(txt)) => {
            Record::Text(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned())
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
