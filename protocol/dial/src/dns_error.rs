//! Conversion of a DNS library's error to the reason that a check reports.

use hickory_resolver::{
    net::{DnsError, NetError},
    proto::op::ResponseCode,
};

use crate::error::{DialError, is_exhausted};

/// Returns the reason for a query without an answer.
pub(crate) fn dns_error(error: &NetError) -> DialError {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => DialError::NotFound,
            ResponseCode::NoError => DialError::NoAddress,
            code => DialError::ServFail { code: code.into() },
        },
        NetError::Dns(DnsError::ResponseCode(code)) => DialError::ServFail { code: (*code).into() },
        NetError::Timeout => DialError::DnsTimeout,
        NetError::Io(error) if is_exhausted(error) => DialError::NoDescriptors,
        NetError::Io(_) | NetError::NoConnections | NetError::Busy => DialError::ResolverDead,
        // Unreadable answers, and variants that the library may add later.
        _ => DialError::ServFail { code: 0 },
    }
}
