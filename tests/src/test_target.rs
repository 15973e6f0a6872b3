//! Check targets that pass, fail, respond slowly, hang, redirect or refuse, as configured.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::free_ports::free_port;

/// Longest request head, in bytes.
const HEAD: usize = 16 * 1024;

/// Behaviour of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetMode {
    /// Responds with 200 at once.
    Pass,
    /// Responds with another status at once.
    Status(u16),
    /// Responds with 200 after this many milliseconds.
    Slow(u64),
    /// Accepts connections and never responds.
    Hang,
    /// Responds with 302 to this address.
    Redirect(String),
    /// Does not listen.
    Refuse,
}

impl FromStr for TargetMode {
    type Err = String;

    /// Parses `pass`, `status 503`, `slow 800`, `hang`, `redirect http://…` or `refuse`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let number = || rest.parse().map_err(|_| format!("`{rest}` is no number"));
        match word {
            "pass" => Ok(Self::Pass),
            "status" => rest.parse().map(Self::Status).map_err(|_| format!("`{rest}` is no status")),
            "slow" => number().map(Self::Slow),
            "hang" => Ok(Self::Hang),
            "redirect" => Ok(Self::Redirect(rest.to_owned())),
            "refuse" => Ok(Self::Refuse),
            _ => Err(format!("no mode `{text}`")),
        }
    }
}

impl std::fmt::Display for TargetMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Slow(millis) => write!(f, "slow {millis}"),
            Self::Hang => f.write_str("hang"),
            Self::Redirect(to) => write!(f, "redirect {to}"),
            Self::Refuse => f.write_str("refuse"),
        }
    }
}

/// A check target in this process, closed when dropped.
#[derive(Debug)]
pub struct TestTarget {
    address: SocketAddr,
    mode: Arc<Mutex<TargetMode>>,
    requests: Arc<AtomicU64>,
    serving: Option<JoinHandle<()>>,
}

impl TestTarget {
    /// Starts a target on a free port of loopback.
    pub async fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], free_port()))).await
    }

    /// Starts a target at `address`.
    pub async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("address is free");
        let address = listener.local_addr().expect("a listener has an address");
        let mode = Arc::new(Mutex::new(TargetMode::Pass));
        let requests = Arc::new(AtomicU64::new(0));
        let serving = Some(serve(listener, Arc::clone(&mode), Arc::clone(&requests)));
        Self { address, mode, requests, serving }
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the number of requests read.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Changes the behaviour.
    pub async fn set(&mut self, mode: TargetMode) {
        let refuse = mode == TargetMode::Refuse;
        *self.mode.lock().expect("no holder panics") = mode;
        if refuse {
            if let Some(serving) = self.serving.take() {
                serving.abort();
                // The listener is closed once the task has ended.
                let _ = serving.await;
            }
        } else if self.serving.is_none() {
            let listener = TcpListener::bind(self.address).await.expect("own address is free again");
            self.serving = Some(serve(listener, Arc::clone(&self.mode), Arc::clone(&self.requests)));
        }
    }
}

impl Drop for TestTarget {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }
}

fn serve(listener: TcpListener, mode: Arc<Mutex<TargetMode>>, requests: Arc<AtomicU64>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (mode, requests) = (Arc::clone(&mode), Arc::clone(&requests));
            // The client may close the connection early.
            tokio::spawn(async move { answer(stream, mode, requests).await.ok() });
        }
    })
}

/// Reads one request's head, responds according to the mode, and closes.
async fn answer(mut stream: TcpStream, mode: Arc<Mutex<TargetMode>>, requests: Arc<AtomicU64>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < HEAD {
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    requests.fetch_add(1, Ordering::Relaxed);
    let mode = mode.lock().expect("no holder panics").clone();
    let (status, extra) = match mode {
        TargetMode::Pass => (200, String::new()),
        TargetMode::Status(status) => (status, String::new()),
        TargetMode::Slow(millis) => {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            (200, String::new())
        }
        TargetMode::Redirect(to) => (302, format!("Location: {to}\r\n")),
        TargetMode::Hang | TargetMode::Refuse => {
            std::future::pending::<()>().await;
            return Ok(());
        }
    };
    let body = format!("status {status}\n");
    let text = format!(
        "HTTP/1.1 {status} Told\r\n{extra}Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    if !head.starts_with(b"HEAD ") {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: SocketAddr) -> Option<String> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        text.lines().next().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_target_does_as_it_is_told() {
        let mut target = TestTarget::start().await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 200 Told"));
        target.set(TargetMode::Status(503)).await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 503 Told"));
        target.set(TargetMode::Refuse).await;
        assert_eq!(ask(target.address()).await, None);
        target.set(TargetMode::Pass).await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 200 Told"));
        assert_eq!(target.requests(), 3);
    }

    #[test]
    fn a_mode_reads_back_from_its_words() {
        let all = [
            TargetMode::Pass,
            TargetMode::Status(500),
            TargetMode::Slow(9),
            TargetMode::Hang,
            TargetMode::Redirect("http://a/".into()),
            TargetMode::Refuse,
        ];
        for mode in all {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("later".parse::<TargetMode>().is_err());
    }
}
