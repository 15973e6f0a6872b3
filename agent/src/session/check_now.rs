//! Check-nows: one stream each, handled in parallel.

use super::SessionStop;
use crate::check_attempt::{DEADLINE, run_with_deadline};
use crate::connection::CoordinatorConnection;
use crate::context::AgentContext;
use crate::probe::CheckCache;
use crate::wire::{FrameStreamError, FrameStreamReader, StreamRead, send};
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{WireCheckNow, WireCheckNowResponse};
use parallax_protocol::result::{CheckResult, ProbeReport, WireOutcome, WireOwnFault};
use quinn::{RecvStream, SendStream, VarInt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time limit for a stream's request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Handles check-nows until the connection ends. After `stop` no more are accepted; running ones are
/// answered. The connection's stream limit bounds their number.
pub(super) async fn serve(
    shared: &Arc<AgentContext>,
    link: &CoordinatorConnection,
    mut stop: watch::Receiver<bool>,
) -> Result<(), SessionStop> {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.wait_for(|&stopped| stopped) => break,
            accepted = link.connection.accept_bi() => {
                let (sending, receiving) = accepted.map_err(|_| SessionStop::StreamClosed)?;
                running.spawn(handle(Arc::clone(shared), sending, receiving));
            }
            Some(_) = running.join_next() => {}
        }
    }
    while running.join_next().await.is_some() {}
    std::future::pending().await
}

async fn handle(shared: Arc<AgentContext>, mut sending: SendStream, receiving: RecvStream) {
    // A closed stream has no priority to set; the write reports it.
    let _ = sending.set_priority(1);
    let mut reader = FrameStreamReader::new(receiving, MAX_FRAME);
    let request: WireCheckNow = match timeout(REQUEST_TIMEOUT, reader.next()).await {
        Ok(Ok(StreamRead::Value(request))) => request,
        Ok(Err(FrameStreamError::Protocol(error))) => {
            tracing::error!(%error, "a check-now cannot be read");
            let _ = sending.reset(VarInt::from_u32(error.close_reason().code()));
            return;
        }
        Ok(Ok(StreamRead::End) | Err(FrameStreamError::Closed)) | Err(_) => return,
    };
    let result = check(&shared, &request, &mut sending).await;
    tracing::debug!(id = request.id, reason = ?request.reason, outcome = ?result.report.outcome, "check-now done");
    if send(&mut sending, &WireCheckNowResponse::Done(Box::new(result)), MAX_FRAME).await.is_ok() {
        // An error means that the stream is closed, and nobody waits for the response.
        let _ = sending.finish();
    }
}

async fn check(shared: &Arc<AgentContext>, request: &WireCheckNow, sending: &mut SendStream) -> CheckResult {
    let started_ms = shared.clock.coordinator_ms();
    let result = |report, age_ms| CheckResult {
        monitor: request.monitor,
        revision: request.revision,
        round: None,
        started_ms,
        age_ms,
        report,
    };
    let Some(_guard) = shared.begin_check_now(request.monitor) else {
        return result(ProbeReport::outcome_only(WireOutcome::Inconclusive(WireOwnFault::Overloaded)), 0);
    };
    let limit = Duration::from_millis(u64::from(request.deadline_ms)).min(DEADLINE);
    let pending = async {
        // If this cannot be sent, sending the result fails too, and that is handled.
        let _ = send(sending, &WireCheckNowResponse::Pending, MAX_FRAME).await;
    };
    let cache = CheckCache::for_account(shared.schedule().account_of(request.monitor));
    let done = run_with_deadline(&request.spec, &cache, &shared.probes, &shared.clock, limit, pending).await;
    let age_ms = shared.clock.mono_ms().saturating_sub(done.ended_mono_ms).max(0).unsigned_abs();
    result(done.report, age_ms)
}
