//! The two address families of a name: both are queried at once with the waits of RFC 8305, section 3, and their
//! addresses are merged.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    pin::Pin,
    time::Duration,
};

use tokio::time::{sleep, timeout};

use crate::error::DialError;

/// Wait for the second family once the first has answered with addresses: the resolution delay of RFC 8305, section 3.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Time in which the second family may still join connection attempts. A name whose AAAA query is never
/// answered works for everyone who has IPv4.
const SECOND_FAMILY: Duration = Duration::from_secs(1);

/// Maximum number of addresses of each family; more are dropped.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The addresses of a name, as answered; at most 16 of each family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedAddresses {
    /// From AAAA records.
    pub v6: Vec<Ipv6Addr>,
    /// From A records.
    pub v4: Vec<Ipv4Addr>,
}

impl ResolvedAddresses {
    /// Adds each address to its family.
    pub(crate) fn add(&mut self, addresses: Vec<IpAddr>) {
        for address in addresses {
            match address {
                IpAddr::V6(ip) => self.v6.push(ip),
                IpAddr::V4(ip) => self.v4.push(ip),
            }
        }
    }
}

/// The addresses of one family.
pub(crate) type FamilyResult = Result<Vec<IpAddr>, DialError>;

/// A query in flight for one family.
pub(crate) type FamilyQuery = Pin<Box<dyn Future<Output = FamilyResult> + Send>>;

/// Addresses of the family that has not answered yet; empty if it doesn't.
pub(crate) type LateFamily = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// Returns the addresses of both families, or of the first that has any and a future for the other one.
///
/// # Errors
/// The most serious reason, if neither family has an address.
pub(crate) async fn resolve_families(
    mut v6: FamilyQuery,
    mut v4: FamilyQuery,
) -> Result<(ResolvedAddresses, Option<LateFamily>), DialError> {
    let (first, mut second) = tokio::select! {
        first = &mut v6 => (first, v4),
        first = &mut v4 => (first, v6),
    };
    if !first.as_ref().is_ok_and(|addresses| !addresses.is_empty()) {
        return Ok((merge(first, second.await)?, None));
    }
    match timeout(RESOLUTION_DELAY, &mut second).await {
        Ok(second) => Ok((merge(first, second)?, None)),
        Err(_) => {
            let late = async move {
                tokio::select! {
                    result = second => result.unwrap_or_default(),
                    () = sleep(SECOND_FAMILY.saturating_sub(RESOLUTION_DELAY)) => Vec::new(),
                }
            };
            Ok((merge(first, Ok(Vec::new()))?, Some(Box::pin(late))))
        }
    }
}

/// Merges the two families' answers: any address is enough; without one, the most serious reason counts.
fn merge(v6: FamilyResult, v4: FamilyResult) -> Result<ResolvedAddresses, DialError> {
    let mut all = ResolvedAddresses::default();
    let mut errors = Vec::new();
    for family in [v6, v4] {
        match family {
            Ok(addresses) => all.add(addresses),
            Err(error) => errors.push(error),
        }
    }
    if !all.v6.is_empty() || !all.v4.is_empty() {
        return Ok(all);
    }
    // One NXDOMAIN covers both types; a family that could not be queried leaves the result open.
    Err(errors.into_iter().max_by_key(|error| seriousness(*error)).unwrap_or(DialError::NoAddress))
}

fn seriousness(error: DialError) -> u8 {
    match error {
        DialError::NotFound => 5,
        DialError::NoDescriptors => 4,
        DialError::ResolverDead => 3,
        DialError::DnsTimeout => 2,
        DialError::ServFail { .. } => 1,
        DialError::NoAddress
        // The remaining errors occur only for connections.
        | DialError::AddressNotAllowed(_)
        | DialError::Refused
        | DialError::Reset
        | DialError::Unreachable
        | DialError::Timeout
        | DialError::NoRoute
        | DialError::NoSource
        | DialError::OwnAddressesUnreadable
        | DialError::NotPermitted => 0,
    }
}

