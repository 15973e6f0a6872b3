//! Payloads of the bombs in `response_bombs.rs`: headers, bodies, certificates and DNS names.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio_rustls::TlsAcceptor;

/// An endless response: a prefix, and a part that is repeated after it.
#[derive(Clone, Copy)]
pub(crate) struct ResponseBomb {
    pub(crate) name: &'static str,
    pub(crate) first: fn() -> Vec<u8>,
    pub(crate) again: fn() -> Vec<u8>,
}

pub(crate) const BOMBS: [ResponseBomb; 9] = [
    ResponseBomb {
        name: "chunks without end",
        first: || b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
        again: || b"10\r\n0123456789abcdef\r\n".repeat(4096),
    },
    ResponseBomb {
        name: "a body of a terabyte",
        first: || b"HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n".to_vec(),
        again: || vec![b'a'; 65_536],
    },
    ResponseBomb {
        name: "a header without end",
        first: || b"HTTP/1.1 200 OK\r\nx-long: ".to_vec(),
        again: || vec![b'a'; 65_536],
    },
    ResponseBomb {
        name: "headers without end",
        first: || b"HTTP/1.1 200 OK\r\n".to_vec(),
        again: || b"x-header: value\r\n".repeat(4096),
    },
    ResponseBomb {
        name: "interim answers without end",
        first: || b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(),
        again: || b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(1024),
    },
    ResponseBomb {
        name: "redirects without end",
        first: || b"HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        again: Vec::new,
    },
    ResponseBomb { name: "gzip of 10 GB", first: || coded("gzip", &gzip().repeat(640)), again: Vec::new },
    ResponseBomb { name: "brotli of 10 GB", first: || coded("br", &brotli()), again: Vec::new },
    ResponseBomb { name: "zstd of 10 GB", first: || coded("zstd", &zstd()), again: Vec::new },
];

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A member of 16 MiB; members may follow each other (RFC 1952, section 2.2).
fn gzip() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1024 * 1024];
    for _ in 0..16 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// A window of 4 MiB, and meta-blocks of zeros that repeat bit by bit every 101 bytes (9.5 MiB).
fn brotli() -> Vec<u8> {
    [&BROTLI[..BROTLI_START], &BROTLI[BROTLI_START..].repeat(1100)].concat()
}

/// A frame with a window of 1 MiB and blocks of one byte repeated 128 Ki times (RFC 8878, section 3.1.1.2).
fn zstd() -> Vec<u8> {
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 10 << 3];
    let size: u32 = 128 * 1024;
    let head = ((size << 3) | (1 << 1)).to_le_bytes();
    [&frame[..], &[head[0], head[1], head[2], 0].repeat(80_000)].concat()
}

/// Start of the repeating part of [`BROTLI`].
const BROTLI_START: usize = 33;
const BROTLI: [u8; 134] = [
    0xcb, 0xff, 0xff, 0x3f, 0x00, 0x24, 0x00, 0xe2, 0xb1, 0x40, 0x72, 0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0x80, 0x04,
    0x40, 0x1c, 0x16, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0x00, 0x90, 0x00, 0x88, 0xc3, 0x02, 0xd0, 0xbd, 0xff,
    0xe3, 0xff, 0xff, 0x1f, 0x00, 0x12, 0x00, 0x71, 0x58, 0x00, 0xba, 0xf7, 0x7f, 0xfc, 0xff, 0xff, 0x03, 0x40, 0x02,
    0x20, 0x0e, 0x0b, 0x40, 0xf7, 0xfe, 0x8f, 0xff, 0xff, 0x7f, 0x00, 0x48, 0x00, 0xc4, 0x61, 0x01, 0xe8, 0xde, 0xff,
    0xf1, 0xff, 0xff, 0x0f, 0x00, 0x09, 0x80, 0x38, 0x2c, 0x00, 0xdd, 0xfb, 0x3f, 0xfe, 0xff, 0xff, 0x01, 0x20, 0x01,
    0x10, 0x87, 0x05, 0xa0, 0x7b, 0xff, 0xc7, 0xff, 0xff, 0x3f, 0x00, 0x24, 0x00, 0xe2, 0xb0, 0x00, 0x74, 0xef, 0xff,
    0xf8, 0xff, 0xff, 0x07, 0x80, 0x04, 0x40, 0x1c, 0x16, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0x00, 0x90, 0x00,
    0x88,
];

/// Starts a TLS server with a certificate chain of over a megabyte.
pub(crate) async fn tls() -> SocketAddr {
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let chain = vec![leaf.der().clone(); 1024 * 1024 / leaf.der().len() + 1];
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move { acceptor.accept(stream).await.map(drop) });
        }
    });
    address
}

/// Starts a name server: `loop.bomb.test` is an alias of itself, `nX.endless.bomb.test` of the next, and every TXT has
/// 64 KB.
pub(crate) async fn dns() -> SocketAddr {
    let (udp, tcp) = loop {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            break (udp, tcp);
        }
    };
    let address = udp.local_addr().unwrap();
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut query).await {
            let _ = udp.send_to(&answer(&query[..length], false), from).await;
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut query = vec![0; length.into()];
                    stream.read_exact(&mut query).await?;
                    let answer = answer(&query, true);
                    stream.write_u16(u16::try_from(answer.len()).unwrap()).await?;
                    stream.write_all(&answer).await?;
                }
                Ok::<_, std::io::Error>(())
            });
        }
    });
    address
}

fn answer(query: &[u8], is_tcp: bool) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap();
    let (name, kind) = (&query[12..end], query[end + 2]);
    let first = name.get(1..=usize::from(name.first().copied().unwrap_or(0))).unwrap_or_default();
    let first = String::from_utf8_lossy(first).to_lowercase();
    let alias = match first.strip_prefix('n').and_then(|number| number.parse::<u32>().ok()) {
        Some(number) => {
            let next = format!("n{}", number + 1);
            [&[u8::try_from(next.len()).unwrap()], next.as_bytes(), &name[1 + first.len()..], &[0]].concat()
        }
        None => [name, &[0]].concat(),
    };
    let (cut, records) = match (first.as_str(), kind) {
        ("", _) => (0, vec![]),
        ("txt", 16) if !is_tcp => (2, vec![]),
        // The maximum of one message: 250 records of a string of 240.
        ("txt", 16) => (0, vec![(16, [&[240], &[b'a'; 240][..]].concat()); 250]),
        ("txt", _) => (0, vec![]),
        (_, _) => (0, vec![(5, alias)]),
    };
    let mut out = query[..2].to_vec();
    out.extend([0x81 | cut, 0x80, 0, 1]);
    out.extend(u16::try_from(records.len()).unwrap().to_be_bytes());
    out.extend([0; 4]);
    out.extend(&query[12..end + 5]);
    for (kind, data) in records {
        out.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 1]);
        out.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        out.extend(data);
    }
    out
}
