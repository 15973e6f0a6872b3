//! A scripted name server on loopback, UDP and TCP on one port, for any type of query.

use std::{net::SocketAddr, sync::Arc};

use parallax_dial::DnsResolver;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    task::JoinSet,
};

pub(crate) const A: u16 = 1;
pub(crate) const NS: u16 = 2;
pub(crate) const CNAME: u16 = 5;
pub(crate) const MX: u16 = 15;
pub(crate) const TXT: u16 = 16;
pub(crate) const AAAA: u16 = 28;

/// A query, with its transport.
#[derive(Debug, Clone)]
pub(crate) struct ZoneQuery {
    /// Lower case, no trailing dot.
    pub(crate) name: String,
    pub(crate) kind: u16,
    pub(crate) is_tcp: bool,
}

/// The server's scripted answer.
#[derive(Debug, Clone)]
pub(crate) enum ZoneAnswer {
    /// These records of the queried name: type and data.
    Records(Vec<(u16, Vec<u8>)>),
    /// Only the truncation flag, so that the client retries over TCP.
    CutShort,
    /// A response code.
    Code(u8),
    /// No answer at all.
    Silence,
}

/// The server; it stops when dropped.
pub(crate) struct ScriptedZone {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl ScriptedZone {
    pub(crate) async fn start(say: impl Fn(&ZoneQuery) -> ZoneAnswer + Send + Sync + 'static) -> Self {
        let say = Arc::new(say);
        // The TCP port of a free UDP port may be taken: then another one is tried.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let answer_of = Arc::clone(&say);
        tasks.spawn(async move {
            let mut packet = [0; 1500];
            while let Ok((len, from)) = udp.recv_from(&mut packet).await {
                if let Some(reply) = reply(&packet[..len], false, &*answer_of) {
                    let _ = udp.send_to(&reply, from).await;
                }
            }
        });
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                while let Ok(len) = stream.read_u16().await {
                    let mut packet = vec![0; len.into()];
                    stream.read_exact(&mut packet).await.unwrap();
                    let Some(reply) = reply(&packet, true, &*say) else { break };
                    stream.write_u16(reply.len().try_into().unwrap()).await.unwrap();
                    stream.write_all(&reply).await.unwrap();
                }
            }
        });
        Self { address, _tasks: tasks }
    }

    pub(crate) fn resolver(&self) -> DnsResolver {
        DnsResolver::with_servers(&[self.address]).unwrap()
    }
}

/// A name as it is sent (RFC 1035, section 3.1).
pub(crate) fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    bytes.push(0);
    bytes
}

pub(crate) fn exchange(preference: u16, host: &str) -> Vec<u8> {
    [preference.to_be_bytes().to_vec(), name(host)].concat()
}

pub(crate) fn text(strings: &[&str]) -> Vec<u8> {
    strings.iter().flat_map(|string| [&[string.len() as u8], string.as_bytes()].concat()).collect()
}

fn reply(packet: &[u8], is_tcp: bool, say: &dyn Fn(&ZoneQuery) -> ZoneAnswer) -> Option<Vec<u8>> {
    let body = packet.get(12..)?;
    let (mut labels, mut at) = (Vec::new(), 0);
    while body[at] != 0 {
        let len = usize::from(body[at]);
        labels.push(String::from_utf8_lossy(&body[at + 1..=at + len]).to_ascii_lowercase());
        at += 1 + len;
    }
    let kind = u16::from_be_bytes([body[at + 1], body[at + 2]]);
    let question = ZoneQuery { name: labels.join("."), kind, is_tcp };
    let (cut, code, records) = match say(&question) {
        ZoneAnswer::Records(records) => (0, 0, records),
        ZoneAnswer::CutShort => (2, 0, Vec::new()),
        ZoneAnswer::Code(code) => (0, code, Vec::new()),
        ZoneAnswer::Silence => return None,
    };
    let mut reply = packet[..2].to_vec();
    reply.extend([0x81 | cut, 0x80 | code, 0, 1]);
    reply.extend((records.len() as u16).to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(&body[..at + 5]);
    for (kind, data) in records {
        reply.extend([0xc0, 0x0c]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 60]);
        reply.extend((data.len() as u16).to_be_bytes());
        reply.extend(data);
    }
    Some(reply)
}
