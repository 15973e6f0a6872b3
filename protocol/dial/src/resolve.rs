//! Resolution of names to addresses: one query per attempt, no cache, no hosts file.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
    proto::rr::{Name as DnsName, RData, RecordType},
};
use parallax_primitives::host::HostName;
use tokio::time::{Instant, timeout_at};

use crate::{
    dns_error::dns_error,
    error::DialError,
    families::{self, FamilyQuery, FamilyResult, LateFamily, MAX_ADDRESSES, ResolvedAddresses},
    liveness::ResolverLiveness,
};

/// Wait for an answer before the resolver's liveness is checked in parallel.
const LIVENESS_CHECK_AFTER: Duration = Duration::from_secs(1);

/// DNS client of the host's name servers, or of others.
#[derive(Debug, Clone)]
pub struct DnsResolver {
    pub(crate) inner: TokioResolver,
    pub(crate) limit: Duration,
    liveness: Arc<ResolverLiveness>,
}

/// The resolver's settings could not be read or used.
#[derive(Debug, thiserror::Error)]
#[error("resolver settings can't be used: {0}")]
pub struct ResolverSetupError(String);

impl DnsResolver {
    /// Default time limit for one name.
    pub const DEFAULT_LIMIT: Duration = Duration::from_secs(5);

    /// Uses the host's name servers (`/etc/resolv.conf`), but none of its search domains or options.
    ///
    /// # Errors
    /// [`ResolverSetupError`] if the settings can't be read or name no server.
    pub fn system() -> Result<Self, ResolverSetupError> {
        let (config, _) =
            hickory_resolver::system_conf::read_system_conf().map_err(|e| ResolverSetupError(e.to_string()))?;
        Self::build(config.name_servers().to_vec())
    }

