//! Operator alerts: detects lasting problems of the mesh, the store and the certificates, and records in the journal
//! when each begins and ends. The alerted state is stored as cursors, so a restart repeats no alert.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::{Event, What};
use parallax_core::id::AgentId;
use parallax_core::member::Agent;
use parallax_core::notice::{Board, Matter, Notice, Topic};
use parallax_core::place::Region;
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_dial::{DialError, OwnAddresses};

use super::doors::Certificates;
use crate::clock::Clock;
use crate::flow::counters::Counters;
use crate::flow::notices;
use crate::mesh::{AgentView, FITNESS};
use crate::storage::{Batch, Op, Read, Result, Store, StoreError};
use crate::supervise::Watch;
use crate::tls::Pair;
use crate::tls::acme::Ending;

/// Interval of the checks.
const LOOK: Duration = Duration::from_secs(5);
/// Number of checks after which free disk space is read again.
const SPACE_EVERY: u64 = 12;
/// Free bytes below which the store is low on space, well before it refuses writes.
const LOW: u64 = 512 << 20;
/// Free bytes from which space is sufficient again.
const ENOUGH: u64 = 768 << 20;
/// Milliseconds before the authority's certificate expires at which the operator is alerted: time for every agent to
/// follow a rotation.
const AUTHORITY_LEFT: i64 = 90 * DAY;
/// The maximum for the certificate in the operator's files: time to have another one issued by hand.
const OWN_LEFT: i64 = 14 * DAY;
/// Maximum characters of a host's faults in an alert.
const FAULTS: usize = 300;
/// Cursor value of an alert topic: far beyond every event, so that it keeps none from being trimmed. The lowest bit
/// is set while the operator is alerted.
const MARK: u64 = 1 << 63;

/// Inputs of the checks.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) counters: Arc<Counters>,
    /// The agents as the mesh sees them.
    pub(super) agents: Arc<dyn Fn() -> Vec<AgentView> + Send + Sync>,
    pub(super) watch: Watch,
    /// Lifetime of an agent's certificate, in seconds.
    pub(super) certificate_life: i64,
    /// Returns the expiry of the signing authority's certificate, in seconds since the epoch.
    pub(super) authority_ends: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// The certificates served to visitors.
    pub(super) certificates: Certificates,
    /// This host's addresses, if deliveries need to know them.
    pub(super) own: Option<OwnAddresses>,
}

