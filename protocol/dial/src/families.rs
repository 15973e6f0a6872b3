//! Resolution of both address families of a name, with the waits that RFC 8305, section 3 recommends.

use std::{net::IpAddr, pin::Pin, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{
    error::DialError,
    resolve::{ResolvedAddresses, merge},
};

/// Wait for the second family once the first has answered with addresses: the resolution delay of RFC 8305, section 3.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Time in which the second family may still join connection attempts. A name whose AAAA query is never
/// answered works for everyone who has IPv4.
const SECOND_FAMILY: Duration = Duration::from_secs(1);

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
                    answer = second => answer.unwrap_or_default(),
                    () = sleep(SECOND_FAMILY.saturating_sub(RESOLUTION_DELAY)) => Vec::new(),
                }
            };
            Ok((merge(first, Ok(Vec::new()))?, Some(Box::pin(late))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::pending, net::Ipv4Addr};
    use tokio::time::Instant;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

    fn after(delay_ms: u64, answer: FamilyResult) -> FamilyQuery {
        Box::pin(async move {
            sleep(Duration::from_millis(delay_ms)).await;
            answer
        })
    }

    fn lost() -> FamilyQuery {
        Box::pin(pending())
    }

    /// Returns the addresses available at once, the milliseconds until then, and the late ones.
    async fn ask(v6: FamilyQuery, v4: FamilyQuery) -> (Vec<IpAddr>, u128, Vec<IpAddr>) {
        let asked = Instant::now();
        let (found, late) = resolve_families(v6, v4).await.unwrap();
        let took = asked.elapsed().as_millis();
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
        assert_eq!(ask(lost(), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(ask(v6(10), lost()).await, (vec![V6], 60, none()));
        assert_eq!(ask(v6(30), v4(10)).await, (vec![V6, V4], 30, none()));
        assert_eq!(ask(v6(10), v4(200)).await, (vec![V6], 60, vec![V4]));
        assert_eq!(ask(v6(2_000), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(ask(after(90, Err(DialError::DnsTimeout)), v4(10)).await, (vec![V4], 60, none()));
        assert_eq!(ask(after(20, Err(DialError::NoAddress)), v4(10)).await, (vec![V4], 20, none()));
        // A family without addresses does not start the resolution delay.
        assert_eq!(ask(after(10, Ok(none())), v4(4_000)).await, (vec![V4], 4_000, none()));
        let failed = resolve_families(after(10, Err(DialError::NoAddress)), after(20, Err(DialError::NotFound))).await;
        assert_eq!(failed.err(), Some(DialError::NotFound));
    }
}
