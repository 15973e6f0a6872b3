//! Test environment of the probes: scripted servers, and checks of them.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use parallax_agent::probe::{Probes, roots as web_roots};
use parallax_dial::{
    DialGuard, DialPolicy, DnsResolver,
    stub::{StubAnswer, StubServer},
};
use parallax_protocol::check::{WireCheckSpec, WireHttpCheck, WireKeywordMode, WireMethod};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Creates probe resources with a limit that a healthy check never reaches.
pub(crate) fn probes() -> Probes {
    probes_within(Duration::from_secs(10))
}

pub(crate) fn probes_within(limit: Duration) -> Probes {
    probes_with(&no_resolver(), DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() }, &[])
        .with_limit(limit)
}

pub(crate) fn probes_with(
    resolver: &DnsResolver,
    policy: DialPolicy,
    roots: &[rustls_pki_types::CertificateDer<'_>],
) -> Probes {
    Probes::new(DialGuard::new(resolver.clone(), policy), web_roots(roots).unwrap()).unwrap()
}

/// Returns a resolver for checks that resolve no name.
pub(crate) fn no_resolver() -> DnsResolver {
    DnsResolver::with_servers(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 9))]).unwrap()
}

/// Returns a resolver for which every name has these addresses.
pub(crate) async fn resolver_to(addresses: &[&str]) -> (StubServer, DnsResolver) {
    let addresses: Vec<_> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    let server = StubServer::start(move |_, _| StubAnswer::Addresses(addresses.clone())).await.unwrap();
    let resolver = DnsResolver::with_servers(&[server.address()]).unwrap();
    (server, resolver)
}

pub(crate) fn get(url: &str) -> WireHttpCheck {
    WireHttpCheck {
        url: url.to_owned(),
        method: WireMethod::Get,
        headers: Vec::new(),
        body: None,
        expect_status: None,
        keyword: None,
        keyword_mode: WireKeywordMode::Present,
    }
}

pub(crate) fn keyword(url: &str, text: &str, mode: WireKeywordMode) -> WireCheckSpec {
    WireCheckSpec::Http(WireHttpCheck { keyword: Some(text.to_owned()), keyword_mode: mode, ..get(url) })
}

/// A server's scripted response to a request.
#[derive(Clone)]
pub(crate) enum ScriptedReply {
    /// Sends these pieces one by one, and closes.
    Pieces(Vec<Vec<u8>>),
    /// Sends this much and then nothing more.
    Stall(Vec<u8>),
    /// Resets the connection.
    Reset,
}

impl ScriptedReply {
    pub(crate) fn text(text: &str) -> Self {
        Self::Pieces(vec![text.as_bytes().to_vec()])
    }

    pub(crate) fn ok(body: &str) -> Self {
        Self::text(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::text(&format!("HTTP/1.1 {status} Word\r\ncontent-length: 0\r\n\r\n"))
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::text(&format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"))
    }
}

/// A plain HTTP/1.1 server; it stops when dropped.
pub(crate) struct ScriptedServer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl ScriptedServer {
    /// Starts a server that responds to each request with `reply` of it; the request is head and body as
    /// text.
    pub(crate) async fn start(reply: impl Fn(&str) -> ScriptedReply + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (reply, received) = (reply.clone(), Arc::clone(&received));
                tokio::spawn(serve(stream, reply, received));
            }
        });
        Self { address, requests, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests so far, as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, reply: impl Fn(&str) -> ScriptedReply, received: Arc<Mutex<Vec<String>>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    let reply = reply(&request);
    received.lock().unwrap().push(request);
    match reply {
        ScriptedReply::Pieces(pieces) => {
            stream.set_nodelay(true).unwrap();
            for piece in pieces {
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            let _ = stream.shutdown().await;
        }
        ScriptedReply::Stall(start) => {
            let _ = stream.write_all(&start).await;
            // Ends when the client closes.
            let _ = stream.read_u8().await;
        }
        ScriptedReply::Reset => {
            stream.set_zero_linger().unwrap();
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
