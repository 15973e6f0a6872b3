//! Operator alerts: detects lasting problems of the mesh, the store and the certificates, and records in the journal
//! when each begins and ends. The alerted state is stored as cursors, so a restart repeats no alert.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::{Event, EventKind};
use parallax_core::id::AgentId;
use parallax_core::member::AgentRecord;
use parallax_core::operator_alert::{
    AUTHORITY_EXPIRES_WITHIN, AlertTracker, OperatorAlert, OperatorProblem, ProblemKey,
};
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_core::vantage::Region;
use parallax_dial::{DialError, OwnAddresses};
use parallax_engine::counters::EngineCounters;
use parallax_engine::mesh_problems;
use parallax_mesh::{AgentView, FITNESS_LOG_TARGET};
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::Supervisor;
use parallax_store::{Batch, Op, Result, Store, StoreError, StoreRead};
use parallax_web::tls::CertificateAndKey;
use parallax_web::tls::acme::ExpiringCertificates;

use super::listeners::CertificateState;

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(5);
/// Number of checks after which free disk space is read again.
const SPACE_EVERY: u64 = 12;
/// Free bytes below which the store is low on space, well before it refuses writes.
const LOW_SPACE: u64 = 512 << 20;
/// Free bytes from which space is sufficient again.
const ENOUGH_SPACE: u64 = 768 << 20;
/// Milliseconds before the certificate in the operator's files expires at which they are alerted: time to have another one
/// issued by hand.
const OWN_LEFT: i64 = 14 * DAY;
/// Maximum characters of a host's faults in an alert.
const MAX_FAULTS: usize = 300;
/// Cursor value of an alert topic: far beyond every event, so that it keeps none from being trimmed. The lowest bit
/// is set while the operator is alerted.
const ALERT_MARK: u64 = 1 << 63;

/// Inputs of the checks.
#[derive(Clone)]
pub(super) struct HealthSources {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) counters: Arc<EngineCounters>,
    /// The agents as the mesh sees them.
    pub(super) agents: Arc<dyn Fn() -> Vec<AgentView> + Send + Sync>,
    pub(super) supervisor: Supervisor,
    /// Lifetime of an agent's certificate, in seconds.
    pub(super) certificate_life: i64,
    /// Returns the expiry of the signing authority's certificate, in seconds since the epoch.
    pub(super) authority_expiry: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// The certificates served to visitors.
    pub(super) certificates: CertificateState,
    /// This host's addresses, if deliveries need to know them.
    pub(super) own_addresses: Option<OwnAddresses>,
}

