//! Frames to the coordinator: tasks queue them, and one task writes them to the control stream.

use super::SessionStop;
use crate::wire::send;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::ToCoordinator;
use quinn::SendStream;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Writes the queued frames; after a goodbye, ends the stream and the session.
pub(super) async fn write(
    mut stream: SendStream,
    mut outgoing: mpsc::Receiver<ToCoordinator>,
) -> Result<(), SessionStop> {
    while let Some(frame) = outgoing.recv().await {
        let last = frame == ToCoordinator::Goodbye;
        send(&mut stream, &frame, MAX_FRAME).await?;
        if last {
            stream.finish().map_err(|_| SessionStop::StreamClosed)?;
            // Wait for the peer to receive everything, at most a second.
            let _ = timeout(Duration::from_secs(1), stream.stopped()).await;
            return Err(SessionStop::Done);
        }
    }
    Err(SessionStop::StreamClosed)
}

/// Queues several frames.
pub(super) async fn send_frames(
    to_coordinator: &mpsc::Sender<ToCoordinator>,
    frames: impl IntoIterator<Item = ToCoordinator>,
) -> Result<(), SessionStop> {
    for frame in frames {
        send_frame(to_coordinator, frame).await?;
    }
    Ok(())
}

/// Queues a frame for the control stream.
pub(super) async fn send_frame(
    to_coordinator: &mpsc::Sender<ToCoordinator>,
    frame: ToCoordinator,
) -> Result<(), SessionStop> {
    to_coordinator.send(frame).await.map_err(|_| SessionStop::StreamClosed)
}
