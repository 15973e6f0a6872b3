//! Heartbeat pings: passed to the driver, and acknowledged once durable.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parallax_core::heartbeat::{MAX_STORED_BODY, PingKind, StoredPing};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::role::Permission;
use parallax_engine::{Arrival, HeartbeatEntry, HeartbeatTokens, IncomingPing as Report, PingIntake};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::context::ServiceContext;
use crate::{Caller, ServiceError, ServiceResult};

/// Time that a ping may take to become durable; after that its sender gets an error and may retry.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum characters stored of a client's user agent.
const MAX_USER_AGENT: usize = 200;

/// A ping as received.
#[derive(Debug)]
pub struct PingRequest {
    /// The signal that it carries.
    pub kind: PingKind,
    /// The run that it belongs to.
    pub run: Option<u128>,
    /// The run's duration as reported by the client, in milliseconds.
    pub run_ms: Option<u64>,
    /// The HTTP method.
    pub method: String,
    /// The client IP.
    pub client_ip: Option<IpAddr>,
    /// The client's user agent.
    pub user_agent: String,
    /// The first bytes of the body.
    pub body: Vec<u8>,
}

/// A channel without a driver, for commands that accept no pings.
pub fn disconnected() -> PingIntake {
    PingIntake { inbox: mpsc::channel(1).0, tokens: HeartbeatTokens::default() }
}

/// Passes pings of heartbeats to the driver. A ping is durable when it is answered; a token's pings of one second are
/// limited.
#[derive(Debug)]
pub struct PingService {
    context: Arc<ServiceContext>,
    pings: PingIntake,
    /// Number of refused pings: with an unknown token, and above the rate limit.
    refusals: [AtomicU64; 2],
}

impl PingService {
    pub(crate) fn new(context: &Arc<ServiceContext>, pings: PingIntake) -> Self {
        Self { context: Arc::clone(context), pings, refusals: Default::default() }
    }

    /// Finds the heartbeat of a token and counts a ping of the current second. Called before the body is read.
    ///
    /// # Errors
    /// [`ServiceError::UnknownPing`] for an unknown token, [`ServiceError::TooManyPings`].
    pub fn admit(&self, token: &str) -> ServiceResult<Arc<HeartbeatEntry>> {
        let [unknown, too_many] = &self.refusals;
        let Some(heartbeat) = self.pings.tokens.find(token) else {
            unknown.fetch_add(1, Ordering::Relaxed);
            return Err(ServiceError::UnknownPing);
        };
        if heartbeat.admit(self.context.now()) {
            return Ok(heartbeat);
        }
        too_many.fetch_add(1, Ordering::Relaxed);
        Err(ServiceError::TooManyPings)
    }

    /// Returns the number of pings refused since the start, by reason.
    pub fn refusals(&self) -> [(&'static str, u64); 2] {
        let [unknown, too_many] = self.refusals.each_ref().map(|count| count.load(Ordering::Relaxed));
        [("unknown_token", unknown), ("too_many", too_many)]
    }

    /// Records a ping; it is durable on return. Fields that are too long are truncated.
    ///
    /// # Errors
    /// [`ServiceError::UnknownPing`] if the monitor was deleted in the meantime, [`ServiceError::Internal`] if the ping
    /// did not become durable in time: the client may send it again.
    pub async fn record(&self, heartbeat: Arc<HeartbeatEntry>, ping: PingRequest) -> ServiceResult<()> {
        let PingRequest { kind, run, run_ms, method, client_ip: from, user_agent: agent, mut body } = ping;
        body.truncate(MAX_STORED_BODY);
        let agent = agent.chars().take(MAX_USER_AGENT).collect();
        let ping = StoredPing {
            number: 0,
            at: self.context.now(),
            kind,
            run,
            run_ms,
            method,
            client_ip: from,
            user_agent: agent,
            body,
        };
        let (durable, committed) = oneshot::channel();
        let report = Report { heartbeat: Arc::clone(&heartbeat), ping, on_durable: durable };
        let exchange = async {
            self.pings.inbox.send(Arrival::Ping(Box::new(report))).await.ok()?;
            committed.await.ok()
        };
        match timeout(TIMEOUT, exchange).await {
            Ok(Some(())) => Ok(()),
            Ok(None) if self.context.store().reader().monitor(heartbeat.monitor)?.is_none() => {
                Err(ServiceError::UnknownPing)
            }
            Ok(None) | Err(_) => Err(match self.context.store().write_fault() {
                Some(fault) => fault.into(),
                None => ServiceError::Internal("a ping could not be stored".to_owned()),
            }),
        }
    }

    /// Lists a heartbeat's newest pings, newest first. Only callers with write access get the bodies: a job's output
    /// may reveal more than its state.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access.
    pub async fn list(&self, caller: &Caller, page: PageId, monitor: MonitorId) -> ServiceResult<Vec<StoredPing>> {
        let page = self.context.page(caller, page)?;
        self.context.monitor_on(&page, monitor)?;
        let mut pings = self.context.store().read(move |store| store.pings(monitor)).await?;
        if !caller.allows(Permission::Edit) {
            pings.iter_mut().for_each(|ping| ping.body.clear());
        }
        Ok(pings)
    }
}
