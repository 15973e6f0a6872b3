//! Webhook receivers that record requests, and accept them or misbehave as configured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use parallax_core::time::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::eventually::wall_clock;
use crate::free_ports::free_port;

/// Pause between two bytes of a dripping response.
const DRIP: Duration = Duration::from_secs(1);

/// Behaviour of a receiver for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverMode {
    /// Responds with 200.
    Accept,
    /// Responds with another status and header lines, each with its line end.
    Status(u16, String),
    /// Never responds.
    Hang,
    /// Sends the response head byte by byte.
    Drip,
    /// Responds with 200 and ten megabytes.
    Huge,
    /// Closes the connection without a response.
    Disconnect,
    /// Responds with 200, then kills that process at once.
    AcceptAndKill(u32),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    /// Time at which it was complete.
    pub at: Timestamp,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl WebhookRequest {
    /// Returns a header's value; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// A webhook receiver on loopback, closed when dropped.
#[derive(Debug)]
pub struct WebhookReceiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    count: watch::Receiver<usize>,
    serving: Option<JoinHandle<()>>,
}

/// Chooses the behaviour for a request, given its number.
type ModeChooser = dyn Fn(usize, &WebhookRequest) -> ReceiverMode + Send + Sync;

struct Shared {
    choose_mode: Box<ModeChooser>,
    received: Mutex<Vec<WebhookRequest>>,
    count: watch::Sender<usize>,
    paused: watch::Sender<bool>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl WebhookReceiver {
    /// Starts a receiver with one behaviour for all requests.
    pub async fn start(manner: ReceiverMode) -> Self {
        Self::start_with(move |_, _| manner.clone()).await
    }

    /// Starts a receiver that chooses the behaviour for each request, numbered from 0.
    pub async fn start_with(manner: impl Fn(usize, &WebhookRequest) -> ReceiverMode + Send + Sync + 'static) -> Self {
        let mut receiver = Self::reserve(manner).await;
        receiver.listen().await;
        receiver
    }

    /// Reserves a port for a receiver that does not listen until it is opened.
    pub async fn reserve(manner: impl Fn(usize, &WebhookRequest) -> ReceiverMode + Send + Sync + 'static) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (told, count) = watch::channel(0);
        let held = watch::Sender::new(false);
        let shared =
            Arc::new(Shared { choose_mode: Box::new(manner), received: Mutex::default(), count: told, paused: held });
        Self { address, shared, count, serving: None }
    }

    /// Starts listening.
    pub async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("own port is free");
        let shared = Arc::clone(&self.shared);
        self.serving = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                // The sender may close the connection early.
                tokio::spawn(async move { handle(stream, &shared).await.ok() });
            }
        }));
    }

    /// Pauses: requests are read but not answered until [`WebhookReceiver::resume`].
    pub fn pause(&self) {
        self.shared.paused.send_replace(true);
    }

    /// Answers waiting and future requests.
    pub fn resume(&self) {
        self.shared.paused.send_replace(false);
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}/in", self.address)
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests received so far.
    pub fn received(&self) -> Vec<WebhookRequest> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the events of each monitor, by the first arrival of each delivery, and the number of repeated
    /// deliveries.
    pub fn events_by_monitor(&self) -> (BTreeMap<String, Vec<String>>, usize) {
        let (mut seen, mut again, mut all) = (BTreeSet::new(), 0, BTreeMap::<String, Vec<String>>::new());
        for taken in self.received() {
            let body: Value = serde_json::from_slice(&taken.body).expect("alerts are JSON");
            let text = |name: &str| body[name].as_str().expect("alerts name it").to_owned();
            if seen.insert(taken.header("webhook-id").to_owned()) {
                all.entry(text("monitorId")).or_default().push(text("event"));
            } else {
                again += 1;
            }
        }
        (all, again)
    }

    /// Returns how many requests were received so far.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until `count` requests were received.
    pub async fn wait_for_count(&self, count: usize, limit: Duration) {
        let mut seen = self.count.clone();
        let waiting = seen.wait_for(|now| *now >= count);
        if tokio::time::timeout(limit, waiting).await.is_err() {
            panic!("{} of {count} requests came within {limit:?}", self.count());
        }
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn handle(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(taken) = read(&mut stream).await? else { return Ok(()) };
    let number = {
        let mut all = shared.received.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(taken.clone());
        all.len() - 1
    };
    shared.count.send_modify(|count| *count += 1);
    // The channel's sender is in `shared`, so the wait cannot fail.
    let _ = shared.paused.subscribe().wait_for(|held| !held).await;
    let manner = (shared.choose_mode)(number, &taken);
    match &manner {
        ReceiverMode::Accept | ReceiverMode::AcceptAndKill(_) => stream.write_all(&response(200, "", b"ok")).await?,
        ReceiverMode::Status(status, lines) => stream.write_all(&response(*status, lines, b"no")).await?,
        ReceiverMode::Hang => std::future::pending().await,
        ReceiverMode::Drip => {
            for byte in response(200, "", b"ok") {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(DRIP).await;
            }
        }
        ReceiverMode::Huge => stream.write_all(&response(200, "", &vec![b'x'; 10 << 20])).await?,
        ReceiverMode::Disconnect => {}
    }
    if let ReceiverMode::AcceptAndKill(process) = manner
        && let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw)
    {
        // It may have ended already.
        let _ = kill_process(process, Signal::KILL);
    }
    Ok(())
}

fn response(status: u16, lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} Told\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Reads a request; `None` if the sender closed the connection first.
async fn read(stream: &mut TcpStream) -> std::io::Result<Option<WebhookRequest>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers = lines.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let taken = WebhookRequest { at: wall_clock(), headers, body: bytes[end + 4..].to_vec() };
        let length: usize = taken.header("content-length").parse().unwrap_or(0);
        if taken.body.len() >= length {
            return Ok(Some(taken));
        }
    }
}
