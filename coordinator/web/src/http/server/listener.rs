//! Listening sockets, and what they speak: plain HTTP, plain HTTP next to TLS, or TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::tls::{AcmeChallenges, CertificateResolver};

/// Listen backlog; the operating system may allow fewer.
const LISTEN_BACKLOG: i32 = 4096;
/// Socket send buffer, in bytes (Linux doubles it, see socket(7)). The default grows up to 4 MiB, for each of thousands
/// of connections.
const SEND_BUFFER_BYTES: usize = 128 << 10;
/// Unsent bytes in that buffer (`TCP_NOTSENT_LOWAT`): the memory that a client uses if it reads nothing. A client that
/// keeps up may have the whole buffer in flight.
const NOTSENT_LOWAT_BYTES: u32 = 16 << 10;

/// Binds a listener with a long backlog: a connection that finds the backlog full is dropped silently, and the client
/// believes it is connected.
///
/// # Errors
/// If the address can't be bound.
pub async fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    // Accepted connections inherit these options.
    let socket = socket2::SockRef::from(&listener);
    // Small responses must not be delayed.
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_tcp_notsent_lowat(NOTSENT_LOWAT_BYTES)?;
    // The default of 128 is too small; on a socket that listens already, this changes only the backlog (listen(2)).
    rustix::net::listen(&listener, LISTEN_BACKLOG)?;
    Ok(listener)
}

/// Mode of a listener.
#[derive(Debug, Clone)]
pub enum ListenerMode {
    /// Plain HTTP.
    Plain,
    /// Plain HTTP next to a TLS listener; redirects to HTTPS if `redirect` is set.
    PlainWithTls {
        /// ACME challenges to serve.
        challenges: AcmeChallenges,
        /// Redirect all other requests to HTTPS.
        redirect: bool,
    },
    /// Over TLS.
    Tls(CertificateResolver, Arc<ServerConfig>),
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_uses_little_memory() {
        const LENGTH: usize = 1 << 20;
        let listener = listener("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut reader = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.nodelay().unwrap());
        let mut sent = 0;
        while let Ok(count) = stream.try_write(&[7; 4096]) {
            sent += count;
        }
        assert!(sent <= 64 << 10, "{sent} bytes wait to be sent");
        let rest = vec![7; LENGTH - sent];
        let mut got = vec![0; LENGTH];
        let (written, read) = tokio::join!(stream.write_all(&rest), reader.read_exact(&mut got));
        written.unwrap();
        read.unwrap();
    }
}