/// Checks for problems that an operator can fix, as long as the coordinator runs.
pub(super) async fn run(sources: HealthSources) {
    let mut health_checks = None;
    loop {
        match run_once(&mut health_checks, &sources).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => error.log_retry("operator alerts can't be stored"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn run_once(health_checks: &mut Option<HealthChecks>, sources: &HealthSources) -> Result<()> {
    let checks = match health_checks.take() {
        Some(checks) => checks,
        None => HealthChecks::start(sources.clone()).await?,
    };
    health_checks.insert(checks).check().await
}

/// The checker with the alerted topics.
struct HealthChecks {
    sources: HealthSources,
    alerts: AlertTracker,
    space: Option<(OperatorProblem, bool)>,
    runs: u64,
}

impl HealthChecks {
    /// Creates a checker and reads which topics are alerted.
    async fn start(sources: HealthSources) -> Result<Self> {
        let open_topics = sources.store.read(alerted_topics).await?;
        Ok(Self { sources, alerts: AlertTracker::with_reported(open_topics), space: None, runs: 0 })
    }

    /// Runs all checks once.
    async fn check(&mut self) -> Result<()> {
        let now = self.sources.clock.now();
        if self.runs.is_multiple_of(SPACE_EVERY) {
            self.space = free_space(self.sources.store.read(|read| read.size()).await?.free);
        }
        self.runs += 1;
        let agents = self.sources.store.read(|read| read.agents()).await?;
        let agents: Vec<AgentRecord> = agents.into_iter().map(|agent| agent.value).collect();
        let mut alerts = mesh_problems::to_operator_alerts(&self.sources.counters.mesh_problems());
        let views = (self.sources.agents)();
        alerts.extend(unfit_hosts(&views));
        alerts.extend(views.iter().map(contradiction));
        alerts.extend(self.space.clone());
        alerts.push(authority_expiry((self.sources.authority_expiry)(), now));
        alerts.push(hostname_certificates(self.sources.certificates.problems.expiring()));
        alerts.extend(
            self.sources.certificates.resolver.operator().map(|certificate| own_certificate(&certificate, now)),
        );
        let broken = self.sources.supervisor.recently_crashed();
        alerts.push((OperatorProblem::TasksCrashed(broken), broken > 0));
        if let Some(own_addresses) = &self.sources.own_addresses {
            let blocked = own_addresses.check() == Err(DialError::OwnAddressesUnreadable);
            alerts.push((OperatorProblem::DeliveriesBlocked, blocked));
        }
        alerts.extend(agents.iter().filter_map(|agent| agent_certificate(agent, self.sources.certificate_life, now)));
        let present: BTreeSet<AgentId> =
            agents.iter().filter(|agent| agent.revoked_at.is_none()).map(|agent| agent.id).collect();
        for topic in self.alerts.retain_agents(&present) {
            self.store_alert(topic, false, None).await?;
        }
        for notice in self.alerts.update(&alerts, self.sources.clock.monotonic()) {
            let event = Event { at: now, page: None, monitor: None, kind: EventKind::OperatorAlert(notice.clone()) };
            self.store_alert(notice.problem.key(), !notice.has_ended, Some(event)).await?;
            self.alerts.mark_sent(&notice);
            log_alert(&notice);
        }
        Ok(())
    }

    async fn store_alert(&self, topic: ProblemKey, was_alerted: bool, event: Option<Event>) -> Result<()> {
        let mut batch = Batch::new();
        batch.write(Op::SetCursor(cursor_name(topic), ALERT_MARK | u64::from(was_alerted)));
        batch.events.extend(event);
        self.sources.store.commit(batch).await.map(drop)
    }
}

fn log_alert(notice: &OperatorAlert) {
    let problem = &notice.problem;
    if matches!(problem, OperatorProblem::UnfitHost { .. }) {
        // The log has the fault itself already, from the same target.
        tracing::info!(
            target: FITNESS_LOG_TARGET,
            matter = ?problem,
            ended = notice.has_ended,
            "operator alert recorded"
        );
    } else if notice.has_ended {
        tracing::info!(matter = ?problem, "operator alert ended");
    } else {
        tracing::warn!(matter = ?problem, "operator alert raised");
    }
}

fn cursor_name(topic: ProblemKey) -> String {
    format!("notice-{topic}")
}

/// Reads the alerted topics.
fn alerted_topics(read: &dyn StoreRead) -> Result<BTreeSet<ProblemKey>> {
    let regions = || std::iter::once(None).chain(Region::ALL.into_iter().map(Some));
    let agents = read.agents()?.into_iter().map(|agent| agent.value.id);
    let agents = agents.flat_map(|agent| {
        [ProblemKey::AgentCertificateExpiring(agent), ProblemKey::UnfitHost(agent), ProblemKey::Contradicted(agent)]
    });
    let topics = regions()
        .map(ProblemKey::NoAgentConnected)
        .chain(regions().map(ProblemKey::SingleNetwork))
        .chain(regions().map(ProblemKey::AllQuarantined))
        .chain([ProblemKey::DiskNearlyFull, ProblemKey::AuthorityExpiring, ProblemKey::TasksCrashed])
        .chain([
            ProblemKey::AcmeCertificatesExpiring,
            ProblemKey::CertificateFileExpiring,
            ProblemKey::NameResolutionFails,
            ProblemKey::OnlyTwoNetworks,
            ProblemKey::DeliveriesBlocked,
        ])
        .chain(agents);
    let mut stored_topics = BTreeSet::new();
    for topic in topics {
        if read.cursor(&cursor_name(topic))? & 1 == 1 {
            stored_topics.insert(topic);
        }
    }
    Ok(stored_topics)
}

/// Finds agents whose hosts are unfit to run checks. Agents that are not connected are skipped. Among agents on one
/// host with the same faults only the first is reported: they connect from one address, or over loopback.
fn unfit_hosts(views: &[AgentView]) -> Vec<(OperatorProblem, bool)> {
    let mut views: Vec<&AgentView> = views.iter().filter(|view| view.connected_since.is_some()).collect();
    views.sort_by_key(|view| view.agent.id);
    let mut reported = BTreeSet::new();
    let faulty_hosts = views.into_iter().filter_map(|view| {
        let is_present = !view.unfit.is_empty();
        let host = view.remote.map(|remote| remote.ip().to_canonical());
        let host = host.map(|ip| if ip.is_loopback() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip });
        if is_present && host.is_some_and(|host| !reported.insert((host, &view.unfit))) {
            return None;
        }
        let faults = view.unfit.join("; ").chars().take(MAX_FAULTS).collect();
        Some((OperatorProblem::UnfitHost { agent: view.agent.id, faults }, is_present))
    });
    faulty_hosts.collect()
}

/// Checks whether other agents contradict an agent that is not in quarantine for it.
fn contradiction(view: &AgentView) -> (OperatorProblem, bool) {
    let is_present = view.contradicted.is_some() && !view.is_quarantined;
    let summary = view.contradicted.iter().flat_map(|summary| summary.chars()).take(MAX_FAULTS).collect();
    (OperatorProblem::Contradicted { agent: view.agent.id, by: summary }, is_present)
}

/// Checks free space; returns `None` between the bounds, which keeps the alerted state.
fn free_space(free: u64) -> Option<(OperatorProblem, bool)> {
    (!(LOW_SPACE..ENOUGH_SPACE).contains(&free)).then_some((OperatorProblem::DiskNearlyFull(free), free < LOW_SPACE))
}

/// Checks whether the authority's certificate, which expires at that second, is near expiry.
fn authority_expiry(ends: i64, now: Timestamp) -> (OperatorProblem, bool) {
    let ends_at = Timestamp::from_millis(ends.saturating_mul(SECOND));
    (OperatorProblem::AuthorityExpiring(ends_at), ends_at.since(now) < AUTHORITY_EXPIRES_WITHIN)
}

/// Checks whether certificates of hostnames near expiry have failed to renew.
fn hostname_certificates(ending: Option<ExpiringCertificates>) -> (OperatorProblem, bool) {
    let is_present = ending.is_some();
    // An ended alert names no hostname.
    let none = || ExpiringCertificates { first_host: String::new(), count: 0, expires_at: Timestamp::from_millis(0) };
    let ExpiringCertificates { first_host: first, count, expires_at: ends_at } = ending.unwrap_or_else(none);
    (OperatorProblem::AcmeCertificatesExpiring { first, count, ends_at }, is_present)
}

/// Checks whether the operator's own certificate is near expiry: the last sixth of its lifetime, at most two weeks.
fn own_certificate(certificate: &CertificateAndKey, now: Timestamp) -> (OperatorProblem, bool) {
    let threshold = (certificate.not_after.since(certificate.not_before) / 6).min(OWN_LEFT);
    (OperatorProblem::CertificateFileExpiring(certificate.not_after), certificate.not_after.since(now) < threshold)
}

/// Checks whether the agent's certificate is near expiry. Agents renew after two thirds of the lifetime, so less than
/// a sixth left means that renewal has failed for long. Returns `None` if no certificate is recorded.
fn agent_certificate(agent: &AgentRecord, life: i64, now: Timestamp) -> Option<(OperatorProblem, bool)> {
    let from = agent.identity.valid_from;
    if agent.revoked_at.is_some() || from == 0 {
        return None;
    }
    let ends_at = Timestamp::from_millis(from.saturating_add(life).saturating_mul(SECOND));
    let remaining = ends_at.since(now);
    Some((
        OperatorProblem::AgentCertificateExpiring { agent: agent.id, ends_at },
        remaining < life.saturating_mul(SECOND) / 6,
    ))
}

#[cfg(test)]
mod tests;
