//! A scripted name server on loopback, for tests and the demo.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{net::UdpSocket, task::JoinHandle};

/// Scripted answer for one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StubAnswer {
    /// These addresses, filtered by the queried family; TTL 0.
    Addresses(Vec<IpAddr>),
    /// The name does not exist.
    NxDomain,
    /// SERVFAIL.
    ServFail,
    /// No answer at all.
    Silence,
}

/// The server; it stops when dropped.
#[derive(Debug)]
pub struct StubServer {
    address: SocketAddr,
    query_count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl StubServer {
    /// Starts a server on a free UDP port of 127.0.0.1. `zone` is called for each A or AAAA query with the
    /// name (lower case, no trailing dot) and the number of earlier queries. Other types have no records.
    ///
    /// # Errors
    /// The error of opening the socket.
    pub async fn start(zone: impl Fn(&str, usize) -> StubAnswer + Send + 'static) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let query_count = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&query_count);
        let task = tokio::spawn(async move {
            let mut packet = [0; 1500];
            while let Ok((len, from)) = socket.recv_from(&mut packet).await {
                let question = packet.get(..len).and_then(StubQuery::read);
                if let Some(reply) = question.and_then(|question| question.reply(&zone, &count)) {
                    let _ = socket.send_to(&reply, from).await;
                }
            }
        });
        Ok(Self { address, query_count, task })
    }

    /// Returns the listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of A and AAAA queries so far.
    #[must_use]
    pub fn query_count(&self) -> usize {
        self.query_count.load(Ordering::SeqCst)
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The question section of a query (RFC 1035, section 4.1).
struct StubQuery<'a> {
    id: &'a [u8],
    /// Name, type and class as received.
    bytes: &'a [u8],
    name: String,
    kind: u16,
}

const A: u16 = 1;
const AAAA: u16 = 28;

impl<'a> StubQuery<'a> {
    fn read(packet: &'a [u8]) -> Option<Self> {
        let body = packet.get(12..)?;
        let mut labels = Vec::new();
        let mut at = 0;
        loop {
            let len = usize::from(*body.get(at)?);
            at += 1;
            if len == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(body.get(at..at + len)?).to_ascii_lowercase());
            at += len;
        }
        let kind = u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]);
        Some(Self { id: packet.get(..2)?, bytes: body.get(..at + 4)?, name: labels.join("."), kind })
    }

    fn reply(&self, zone: &impl Fn(&str, usize) -> StubAnswer, count: &AtomicUsize) -> Option<Vec<u8>> {
        let answer = if self.kind == A || self.kind == AAAA {
            zone(&self.name, count.fetch_add(1, Ordering::SeqCst))
        } else {
            StubAnswer::Addresses(Vec::new())
        };
        let (code, records) = match answer {
            StubAnswer::Addresses(all) => (0, all.into_iter().filter_map(|ip| self.record(ip)).collect()),
            StubAnswer::NxDomain => (3, Vec::new()),
            StubAnswer::ServFail => (2, Vec::new()),
            StubAnswer::Silence => return None,
        };
        let mut reply = self.id.to_vec();
        // A response, recursion desired and available.
        reply.extend([0x81, 0x80 | code, 0, 1]);
        reply.extend(u16::try_from(records.len()).ok()?.to_be_bytes());
        reply.extend([0; 4]);
        reply.extend(self.bytes);
        reply.extend(records.concat());
        Some(reply)
    }

    fn record(&self, ip: IpAddr) -> Option<Vec<u8>> {
        let data = match (self.kind, ip) {
            (A, IpAddr::V4(ip)) => ip.octets().to_vec(),
            (AAAA, IpAddr::V6(ip)) => ip.octets().to_vec(),
            _ => return None,
        };
        // A pointer to the question's name, the type, class IN, TTL 0.
        let mut record = vec![0xc0, 0x0c];
        record.extend(self.kind.to_be_bytes());
        record.extend([0, 1, 0, 0, 0, 0]);
        record.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        record.extend(data);
        Some(record)
    }
}