/// Checks for problems that an operator can fix, as long as the coordinator runs.
pub(super) async fn watch(sources: Sources) {
    let mut lookout = None;
    loop {
        match look(&mut lookout, &sources).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => error.log_retry("operator alerts can't be stored"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn look(lookout: &mut Option<Lookout>, sources: &Sources) -> Result<()> {
    let known = match lookout.take() {
        Some(known) => known,
        None => Lookout::start(sources.clone()).await?,
    };
    lookout.insert(known).look().await
}

/// The checker with the alerted topics.
struct Lookout {
    of: Sources,
    board: Board,
    space: Option<(Matter, bool)>,
    looks: u64,
}

impl Lookout {
    /// Creates a checker and reads which topics are alerted.
    async fn start(of: Sources) -> Result<Self> {
        let told = of.store.read(told).await?;
        Ok(Self { of, board: Board::with(told), space: None, looks: 0 })
    }

    /// Runs all checks once.
    async fn look(&mut self) -> Result<()> {
        let now = self.of.clock.now();
        if self.looks.is_multiple_of(SPACE_EVERY) {
            self.space = space(self.of.store.read(|read| read.footprint()).await?.free);
        }
        self.looks += 1;
        let agents = self.of.store.read(|read| read.agents()).await?;
        let agents: Vec<Agent> = agents.into_iter().map(|agent| agent.value).collect();
        let mut matters = notices::matters(&self.of.counters.notices());
        let views = (self.of.agents)();
        matters.extend(unfit_hosts(&views));
        matters.extend(views.iter().map(contradicted));
        matters.extend(self.space.clone());
        matters.push(authority((self.of.authority_ends)(), now));
        matters.push(hosts(self.of.certificates.told.ending()));
        matters.extend(self.of.certificates.shown.own().map(|own| own_ending(&own, now)));
        let broken = self.of.watch.broken_lately();
        matters.push((Matter::PartsBroken(broken), broken > 0));
        if let Some(own) = &self.of.own {
            let blocked = own.check() == Err(DialError::OwnAddressesUnreadable);
            matters.push((Matter::DeliveriesBlocked, blocked));
        }
        matters.extend(agents.iter().filter_map(|agent| certificate(agent, self.of.certificate_life, now)));
        let present: BTreeSet<AgentId> =
            agents.iter().filter(|agent| agent.revoked_at.is_none()).map(|agent| agent.id).collect();
        for topic in self.board.forget_others(&present) {
            self.keep(topic, false, None).await?;
        }
        for notice in self.board.look(&matters, self.of.clock.steady()) {
            let event = Event { at: now, page: None, monitor: None, what: What::Notice(notice.clone()) };
            self.keep(notice.matter.topic(), !notice.ended, Some(event)).await?;
            self.board.note(&notice);
            say(&notice);
        }
        Ok(())
    }

    async fn keep(&self, topic: Topic, told: bool, event: Option<Event>) -> Result<()> {
        let mut batch = Batch::new();
        batch.write(Op::SetCursor(cursor(topic), MARK | u64::from(told)));
        batch.events.extend(event);
        self.of.store.commit(batch).await.map(drop)
    }
}

fn say(notice: &Notice) {
    let matter = &notice.matter;
    if matches!(matter, Matter::HostUnfit { .. }) {
        // The log has the fault itself already, from the same target.
        tracing::info!(target: FITNESS, ?matter, ended = notice.ended, "operator alert recorded");
    } else if notice.ended {
        tracing::info!(?matter, "operator alert ended");
    } else {
        tracing::warn!(?matter, "operator alert raised");
    }
}

fn cursor(topic: Topic) -> String {
    format!("notice-{topic}")
}

/// Reads the alerted topics.
fn told(read: &dyn Read) -> Result<BTreeSet<Topic>> {
    let regions = || std::iter::once(None).chain(Region::ALL.into_iter().map(Some));
    let agents = read.agents()?.into_iter().map(|agent| agent.value.id);
    let agents = agents.flat_map(|agent| {
        [Topic::CertificateEnding(agent), Topic::HostUnfit(agent), Topic::Contradicted(agent)]
    });
    let topics = regions()
        .map(Topic::NobodyConnected)
        .chain(regions().map(Topic::OneNetwork))
        .chain(regions().map(Topic::Quarantined))
        .chain([Topic::StoreLow, Topic::AuthorityEnding, Topic::PartsBroken])
        .chain([
            Topic::HostsEnding,
            Topic::OwnEnding,
            Topic::NamesFail,
            Topic::TwoNetworks,
            Topic::DeliveriesBlocked,
        ])
        .chain(agents);
    let mut told = BTreeSet::new();
    for topic in topics {
        if read.cursor(&cursor(topic))? & 1 == 1 {
            told.insert(topic);
        }
    }
    Ok(told)
}

/// Finds agents whose hosts are unfit to run checks. Agents that are not connected are skipped. Among agents on one
/// host with the same faults only the first is reported: they connect from one address, or over loopback.
fn unfit_hosts(views: &[AgentView]) -> Vec<(Matter, bool)> {
    let mut views: Vec<&AgentView> = views.iter().filter(|view| view.connected_since.is_some()).collect();
    views.sort_by_key(|view| view.agent.id);
    let mut reported = BTreeSet::new();
    let judged = views.into_iter().filter_map(|view| {
        let holds = !view.unfit.is_empty();
        let host = view.remote.map(|remote| remote.ip().to_canonical());
        let host = host.map(|ip| if ip.is_loopback() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip });
        if holds && host.is_some_and(|host| !reported.insert((host, &view.unfit))) {
            return None;
        }
        let faults = view.unfit.join("; ").chars().take(FAULTS).collect();
        Some((Matter::HostUnfit { agent: view.agent.id, faults }, holds))
    });
    judged.collect()
}

/// Checks whether other agents contradict an agent that is not in quarantine for it.
fn contradicted(view: &AgentView) -> (Matter, bool) {
    let holds = view.contradicted.is_some() && !view.is_quarantined;
    let by = view.contradicted.iter().flat_map(|by| by.chars()).take(FAULTS).collect();
    (Matter::Contradicted { agent: view.agent.id, by }, holds)
}

/// Checks free space; returns `None` between the bounds, which keeps the alerted state.
fn space(free: u64) -> Option<(Matter, bool)> {
    (!(LOW..ENOUGH).contains(&free)).then_some((Matter::StoreLow(free), free < LOW))
}

/// Checks whether the authority's certificate, which expires at that second, is near expiry.
fn authority(ends: i64, now: Timestamp) -> (Matter, bool) {
    let ends_at = Timestamp::from_millis(ends.saturating_mul(SECOND));
    (Matter::AuthorityEnding(ends_at), ends_at.since(now) < AUTHORITY_LEFT)
}

/// Checks whether certificates of hostnames near expiry have failed to renew.
fn hosts(ending: Option<Ending>) -> (Matter, bool) {
    let holds = ending.is_some();
    // An ended alert names no hostname.
    let none = || Ending { first: String::new(), count: 0, ends_at: Timestamp::from_millis(0) };
    let Ending { first, count, ends_at } = ending.unwrap_or_else(none);
    (Matter::HostsEnding { first, count, ends_at }, holds)
}

/// Checks whether the operator's own certificate is near expiry: the last sixth of its lifetime, at most two weeks.
fn own_ending(own: &Pair, now: Timestamp) -> (Matter, bool) {
    let near = (own.not_after.since(own.not_before) / 6).min(OWN_LEFT);
    (Matter::OwnEnding(own.not_after), own.not_after.since(now) < near)
}

/// Checks whether the agent's certificate is near expiry. Agents renew after two thirds of the lifetime, so less than
/// a sixth left means that renewal has failed for long. Returns `None` if no certificate is recorded.
fn certificate(agent: &Agent, life: i64, now: Timestamp) -> Option<(Matter, bool)> {
    let from = agent.standing.valid_from;
    if agent.revoked_at.is_some() || from == 0 {
        return None;
    }
    let ends_at = Timestamp::from_millis(from.saturating_add(life).saturating_mul(SECOND));
    let left = ends_at.since(now);
    Some((Matter::CertificateEnding { agent: agent.id, ends_at }, left < life.saturating_mul(SECOND) / 6))
}

#[cfg(test)]
mod tests;
