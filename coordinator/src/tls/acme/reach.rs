//! Whether a name leads here, looked at before an authority is asked to: of proofs that it can't see, it allows few.
//!
//! A name with an address of the base URL's host leads here, and nobody is connected to: many a host can't reach itself by
//! its own public address. Any other name may still lead here, by way of somebody's proxy, so it is asked for a proof as
//! the authority would ask. What that says is for the name's owner.

use std::convert::Infallible;
use std::future::pending;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parallax_dial::{DialError, Fault, Guard, Host, Mode};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::order::Failed;
use crate::tls::{CHALLENGE, Challenges};

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const MAX_ANSWER: usize = 1024;

/// Whoever looks.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// Names are customers' choice.
    pub(super) guard: Guard,
    /// The base URL's name, where it has one.
    pub(super) base: Option<String>,
    pub(super) challenges: Challenges,
    /// Where an authority asks: 80 but in tests.
    pub(super) port: u16,
}

impl Reach {
    /// Looks whether a name leads here. What can't be told is taken for a yes.
    ///
    /// # Errors
    /// [`Failed`]: why an authority would see no proof of it.
    pub(super) async fn look(&self, name: &str) -> Result<(), Failed> {
        // The operator's own name needs nobody's word.
        if self.base.as_deref() == Some(name) {
            return Ok(());
        }
        let until = Instant::now() + LIMIT;
        let there = self.addresses(name, until).await.map_err(|error| self.unknown(name, error))?;
        let ours = match &self.base {
            Some(base) => self.addresses(base, until).await.ok(),
            None => None,
        };
        if ours.as_ref().is_some_and(|ours| there.iter().any(|address| ours.contains(address))) {
            return Ok(());
        }
        let (token, proof) = (random(), random());
        self.challenges.put(&token, &proof);
        let seen = self.ask(name, &token, until).await;
        self.challenges.take(&token);
        match seen {
            Ok(Some(answer)) if answer == proof => Ok(()),
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(self.astray(&format!("another server answers for {name}"))),
            // A host that does not know its own address may not reach itself by it.
            Err(error) if error.fault() == Fault::Own || ours.is_none() => Ok(()),
            Err(DialError::AddressNotAllowed(_)) => {
                Err(self.astray(&format!("{name} has an address that is none of the Internet's")))
            }
            Err(error) => Err(self.astray(&format!("nobody answers for {name} at port 80 ({error})"))),
        }
    }

    async fn addresses(&self, name: &str, until: Instant) -> Result<Vec<IpAddr>, DialError> {
        let Ok(Host::Name(name)) = Host::parse(name) else { return Err(DialError::NotFound) };
        let found = self.guard.resolver().addresses(&name, until).await?;
        let v6 = found.v6.into_iter().map(IpAddr::V6);
        Ok(v6.chain(found.v4.into_iter().map(IpAddr::V4)).collect())
    }

    /// What is answered to a question for the token's proof; none for a redirect, which an authority follows.
    async fn ask(&self, name: &str, token: &str, until: Instant) -> Result<Option<String>, DialError> {
        let host = Host::parse(name).map_err(|_| DialError::NotFound)?;
        let admitted = self.guard.admit(&host, self.port, Mode::DropBlocked, until).await?;
        let stream = admitted.connect(until).await?.stream;
        let asked = timeout_at(until, exchange(stream, name, token));
        asked.await.map_err(|_| DialError::Timeout)?.map_err(|_| DialError::Reset)
    }

    fn unknown(&self, name: &str, error: DialError) -> Failed {
        match error {
            DialError::NotFound => self.astray(&format!("there is no {name} in the DNS")),
            DialError::NoAddress => self.astray(&format!("{name} has no address in the DNS")),
            DialError::ServFail { .. } => {
                self.astray(&format!("the name servers of {name} answer with a fault"))
            }
            DialError::DnsTimeout => self.astray(&format!("the name servers of {name} do not answer")),
            _ => Failed::unreached(&format!("names can't be looked up here: {error}")),
        }
    }

    fn astray(&self, words: &str) -> Failed {
        Failed::astray(&match &self.base {
            Some(base) => format!("{words}; point it to {base}"),
            None => format!("{words}; point it to this service"),
        })
    }
}

