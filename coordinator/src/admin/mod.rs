//! The operator's commands as lines of JSON, executed by the service and the member records.
//!
//! [`socket`] receives them on `DIR/admin.sock` while a coordinator runs, and [`client`] sends them; if none runs, the
//! command line uses an [`OperatorCommands`] of its own on the store. A user with access to the socket has the
//! operator's rights: its mode is 0600, in a folder of mode 0700.

pub(crate) mod admin_http;
mod alert_settings;
pub(crate) mod backup;
pub(crate) mod client;
mod command;
mod debug_monitor;
pub(crate) mod maintenance;
mod members;
mod metrics_format;
mod page_edit;
pub(crate) mod socket;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::id::{AccountId, KeyId, PageId};
use parallax_core::key::{ApiKey, KeyAccess};
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::patch::PatchField;
use parallax_core::plan::Plan;
use parallax_mesh::members::MemberStore;
use parallax_service::accounts::keys::NewKey;
use parallax_service::{ServiceError, Services};
use serde_json::{Value, json};

pub(crate) use self::command::{AdminCommand, AdminReply, CommandError};

/// Maximum size of a command line, in bytes.
pub(crate) const MAX_COMMAND: u64 = 256 * 1024;
/// Answer to a command about a person who does not exist.
const NOBODY_SIGNS_IN: &str = "nobody signs in with this address; `parallax account link` prints a link by which the \
                               owner chooses a password";

/// Returns the path of a data folder's socket.
fn socket_path(data: &Path) -> PathBuf {
    data.join("admin.sock")
}

/// Executes the operator's commands.
#[derive(Debug, Clone)]
pub(crate) struct OperatorCommands {
    service: Arc<Services>,
    members: MemberStore,
}

impl OperatorCommands {
    /// Creates an operator for that service and those members.
    pub(crate) fn new(service: Arc<Services>, members: MemberStore) -> Self {
        Self { service, members }
    }

    pub(super) fn service(&self) -> &Services {
        &self.service
    }

