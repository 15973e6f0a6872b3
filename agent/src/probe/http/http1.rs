//! A minimal HTTP/1.1 client: one request over a connection that is closed after its response.
//!
//! A client library has buffers, a task and channels for connections that serve many requests, and parses
//! heads strictly. A check needs neither, so all HTTP/1.1 responses are read here, with a keyword or without.

use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use parallax_protocol::result::WireFailure;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::{
    framing::Deframer,
    head::{HeadReader, HeaderSelection, ResponseHead},
};
use crate::probe::tls;

/// Number of bytes of a head read at once: most fit.
const CHUNK: usize = 4 * 1024;
/// Number of bytes of a body read at once.
const PIECE: usize = 16 * 1024;

/// A connection of any kind.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The body of a response, read piece by piece from its connection.
pub(super) struct Http1Body {
    stream: Box<dyn ByteStream>,
    deframer: Deframer,
    /// Bytes received together with the head.
    received: Vec<u8>,
}

/// Sends a request, and reads only the head of the final response. `to_head` is true for the method HEAD.
///
/// # Errors
/// The failure for a broken connection or an invalid head.
pub(super) async fn fetch_head<S>(stream: &mut S, request: &[u8], to_head: bool) -> Result<ResponseHead, WireFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut reading = HeadReader::new(to_head, HeaderSelection::Redirects);
    exchange(stream, request, |piece| Ok(reading.feed(piece)?.map(|(head, _, _)| head))).await
}

/// Sends a request, and reads the head of the final response; its body can be read from the returned value.
///
/// # Errors
/// As [`fetch_head`].
pub(super) async fn send<S>(
    mut stream: S,
    request: &[u8],
    to_head: bool,
) -> Result<(ResponseHead, Http1Body), WireFailure>
where
    S: ByteStream + 'static,
{
    let mut reading = HeadReader::new(to_head, HeaderSelection::All);
    let (head, framing, first) = exchange(&mut stream, request, |piece| {
        let whole = reading.feed(piece)?;
        Ok(whole.map(|(head, framing, read)| (head, framing, piece.get(read..).unwrap_or_default().to_vec())))
    })
    .await?;
    Ok((head, Http1Body { stream: Box::new(stream), deframer: Deframer::new(framing), received: first }))
}

impl Http1Body {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// The failure for an incomplete body.
    pub(super) async fn next_piece(&mut self) -> Result<Option<Bytes>, WireFailure> {
        let mut received = std::mem::take(&mut self.received);
        let mut body = Vec::new();
        loop {
            self.deframer.feed(&received, &mut body)?;
            if !body.is_empty() {
                return Ok(Some(body.into()));
            }
            if self.deframer.is_done() {
                return Ok(None);
            }
            received.clear();
            received.reserve(PIECE);
            match self.stream.read_buf(&mut received).await {
                Ok(0) => return self.deframer.close().map(|()| None),
                Ok(_) => {}
                // Many servers close TLS without close_notify (RFC 8446, section 6.1). Browsers accept that
                // as the end too.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return self.deframer.close().map(|()| None);
                }
                Err(error) => return Err(broken(&error)),
            }
        }
    }
}

/// Writes `request` and passes received bytes to `take` until it returns a value, both at the same time: a
/// server may respond before it has read everything.
async fn exchange<S, T>(
    stream: &mut S,
    request: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<Option<T>, WireFailure>,
) -> Result<T, WireFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut sending = PendingRequest { rest: request, is_flushed: false };
    let mut unsent = None;
    poll_fn(|cx| {
        if let Poll::Ready(Err(error)) = sending.poll(Pin::new(&mut *stream), cx) {
            // The server may have responded before it closed: its response counts, if there is one.
            (sending.rest, sending.is_flushed) = (&[], true);
            unsent = Some(broken(&error));
        }
        loop {
            // On the stack, so that a waiting check holds no buffer.
            let mut space = [MaybeUninit::uninit(); CHUNK];
            let mut piece = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut piece)) {
                Err(error) => return Poll::Ready(Err(unsent.take().unwrap_or_else(|| broken(&error)))),
                Ok(()) if piece.filled().is_empty() => {
                    return Poll::Ready(Err(unsent.take().unwrap_or(WireFailure::ClosedEarly)));
                }
                Ok(()) => {}
            }
            if let Some(done) = take(piece.filled())? {
                return Poll::Ready(Ok(done));
            }
        }
    })
    .await
}

fn broken(error: &io::Error) -> WireFailure {
    tls::io_failure(error).unwrap_or(WireFailure::Reset)
}

/// The unsent part of a request.
struct PendingRequest<'a> {
    rest: &'a [u8],
    is_flushed: bool,
}

impl PendingRequest<'_> {
    fn poll<S: AsyncWrite>(&mut self, mut stream: Pin<&mut S>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(stream.as_mut().poll_write(cx, self.rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest = self.rest.get(written..).unwrap_or_default();
        }
        if !self.is_flushed {
            ready!(stream.poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_response_to_a_partial_request_counts() {
        // The rest of the request never fits.
        let (mut client, mut server) = tokio::io::duplex(1024);
        server.write_all(b"HTTP/1.1 413 Too Large\r\n\r\n").await.unwrap();
        let head = fetch_head(&mut client, &[b'x'; 10_000], false).await.unwrap();
        assert_eq!(head.status, 413);
        // Nor can it be sent after the server has closed.
        let (mut client, mut server) = tokio::io::duplex(1024);
        server.write_all(b"HTTP/1.1 413 Too Large\r\n\r\n").await.unwrap();
        drop(server);
        assert_eq!(fetch_head(&mut client, b"GET", false).await.unwrap().status, 413);
    }

    #[tokio::test]
    async fn a_body_without_a_length_ends_with_the_connection() {
        let (client, mut server) = tokio::io::duplex(1024);
        server.write_all(b"HTTP/1.0 200 OK\r\n\r\nall ").await.unwrap();
        let (head, mut body) = send(client, b"GET", false).await.unwrap();
        assert_eq!(head.status, 200);
        server.write_all(b"fine").await.unwrap();
        drop(server);
        let mut text = Vec::new();
        while let Some(piece) = body.next_piece().await.unwrap() {
            text.extend_from_slice(&piece);
        }
        assert_eq!(text, b"all fine");
    }
}
