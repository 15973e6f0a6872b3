//! Confirmation over the mesh: sends the driver's probe requests to agents and returns their responses.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::Answer;
use parallax_core::member::Agent;
use parallax_protocol::close::CloseReason;
use parallax_protocol::error::ProtocolError;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{CheckAnswer, CheckNow};
use parallax_protocol::result::Outcome;
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::hub::Hub;
use super::questions::QuestionReceiver;
use super::wire::{self, Fault, Frames};
use super::{Counters, convert};
use crate::flow::Question;

/// Minimum time between two probe requests to one agent: 200 per second.
const SPACING: Duration = Duration::from_millis(5);

/// Time that a request must have left to be worth sending.
const WORTHWHILE: Duration = Duration::from_secs(2);

/// Requests that may be sent at once after a quiet time.
const BURST: u32 = 20;

/// Hands every probe request of the driver to the session of its agent, until the driver is gone.
pub(super) async fn carry(hub: Arc<Hub>, mut questions: mpsc::Receiver<Question>) {
    while let Some(question) = questions.recv().await {
        if let Err(unasked) = hub.ask(question) {
            hub.answer(&unasked, Answer::Nothing);
        }
    }
}

/// Sends the requests of one session to its agent in turn, until the session ends. Each request ends with exactly
/// one outcome, or with none.
pub(super) async fn run(
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    connection: Connection,
    questions: QuestionReceiver,
) {
    let mut pace = Pace::new(Instant::now());
    let mut asking = JoinSet::new();
    loop {
        // The next request is chosen at the last moment.
        sleep_until(pace.due(Instant::now())).await;
        let Some((question, under_way)) = questions.next().await else { break };
        while asking.try_join_next().is_some() {}
        // A request that can't be answered in time must not use up the rate of the others.
        if remaining(&hub, &question) < WORTHWHILE {
            hub.answer(&question, Answer::Nothing);
            continue;
        }
        pace.take(Instant::now());
        let (hub, agent, connection) = (Arc::clone(&hub), Arc::clone(&agent), connection.clone());
        asking.spawn(async move {
            // Requests in flight are limited by the streams that the agent grants, apart from streams whose end has
            // not arrived yet.
            match timeout(remaining(&hub, &question), connection.open_bi()).await {
                Ok(Ok((send, receive))) => ask(&hub, &agent, &connection, &question, send, receive).await,
                Ok(Err(_)) | Err(_) => hub.answer(&question, Answer::Nothing),
            }
            drop(under_way);
        });
    }
    for question in questions.drain() {
        hub.answer(&question, Answer::Nothing);
    }
    while asking.join_next().await.is_some() {}
}

/// Sends one request on its stream and returns the response.
async fn ask(
    hub: &Hub,
    agent: &Agent,
    connection: &Connection,
    question: &Question,
    send: SendStream,
    receive: RecvStream,
) {
    Counters::add(&hub.counters.questions);
    let left = remaining(hub, question);
    match timeout(left, converse(hub, agent, question, left, send, receive)).await {
        Ok(Ok(answer)) => hub.answer(question, answer),
        Ok(Err(fault)) => {
            hub.answer(question, Answer::Nothing);
            if fault != Fault::Lost {
                Counters::add(&hub.counters.frames_refused);
                wire::close(connection, fault.reason());
            }
        }
        Err(_) => hub.answer(question, Answer::Nothing),
    }
}

async fn converse(
    hub: &Hub,
    agent: &Agent,
    question: &Question,
    left: Duration,
    mut send: SendStream,
    receive: RecvStream,
) -> Result<Answer, Fault> {
    let Some(spec) = convert::spec(&question.check) else {
        return Ok(Answer::Nothing);
    };
    let now = CheckNow {
        id: u64::from(question.slot) << 32 | u64::from(question.ask.number),
        monitor: convert::monitor(question.monitor),
        revision: question.revision,
        spec,
        reason: convert::reason(question.ask.reason),
        deadline_ms: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
    };
    wire::write(&mut send, &now, MAX_FRAME).await?;
    send.finish().map_err(|_| Fault::Lost)?;
    let mut frames = Frames::new(receive, MAX_FRAME);
    let mut is_pending = false;
    while let Some(answer) = frames.next().await? {
        match answer {
            CheckAnswer::Pending if is_pending => return Err(Fault::Close(CloseReason::OutOfOrder)),
            CheckAnswer::Pending => {
                is_pending = true;
                hub.answer(
                    question,
                    Answer::Seen(convert::pending(question.revision, agent, hub.clock.now())),
                );
            }
            CheckAnswer::Done(mut result) => {
                let fits = result.monitor == convert::monitor(question.monitor)
                    && result.revision == question.revision
                    && result.round.is_none()
                    && result.report.outcome != Outcome::Pending;
                if !fits {
                    let rule = "must be for the requested check";
                    return Err(ProtocolError::Invalid { field: "answer", rule }.into());
                }
                let kind = question.check.kind();
                let present = hub.steps.look(&hub.clock);
                present.correct(&mut result, None, 0);
                return Ok(Answer::Seen(convert::observation(*result, kind, agent, present.now())));
            }
        }
    }
    Ok(Answer::Nothing)
}

fn remaining(hub: &Hub, question: &Question) -> Duration {
    let left = question.ask.deadline.since(hub.clock.now()).max(0);
    Duration::from_millis(left.unsigned_abs())
}

/// Spaces requests to one agent: [`SPACING`] apart, with a burst of [`BURST`] after a quiet time.
#[derive(Debug)]
struct Pace {
    due: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// Returns when the next request may be sent.
    fn due(&self, now: Instant) -> Instant {
        let ahead = SPACING * BURST;
        self.due.max(now).checked_sub(ahead).unwrap_or(now).max(now)
    }

    /// Counts a sent request.
    fn take(&mut self, now: Instant) {
        self.due = self.due.max(now) + SPACING;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_asked_two_hundred_times_a_second_at_most() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut next = || {
            let due = pace.due(start);
            pace.take(start);
            due - start
        };
        let waits: Vec<Duration> = (0..621).map(|_| next()).collect();
        assert_eq!(waits[usize::try_from(BURST).unwrap()], Duration::ZERO);
        assert_eq!(waits[220], Duration::from_secs(1));
        assert_eq!(waits[620], Duration::from_secs(3));
    }

    #[test]
    fn a_quiet_time_gives_the_burst_back_and_no_more() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for _ in 0..100 {
            pace.take(start);
        }
        let later = start + Duration::from_secs(60);
        let mut is_at_once = || {
            let due = pace.due(later);
            pace.take(later);
            due == later
        };
        let at_once = (0..100).filter(|_| is_at_once()).count();
        assert_eq!(at_once, 21);
    }
}
