//! Obtains and renews certificates by ACME (RFC 8555), one order at a time.
//!
//! Issued certificates are stored in a folder and loaded at startup, so they work without network. The certificate of a
//! host that is no longer used is removed.

mod certificate_store;
mod client;
mod order;
mod reachability;
mod renewal_plan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use instant_acme::{Account, NewAccount};
use parallax_dial::{BlockedAddressMode, DialGuard};
use parallax_guarded_client::GuardedClient;
use parallax_runtime::clock::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

use self::certificate_store::CertificateStore;
use self::client::AcmeHttpClient;
use self::order::OrderError;
use self::reachability::ReachabilityCheck;
pub use self::renewal_plan::ExpiringCertificates;
use self::renewal_plan::{OrderFailure, RenewalPlan};
use super::{AcmeChallenges, CertificateAndKey, CertificateResolver};

/// Port that the ACME server connects to for HTTP-01 challenges.
const HTTP_PORT: u16 = 80;
/// Interval of checks for changed hosts.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Lists the hosts that need certificates, most important first; `None` if they can't be listed at the moment.
pub type HostLister = Arc<dyn Fn() -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync>;

/// The hosts that need certificates.
#[derive(Clone)]
pub struct CertificateHosts {
    /// Called at the start and after each change.
    pub list: HostLister,
    /// Changes when the list may have changed.
    pub changes: watch::Receiver<u64>,
    /// Host name of the base URL, if it has one.
    pub base_host: Option<String>,
}

/// Status of certificates, for page owners and the operator. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AcmeStatus(Arc<Mutex<AcmeStatusState>>);

#[derive(Debug, Default)]
struct AcmeStatusState {
    /// By host, the reason why its certificate is missing or not renewed, for page owners.
    problems: BTreeMap<String, String>,
    expiring: Option<ExpiringCertificates>,
}

impl AcmeStatus {
    /// Returns the reason, for its owner, why the certificate of a host is missing or not renewed. `None` if there is
    /// no problem, or the owner can't solve it.
    pub fn problem(&self, name: &str) -> Option<String> {
        self.lock().problems.get(name).cloned()
    }

    /// Returns certificates that expire soon, which the operator has to look after.
    pub fn expiring(&self) -> Option<ExpiringCertificates> {
        self.lock().expiring.clone()
    }

    fn lock(&self) -> MutexGuard<'_, AcmeStatusState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Error when ACME is set up.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The trusted roots are invalid.
    #[error("acme.roots: {0}")]
    Roots(String),
    /// The certificate folder can't be used.
    #[error("the certificate folder can't be used: {0}")]
    Folder(String),
    /// The HTTP client can't be set up.
    #[error("the HTTP client can't be set up: {0}")]
    Client(String),
}

impl From<parallax_certs::CertsError> for AcmeError {
    fn from(error: parallax_certs::CertsError) -> Self {
        Self::Folder(error.to_string())
    }
}

/// Settings of ACME.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// Folder for keys and certificates.
    pub folder: PathBuf,
    /// URL of the ACME directory.
    pub directory: String,
    /// Contact email address of the account.
    pub contact: Option<String>,
    /// File with trusted roots in addition to the public ones.
    pub roots: Option<PathBuf>,
}

impl fmt::Debug for CertificateHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateHosts").field("base", &self.base_host).finish_non_exhaustive()
    }
}

/// Dependencies of a [`AcmeManager`].
#[derive(Debug, Clone)]
pub struct AcmeContext {
    /// Folder, ACME server and account.
    pub settings: AcmeSettings,
    /// Hosts that need certificates.
    pub hosts: CertificateHosts,
    /// Clock.
    pub clock: Clock,
    /// Certificate resolver of the listener.
    pub resolver: CertificateResolver,
    /// Challenges served by the plain HTTP listener.
    pub challenges: AcmeChallenges,
    /// Guard for connections to hosts, which customers choose.
    pub guard: DialGuard,
    /// Status to report problems to.
    pub status: AcmeStatus,
}

/// Obtains and renews the certificates of all hosts.
pub struct AcmeManager {
    context: AcmeContext,
    store: CertificateStore,
    client: AcmeHttpClient,
    reachability: ReachabilityCheck,
    account: Option<Account>,
    plan: RenewalPlan,
    /// All hosts, as last listed.
    hosts: Vec<String>,
    /// True if the list may have changed since.
    is_stale: bool,
    /// The operator's certificate that the plan is based on; hosts that it covers need no other.
    operator_certificate: Option<CertificateAndKey>,
    /// True once the certificates of hosts that were removed while the process did not run are deleted.
    is_swept: bool,
    /// Hosts whose expiring certificate was already logged.
    expiry_logged: BTreeSet<String>,
}