    /// Runs a command and returns its result: an object for a single thing, an array for a list.
    ///
    /// # Errors
    /// [`CommandError`] with a message for the operator.
    pub(crate) async fn run(&self, command: &AdminCommand) -> Result<Value, CommandError> {
        match command {
            // The socket streams it (`backup`), since results of commands are held in memory.
            AdminCommand::Backup => {
                Err(CommandError::new("invalid", "a backup can only be streamed over the admin socket"))
            }
            AdminCommand::Verify => maintenance::verify(&self.service).await,
            AdminCommand::AgentInvite { name, region, network, valid_seconds } => {
                members::invite(&self.members, name, region, network, *valid_seconds).await
            }
            AdminCommand::AgentInvitations => members::invitations(&self.members, self.service.now()).await,
            AdminCommand::AgentRevokeInvitation { invitation } => {
                members::revoke_invitation(&self.members, invitation, self.service.now()).await
            }
            AdminCommand::AgentList => members::list(&self.members, self.service.now()).await,
            AdminCommand::AgentRevoke { agent } => members::revoke(&self.members, agent).await,
            AdminCommand::AgentForget { agent } => members::remove(&self.members, agent).await,
            AdminCommand::MeshRotate { step, force } => members::rotate(&self.members, step, *force).await,
            AdminCommand::DebugMonitor { monitor } => debug_monitor::inspect(&self.service, monitor).await,
            AdminCommand::AccountCreate { email, plan } => {
                let plan = plan.as_deref().map(read_plan).transpose()?;
                Ok(account_view(&self.service.accounts.create(email, plan).await?))
            }
            AdminCommand::AccountList => Ok(list(&self.service.accounts.list().await?, account_view)),
            AdminCommand::AccountPlan { account, plan } => {
                let account = self.account(Some(account)).await?;
                Ok(account_view(&self.service.accounts.set_plan(account, read_plan(plan)?).await?))
            }
            AdminCommand::AccountLink { account } => {
                let account = self.account(account.as_deref()).await?;
                let link = self.service.people.create_set_up_link(account, false).await?;
                Ok(json!({ "account": account.to_string(), "setUpUrl": link, "validHours": 24 }))
            }
            AdminCommand::AccountOperator { email, is_operator } => {
                let changed = self.service.people.set_operator(email, *is_operator).await;
                let person = changed.map_err(person_not_found)?;
                let (id, email) = (person.id.to_string(), person.email);
                Ok(json!({ "id": id, "email": email, "operator": person.is_operator }))
            }
            AdminCommand::AccountFactorOff { email } => {
                let changed = self.service.people.remove_factor_as_operator(email).await;
                let person = changed.map_err(person_not_found)?;
                Ok(json!({ "id": person.id.to_string(), "email": person.email, "secondFactor": false }))
            }
            AdminCommand::PageCreate { account, name, slug } => {
                let account = self.account(account.as_deref()).await?;
                let page = self.service.pages.create_as_operator(account, name, slug).await?;
                Ok(self.page_view(&page))
            }
            AdminCommand::PageList { account } => {
                let mut pages = Vec::new();
                for account in self.accounts(account.as_deref()).await? {
                    pages.extend(self.service.pages.list_of_account(account).await?);
                }
                Ok(list(&pages, |page| self.page_view(page)))
            }
            AdminCommand::PageSet { page, set, clear, password } => {
                let page = self.page(page).await?;
                let edit = page_edit::edit(set, clear, password.as_ref())?;
                let changed = self.service.pages.edit_as_operator(page, &edit).await;
                Ok(self.page_view(&changed.map_err(|error| not_found(error, "page"))?))
            }
            AdminCommand::HostRelease { host } => {
                let released = self.service.domains.release(host).await;
                let from = released.map_err(|error| not_found(error, "hostname of a page"))?;
                Ok(json!({
                    "host": from.host,
                    "page": from.page.map(|page| page.to_string()),
                    "account": from.account.to_string(),
                    "companySignIn": from.company.map(|account| account.to_string()),
                    "released": true,
                }))
            }
            AdminCommand::PageAlerts { page, repeat_minutes, repeat_off, automatic_incidents } => {
                let repeat = match repeat_minutes {
                    Some(minutes) => PatchField::Value(*minutes),
                    None if *repeat_off => PatchField::Null,
                    None => PatchField::Absent,
                };
                alert_settings::update(&self.service, page, repeat, *automatic_incidents).await
            }
            AdminCommand::KeyCreate { account, name, access, page } => {
                let page = page.as_deref().map(|page| read_id::<PageId>("page", page)).transpose()?;
                let account = match (account, page) {
                    (None, Some(page)) => self.account_of_page(page).await?,
                    _ => self.account(account.as_deref()).await?,
                };
                let new = NewKey { account, name: name.clone(), access: read_access(access)?, page };
                let created = self.service.keys.create(new).await;
                let (key, text) = created.map_err(|error| not_found(error, "page on this account"))?;
                let mut view = key_view(&key);
                view["key"] = json!(text.reveal());
                Ok(view)
            }
            AdminCommand::KeyList { account } => {
                let mut keys = Vec::new();
                for account in self.accounts(account.as_deref()).await? {
                    keys.extend(self.service.keys.list(account).await?);
                }
                Ok(list(&keys, key_view))
            }
            AdminCommand::KeyRevoke { key } => {
                let key = read_id::<KeyId>("key", key)?;
                self.service.keys.revoke(key).await.map_err(|error| not_found(error, "key"))?;
                Ok(json!({"id": key.to_string(), "revoked": true}))
            }
        }
    }

    /// Finds an account by id or email address; without one, returns the only account.
    async fn account(&self, name: Option<&str>) -> Result<AccountId, CommandError> {
        let accounts = self.service.accounts.list().await?;
        let Some(name) = name else {
            return match accounts.as_slice() {
                [only] => Ok(only.id),
                [] => Err(CommandError::new(
                    "not_found",
                    "there is no account yet; create one with `parallax account create`",
                )),
                _ => Err(CommandError::new("invalid", "account is required because there are several")),
            };
        };
        let is_wanted = |account: &&Account| account.email.eq_ignore_ascii_case(name) || account.id.to_string() == name;
        let account_id = accounts.iter().find(is_wanted).map(|account| account.id);
        account_id
            .ok_or_else(|| CommandError::new("not_found", format!("no account has the id or email address {name:?}")))
    }

    /// Returns the account that owns the page.
    async fn account_of_page(&self, page: PageId) -> Result<AccountId, CommandError> {
        for account in self.accounts(None).await? {
            if self.service.pages.list_of_account(account).await?.iter().any(|its| its.id == page) {
                return Ok(account);
            }
        }
        Err(not_found(ServiceError::NotFound, "page"))
    }

