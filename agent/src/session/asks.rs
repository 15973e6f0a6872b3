//! Check-nows: one stream each, handled in parallel.

use super::Stop;
use crate::attempt::{DEADLINE, attempt};
use crate::link::Link;
use crate::probe::Kept;
use crate::shared::Shared;
use crate::wire::{Reader, Received, WireError, send};
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{CheckAnswer, CheckNow};
use parallax_protocol::result::{CheckResult, Outcome, OwnFault, Report};
use quinn::{RecvStream, SendStream, VarInt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time limit for a stream's request.
const QUESTION: Duration = Duration::from_secs(5);

/// Handles check-nows until the connection ends. After `stop` no more are accepted; running ones are
/// answered. The connection's stream limit bounds their number.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    link: &Link,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Stop> {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.wait_for(|&stopped| stopped) => break,
            accepted = link.connection.accept_bi() => {
                let (sending, receiving) = accepted.map_err(|_| Stop::Gone)?;
                running.spawn(answer(Arc::clone(shared), sending, receiving));
            }
            Some(_) = running.join_next() => {}
        }
    }
    while running.join_next().await.is_some() {}
    std::future::pending().await
}

async fn answer(shared: Arc<Shared>, mut sending: SendStream, receiving: RecvStream) {
    // A closed stream has no priority to set; the write reports it.
    let _ = sending.set_priority(1);
    let mut reader = Reader::new(receiving, MAX_FRAME);
    let ask: CheckNow = match timeout(QUESTION, reader.next()).await {
        Ok(Ok(Received::Value(ask))) => ask,
        Ok(Err(WireError::Protocol(error))) => {
            tracing::error!(%error, "a check-now cannot be read");
            let _ = sending.reset(VarInt::from_u32(error.close_reason().code()));
            return;
        }
        Ok(Ok(Received::End) | Err(WireError::Stream)) | Err(_) => return,
    };
    let result = check(&shared, &ask, &mut sending).await;
    tracing::debug!(id = ask.id, reason = ?ask.reason, outcome = ?result.report.outcome, "check-now done");
    if send(&mut sending, &CheckAnswer::Done(Box::new(result)), MAX_FRAME).await.is_ok() {
        // An error means that the stream is closed, and nobody waits for the response.
        let _ = sending.finish();
    }
}

async fn check(shared: &Arc<Shared>, ask: &CheckNow, sending: &mut SendStream) -> CheckResult {
    let started_ms = shared.clock.coordinator_ms();
    let result = |report, age_ms| CheckResult {
        monitor: ask.monitor,
        revision: ask.revision,
        round: None,
        started_ms,
        age_ms,
        report,
    };
    let Some(_asked) = shared.ask_of(ask.monitor) else {
        return result(Report::bare(Outcome::Inconclusive(OwnFault::Overloaded)), 0);
    };
    let limit = Duration::from_millis(u64::from(ask.deadline_ms)).min(DEADLINE);
    let pending = async {
        // If this cannot be sent, sending the result fails too, and that is handled.
        let _ = send(sending, &CheckAnswer::Pending, MAX_FRAME).await;
    };
    let kept = Kept::of_account(shared.schedule().account_of(ask.monitor));
    let done = attempt(&ask.spec, &kept, &shared.net, &shared.clock, limit, pending).await;
    let age_ms = shared.clock.mono_ms().saturating_sub(done.ended_mono_ms).max(0).unsigned_abs();
    result(done.report, age_ms)
}