impl AcmeManager {
    /// Creates a manager and loads the certificates in its folder, without network access.
    ///
    /// # Errors
    /// [`AcmeError`] if the folder, the roots or the client can't be used.
    pub async fn start(context: AcmeContext) -> Result<Self, AcmeError> {
        let store = CertificateStore::open(Path::new(&context.settings.folder))?;
        let client = AcmeHttpClient::new(context.settings.roots.as_deref())?;
        let (base_host, challenges) = (context.hosts.base_host.clone(), context.challenges.clone());
        let guarded_client = GuardedClient::new(context.guard.clone(), BlockedAddressMode::DropBlocked, &[])
            .map_err(|error| AcmeError::Client(error.to_string()))?;
        let reachability = ReachabilityCheck { client: guarded_client, base_host, challenges, port: HTTP_PORT };
        let mut manager = Self {
            context,
            store,
            client,
            reachability,
            account: None,
            plan: RenewalPlan::default(),
            hosts: Vec::new(),
            is_stale: true,
            operator_certificate: None,
            is_swept: false,
            expiry_logged: BTreeSet::new(),
        };
        manager.context.status.lock().problems.clear();
        manager.refresh().await;
        Ok(manager)
    }

    /// Creates a manager after the previous one crashed. Its certificates are still served, so if the folder or the
    /// roots can't be used, this retries until they can.
    pub async fn restart(context: AcmeContext, pause: Duration) -> Self {
        loop {
            match Self::start(context.clone()).await {
                Ok(manager) => return manager,
                Err(error) => {
                    tracing::error!(%error, "certificates are served but can't be renewed; retrying");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Runs until the coordinator stops.
    pub async fn run(mut self) {
        let mut last_refresh: Option<Instant> = None;
        loop {
            // Between orders too, since each may take minutes and there may be many.
            if last_refresh.is_none_or(|last_refresh| last_refresh.elapsed() >= CHECK_INTERVAL) {
                self.refresh().await;
                last_refresh = Some(Instant::now());
            }
            let Some(name) = self.plan.next_due(self.context.clock.now()) else {
                tokio::time::sleep(CHECK_INTERVAL).await;
                continue;
            };
            match self.obtain(&name).await {
                Ok(certificate) => {
                    self.install(&name, certificate);
                    self.plan.record_order(&name, self.context.clock.now());
                }
                Err(error) => self.record_failure(&name, &error),
            }
        }
    }

    /// Updates the hosts if they may have changed, and checks which certificates expire soon.
    async fn refresh(&mut self) {
        // Marked as seen before listing, so that a change in between causes another listing.
        if self.context.hosts.changes.has_changed().unwrap_or_default() {
            self.context.hosts.changes.borrow_and_update();
            self.is_stale = true;
        }
        let is_listed = if self.is_stale { self.list_hosts().await } else { false };
        let operator_certificate = self.context.resolver.operator();
        let is_unchanged = match (&operator_certificate, &self.operator_certificate) {
            (Some(operator_certificate), Some(previous)) => operator_certificate.is_same_load(previous),
            (operator_certificate, previous) => operator_certificate.is_none() && previous.is_none(),
        };
        // While the hosts are unknown, no certificate is removed.
        if is_listed || (!is_unchanged && !self.is_stale) {
            self.operator_certificate = operator_certificate;
            self.apply_hosts().await;
        }
        let now = self.context.clock.now();
        for name in &self.hosts {
            if self.plan.expires_soon(name, now) && self.expiry_logged.insert(name.clone()) {
                tracing::error!(%name, "a certificate expires within 14 days and is not renewed; see earlier warnings");
            }
        }
        self.context.status.lock().expiring = self.plan.expiring(now);
    }

    /// Lists the hosts again; returns true if that succeeded.
    async fn list_hosts(&mut self) -> bool {
        let Some(hosts) = (self.context.hosts.list)().await else { return false };
        self.hosts = hosts;
        self.is_stale = false;
        true
    }

    /// Plans the renewals of the listed hosts, and loads certificates on disk for new ones.
    async fn apply_hosts(&mut self) {
        // The operator's certificate takes precedence, so hosts that it covers need no other.
        let (operator_certificate, mut names) = (self.operator_certificate.as_ref(), self.hosts.clone());
        names.retain(|name| operator_certificate.is_none_or(|operator_certificate| !operator_certificate.covers(name)));
        for name in self.plan.set_hosts(names.clone()) {
            tracing::info!(%name, "removed the certificate of a host that is no longer used");
            self.context.resolver.remove(&name);
            self.store.remove_certificate(&name);
            self.expiry_logged.remove(&name);
            self.context.status.lock().problems.remove(&name);
        }
        // Certificates already served may come from a previous manager, unknown to this plan.
        names.retain(|name| !self.plan.has_certificate(name));
        let hosts_to_keep = (!self.is_swept).then(|| self.hosts.clone());
        let store = self.store.clone();
        // Blocking, since there may be thousands of files.
        let loading = tokio::task::spawn_blocking(move || {
            if let Some(hosts) = hosts_to_keep {
                store.remove_others(&hosts.iter().map(String::as_str).collect());
            }
            let certificate = |name: String| store.certificate(&name).map(|certificate| (name, certificate));
            names.into_iter().filter_map(certificate).collect::<Vec<_>>()
        });
        match loading.await {
            Ok(certificates) => {
                self.is_swept = true;
                for (name, certificate) in certificates {
                    self.install(&name, certificate);
                }
            }
            Err(error) => {
                tracing::error!(%error, "certificates on disk can't be read; retrying");
                self.is_stale = true;
            }
        }
    }

    fn install(&mut self, name: &str, certificate: CertificateAndKey) {
        tracing::info!(%name, pair = ?certificate, "a certificate was installed");
        self.plan.record_certificate(name, certificate.not_before, certificate.not_after);
        self.context.resolver.set_issued(name, certificate);
        self.expiry_logged.remove(name);
        self.context.status.lock().problems.remove(name);
    }

    fn record_failure(&mut self, name: &str, error: &OrderError) {
        let now = self.context.clock.now();
        let next = self.plan.record_failure(name, error.failure, now, rand::random());
        let minutes = next.map_or(0, |next| next.since(now) / 60_000);
        tracing::warn!(%name, %error, minutes, "no certificate was issued; retrying after `minutes`");
        let text = match error.failure {
            OrderFailure::PointsElsewhere => Some(error.to_string()),
            OrderFailure::Rejected => {
                Some("the certificate authority refused it; this is retried automatically".to_owned())
            }
            // The owner of the page can't solve it.
            OrderFailure::Unreachable => None,
        };
        if let Some(text) = text.filter(|_| next.is_some()) {
            self.context.status.lock().problems.insert(name.to_owned(), text);
        }
    }

    async fn obtain(&mut self, name: &str) -> Result<CertificateAndKey, OrderError> {
        self.reachability.check(name).await?;
        // The host points here now.
        self.context.status.lock().problems.remove(name);
        let pem = match self.order(name).await {
            Err(error) if error.is_account_unknown => {
                tracing::warn!(%error, "the ACME server does not know the account; a new one is created");
                self.account = None;
                self.store.remove_account(&self.context.settings.directory);
                self.order(name).await?
            }
            result => result?,
        };
        let certificate =
            CertificateAndKey::read(&pem, &pem).map_err(|error| OrderError::rejected(&error.to_string()))?;
        if let Err(error) = self.store.save_certificate(name, &pem) {
            tracing::warn!(%name, %error, "a certificate is in use but could not be saved");
        }
        Ok(certificate)
    }

    async fn order(&mut self, name: &str) -> Result<String, OrderError> {
        let account = self.account().await?;
        order::order_certificate(&account, name, &self.context.challenges).await
    }

    /// Returns the ACME account: the one on disk, or a new one.
    async fn account(&mut self) -> Result<Account, OrderError> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let directory = self.context.settings.directory.clone();
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let credentials = self.store.account(&directory).map_err(|error| OrderError::rejected(&error.to_string()))?;
        let account = match credentials {
            Some(credentials) => builder.from_credentials(credentials).await?,
            None => {
                let contact: Vec<String> =
                    self.context.settings.contact.iter().map(|mail| format!("mailto:{mail}")).collect();
                let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
                let new_account =
                    NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
                let (account, credentials) = builder.create(&new_account, directory.clone(), None).await?;
                if let Err(error) = self.store.save_account(&directory, &credentials) {
                    tracing::warn!(%error, "the ACME account is in use but could not be saved");
                }
                account
            }
        };
        Ok(self.account.insert(account).clone())
    }
}

impl fmt::Debug for AcmeManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeManager").field("settings", &self.context.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
