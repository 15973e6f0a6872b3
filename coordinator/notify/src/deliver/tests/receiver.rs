//! A receiver on loopback that records requests and responds as configured.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    /// Value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// Response to a request.
pub(crate) enum TestReply {
    /// Sends these bytes, then closes.
    Bytes(Vec<u8>),
    /// Never responds.
    Hang,
}

/// Response with this status and these header lines (each with its line ending).
pub(crate) fn status_reply(status: u16, lines: &str) -> TestReply {
    TestReply::Bytes(format!("HTTP/1.1 {status} Told\r\n{lines}Content-Length: 2\r\n\r\nok").into_bytes())
}

pub(crate) struct TestReceiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    count: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

impl TestReceiver {
    /// Starts a receiver; `reply` returns the response to the n-th request, counted from 0.
    pub(crate) async fn start(reply: impl Fn(usize, &ReceivedRequest) -> TestReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, reply) = (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), Arc::new(reply));
        let (count_sender, count) = watch::channel(0);
        let (received, count_sender) = (Arc::clone(&requests), Arc::new(count_sender));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, reply, count_sender) =
                    (Arc::clone(&received), Arc::clone(&reply), Arc::clone(&count_sender));
                tokio::spawn(async move {
                    let Some((request, mut stream)) = read(stream).await else { return };
                    let number = {
                        let mut received = received.lock().unwrap();
                        received.push(request.clone());
                        received.len() - 1
                    };
                    count_sender.send_modify(|count| *count += 1);
                    match reply(number, &request) {
                        TestReply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
                        TestReply::Hang => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, requests, count, server }
    }

    /// Starts a receiver that accepts everything.
    pub(crate) async fn healthy() -> Self {
        Self::start(|_, _| status_reply(200, "")).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in", self.address)
    }

    /// Waits until `count` requests have arrived, and returns all of them.
    pub(crate) async fn wait_for_requests(&self, count: usize) -> Vec<ReceivedRequest> {
        let mut count_changes = self.count.clone();
        let waiting = count_changes.wait_for(|now| *now >= count);
        timeout(Duration::from_secs(20), waiting).await.expect("they come in time").unwrap();
        self.requests()
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn read(mut stream: TcpStream) -> Option<(ReceivedRequest, TcpStream)> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut request = ReceivedRequest { head, body: bytes[end + 4..].to_vec() };
        let length: usize = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        if request.body.len() >= length {
            return Some((
                std::mem::replace(&mut request, ReceivedRequest { head: String::new(), body: Vec::new() }),
                stream,
            ));
        }
    }
}
