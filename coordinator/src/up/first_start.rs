//! Records created by the first start: an account, a page, and a key that is shown once.

use parallax_core::account::Account;
use parallax_core::id::{AccountId, KeyId};
use parallax_core::key::{ApiKey, KeyAccess};
use parallax_core::page::Page;
use parallax_core::role::Role;
use parallax_service::accounts::keys::NewKey;
use parallax_service::people::{NewPerson, PLACEHOLDER_PAGE};
use parallax_service::secret_text::ApiKeyText;
use parallax_service::{Caller, ServiceError, ServiceResult, Services};

use super::UpMode;

/// Email address of the first account's owner, in a domain that never exists (RFC 2606), so that nobody gets mail.
const OWNER: &str = "owner@example.invalid";

/// Email address of the demo's viewer, in the same domain.
const VIEWER: &str = "viewer@example.invalid";

/// The first account, its page and its key.
#[derive(Debug)]
pub(super) struct FirstStart {
    /// The account.
    pub(super) account: Account,
    /// Its page.
    pub(super) page: Page,
    /// Its key, if this start created it.
    pub(super) key: Option<ApiKeyText>,
    /// One-time link of the account's owner, while it has none.
    pub(super) set_up_url: Option<String>,
    /// The demo's viewer, if this start added them.
    pub(super) viewer: Option<DemoViewer>,
}

/// A second person of the demo, who looks at everything and changes nothing.
pub(super) struct DemoViewer {
    /// Their email address.
    pub(super) email: &'static str,
    /// Their password, which is stored as a hash alone.
    pub(super) password: String,
}

impl std::fmt::Debug for DemoViewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DemoViewer").field("email", &self.email).finish_non_exhaustive()
    }
}

impl FirstStart {
    /// Finds the records and creates missing ones, so that a later start completes an interrupted one.
    pub(super) async fn find_or_create(service: &Services, kind: &UpMode) -> ServiceResult<Self> {
        let (account, page) = Self::find_or_create_page(service, kind).await?;
        let key = if service.keys.list(account.id).await?.is_empty() {
            let new =
                NewKey { account: account.id, name: "first key".to_owned(), access: KeyAccess::Write, page: None };
            Some(service.keys.create(new).await?.1)
        } else {
            None
        };
        // The person who starts this program operates it.
        let members = service.people.members(account.id).await?;
        let set_up_url = if members.iter().any(|(_, role)| *role == Role::Owner) {
            None
        } else {
            Some(service.people.create_set_up_link(account.id, true).await?)
        };
        let viewer = match kind {
            UpMode::Demo if members.is_empty() => add_viewer(service, account.id).await?,
            UpMode::Demo | UpMode::Single { .. } => None,
        };
        Ok(Self { account, page, key, set_up_url, viewer })
    }

    /// Finds or creates the account and its page.
    pub(super) async fn find_or_create_page(service: &Services, kind: &UpMode) -> ServiceResult<(Account, Page)> {
        let account = match service.accounts.list().await?.into_iter().next() {
            Some(account) => account,
            None => service.accounts.create(OWNER, None).await?,
        };
        let (name, slug) = match kind {
            UpMode::Single { .. } => PLACEHOLDER_PAGE,
            UpMode::Demo => ("Demo Shop", "demo"),
        };
        let pages = service.pages.list_of_account(account.id).await?;
        let existing = pages.iter().find(|page| page.slug == slug);
        let page = match (existing, pages.first(), kind) {
            (Some(page), _, _) | (None, Some(page), UpMode::Single { .. }) => page.clone(),
            (None, _, _) => service.pages.create_as_operator(account.id, name, slug).await?,
        };
        Ok((account, page))
    }

    /// Returns the account's owner as a caller of the service. Its key exists in memory only and is useless from
    /// outside.
    pub(super) fn caller(&self, service: &Services) -> Caller {
        let now = service.now();
        Caller::of_key(ApiKey {
            id: KeyId::new(now, rand::random()),
            account: self.account.id,
            name: "local".to_owned(),
            access: KeyAccess::Write,
            page: None,
            hash: [0; 32],
            created_at: now,
            last_used_at: None,
        })
    }
}

/// Adds the demo's viewer, with a random password. Nobody is added where an owner removed them before.
async fn add_viewer(service: &Services, account: AccountId) -> ServiceResult<Option<DemoViewer>> {
    let password = format!("{:016x}", rand::random::<u64>());
    let new = NewPerson {
        email: VIEWER.to_owned(),
        name: "Viewer".to_owned(),
        role: Role::Viewer,
        password: Some(password.clone()),
    };
    match service.people.add_as_operator(account, &new).await {
        Ok(_) => Ok(Some(DemoViewer { email: VIEWER, password })),
        Err(ServiceError::Invalid(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
