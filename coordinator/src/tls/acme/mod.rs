//! Obtains and renews certificates by ACME (RFC 8555), one order at a time.
//!
//! Issued certificates are stored in a folder and loaded at startup, so they work without network. The certificate of a
//! host that is no longer used is removed.

mod client;
mod folder;
mod order;
mod plan;
mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use instant_acme::{Account, NewAccount};
use parallax_dial::Guard;
use tokio::sync::watch;
use tokio::time::Instant;

use self::client::Client;
use self::folder::Folder;
use self::order::Failed;
pub use self::plan::Ending;
use self::plan::{Failure, Plan};
use self::reach::Reach;
use super::{Challenges, Pair, Shown};
use crate::clock::Clock;

/// Port that the ACME server connects to for HTTP-01 challenges.
const PORT: u16 = 80;
/// Interval of checks for changed hosts.
const LOOK: Duration = Duration::from_secs(5);

/// Lists the hosts that need certificates, most important first; `None` if they can't be listed at the moment.
pub type List = Arc<dyn Fn() -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync>;

/// The hosts that need certificates.
#[derive(Clone)]
pub struct Names {
    /// Called at the start and after each change.
    pub list: List,
    /// Changes when the list may have changed.
    pub changes: watch::Receiver<u64>,
    /// Host name of the base URL, if it has one.
    pub base: Option<String>,
}

/// Status of certificates, for page owners and the operator. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Told(Arc<Mutex<Words>>);

#[derive(Debug, Default)]
struct Words {
    /// By host, the reason why its certificate is missing or not renewed, for page owners.
    problems: BTreeMap<String, String>,
    ending: Option<Ending>,
}

impl Told {
    /// Returns the reason, for its owner, why the certificate of a host is missing or not renewed. `None` if there is
    /// no problem, or the owner can't solve it.
    pub fn problem(&self, name: &str) -> Option<String> {
        self.words().problems.get(name).cloned()
    }

    /// Returns certificates that expire soon, which the operator has to look after.
    pub fn ending(&self) -> Option<Ending> {
        self.words().ending.clone()
    }

    fn words(&self) -> MutexGuard<'_, Words> {
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
}

impl From<parallax_certs::Error> for AcmeError {
    fn from(error: parallax_certs::Error) -> Self {
        Self::Folder(error.to_string())
    }
}

/// Settings of ACME.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder for keys and certificates.
    pub folder: PathBuf,
    /// URL of the ACME directory.
    pub directory: String,
    /// Contact email address of the account.
    pub contact: Option<String>,
    /// File with trusted roots in addition to the public ones.
    pub roots: Option<PathBuf>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Dependencies of a [`Keeper`].
#[derive(Debug, Clone)]
pub struct Tools {
    /// Folder, ACME server and account.
    pub settings: Settings,
    /// Hosts that need certificates.
    pub names: Names,
    /// Clock.
    pub clock: Clock,
    /// Certificate resolver of the listener.
    pub shown: Shown,
    /// Challenges served by the plain HTTP listener.
    pub challenges: Challenges,
    /// Guard for connections to hosts, which customers choose.
    pub guard: Guard,
    /// Status to report problems to.
    pub told: Told,
}

/// Obtains and renews the certificates of all hosts.
pub struct Keeper {
    tools: Tools,
    folder: Folder,
    client: Client,
    reach: Reach,
    account: Option<Account>,
    plan: Plan,
    /// All hosts, as last listed.
    listed: Vec<String>,
    /// True if the list may have changed since.
    is_stale: bool,
    /// The operator's certificate for which the plan was made; hosts that it covers need no other.
    own: Option<Pair>,
    /// True once certificates of hosts that were removed while the process did not run have been deleted.
    is_swept: bool,
    /// Hosts whose expiring certificate was already logged.
    told: BTreeSet<String>,
}

impl Keeper {
    /// Creates a manager and loads the certificates in its folder, without network access.
    ///
    /// # Errors
    /// [`AcmeError`] if the folder or the roots can't be used.
    pub async fn start(tools: Tools) -> Result<Self, AcmeError> {
        let folder = Folder::open(Path::new(&tools.settings.folder))?;
        let client = Client::new(tools.settings.roots.as_deref())?;
        let (base, challenges) = (tools.names.base.clone(), tools.challenges.clone());
        let reach = Reach { guard: tools.guard.clone(), base, challenges, port: PORT };
        let mut keeper = Self {
            tools,
            folder,
            client,
            reach,
            account: None,
            plan: Plan::default(),
            listed: Vec::new(),
            is_stale: true,
            own: None,
            is_swept: false,
            told: BTreeSet::new(),
        };
        keeper.tools.told.words().problems.clear();
        keeper.look().await;
        Ok(keeper)
    }

