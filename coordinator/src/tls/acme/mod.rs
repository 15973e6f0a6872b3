//! Certificates by ACME (RFC 8555): which names lack one or have one that ends soon, ordered one after the other.
//!
//! What was issued lies in a folder and is shown from the start on, network or not. A name that is no longer ours loses
//! its certificate.

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

/// Where an authority connects to for a proof.
const PORT: u16 = 80;
/// Pause between two looks at the names.
const LOOK: Duration = Duration::from_secs(5);

/// Whoever says which names are to have certificates, the most important first; none where that can't be told now.
pub type List = Arc<dyn Fn() -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync>;

/// The names that are to have certificates.
#[derive(Clone)]
pub struct Names {
    /// Asked at the start, and after each change.
    pub list: List,
    /// Changes where they may be others.
    pub changes: watch::Receiver<u64>,
    /// That of the base URL, where it has one.
    pub base: Option<String>,
}

/// What is to be told of certificates. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Told(Arc<Mutex<Words>>);

#[derive(Debug, Default)]
struct Words {
    /// Why names have no certificate, or no new one, in words for their owners.
    problems: BTreeMap<String, String>,
    ending: Option<Ending>,
}

impl Told {
    /// Why a name has no certificate, or its certificate is not renewed, in words for its owner; none where all is well,
    /// or the trouble is not the owner's.
    pub fn problem(&self, name: &str) -> Option<String> {
        self.words().problems.get(name).cloned()
    }

    /// What an operator has to look after: certificates that end soon.
    pub fn ending(&self) -> Option<Ending> {
        self.words().ending.clone()
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why certificates can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The roots that are trusted.
    #[error("acme.roots: {0}")]
    Roots(String),
    /// The folder of keys and certificates.
    #[error("the folder of certificates can't be used: {0}")]
    Folder(String),
}

impl From<parallax_certs::Error> for AcmeError {
    fn from(error: parallax_certs::Error) -> Self {
        Self::Folder(error.to_string())
    }
}

/// What is needed to keep certificates.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of keys and certificates.
    pub folder: PathBuf,
    /// URL of the authority's directory.
    pub directory: String,
    /// Mailbox that the authority may write to.
    pub contact: Option<String>,
    /// File of roots that are trusted beside the public ones.
    pub roots: Option<PathBuf>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("base", &self.base).finish_non_exhaustive()
    }
}

/// What a keeper works with.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Folder, authority and account.
    pub settings: Settings,
    /// What is to have certificates.
    pub names: Names,
    /// The present moment.
    pub clock: Clock,
    /// What the listener shows.
    pub shown: Shown,
    /// What the plain listener answers.
    pub challenges: Challenges,
    /// The way to where names lead.
    pub guard: Guard,
    /// Where it is told what goes wrong.
    pub told: Told,
}

/// Keeps the certificates of all names.
pub struct Keeper {
    tools: Tools,
    folder: Folder,
    client: Client,
    reach: Reach,
    account: Option<Account>,
    plan: Plan,
    /// All names, as they were last listed.
    listed: Vec<String>,
    /// Whether they may be others by now.
    is_stale: bool,
    /// The operator's own certificate when the plan was made: it needs no other beside it.
    own: Option<Pair>,
    /// Whether certificates of names that went while the process did not run were looked for.
    is_swept: bool,
    /// Names of which the log has told, once, that their certificates end soon.
    told: BTreeSet<String>,
}

impl Keeper {
    /// A keeper that has asked nobody anything, and shows what lies in its folder.
    ///
    /// # Errors
    /// [`AcmeError`] where the folder or the roots can't be used.
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