async fn exchange(stream: TcpStream, name: &str, token: &str) -> Result<Option<String>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answered = async {
        let request = Request::get(format!("{CHALLENGE}{token}"))
            .header(HOST, name)
            .header(USER_AGENT, concat!("parallax/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new());
        // A name and a token of hexadecimal digits make a request.
        let Ok(request) = request else { return Ok(Some(String::new())) };
        let (head, body) = sender.send_request(request).await?.into_parts();
        if head.status.is_redirection() {
            return Ok(None);
        }
        let text = match Limited::new(body, MAX_ANSWER).collect().await {
            Ok(body) if head.status == StatusCode::OK => body.to_bytes(),
            Ok(_) | Err(_) => Bytes::new(),
        };
        Ok(Some(String::from_utf8_lossy(&text).trim().to_owned()))
    };
    // It may have ended before its answer was taken in; where it broke, the answer says so.
    let driven = async {
        let _ = connection.await;
        pending::<Infallible>().await
    };
    tokio::select! {
        answer = answered => answer,
        never = driven => match never {},
    }
}

/// 128 random bits in hexadecimal digits.
fn random() -> String {
    format!("{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use parallax_dial::stub::{Answer, StubServer};
    use parallax_dial::{Policy, Resolver};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::plan::Failure;
    use super::*;

    const BASE: &str = "status.example";

    async fn zone() -> StubServer {
        let at = |last| Answer::Addresses(vec![Ipv4Addr::new(127, 0, 0, last).into()]);
        let zone = move |name: &str, _| match name {
            "status.example" | "here.example" => at(1),
            "proxied.example" | "another.example" | "leads.example" | "broken.example" => at(2),
            "nobody.example" => at(3),
            "empty.example" => Answer::Addresses(Vec::new()),
            "fault.example" => Answer::ServFail,
            _ => Answer::NxDomain,
        };
        StubServer::start(zone).await.unwrap()
    }

    /// Answers at 127.0.0.2 by the host that is named; gives the port.
    async fn there(challenges: Challenges) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 1024];
                let length = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let token = head.strip_prefix("GET /.well-known/acme-challenge/").unwrap();
                let proof = challenges.answer(token.split(' ').next().unwrap()).unwrap();
                let (status, body) = match head {
                    head if head.contains("host: proxied.example\r\n") => ("200 OK", proof),
                    head if head.contains("host: leads.example\r\n") => ("301 Moved", String::new()),
                    head if head.contains("host: broken.example\r\n") => ("503 Broken", proof),
                    _ => ("200 OK", "<html>Welcome</html>".to_owned()),
                };
                let length = body.len();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn a_name_is_ordered_where_it_leads_here_and_its_owner_is_told_why_not() {
        let zone = zone().await;
        let challenges = Challenges::default();
        let port = there(challenges.clone()).await;
        let resolver = Resolver::with_servers(&[zone.address()]).unwrap();
        let reach = |allow_private| Reach {
            guard: Guard::new(
                resolver.clone(),
                Policy { allow_private, allow_own_host: true, ..Policy::default() },
            ),
            base: Some(BASE.to_owned()),
            challenges: challenges.clone(),
            port,
        };
        let said = async |reach: &Reach, name: &str| match reach.look(name).await {
            Ok(()) => "yes".to_owned(),
            Err(failed) => {
                assert_eq!(failed.failure, Failure::Astray, "{failed}");
                failed.to_string().strip_suffix("; point it to status.example").unwrap().to_owned()
            }
        };
        let known = reach(true);
        for (name, expected) in [
            (BASE, "yes"),
            ("here.example", "yes"),
            ("proxied.example", "yes"),
            ("leads.example", "yes"),
            ("another.example", "another server answers for another.example"),
            ("broken.example", "another server answers for broken.example"),
            ("nobody.example", "nobody answers for nobody.example at port 80 (connection refused)"),
            ("none.example", "there is no none.example in the DNS"),
            ("empty.example", "empty.example has no address in the DNS"),
            ("fault.example", "the name servers of fault.example answer with a fault"),
        ] {
            assert_eq!(said(&known, name).await, expected, "{name}");
        }
        // Where our own address is not known, nobody's silence says anything.
        for base in [None, Some("elsewhere.example".to_owned())] {
            let lost = Reach { base, ..reach(true) };
            assert!(lost.look("nobody.example").await.is_ok());
            assert!(lost.look("another.example").await.is_err());
        }
        // The same address needs no connection, so it may be one that nobody may be sent to.
        let guarded = reach(false);
        assert_eq!(said(&guarded, "here.example").await, "yes");
        let refused = said(&guarded, "proxied.example").await;
        assert_eq!(refused, "proxied.example has an address that is none of the Internet's");
    }
}
