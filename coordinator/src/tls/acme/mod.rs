//! Certificates by ACME (RFC 8555): which names lack one or have one that ends soon, ordered one after the other.
//!
//! What was issued lies in a folder and is shown from the start on, network or not. A name that is no longer ours loses
//! its certificate.

mod client;
mod folder;
mod order;
mod plan;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{Account, NewAccount};
use tokio::time::Instant;

use self::client::Client;
use self::folder::Folder;
use self::order::Failed;
use self::plan::Plan;
use super::{Challenges, Pair, Shown};
use crate::clock::Clock;

/// Pause between two looks at the names.
const LOOK: Duration = Duration::from_secs(5);

/// Whoever says which names are to have certificates, the most important first; none where that can't be told now.
pub type Names = Arc<dyn Fn() -> Option<Vec<String>> + Send + Sync>;

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

/// Keeps the certificates of all names.
pub struct Keeper {
    clock: Clock,
    settings: Settings,
    folder: Folder,
    client: Client,
    account: Option<Account>,
    names: Names,
    shown: Shown,
    challenges: Challenges,
    plan: Plan,
    /// Whether certificates of names that went while the process did not run were looked for.
    is_swept: bool,
    /// Names of which the log has told, once, that their certificates end soon.
    told: BTreeSet<String>,
}

impl Keeper {
    /// A keeper that has asked nobody anything.
    ///
    /// # Errors
    /// [`AcmeError`] where the folder or the roots can't be used.
    pub fn new(
        settings: Settings,
        names: Names,
        clock: Clock,
        shown: Shown,
        challenges: Challenges,
    ) -> Result<Self, AcmeError> {
        let folder = Folder::open(Path::new(&settings.folder))?;
        let client = Client::new(settings.roots.as_deref())?;
        let mut keeper = Self {
            clock,
            settings,
            folder,
            client,
            account: None,
            names,
            shown,
            challenges,
            plan: Plan::default(),
            is_swept: false,
            told: BTreeSet::new(),
        };
        keeper.look();
        Ok(keeper)
    }

    /// Runs as long as the coordinator does.
    pub async fn run(mut self) {
        let mut looked: Option<Instant> = None;
        loop {
            // Between two orders too: they may take minutes each, and there may be many.
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                self.look();
                looked = Some(Instant::now());
            }
            let Some(name) = self.plan.due(self.clock.now()) else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            match self.obtain(&name).await {
                Ok(pair) => {
                    self.show(&name, pair);
                    self.plan.ordered(&name, self.clock.now());
                }
                Err(error) => self.note(&name, &error),
            }
        }
    }

    /// Takes over which names there are, with what lies on disk for those that are new.
    fn look(&mut self) {
        let Some(mut names) = (self.names)() else { return };
        if !self.is_swept {
            self.is_swept = true;
            self.folder.sweep(&names.iter().map(String::as_str).collect());
        }
        // The operator's own goes first, so nothing is ordered beside it.
        let own = self.shown.own();
        names.retain(|name| own.as_ref().is_none_or(|own| !own.covers(name)));
        for name in self.plan.set_names(names.clone()) {
            tracing::info!(%name, "a name is no longer ours; its certificate is removed");
            self.shown.forget(&name);
            self.folder.forget(&name);
            self.told.remove(&name);
        }
        let now = self.clock.now();
        for name in names {
            if self.shown.issued(&name).is_none()
                && let Some(pair) = self.folder.pair(&name)
            {
                self.show(&name, pair);
            }
            if self.plan.ends_soon(&name, now) && self.told.insert(name.clone()) {
                tracing::error!(%name, "a certificate ends within 14 days and is not renewed yet");
            }
        }
    }

    fn show(&mut self, name: &str, pair: Pair) {
        tracing::info!(%name, ?pair, "a certificate is shown");
        self.plan.issued(name, pair.not_before, pair.not_after);
        self.shown.put_issued(name, pair);
        self.told.remove(name);
    }

    fn note(&mut self, name: &str, error: &Failed) {
        let now = self.clock.now();
        let next = self.plan.failed(name, error.failure, now, rand::random());
        let minutes = next.map_or(0, |next| next.since(now) / 60_000);
        tracing::warn!(%name, %error, minutes, "no certificate was issued; trying again after these minutes");
    }

    async fn obtain(&mut self, name: &str) -> Result<Pair, Failed> {
        let pem = match self.order(name).await {
            Err(error) if error.is_unknown => {
                tracing::warn!(%error, "the authority does not know our account; a new one is made");
                self.account = None;
                self.folder.forget_account(&self.settings.directory);
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
        order::order(&account, name, &self.challenges).await
    }

    /// The account at the authority: the one on disk, or a new one.
    async fn account(&mut self) -> Result<Account, Failed> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let directory = self.settings.directory.clone();
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let known = self.folder.account(&directory).map_err(|error| Failed::refused(&error.to_string()))?;
        let account = match known {
            Some(known) => builder.from_credentials(known).await?,
            None => {
                let contact: Vec<String> =
                    self.settings.contact.iter().map(|mail| format!("mailto:{mail}")).collect();
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
        f.debug_struct("Keeper").field("settings", &self.settings).finish_non_exhaustive()
    }
}
