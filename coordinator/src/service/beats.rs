//! Heartbeats: a job's ping is told to the driver, and is taken once it is durable.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parallax_core::heartbeat::{BODY_KEPT, Beat, Ping};
use parallax_core::id::{MonitorId, PageId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::{Caller, Error, Result, Service};
use crate::flow::{Arrival, Beats, Listed, Ping as Report, Tokens};

/// How long a ping may take to become durable; later its sender is told to try again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters of a client's name that are kept.
const AGENT_KEPT: usize = 200;

/// A ping as it was sent.
#[derive(Debug)]
pub struct Said {
    /// What it says.
    pub beat: Beat,
    /// The run that it tells of.
    pub run: Option<u128>,
    /// How long it says that the run took, in milliseconds.
    pub run_ms: Option<u64>,
    /// The request's method.
    pub method: String,
    /// Where it comes from.
    pub from: Option<IpAddr>,
    /// What the client calls itself.
    pub agent: String,
    /// The body's first bytes.
    pub body: Vec<u8>,
}

/// What a service is given that takes no pings: a command's, beside no driver.
pub fn deaf() -> Beats {
    Beats { inbox: mpsc::channel(1).0, tokens: Tokens::default() }
}

impl Service {
    /// The heartbeat of a token, and one ping of its second taken: before anything of the body is read.
    ///
    /// # Errors
    /// [`Error::UnknownPing`] for a token of none, [`Error::TooManyPings`].
    pub fn admit_ping(&self, token: &str) -> Result<Arc<Listed>> {
        let [unknown, too_many] = &self.0.pings_refused;
        let Some(listed) = self.0.beats.tokens.find(token) else {
            unknown.fetch_add(1, Ordering::Relaxed);
            return Err(Error::UnknownPing);
        };
        if listed.admit(self.now()) {
            return Ok(listed);
        }
        too_many.fetch_add(1, Ordering::Relaxed);
        Err(Error::TooManyPings)
    }

    /// How many pings were not admitted since the start, by reason.
    pub fn pings_refused(&self) -> [(&'static str, u64); 2] {
        let [unknown, too_many] = self.0.pings_refused.each_ref().map(|count| count.load(Ordering::Relaxed));
        [("unknown_token", unknown), ("too_many", too_many)]
    }

    /// Takes a ping in: it is durable when this returns. What is longer than is kept is cut.
    ///
    /// # Errors
    /// [`Error::UnknownPing`] where the monitor is gone meanwhile, [`Error::Internal`] where the ping did not become
    /// durable in time: it may be sent again.
    pub async fn ping(&self, listed: Arc<Listed>, said: Said) -> Result<()> {
        let Said { beat, run, run_ms, method, from, agent, mut body } = said;
        body.truncate(BODY_KEPT);
        let agent = agent.chars().take(AGENT_KEPT).collect();
        let said = Ping { number: 0, at: self.now(), beat, run, run_ms, method, from, agent, body };
        let (durable, told) = oneshot::channel();
        let report = Report { listed: Arc::clone(&listed), said, durable };
        let telling = async {
            self.0.beats.inbox.send(Arrival::Ping(Box::new(report))).await.ok()?;
            told.await.ok()
        };
        match timeout(PATIENCE, telling).await {
            Ok(Some(())) => Ok(()),
            Ok(None) if self.store().reader().monitor(listed.monitor)?.is_none() => Err(Error::UnknownPing),
            Ok(None) | Err(_) => Err(match self.store().write_fault() {
                Some(fault) => fault.into(),
                None => Error::Internal("a ping could not be stored".to_owned()),
            }),
        }
    }

    /// A heartbeat's newest pings, newest first. Their bodies are for those who may write: a job's output may tell
    /// more than its state.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a monitor that the key does not reach.
    pub async fn pings(&self, caller: &Caller, page: PageId, monitor: MonitorId) -> Result<Vec<Ping>> {
        self.reaches_monitor(caller, page, monitor)?;
        let mut pings = self.store().read(move |store| store.pings(monitor)).await?;
        if !caller.key.access.writes() {
            pings.iter_mut().for_each(|ping| ping.body.clear());
        }
        Ok(pings)
    }
}
