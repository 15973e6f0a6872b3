//! A byte limit on the data read from a connection.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Number of bytes that may still be read; clones share it.
#[derive(Debug, Clone)]
pub(super) struct ByteAllowance(Arc<AtomicUsize>);

impl ByteAllowance {
    /// Creates an allowance of this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Removes the limit.
    pub(super) fn remove_limit(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    /// Returns true if the allowance is used up.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Reads from `inner` until the allowance is used up.
#[derive(Debug)]
pub(super) struct LimitedStream<S> {
    pub(super) inner: S,
    pub(super) allowance: ByteAllowance,
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.allowance.is_spent() {
            return Poll::Ready(Err(io::Error::other("the peer sent more than the limit")));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let more = buf.filled().len().saturating_sub(before);
        let left = self.allowance.0.load(Ordering::Relaxed);
        if left != usize::MAX {
            self.allowance.0.store(left.saturating_sub(more), Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn bytes_are_counted_until_the_allowance_is_lifted() {
        let allowance = ByteAllowance::new(10);
        let mut stream = LimitedStream { inner: io::Cursor::new(vec![0; 100]), allowance: allowance.clone() };
        stream.read_exact(&mut [0; 10]).await.unwrap();
        assert!(allowance.is_spent() && stream.read_u8().await.is_err());
        allowance.remove_limit();
        stream.read_exact(&mut [0; 90]).await.unwrap();
    }
}
