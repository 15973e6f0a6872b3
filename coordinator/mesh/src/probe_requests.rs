//! Confirmation over the mesh: sends the driver's probe requests to agents and returns their responses.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::ProbeResponse;
use parallax_core::member::AgentRecord;
use parallax_core::rate_limit::{TokenBucket, TokenRate};
use parallax_engine::ProbeDispatch;
use parallax_protocol::close::CloseReason;
use parallax_protocol::error::ProtocolError;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{WireCheckNow, WireCheckNowResponse};
use parallax_protocol::result::WireOutcome;
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::hub::Hub;
use super::probe_queue::ProbeQueueReceiver;
use super::wire::{self, FrameReceiver, SessionError};
use super::{MeshCounters, convert};

/// Rate of probe requests to one agent: 200 per second, and 21 at once after a quiet time.
const REQUEST_RATE: TokenRate = TokenRate::per_second(200, 21);

/// Time that a request must have left to be worth sending.
const MIN_TIME_LEFT: Duration = Duration::from_secs(2);

/// Forwards every probe request of the driver to the session of its agent, until the driver has ended.
pub(super) async fn dispatch(hub: Arc<Hub>, mut probes: mpsc::Receiver<ProbeDispatch>) {
    while let Some(probe) = probes.recv().await {
        if let Err(unsent) = hub.send_probe(probe) {
            hub.send_response(&unsent, ProbeResponse::NoResponse);
        }
    }
}

/// Sends the requests of one session to its agent in turn, until the session ends. Each request ends with exactly
/// one outcome, or with none.
pub(super) async fn send_queued(
    hub: Arc<Hub>,
    agent: Arc<AgentRecord>,
    connection: Connection,
    queue: ProbeQueueReceiver,
) {
    let (started, mut bucket) = (Instant::now(), TokenBucket::default());
    let mut tasks = JoinSet::new();
    loop {
        // The next request is chosen only when it may be sent.
        sleep_until(started + bucket.ready_at(REQUEST_RATE, started.elapsed())).await;
        let Some((probe, in_flight)) = queue.next().await else { break };
        while tasks.try_join_next().is_some() {}
        // A request that can't be answered in time must not use up the rate of the others.
        if remaining(&hub, &probe) < MIN_TIME_LEFT {
            hub.send_response(&probe, ProbeResponse::NoResponse);
            continue;
        }
        bucket.reserve(REQUEST_RATE, started.elapsed());
        let (hub, agent, connection) = (Arc::clone(&hub), Arc::clone(&agent), connection.clone());
        tasks.spawn(async move {
            // Requests in flight are limited by the streams that the agent grants, apart from streams whose end has
            // not arrived yet.
            match timeout(remaining(&hub, &probe), connection.open_bi()).await {
                Ok(Ok((send, receive))) => send_probe(&hub, &agent, &connection, &probe, send, receive).await,
                Ok(Err(_)) | Err(_) => hub.send_response(&probe, ProbeResponse::NoResponse),
            }
            drop(in_flight);
        });
    }
    for probe in queue.drain() {
        hub.send_response(&probe, ProbeResponse::NoResponse);
    }
    while tasks.join_next().await.is_some() {}
}

/// Sends one request on its stream and returns the response.
async fn send_probe(
    hub: &Hub,
    agent: &AgentRecord,
    connection: &Connection,
    probe: &ProbeDispatch,
    send: SendStream,
    receive: RecvStream,
) {
    MeshCounters::add(&hub.counters.probes_sent);
    let time_left = remaining(hub, probe);
    match timeout(time_left, exchange(hub, agent, probe, time_left, send, receive)).await {
        Ok(Ok(response)) => hub.send_response(probe, response),
        Ok(Err(fault)) => {
            hub.send_response(probe, ProbeResponse::NoResponse);
            if fault != SessionError::Lost {
                MeshCounters::add(&hub.counters.frames_refused);
                wire::close(connection, fault.reason());
            }
        }
        Err(_) => hub.send_response(probe, ProbeResponse::NoResponse),
    }
}

async fn exchange(
    hub: &Hub,
    agent: &AgentRecord,
    probe: &ProbeDispatch,
    time_left: Duration,
    mut send: SendStream,
    receive: RecvStream,
) -> Result<ProbeResponse, SessionError> {
    let Some(spec) = convert::spec(&probe.check) else {
        return Ok(ProbeResponse::NoResponse);
    };
    let request = WireCheckNow {
        id: u64::from(probe.slot) << 32 | u64::from(probe.request.number),
        monitor: convert::monitor(probe.monitor),
        revision: probe.revision,
        spec,
        reason: convert::reason(probe.request.reason),
        deadline_ms: u32::try_from(time_left.as_millis()).unwrap_or(u32::MAX),
    };
    wire::write(&mut send, &request, MAX_FRAME).await?;
    send.finish().map_err(|_| SessionError::Lost)?;
    let mut frames = FrameReceiver::new(receive, MAX_FRAME);
    let mut is_pending = false;
    while let Some(response) = frames.next().await? {
        match response {
            WireCheckNowResponse::Pending if is_pending => {
                return Err(SessionError::Close(CloseReason::OutOfOrder));
            }
            WireCheckNowResponse::Pending => {
                is_pending = true;
                hub.send_response(
                    probe,
                    ProbeResponse::Observed(convert::pending(probe.revision, agent, hub.clock.now())),
                );
            }
            WireCheckNowResponse::Done(mut result) => {
                let matches_request = result.monitor == convert::monitor(probe.monitor)
                    && result.revision == probe.revision
                    && result.round.is_none()
                    && result.report.outcome != WireOutcome::Pending;
                if !matches_request {
                    let rule = "must be for the requested check";
                    return Err(ProtocolError::Invalid { field: "answer", rule }.into());
                }
                let kind = probe.check.kind();
                let corrected_clock = hub.clock_steps.check(&hub.clock);
                corrected_clock.correct(&mut result, None, 0);
                return Ok(ProbeResponse::Observed(convert::observation(*result, kind, agent, corrected_clock.now())));
            }
        }
    }
    Ok(ProbeResponse::NoResponse)
}

fn remaining(hub: &Hub, probe: &ProbeDispatch) -> Duration {
    let time_left = probe.request.deadline.since(hub.clock.now()).max(0);
    Duration::from_millis(time_left.unsigned_abs())
}
