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
    got: Arc<Mutex<Vec<ReceivedRequest>>>,
    count: watch::Receiver<usize>,
    serving: JoinHandle<()>,
}

impl TestReceiver {
    /// Starts a receiver; `answer` returns the response to the n-th request, counted from 0.
    pub(crate) async fn start(answer: impl Fn(usize, &ReceivedRequest) -> TestReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (got, answer) = (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), Arc::new(answer));
        let (told, count) = watch::channel(0);
        let (kept, told) = (Arc::clone(&got), Arc::new(told));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer, told) = (Arc::clone(&kept), Arc::clone(&answer), Arc::clone(&told));
                tokio::spawn(async move {
                    let Some((got, mut stream)) = read(stream).await else { return };
                    let number = {
                        let mut kept = kept.lock().unwrap();
                        kept.push(got.clone());
                        kept.len() - 1
                    };
                    told.send_modify(|count| *count += 1);
                    match answer(number, &got) {
                        TestReply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
                        TestReply::Hang => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, got, count, serving }
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
        let mut seen = self.count.clone();
        let waiting = seen.wait_for(|now| *now >= count);
        timeout(Duration::from_secs(20), waiting).await.expect("they come in time").unwrap();
        self.requests()
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.got.lock().unwrap().clone()
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        self.serving.abort();
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
        let mut got = ReceivedRequest { head, body: bytes[end + 4..].to_vec() };
        let length: usize = got.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        if got.body.len() >= length {
            return Some((
                std::mem::replace(&mut got, ReceivedRequest { head: String::new(), body: Vec::new() }),
                stream,
            ));
        }
    }
}