    /// Uses these name servers, over UDP and, for long answers, TCP on the same port.
    ///
    /// # Errors
    /// [`ResolverSetupError`] if the list is empty.
    pub fn with_servers(servers: &[SocketAddr]) -> Result<Self, ResolverSetupError> {
        let servers = servers
            .iter()
            .map(|server| {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                    connection.port = server.port();
                    connection
                });
                let mut config = NameServerConfig::udp_and_tcp(server.ip());
                config.connections = connections.to_vec();
                config
            })
            .collect();
        Self::build(servers)
    }

    /// Sets the time limit for one name.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the zones whose random names prove that the resolver is alive, instead of some large zones of the
    /// Internet: for networks without Internet access.
    #[must_use]
    pub fn with_liveness_zones(mut self, zones: &[HostName]) -> Self {
        let zones = zones.iter().filter_map(|zone| DnsName::from_ascii(format!("{}.", zone.as_str())).ok());
        self.liveness = Arc::new(ResolverLiveness::new(zones.collect()));
        self
    }

    fn build(servers: Vec<NameServerConfig>) -> Result<Self, ResolverSetupError> {
        if servers.is_empty() {
            return Err(ResolverSetupError("no name server is set".to_owned()));
        }
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()).with_options(options());
        builder.options_mut().use_hosts_file = ResolveHosts::Never;
        let inner = builder.build().map_err(|e| ResolverSetupError(e.to_string()))?;
        Ok(Self { inner, limit: Self::DEFAULT_LIMIT, liveness: Arc::new(ResolverLiveness::with_large_zones()) })
    }

    /// Returns all addresses of `name`, both families, by `deadline` and within the resolver's own limit.
    /// `localhost` names resolve to the loopback addresses without a query (RFC 6761).
    ///
    /// # Errors
    /// [`DialError::NotFound`], [`DialError::NoAddress`], [`DialError::ServFail`] or
    /// [`DialError::DnsTimeout`] if the name is at fault, that is, only if the resolver was alive before and
    /// after the query; [`DialError::ResolverDead`] if it was not, or if it denies every name.
    pub async fn addresses(&self, name: &HostName, deadline: Instant) -> Result<ResolvedAddresses, DialError> {
        let (mut found, late) = self.first_addresses(name, deadline).await?;
        if let Some(late) = late {
            found.add(late.await);
        }
        Ok(found)
    }

    /// Returns the addresses of the family that answers first, with those of the other one if they arrive
    /// soon, or else a future for them.
    ///
    /// # Errors
    /// As [`Self::addresses`].
    pub(crate) async fn first_addresses(
        &self,
        name: &HostName,
        deadline: Instant,
    ) -> Result<(ResolvedAddresses, Option<LateFamily>), DialError> {
        if name.is_localhost() {
            let loopback = ResolvedAddresses { v6: vec![Ipv6Addr::LOCALHOST], v4: vec![Ipv4Addr::LOCALHOST] };
            return Ok((loopback, None));
        }
        let fqdn = DnsName::from_ascii(format!("{}.", name.as_str())).map_err(|_| DialError::NotFound)?;
        let started = Instant::now();
        let query = self.both_families(&fqdn, deadline.min(started + self.limit));
        let answer = self.await_with_liveness_check(query, deadline).await;
        if answer.is_ok() {
            self.liveness.record_resolved(name);
        }
        self.confirm_name_at_fault(answer, started, deadline).await
    }

    /// Awaits a query. If it takes long, checks the resolver's liveness meanwhile and records the verdict for
    /// [`Self::confirm_name_at_fault`].
    pub(crate) async fn await_with_liveness_check<T>(&self, query: impl Future<Output = T>, deadline: Instant) -> T {
        let mut query = pin!(query);
        let suspect_at = Instant::now() + LIVENESS_CHECK_AFTER;
        if let Ok(answer) = timeout_at(suspect_at, &mut query).await {
            return answer;
        }
        // Boxed: hardly any query takes so long.
        let verdict = Box::pin(self.liveness.verdict(&self.inner, suspect_at, deadline));
        tokio::select! {
            answer = &mut query => answer,
            _ = verdict => query.await,
        }
    }

    /// Prevents a fault of the resolver from being blamed on a name.
    pub(crate) async fn confirm_name_at_fault<T>(
        &self,
        answer: Result<T, DialError>,
        started: Instant,
        deadline: Instant,
    ) -> Result<T, DialError> {
        match answer {
            Err(DialError::NotFound | DialError::ServFail { .. } | DialError::DnsTimeout) => {
                // Without time left for a check, the earlier verdict decides.
                let after = self.liveness.verdict(&self.inner, Instant::now(), deadline).await;
                let own = after.and_then(Result::err).or_else(|| self.liveness.fault_since(started));
                own.map_or(answer, Err)
            }
            Ok(_) | Err(_) => answer,
        }
    }

    /// Checks liveness with queries that no cache can answer: a random name below some large zones. Takes at
    /// most 4 s, and ends at `deadline`.
    ///
    /// # Errors
    /// The fault of this host: [`DialError::ResolverDead`], or [`DialError::NoDescriptors`] if it can't send
    /// a query.
    pub async fn check_alive(&self, deadline: Instant) -> Result<(), DialError> {
        let verdict = self.liveness.verdict(&self.inner, Instant::now(), deadline).await;
        verdict.unwrap_or(Err(DialError::ResolverDead))
    }

    async fn both_families(
        &self,
        name: &DnsName,
        deadline: Instant,
    ) -> Result<(ResolvedAddresses, Option<LateFamily>), DialError> {
        let query =
            |family| -> FamilyQuery { Box::pin(one_family(self.inner.clone(), name.clone(), family, deadline)) };
        families::resolve_families(query(RecordType::AAAA), query(RecordType::A)).await
    }
}

async fn one_family(inner: TokioResolver, name: DnsName, family: RecordType, deadline: Instant) -> FamilyResult {
    let lookup = timeout_at(deadline, inner.lookup(name, family))
        .await
        .map_err(|_| DialError::DnsTimeout)?
        .map_err(|error| dns_error(&error))?;
    let addresses = lookup.answers().iter().filter_map(|record| match &record.data {
        RData::A(a) => Some(IpAddr::V4(a.0)),
        RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.0)),
        _ => None,
    });
    Ok(addresses.take(MAX_ADDRESSES).collect())
}

fn options() -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.cache_size = 0;
    options.timeout = Duration::from_secs(2);
    options.attempts = 2;
    options.edns0 = true;
    // One resolver serves thousands of concurrent checks.
    options.max_active_requests = 4096;
    options.preserve_intermediates = false;
    options
}
