//! Checks that a host points to this server before a certificate is ordered, since ACME servers allow few failed
//! validations.
//!
//! A host that shares an address with the base URL's host points here; no connection is made, since many servers can't
//! reach themselves by their public address. Other hosts may point here through a proxy, so a challenge is fetched from
//! them as the ACME server would. The result is shown to the owner of the host.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parallax_dial::{DialError, FaultOrigin, Host};
use parallax_guarded_client::{GuardedClient, GuardedClientError, GuardedRequest, GuardedResponse};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::order::OrderError;
use crate::tls::{AcmeChallenges, CHALLENGE_PATH};

/// Time limit of a check.
const LIMIT: Duration = Duration::from_secs(10);
/// Size limit of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1024;
/// `User-Agent` header.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("parallax/", env!("CARGO_PKG_VERSION")));

/// Checks where hosts point to.
#[derive(Debug, Clone)]
pub(super) struct ReachabilityCheck {
    /// Guarded client, since customers choose the hosts; blocked addresses of a host are skipped.
    pub(super) client: GuardedClient,
    /// Host name of the base URL, if it has one.
    pub(super) base_host: Option<String>,
    pub(super) challenges: AcmeChallenges,
    /// Port of HTTP-01 challenges: 80 except in tests.
    pub(super) port: u16,
}

impl ReachabilityCheck {
    /// Checks that a host points here. Passes if that can't be determined.
    ///
    /// # Errors
    /// [`OrderError`] with the reason why a validation would fail.
    pub(super) async fn check(&self, name: &str) -> Result<(), OrderError> {
        // The operator's own host is not checked.
        if self.base_host.as_deref() == Some(name) {
            return Ok(());
        }
        let deadline = Instant::now() + LIMIT;
        let host_addresses = self.addresses(name, deadline).await.map_err(|error| self.lookup_error(name, error))?;
        let own_addresses = match &self.base_host {
            Some(base) => self.addresses(base, deadline).await.ok(),
            None => None,
        };
        if own_addresses
            .as_ref()
            .is_some_and(|own_addresses| host_addresses.iter().any(|address| own_addresses.contains(address)))
        {
            return Ok(());
        }
        let (token, proof) = (random_hex(), random_hex());
        self.challenges.insert(&token, &proof);
        let fetched = self.fetch_proof(name, &token, deadline).await;
        self.challenges.remove(&token);
        match fetched {
            Ok(Some(text)) if text == proof => Ok(()),
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(self.points_elsewhere(&format!("another server answers for {name}"))),
            // A server may not reach itself by its own public address, or may not know it.
            Err(error) if error.fault_origin() == FaultOrigin::Own || own_addresses.is_none() => Ok(()),
            Err(DialError::AddressNotAllowed(_)) => {
                Err(self.points_elsewhere(&format!("{name} has an address that is not public")))
            }
            Err(error) => Err(self.points_elsewhere(&format!("{name} does not respond on port 80 ({error})"))),
        }
    }

    async fn addresses(&self, name: &str, deadline: Instant) -> Result<Vec<IpAddr>, DialError> {
        let Ok(Host::Name(name)) = Host::parse(name) else { return Err(DialError::NotFound) };
        let addresses = self.client.guard().resolver().addresses(&name, deadline).await?;
        let v6 = addresses.v6.into_iter().map(IpAddr::V6);
        Ok(v6.chain(addresses.v4.into_iter().map(IpAddr::V4)).collect())
    }

    /// Fetches the challenge of the token from a host; `None` for a redirect, which ACME servers follow.
    async fn fetch_proof(&self, name: &str, token: &str, deadline: Instant) -> Result<Option<String>, DialError> {
        // A host name and a hexadecimal token always make valid requests.
        let url = format!("http://{name}:{}{CHALLENGE_PATH}{token}", self.port);
        let url = Url::parse(&url).map_err(|_| DialError::NotFound)?;
        let host = HeaderValue::from_str(name).map_err(|_| DialError::NotFound)?;
        let headers = HeaderMap::from_iter([(HOST, host), (USER_AGENT, AGENT)]);
        let request = GuardedRequest { method: Method::GET, url: &url, headers, body: Bytes::new() };
        let response = self.client.send(request, deadline).await.map_err(|error| match error {
            GuardedClientError::Dial(error) => error,
            GuardedClientError::Timeout => DialError::Timeout,
            _ => DialError::Reset,
        })?;
        if response.status().is_redirection() {
            return Ok(None);
        }
        let is_ok = response.status() == StatusCode::OK;
        let text = timeout_at(deadline, read_text(response)).await.map_err(|_| DialError::Timeout)?;
        Ok(Some(text.filter(|_| is_ok).unwrap_or_default()))
    }