    /// A keeper in the place of one that broke off. What that one put up is shown on, so that a folder or roots that can't
    /// be used just then are waited for: they end nothing.
    pub async fn start_anew(tools: Tools, pause: Duration) -> Self {
        loop {
            match Self::start(tools.clone()).await {
                Ok(keeper) => return keeper,
                Err(error) => {
                    tracing::error!(%error, "certificates are shown, but can't be renewed now; trying again");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Runs as long as the coordinator does.
    pub async fn run(mut self) {
        let mut looked: Option<Instant> = None;
        loop {
            // Between two orders too: they may take minutes each, and there may be many.
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

    /// Takes over which names there are, where they may be others, and looks which certificates end soon.
    async fn look(&mut self) {
        // Marked before they are listed: what changes meanwhile is listed again.
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
        // While the names are not known, none is taken for gone.
        if is_new || (!is_same && !self.is_stale) {
            self.own = own;
            self.take_names().await;
        }
        let now = self.tools.clock.now();
        for name in &self.listed {
            if self.plan.ends_soon(name, now) && self.told.insert(name.clone()) {
                tracing::error!(%name, "a certificate ends within 14 days and is not renewed yet");
            }
        }
        self.tools.told.words().ending = self.plan.ending(now);
    }

    /// Lists the names anew; whether that could be done.
    async fn list(&mut self) -> bool {
        let Some(listed) = (self.tools.names.list)().await else { return false };
        self.listed = listed;
        self.is_stale = false;
        true
    }

    /// Plans for the names that are listed, with what lies on disk for those that are new.
    async fn take_names(&mut self) {
        // The operator's own goes first, so nothing is ordered beside it.
        let (own, mut names) = (self.own.as_ref(), self.listed.clone());
        names.retain(|name| own.is_none_or(|own| !own.covers(name)));
        for name in self.plan.set_names(names.clone()) {
            tracing::info!(%name, "a name is no longer ours; its certificate is removed");
            self.tools.shown.forget(&name);
            self.folder.forget(&name);
            self.told.remove(&name);
            self.tools.told.words().problems.remove(&name);
        }
        // What is shown may be so since an earlier keeper, of which this plan knows nothing.
        names.retain(|name| !self.plan.has(name));
        let sweep = (!self.is_swept).then(|| self.listed.clone());
        let folder = self.folder.clone();
        // There may be thousands of files.
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
                tracing::error!(%error, "certificates on disk can't be read; trying again");
                self.is_stale = true;
            }
        }
    }

    fn show(&mut self, name: &str, pair: Pair) {
        tracing::info!(%name, ?pair, "a certificate is shown");
        self.plan.issued(name, pair.not_before, pair.not_after);
        self.tools.shown.put_issued(name, pair);
        self.told.remove(name);
        self.tools.told.words().problems.remove(name);
    }

    fn note(&mut self, name: &str, error: &Failed) {
        let now = self.tools.clock.now();
        let next = self.plan.failed(name, error.failure, now, rand::random());
        let minutes = next.map_or(0, |next| next.since(now) / 60_000);
        tracing::warn!(%name, %error, minutes, "no certificate was issued; trying again after these minutes");
        let words = match error.failure {
            Failure::Astray => Some(error.to_string()),
            Failure::Refused => {
                Some("the certificate authority refused it; it is asked again by itself".to_owned())
            }
            // The trouble is ours.
            Failure::Unreached => None,
        };
        if let Some(words) = words.filter(|_| next.is_some()) {
            self.tools.told.words().problems.insert(name.to_owned(), words);
        }
    }

    async fn obtain(&mut self, name: &str) -> Result<Pair, Failed> {
        self.reach.look(name).await?;
        // What was wrong with where it leads is no more.
        self.tools.told.words().problems.remove(name);
        let pem = match self.order(name).await {
            Err(error) if error.is_unknown => {
                tracing::warn!(%error, "the authority does not know our account; a new one is made");
                self.account = None;
                self.folder.forget_account(&self.tools.settings.directory);
                self.order(name).await?
            }
            ordered => ordered?,
        };
        let pair = Pair::read(&pem, &pem).map_err(|error| Failed::refused(&error.to_string()))?;
        if let Err(error) = self.folder.keep_pair(name, &pem) {
            tracing::warn!(%name, %error, "a certificate is shown, but could not be kept");
        }
        Ok(pair)
    }

    async fn order(&mut self, name: &str) -> Result<String, Failed> {
        let account = self.account().await?;
        order::order(&account, name, &self.tools.challenges).await
    }

    /// The account at the authority: the one on disk, or a new one.
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
                    tracing::warn!(%error, "the account at the authority is used, but could not be kept");
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
