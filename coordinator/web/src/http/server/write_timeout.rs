//! Write timeout: ends a connection whose reader accepts no data.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::idle_connections::ConnectionActivity;

/// A stream whose writes fail if none makes progress for `limit`. Reports unsent data to the activity of the
/// connection.
#[derive(Debug)]
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    limit: Duration,
    activity: ConnectionActivity,
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes that were read and put back.
    unread_bytes: Bytes,
}

impl<S> WriteTimeoutStream<S> {
    pub(super) const fn new(stream: S, limit: Duration, activity: ConnectionActivity) -> Self {
        Self { stream, limit, activity, timer: None, unread_bytes: Bytes::new() }
    }

    /// Puts back bytes to be read again first. Must not be called while bytes put back before are unread.
    pub(super) fn unread(&mut self, read: Bytes) {
        self.unread_bytes = read;
    }

    /// Applies the timeout to the result of a write.
    fn with_timeout<T>(&mut self, result: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.timer = None;
            return result;
        }
        let limit = self.limit;
        let waiting = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        waiting.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.unread_bytes.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = buffer.remaining().min(self.unread_bytes.len());
        buffer.put_slice(&self.unread_bytes.split_to(count));
        if self.unread_bytes.is_empty() {
            // Frees its memory.
            self.unread_bytes = Bytes::new();
            if buffer.remaining() > 0 {
                // Bytes that have arrived since are added, so that hyper reads the same parts as if it had read all of
                // them. A closed connection is noticed by the next read.
                let _ = Pin::new(&mut self.stream).poll_read(cx, buffer);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.activity.mark_sending();
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.with_timeout(result, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.activity.mark_sending();
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.with_timeout(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        if result.is_ready() {
            self.activity.mark_sent();
        }
        self.with_timeout(result, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.with_timeout(result, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::super::idle_connections::IdleConnections;
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected() {
        let (stalled_end, reader_end) = duplex(16);
        let mut stalling = WriteTimeoutStream::new(
            stalled_end,
            Duration::from_millis(20),
            IdleConnections::new(Duration::ZERO).register(),
        );
        let error = stalling.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(reader_end);
    }

    #[tokio::test]
    async fn unread_bytes_are_read_before_new_ones() {
        let (stalled_end, mut reader_end) = duplex(16);
        let mut stalling = WriteTimeoutStream::new(
            stalled_end,
            Duration::from_secs(60),
            IdleConnections::new(Duration::ZERO).register(),
        );
        stalling.unread(Bytes::from_static(b"abc"));
        reader_end.write_all(b"de").await.unwrap();
        let mut bytes = [0; 16];
        assert_eq!(stalling.read(&mut bytes).await.unwrap(), 5, "in one part");
        stalling.unread(Bytes::from_static(b"abcde"));
        reader_end.write_all(b"fg").await.unwrap();
        let mut parts = [[0; 2], [0; 2], [0; 2]];
        for slice in &mut parts {
            stalling.read_exact(slice).await.unwrap();
        }
        assert_eq!(parts.concat(), b"abcdef");
        assert_eq!(stalling.read_u8().await.unwrap(), b'g');
    }

    #[tokio::test]
    async fn a_slow_client_is_not_disconnected() {
        let (stalled_end, mut reader_end) = duplex(16);
        let mut stalling = WriteTimeoutStream::new(
            stalled_end,
            Duration::from_secs(60),
            IdleConnections::new(Duration::ZERO).register(),
        );
        let mut received = vec![0; 64];
        let (written, read) = tokio::join!(stalling.write_all(&[7; 64]), reader_end.read_exact(&mut received));
        written.unwrap();
        assert_eq!(read.unwrap(), 64);
        assert!(received.iter().all(|byte| *byte == 7));
    }
}