    fn lookup_error(&self, name: &str, error: DialError) -> OrderError {
        match error {
            DialError::NotFound => self.points_elsewhere(&format!("{name} does not exist in DNS")),
            DialError::NoAddress => self.points_elsewhere(&format!("{name} has no address in DNS")),
            DialError::ServFail { .. } => self.points_elsewhere(&format!("the name servers of {name} return an error")),
            DialError::DnsTimeout => self.points_elsewhere(&format!("the name servers of {name} do not respond")),
            _ => OrderError::unreachable(&format!("DNS look-ups fail on this server: {error}")),
        }
    }

    fn points_elsewhere(&self, reason: &str) -> OrderError {
        OrderError::points_elsewhere(&match &self.base_host {
            Some(base) => format!("{reason}; point it to {base}"),
            None => format!("{reason}; point it to this service"),
        })
    }
}

/// Reads a body; `None` if it is incomplete or too long.
async fn read_text(mut response: GuardedResponse) -> Option<String> {
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await.ok()? {
        text.extend_from_slice(&part);
        if text.len() > MAX_RESPONSE_BYTES {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Returns 128 random bits in hexadecimal.
fn random_hex() -> String {
    format!("{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use parallax_dial::stub::{StubAnswer, StubServer};
    use parallax_dial::{BlockedAddressMode, DialGuard, DialPolicy, DnsResolver};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::renewal_plan::OrderFailure;
    use super::*;

    const BASE: &str = "status.example";

    async fn zone() -> StubServer {
        let address = |last| StubAnswer::Addresses(vec![Ipv4Addr::new(127, 0, 0, last).into()]);
        let zone = move |name: &str, _| match name {
            "status.example" | "here.example" => address(1),
            "proxied.example" | "another.example" | "leads.example" | "broken.example" => address(2),
            "nobody.example" => address(3),
            "empty.example" => StubAnswer::Addresses(Vec::new()),
            "fault.example" => StubAnswer::ServFail,
            _ => StubAnswer::NxDomain,
        };
        StubServer::start(zone).await.unwrap()
    }

    /// Starts a server at 127.0.0.2 that responds by the `Host` header; returns its port.
    async fn start_server(challenges: AcmeChallenges) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 1024];
                let length = stream.read(&mut head).await.unwrap();
                if length == 0 {
                    // The client selects one of several addresses by connecting.
                    continue;
                }
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let token = head.strip_prefix("GET /.well-known/acme-challenge/").unwrap();
                let proof = challenges.proof(token.split(' ').next().unwrap()).unwrap();
                let (status, body) = match head {
                    head if head.contains("host: proxied.example\r\n") => ("200 OK", proof),
                    head if head.contains("host: leads.example\r\n") => ("301 Moved", String::new()),
                    head if head.contains("host: broken.example\r\n") => ("503 Broken", proof),
                    _ => ("200 OK", "<html>Welcome</html>".to_owned()),
                };
                let length = body.len();
                let response = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn a_host_that_points_elsewhere_is_refused_with_the_reason() {
        let zone = zone().await;
        let challenges = AcmeChallenges::default();
        let port = start_server(challenges.clone()).await;
        let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap();
        let new_check = |allow_private| ReachabilityCheck {
            client: GuardedClient::new(
                DialGuard::new(
                    resolver.clone(),
                    DialPolicy { allow_private, allow_own_host: true, ..DialPolicy::default() },
                ),
                BlockedAddressMode::DropBlocked,
                &[],
            )
            .unwrap(),
            base_host: Some(BASE.to_owned()),
            challenges: challenges.clone(),
            port,
        };
        let result_of = async |check: &ReachabilityCheck, name: &str| match check.check(name).await {
            Ok(()) => "yes".to_owned(),
            Err(error) => {
                assert_eq!(error.failure, OrderFailure::PointsElsewhere, "{error}");
                error.to_string().strip_suffix("; point it to status.example").unwrap().to_owned()
            }
        };
        let check = new_check(true);
        for (name, expected) in [
            (BASE, "yes"),
            ("here.example", "yes"),
            ("proxied.example", "yes"),
            ("leads.example", "yes"),
            ("another.example", "another server answers for another.example"),
            ("broken.example", "another server answers for broken.example"),
            ("nobody.example", "nobody.example does not respond on port 80 (connection refused)"),
            ("none.example", "none.example does not exist in DNS"),
            ("empty.example", "empty.example has no address in DNS"),
            ("fault.example", "the name servers of fault.example return an error"),
        ] {
            assert_eq!(result_of(&check, name).await, expected, "{name}");
        }
        // If our own address is unknown, a host that does not respond may still be this server.
        for base in [None, Some("elsewhere.example".to_owned())] {
            let without_base = ReachabilityCheck { base_host: base, ..new_check(true) };
            assert!(without_base.check("nobody.example").await.is_ok());
            assert!(without_base.check("another.example").await.is_err());
        }
        // The same address needs no connection, so it may be one that the guard blocks.
        let guarded_check = new_check(false);
        assert_eq!(result_of(&guarded_check, "here.example").await, "yes");
        let blocked = result_of(&guarded_check, "proxied.example").await;
        assert_eq!(blocked, "proxied.example has an address that is not public");
    }
}
