//! Sites that can be told to pass, fail, answer slowly, hang, send elsewhere or refuse.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::ports::port;

/// A request's head is no longer.
const HEAD: usize = 16 * 1024;

/// How a site answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// 200 at once.
    Pass,
    /// Another status at once.
    Status(u16),
    /// 200 after so many milliseconds.
    Slow(u64),
    /// The connection is taken and nothing is ever said.
    Hang,
    /// 302 to an address.
    Redirect(String),
    /// Nobody listens.
    Refuse,
}

impl FromStr for Mode {
    type Err = String;

    /// Reads `pass`, `status 503`, `slow 800`, `hang`, `redirect http://…` or `refuse`.
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

impl std::fmt::Display for Mode {
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

/// A site in this process. Gone when dropped.
#[derive(Debug)]
pub struct Target {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    requests: Arc<AtomicU64>,
    serving: Option<JoinHandle<()>>,
}

impl Target {
    /// A site on a free port of loopback.
    pub async fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], port()))).await
    }

    /// A site at `address`.
    pub async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("address is free");
        let address = listener.local_addr().expect("a listener has an address");
        let mode = Arc::new(Mutex::new(Mode::Pass));
        let requests = Arc::new(AtomicU64::new(0));
        let serving = Some(serve(listener, Arc::clone(&mode), Arc::clone(&requests)));
        Self { address, mode, requests, serving }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// How many requests it has read.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Tells it how to answer from now on.
    pub async fn set(&mut self, mode: Mode) {
        let refuse = mode == Mode::Refuse;
        *self.mode.lock().expect("no holder panics") = mode;
        if refuse {
            if let Some(serving) = self.serving.take() {
                serving.abort();
                // The listener is closed when the task is gone.
                let _ = serving.await;
            }
        } else if self.serving.is_none() {
            let listener = TcpListener::bind(self.address).await.expect("own address is free again");
            self.serving = Some(serve(listener, Arc::clone(&self.mode), Arc::clone(&self.requests)));
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }
}

fn serve(listener: TcpListener, mode: Arc<Mutex<Mode>>, requests: Arc<AtomicU64>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (mode, requests) = (Arc::clone(&mode), Arc::clone(&requests));
            // One that hangs up early is the client's affair.
            tokio::spawn(async move { answer(stream, mode, requests).await.ok() });
        }
    })
}

/// Reads one request's head, answers as told, and closes.
async fn answer(
    mut stream: TcpStream,
    mode: Arc<Mutex<Mode>>,
    requests: Arc<AtomicU64>,
) -> std::io::Result<()> {
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
        Mode::Pass => (200, String::new()),
        Mode::Status(status) => (status, String::new()),
        Mode::Slow(millis) => {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            (200, String::new())
        }
        Mode::Redirect(to) => (302, format!("Location: {to}\r\n")),
        Mode::Hang | Mode::Refuse => {
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
        let mut target = Target::start().await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 200 Told"));
        target.set(Mode::Status(503)).await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 503 Told"));
        target.set(Mode::Refuse).await;
        assert_eq!(ask(target.address()).await, None);
        target.set(Mode::Pass).await;
        assert_eq!(ask(target.address()).await.as_deref(), Some("HTTP/1.1 200 Told"));
        assert_eq!(target.requests(), 3);
    }

    #[test]
    fn a_mode_reads_back_from_its_words() {
        let all = [
            Mode::Pass,
            Mode::Status(500),
            Mode::Slow(9),
            Mode::Hang,
            Mode::Redirect("http://a/".into()),
            Mode::Refuse,
        ];
        for mode in all {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("later".parse::<Mode>().is_err());
    }
}