    /// Creates a manager after the previous one crashed. Its certificates are still served, so if the folder or the
    /// roots can't be used, this retries until they can.
    pub async fn start_anew(tools: Tools, pause: Duration) -> Self {
        loop {
            match Self::start(tools.clone()).await {
                Ok(keeper) => return keeper,
                Err(error) => {
                    tracing::error!(%error, "certificates are served but can't be renewed; retrying");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Runs until the coordinator stops.
    pub async fn run(mut self) {
        let mut looked: Option<Instant> = None;
        loop {
            // Between orders too, since each may take minutes and there may be many.
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                self.look().await;
                looked = Some(Instant::now());
            }
            let Some(name) = self.plan.due(self.tools.clock.now()) else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            match self.obtain(&name).await {
                Ok(pair) => {
                    self.show(&name, pair);
                    self.plan.ordered(&name, self.tools.clock.now());
                }
                Err(error) => self.note(&name, &error),
            }
        }
    }

    /// Updates the hosts if they may have changed, and checks which certificates expire soon.
    async fn look(&mut self) {
        // Marked as seen before listing, so that a change in between causes another listing.
        if self.tools.names.changes.has_changed().unwrap_or_default() {
            self.tools.names.changes.borrow_and_update();
            self.is_stale = true;
        }
        let is_new = if self.is_stale { self.list().await } else { false };
        let own = self.tools.shown.own();
        let is_same = match (&own, &self.own) {
            (Some(own), Some(before)) => own.is_same(before),
            (own, before) => own.is_none() && before.is_none(),
        };
        // While the hosts are unknown, no certificate is removed.
        if is_new || (!is_same && !self.is_stale) {
            self.own = own;
            self.take_names().await;
        }
        let now = self.tools.clock.now();
        for name in &self.listed {
            if self.plan.ends_soon(name, now) && self.told.insert(name.clone()) {
                tracing::error!(%name, "a certificate expires within 14 days and is not renewed; see earlier warnings");
            }
        }
        self.tools.told.words().ending = self.plan.ending(now);
    }

    /// Lists the hosts again; returns true if that succeeded.
    async fn list(&mut self) -> bool {
        let Some(listed) = (self.tools.names.list)().await else { return false };
        self.listed = listed;
        self.is_stale = false;
        true
    }

    /// Plans the renewals of the listed hosts, and loads certificates on disk for new ones.
    async fn take_names(&mut self) {
        // The operator's certificate takes precedence, so hosts that it covers need no other.
        let (own, mut names) = (self.own.as_ref(), self.listed.clone());
        names.retain(|name| own.is_none_or(|own| !own.covers(name)));
        for name in self.plan.set_names(names.clone()) {
            tracing::info!(%name, "removed the certificate of a host that is no longer used");
            self.tools.shown.forget(&name);
            self.folder.forget(&name);
            self.told.remove(&name);
            self.tools.told.words().problems.remove(&name);
        }
        // Certificates already served may come from a previous manager, unknown to this plan.
        names.retain(|name| !self.plan.has(name));
        let sweep = (!self.is_swept).then(|| self.listed.clone());
        let folder = self.folder.clone();
        // Blocking, since there may be thousands of files.
        let reading = tokio::task::spawn_blocking(move || {
            if let Some(all) = sweep {
                folder.sweep(&all.iter().map(String::as_str).collect());
            }
            let pair = |name: String| folder.pair(&name).map(|pair| (name, pair));
            names.into_iter().filter_map(pair).collect::<Vec<_>>()
        });
        match reading.await {
            Ok(found) => {
                self.is_swept = true;
                for (name, pair) in found {
                    self.show(&name, pair);
                }
            }
            Err(error) => {
                tracing::error!(%error, "certificates on disk can't be read; retrying");
                self.is_stale = true;
            }
        }
    }

    fn show(&mut self, name: &str, pair: Pair) {
        tracing::info!(%name, ?pair, "a certificate was installed");
        self.plan.issued(name, pair.not_before, pair.not_after);
        self.tools.shown.put_issued(name, pair);
        self.told.remove(name);
        self.tools.told.words().problems.remove(name);
    }

    fn note(&mut self, name: &str, error: &Failed) {
        let now = self.tools.clock.now();
        let next = self.plan.failed(name, error.failure, now, rand::random());
        let minutes = next.map_or(0, |next| next.since(now) / 60_000);
        tracing::warn!(%name, %error, minutes, "no certificate was issued; retrying after `minutes`");
        let words = match error.failure {
            Failure::Astray => Some(error.to_string()),
            Failure::Refused => {
                Some("the certificate authority refused it; this is retried automatically".to_owned())
            }
            // The owner of the page can't solve it.
            Failure::Unreached => None,
        };
        if let Some(words) = words.filter(|_| next.is_some()) {
            self.tools.told.words().problems.insert(name.to_owned(), words);
        }
    }

    async fn obtain(&mut self, name: &str) -> Result<Pair, Failed> {
        self.reach.look(name).await?;
        // The host points here now.
        self.tools.told.words().problems.remove(name);
        let pem = match self.order(name).await {
            Err(error) if error.is_unknown => {
                tracing::warn!(%error, "the ACME server does not know the account; a new one is created");
                self.account = None;
                self.folder.forget_account(&self.tools.settings.directory);
                self.order(name).await?
            }
            ordered => ordered?,
        };
        let pair = Pair::read(&pem, &pem).map_err(|error| Failed::refused(&error.to_string()))?;
        if let Err(error) = self.folder.keep_pair(name, &pem) {
            tracing::warn!(%name, %error, "a certificate is in use but could not be saved");
        }
        Ok(pair)
    }

    async fn order(&mut self, name: &str) -> Result<String, Failed> {
        let account = self.account().await?;
        order::order(&account, name, &self.tools.challenges).await
    }

    /// Returns the ACME account: the one on disk, or a new one.
    async fn account(&mut self) -> Result<Account, Failed> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let directory = self.tools.settings.directory.clone();
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let known = self.folder.account(&directory).map_err(|error| Failed::refused(&error.to_string()))?;
        let account = match known {
            Some(known) => builder.from_credentials(known).await?,
            None => {
                let contact: Vec<String> =
                    self.tools.settings.contact.iter().map(|mail| format!("mailto:{mail}")).collect();
                let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
                let wanted = NewAccount {
                    contact: &contact,
                    terms_of_service_agreed: true,
                    only_return_existing: false,
                };
                let (account, made) = builder.create(&wanted, directory.clone(), None).await?;
                if let Err(error) = self.folder.keep_account(&directory, &made) {
                    tracing::warn!(%error, "the ACME account is in use but could not be saved");
                }
                account
            }
        };
        Ok(self.account.insert(account).clone())
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("settings", &self.tools.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
