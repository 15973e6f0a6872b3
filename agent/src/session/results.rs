//! The results stream: sends batches as they fall due, oldest first.

use super::SessionStop;
use crate::connection::CoordinatorConnection;
use crate::context::AgentContext;
use crate::wire::send;
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::message::{ResultGap, ToCoordinator};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Sends results as long as the connection lives. Slots are used while the present schedule belongs to
/// `slot_epoch`.
pub(super) async fn send_all(
    shared: &AgentContext,
    link: &CoordinatorConnection,
    slot_epoch: u64,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), SessionStop> {
    let mut stream = link.connection.open_uni().await.map_err(|_| SessionStop::StreamClosed)?;
    let mut reported: Vec<ResultGap> = Vec::new();
    loop {
        let wait = shared.queue().wait_ms();
        match wait.map(|ms| Duration::from_millis(ms.unsigned_abs())) {
            None => {
                shared.queue_changed.notified().await;
                continue;
            }
            Some(Duration::ZERO) => {}
            Some(wait) => tokio::select! {
                () = sleep(wait) => {}
                () = shared.queue_changed.notified() => continue,
            },
        }
        let gaps = shared.queue().gaps().to_vec();
        for gap in gaps.iter().filter(|gap| !reported.contains(gap)) {
            to_coordinator.send(ToCoordinator::Gap(*gap)).await.map_err(|_| SessionStop::StreamClosed)?;
        }
        reported = gaps;
        let Some(batch) = next(shared, slot_epoch)? else {
            continue;
        };
        send(&mut stream, &ResultFrame::Batch(batch), MAX_FRAME).await?;
    }
}

fn next(shared: &AgentContext, slot_epoch: u64) -> Result<Option<ResultBatch>, SessionStop> {
    let mut queue = shared.queue();
    let schedule = shared.schedule();
    let Some(batch) = queue.next_batch(|monitor| schedule.slot_of(monitor)) else {
        return Ok(None);
    };
    let is_same_epoch = schedule.version().is_some_and(|held| held.slot_epoch == slot_epoch);
    let slot_of = |monitor: WireMonitorId| schedule.slot_of(monitor).filter(|_| is_same_epoch);
    let sent_ms = shared.clock.coordinator_ms();
    ResultBatch::pack(batch.boot, sent_ms, &batch.results, slot_of).map(Some).map_err(SessionStop::ProtocolViolation)
}
