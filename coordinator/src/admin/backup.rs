//! Backups over the admin socket: the coordinator streams the bytes and the command writes the file, because the
//! service's user or unit may not allow it to write there, or may show it a private folder.
//!
//! After the command line follow a reply line, chunks (length as little-endian `u32`, and bytes) up to an empty
//! one, and a reply line with the total length and checksum.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parallax_service::Services;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::client::{self, AdminClientError};
use super::{AdminCommand, AdminReply, CommandError, maintenance};

/// Maximum size of a chunk, in bytes.
const CHUNK: usize = 256 << 10;
/// Chunks queued for the socket.
const QUEUED_CHUNKS: usize = 4;
/// Time limit for the socket to accept one chunk. The store's walk waits meanwhile and holds changed records in
/// memory.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(60);
/// Average time allowed per chunk: 64 KiB a second. Slower readers use up the allowance of [`CHUNK_TIMEOUT`].
const PER_CHUNK: Duration = Duration::from_secs(4);
/// Maximum size of a reply line, in bytes.
const MAX_LINE: u64 = 64 << 10;

/// Streams a snapshot of the store, as long as the client reads it.
pub(super) async fn send(service: &Services, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    reply(out, &AdminReply::Done(json!({}))).await?;
    let (chunks, waiting) = mpsc::channel(QUEUED_CHUNKS);
    let streaming = async {
        let streamed = service.store.stream_backup(BackupChunks { chunks, total: TransferTotal::default() }).await;
        // Drops the sender here, or `carrying` would wait for more.
        streamed.map(|chunks| chunks.total)
    };
    let carrying = async move {
        // Dropped with this block: if the socket fails, the store's walk ends too.
        let mut waiting = waiting;
        let mut allowance = ChunkAllowance(CHUNK_TIMEOUT);
        while let Some(chunk) = waiting.recv().await {
            // At most CHUNK, so it fits.
            let length = u32::try_from(chunk.len()).unwrap_or_default();
            let started = Instant::now();
            timeout(allowance.0, async {
                out.write_all(&length.to_le_bytes()).await?;
                out.write_all(&chunk).await
            })
            .await??;
            allowance.charge(started.elapsed(), chunk.len());
        }
        io::Result::Ok(out)
    };
    let (streamed, carried) = tokio::join!(streaming, carrying);
    let out = carried?;
    out.write_all(&0_u32.to_le_bytes()).await?;
    let end = match streamed {
        Ok(total) => AdminReply::Done(total.view()),
        Err(error) => AdminReply::Fault(maintenance::store_error(error)),
    };
    reply(out, &end).await
}

/// Streams a backup from the running coordinator to `sink`; none if none runs.
///
/// # Errors
/// [`AdminClientError`] if the coordinator can't be reached or the data differs from what it sent. Then `sink` holds no
/// backup.
pub(crate) async fn receive(
    data: &Path,
    sink: &mut (impl AsyncWrite + Unpin),
) -> Result<Option<Result<u64, CommandError>>, AdminClientError> {
    let Some(stream) = client::connect(data).await? else { return Ok(None) };
    let fault = |source| client::socket_error(data, source);
    let (reading, mut writing) = stream.into_split();
    let mut line = serde_json::to_vec(&AdminCommand::Backup).map_err(|_| AdminClientError::Reply)?;
    line.push(b'\n');
    writing.write_all(&line).await.map_err(fault)?;
    let mut reading = BufReader::with_capacity(CHUNK, reading);
    if let AdminReply::Fault(fault) = next_reply(&mut reading).await.map_err(fault)? {
        return Ok(Some(Err(fault)));
    }
    let mut total = TransferTotal::default();
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        let length = timeout(AdminCommand::Backup.limit(), reading.read_u32_le()).await;
        let length = length.map_err(|elapsed| fault(elapsed.into()))?.map_err(fault)? as usize;
        if length == 0 {
            break;
        }
        if length > CHUNK {
            return Err(AdminClientError::Reply);
        }
        chunk.resize(length, 0);
        reading.read_exact(&mut chunk).await.map_err(fault)?;
        sink.write_all(&chunk).await.map_err(AdminClientError::Write)?;
        total.add(&chunk);
    }
    sink.flush().await.map_err(AdminClientError::Write)?;
    match next_reply(&mut reading).await.map_err(fault)? {
        AdminReply::Fault(fault) => Ok(Some(Err(fault))),
        AdminReply::Done(sent) if sent == total.view() => Ok(Some(Ok(total.bytes))),
        AdminReply::Done(_) => Err(AdminClientError::Corrupted),
    }
}

async fn reply(out: &mut (impl AsyncWrite + Unpin), reply: &AdminReply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    timeout(CHUNK_TIMEOUT, out.write_all(&line)).await?
}

async fn next_reply(reading: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<AdminReply> {
    let mut line = Vec::new();
    let mut reading = reading.take(MAX_LINE);
    timeout(AdminCommand::Backup.limit(), reading.read_until(b'\n', &mut line)).await??;
    Ok(serde_json::from_slice(&line)?)
}

/// Time the client may still take for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChunkAllowance(Duration);

impl ChunkAllowance {
    /// Subtracts the time a chunk took and adds the time allowed for its bytes.
    fn charge(&mut self, elapsed: Duration, bytes: usize) {
        let granted = PER_CHUNK.mul_f64(bytes as f64 / CHUNK as f64);
        self.0 = (self.0 + granted).saturating_sub(elapsed).min(CHUNK_TIMEOUT);
    }
}

/// Length and checksum of the transferred bytes.
#[derive(Debug, Default)]
struct TransferTotal {
    bytes: u64,
    sum: u32,
}

impl TransferTotal {
    fn add(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.sum = crc32c::crc32c_append(self.sum, chunk);
    }

    fn view(&self) -> Value {
        json!({ "bytes": self.bytes, "crc32c": self.sum })
    }
}

/// Passes the store's output on in chunks and blocks while the queue is full. Must not be used in async code.
#[derive(Debug)]
pub(crate) struct BackupChunks {
    chunks: mpsc::Sender<Bytes>,
    total: TransferTotal,
}

impl Write for BackupChunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = bytes.get(..CHUNK).unwrap_or(bytes);
        if chunk.is_empty() {
            return Ok(0);
        }
        let stopped = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client stopped reading the backup");
        self.chunks.blocking_send(Bytes::copy_from_slice(chunk)).map_err(stopped)?;
        self.total.add(chunk);
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_reads_at_the_last_moment_uses_up_its_allowance() {
        let seconds = Duration::from_secs;
        let mut allowance = ChunkAllowance(CHUNK_TIMEOUT);
        allowance.charge(seconds(59), CHUNK);
        assert_eq!(allowance, ChunkAllowance(seconds(5)), "the next may not take as long");
        for _ in 0..1_000 {
            allowance.charge(seconds(4), CHUNK);
        }
        assert_eq!(allowance, ChunkAllowance(seconds(5)), "the minimum rate can be kept up indefinitely");
        for _ in 0..1_000 {
            allowance.charge(seconds(0), CHUNK);
        }
        assert_eq!(allowance, ChunkAllowance(CHUNK_TIMEOUT), "a fast start does not pay for a later stall");
        allowance.charge(seconds(61), 0);
        assert_eq!(allowance, ChunkAllowance(seconds(0)));
    }
}