/// Merges the addresses of two families alternately (RFC 8305, section 4), starting with `first`.
pub(crate) fn alternate<T>(first: impl IntoIterator<Item = T>, second: impl IntoIterator<Item = T>) -> Vec<T> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut all = Vec::with_capacity(first.size_hint().0 + second.size_hint().0);
    loop {
        let (from_first, from_second) = (first.next(), second.next());
        if from_first.is_none() && from_second.is_none() {
            return all;
        }
        all.extend(from_first);
        all.extend(from_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::Instant;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn after(delay_ms: u64, result: FamilyResult) -> FamilyQuery {
        Box::pin(async move {
            sleep(Duration::from_millis(delay_ms)).await;
            result
        })
    }

    fn lost() -> FamilyQuery {
        Box::pin(pending())
    }

    /// Returns the addresses available at once, the milliseconds until then, and the late ones.
    async fn resolve(v6: FamilyQuery, v4: FamilyQuery) -> (Vec<IpAddr>, u128, Vec<IpAddr>) {
        let started = Instant::now();
        let (found, late) = resolve_families(v6, v4).await.unwrap();
        let took = started.elapsed().as_millis();
        let found = found.v6.into_iter().map(IpAddr::V6).chain(found.v4.into_iter().map(IpAddr::V4)).collect();
        (
            found,
            took,
            match late {
                Some(late) => late.await,
                None => Vec::new(),
            },
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_costs_fifty_milliseconds() {
        let none = Vec::new;
        let (v4, v6) = (|ms| after(ms, Ok(vec![V4])), |ms| after(ms, Ok(vec![V6])));
        assert_eq!(resolve(lost(), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(resolve(v6(10), lost()).await, (vec![V6], 60, none()));
        assert_eq!(resolve(v6(30), v4(10)).await, (vec![V6, V4], 30, none()));
        assert_eq!(resolve(v6(10), v4(200)).await, (vec![V6], 60, vec![V4]));
        assert_eq!(resolve(v6(2_000), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(resolve(after(90, Err(DialError::DnsTimeout)), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(resolve(after(20, Err(DialError::NoAddress)), v4(10)).await, (vec![V4], 20, none()));
        // A family without addresses does not start the resolution delay.
        assert_eq!(resolve(after(10, Ok(none())), v4(4_000)).await, (vec![V4], 4_000, none()));
        let failed = resolve_families(after(10, Err(DialError::NoAddress)), after(20, Err(DialError::NotFound))).await;
        assert_eq!(failed.err(), Some(DialError::NotFound));
    }

    const SERVFAIL: DialError = DialError::ServFail { code: 2 };

    #[test]
    fn one_family_with_addresses_is_enough() {
        let v4 = Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        let merged = merge(Err(DialError::DnsTimeout), v4).unwrap();
        assert_eq!(merged.v4, [Ipv4Addr::LOCALHOST]);
        assert!(merged.v6.is_empty());
    }

    #[test]
    fn without_addresses_the_most_serious_reason_counts() {
        let none = || Err(DialError::NoAddress);
        assert_eq!(merge(none(), none()), Err(DialError::NoAddress));
        assert_eq!(merge(Ok(Vec::new()), Err(SERVFAIL)), Err(SERVFAIL));
        assert_eq!(merge(none(), Err(DialError::NotFound)), Err(DialError::NotFound));
        assert_eq!(merge(Err(SERVFAIL), Err(DialError::DnsTimeout)), Err(DialError::DnsTimeout));
    }

    #[test]
    fn two_families_alternate() {
        assert_eq!(alternate([1, 3, 5, 6], [2, 4]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(alternate([1], [2, 3]), [1, 2, 3]);
        assert_eq!(alternate([], [1, 2]), [1, 2]);
    }
}