    /// Returns the given account, or all of them.
    async fn accounts(&self, name: Option<&str>) -> Result<Vec<AccountId>, CommandError> {
        match name {
            Some(_) => Ok(vec![self.account(name).await?]),
            None => Ok(self.service.accounts.list().await?.iter().map(|account| account.id).collect()),
        }
    }

    /// Finds a page by id or slug.
    async fn page(&self, name: &str) -> Result<PageId, CommandError> {
        for account in self.accounts(None).await? {
            let pages = self.service.pages.list_of_account(account).await?;
            if let Some(page) = pages.iter().find(|it| it.slug == name || it.id.to_string() == name) {
                return Ok(page.id);
            }
        }
        Err(CommandError::new("not_found", format!("no page has the id or address label {name:?}")))
    }

    fn page_view(&self, page: &Page) -> Value {
        let claim = page.domain_claim.as_ref();
        json!({
            "id": page.id.to_string(),
            "account": page.account.to_string(),
            "name": page.name,
            "slug": page.slug,
            "url": self.service.pages.url(page),
            "createdAt": page.created_at.to_string(),
            "description": page.description,
            "supportUrl": page.support_url,
            "timezone": page.timezone.name(),
            "uptimeTarget": page.uptime_target,
            "customDomain": page.custom_domain,
            "customDomainProblem": self.service.hosts.certificate_problem(page),
            "domainVerification": claim.map(|it| json!({
                "host": it.host, "recordName": it.record_name(), "recordValue": it.record_value(),
                "checkedAt": it.checked_at.map(|at| at.to_string()), "problem": it.problem,
            })),
            "passwordProtected": page.password_hash.is_some(),
            "private": page.private,
            "allowedPeople": page.allowed_visitors.people,
            "allowedDomains": page.allowed_visitors.domains,
            "noindex": page.noindex,
            "theme": page.branding.theme.name(),
            "accentColor": page.branding.accent.map(|it| it.to_string()),
            "logo": self.service.pages.picture_url(page, PictureUse::Logo),
            "favicon": self.service.pages.picture_url(page, PictureUse::Favicon),
            "language": page.language.tag(),
            "showDeploys": page.show_deploys,
            "showLocations": page.show_locations,
            "latencyLocations": page.latency_regions.map(page_edit::names),
            "uptimeRegions": page.uptime_regions.map(page_edit::names),
        })
    }
}

fn account_view(account: &Account) -> Value {
    json!({
        "id": account.id.to_string(),
        "email": account.email,
        "plan": account.plan.name(),
        "createdAt": account.created_at.to_string(),
    })
}

fn key_view(key: &ApiKey) -> Value {
    json!({
        "id": key.id.to_string(),
        "account": key.account.to_string(),
        "name": key.name,
        "access": key.access.name(),
        "page": key.page.map(|page| page.to_string()),
        "createdAt": key.created_at.to_string(),
        "lastUsedAt": key.last_used_at.map(|at| at.to_string()),
    })
}

fn list<T>(items: &[T], view: impl Fn(&T) -> Value) -> Value {
    items.iter().map(view).collect()
}

fn read_plan(name: &str) -> Result<Plan, CommandError> {
    Plan::read(name).map_err(|rule| CommandError::new("invalid", format!("plan {rule}")))
}

fn read_access(name: &str) -> Result<KeyAccess, CommandError> {
    match name {
        "read" => Ok(KeyAccess::Read),
        "write" => Ok(KeyAccess::Write),
        _ => Err(CommandError::new("invalid", "access must be read or write")),
    }
}

fn read_id<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, CommandError> {
    text.parse().map_err(|_| CommandError::new("invalid", format!("{field} must be an id, not {text:?}")))
}

/// Converts the error of a command about a person, who is named by their email address.
fn person_not_found(error: ServiceError) -> CommandError {
    match error {
        ServiceError::NotFound => CommandError::new("not_found", NOBODY_SIGNS_IN),
        other => other.into(),
    }
}

/// Converts an error into a fault that names the missing thing, since the service's message is about an API key's
/// access.
fn not_found(error: ServiceError, resource: &str) -> CommandError {
    match error {
        ServiceError::NotFound => CommandError::new("not_found", format!("there is no such {resource}")),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests;
