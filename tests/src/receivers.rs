//! Receivers of webhooks that note what they get, and take it, or misbehave as they are told.

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
use crate::ports::port;

/// Pause between two bytes of an answer that drips.
const DRIP: Duration = Duration::from_secs(1);

/// How a receiver treats a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// 200.
    Take,
    /// Another status, with header lines, each with its end.
    Status(u16, String),
    /// Nothing is ever said.
    Hang,
    /// A head that comes byte by byte.
    Drip,
    /// 200 with ten megabytes.
    Huge,
    /// The connection is cut before a word.
    Cut,
    /// 200, and in the next moment that process is killed.
    TakeAndKill(u32),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Taken {
    /// When it was there whole.
    pub at: Timestamp,
    /// Its headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Taken {
    /// A header's value; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// A receiver on loopback; gone when dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    count: watch::Receiver<usize>,
    serving: Option<JoinHandle<()>>,
}

/// How the request of that number is answered.
type Answering = dyn Fn(usize, &Taken) -> Manner + Send + Sync;

struct Shared {
    manner: Box<Answering>,
    taken: Mutex<Vec<Taken>>,
    count: watch::Sender<usize>,
    held: watch::Sender<bool>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Receiver {
    /// A receiver that treats every request alike.
    pub async fn start(manner: Manner) -> Self {
        Self::deciding(move |_, _| manner.clone()).await
    }

    /// A receiver that decides on each request, of which it is told the number from 0 on.
    pub async fn deciding(manner: impl Fn(usize, &Taken) -> Manner + Send + Sync + 'static) -> Self {
        let mut receiver = Self::closed(manner).await;
        receiver.open().await;
        receiver
    }

    /// A receiver that has a port where nobody listens, until it is opened.
    pub async fn closed(manner: impl Fn(usize, &Taken) -> Manner + Send + Sync + 'static) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port()));
        let (told, count) = watch::channel(0);
        let held = watch::Sender::new(false);
        let shared =
            Arc::new(Shared { manner: Box::new(manner), taken: Mutex::default(), count: told, held });
        Self { address, shared, count, serving: None }
    }

    /// Has it listen.
    pub async fn open(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("own port is free");
        let shared = Arc::clone(&self.shared);
        self.serving = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                // One that hangs up early is the sender's affair.
                tokio::spawn(async move { treat(stream, &shared).await.ok() });
            }
        }));
    }

    /// From now on it decides on no request, until it is let go on.
    pub fn hold(&self) {
        self.shared.held.send_replace(true);
    }

    /// Has it answer what waits, and what comes.
    pub fn go_on(&self) {
        self.shared.held.send_replace(false);
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}/in", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All that came so far.
    pub fn taken(&self) -> Vec<Taken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The events of each monitor, by the first arrival of each delivery, and how many came again.
    pub fn by_monitor(&self) -> (BTreeMap<String, Vec<String>>, usize) {
        let (mut seen, mut again, mut all) = (BTreeSet::new(), 0, BTreeMap::<String, Vec<String>>::new());
        for taken in self.taken() {
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

    /// How many came so far.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until so many came.
    pub async fn has(&self, count: usize, limit: Duration) {
        let mut seen = self.count.clone();
        let waiting = seen.wait_for(|now| *now >= count);
        if tokio::time::timeout(limit, waiting).await.is_err() {
            panic!("{} of {count} requests came within {limit:?}", self.count());
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn treat(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(taken) = read(&mut stream).await? else { return Ok(()) };
    let number = {
        let mut all = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(taken.clone());
        all.len() - 1
    };
    shared.count.send_modify(|count| *count += 1);
    // The channel's sender is in `shared`, so that the wait cannot fail.
    let _ = shared.held.subscribe().wait_for(|held| !held).await;
    let manner = (shared.manner)(number, &taken);
    match &manner {
        Manner::Take | Manner::TakeAndKill(_) => stream.write_all(&answer(200, "", b"ok")).await?,
        Manner::Status(status, lines) => stream.write_all(&answer(*status, lines, b"no")).await?,
        Manner::Hang => std::future::pending().await,
        Manner::Drip => {
            for byte in answer(200, "", b"ok") {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(DRIP).await;
            }
        }
        Manner::Huge => stream.write_all(&answer(200, "", &vec![b'x'; 10 << 20])).await?,
        Manner::Cut => {}
    }
    if let Manner::TakeAndKill(process) = manner
        && let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw)
    {
        // One that is gone already is what was wanted.
        let _ = kill_process(process, Signal::KILL);
    }
    Ok(())
}

fn answer(status: u16, lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} Told\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Reads a request; none where the sender went away first.
async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Taken>> {
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
        let taken = Taken { at: wall_clock(), headers, body: bytes[end + 4..].to_vec() };
        let length: usize = taken.header("content-length").parse().unwrap_or(0);
        if taken.body.len() >= length {
            return Ok(Some(taken));
        }
    }
}
