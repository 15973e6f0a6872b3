//! API keys: shown once, stored and found by their hash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::id::{AccountId, KeyId, PageId};
use parallax_core::key::{ApiKey, KeyAccess, MAX_KEYS};
use parallax_core::plan::PlanLimitError;
use parallax_core::role::Permission;
use parallax_core::text;
use parallax_core::time::MINUTE;
use parallax_core::undo::InverseChange;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};
use subtle::ConstantTimeEq;

use crate::audit::ChangeAuthor;
use crate::context::ServiceContext;
use crate::idempotency::{IdempotencyKey, IdempotentRequest, RequestOutcome};
use crate::last_uses::LastUses;
use crate::secret_text::ApiKeyText;
use crate::{Caller, ServiceError, ServiceResult};

/// Maximum characters of a key's name.
const MAX_NAME: usize = 80;

/// Settings of a new key.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The account that it belongs to.
    pub account: AccountId,
    /// Its name, 1 to 80 characters.
    pub name: String,
    /// Access: read, or read and write.
    pub access: KeyAccess,
    /// The only page that it can access, if it is bound to one.
    pub page: Option<PageId>,
}

/// Owns API keys. A key's text is never stored: it is found by its hash, through an index in memory that is loaded
/// once. The record decides alone: an entry without one finds nothing. So a key is added to the index before it is
/// stored, and removed after it was deleted. A request that ends in between, such as by its time limit, then leaves no
/// stored key that isn't found.
#[derive(Debug)]
pub struct KeyService {
    context: Arc<ServiceContext>,
    /// Index of key ids by hash, once it is loaded.
    pub(crate) key_index: Mutex<Option<BTreeMap<[u8; 32], KeyId>>>,
    pub(crate) last_used: LastUses<KeyId>,
}

impl KeyService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context), key_index: Mutex::default(), last_used: LastUses::default() }
    }

    /// Authenticates an API key.
    ///
    /// # Errors
    /// [`ServiceError::Unauthenticated`] for an invalid or unknown key.
    pub fn authenticate(&self, text: &str) -> ServiceResult<Caller> {
        let key = ApiKeyText::parse(text).ok_or(ServiceError::Unauthenticated)?;
        let hash = key.hash();
        let record = match self.key_by_hash(&hash)? {
            Some(id) => self.context.store().reader().key(id)?,
            None => None,
        };
        // An unknown key is compared like a known one, so that timing reveals nothing.
        let stored = record.as_ref().map_or([0; 32], |key| key.value.hash);
        let is_same = bool::from(stored.ct_eq(&hash));
        let key = record.filter(|_| is_same).ok_or(ServiceError::Unauthenticated)?;
        self.record_use(&key);
        Ok(Caller::of_key(key.value))
    }

    /// Creates a key; called by the operator. The key's text is returned only here.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account or page that does not exist, [`ServiceError::Invalid`] for an invalid
    /// name, [`ServiceError::PlanLimit`] if the account has the maximum of keys.
    pub async fn create(&self, new: NewKey) -> ServiceResult<(ApiKey, ApiKeyText)> {
        let author = ChangeAuthor::operator(new.account);
        self.create_with(author, new, &mut Batch::new()).await
    }

    /// Creates a key on the caller's account; none if the same form was sent before, since a key is shown once.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], and as [`Self::create`].
    pub async fn create_as_member(
        &self,
        caller: &Caller,
        new: NewKey,
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<Option<(ApiKey, ApiKeyText)>> {
        caller.require(Permission::ManageAccount)?;
        let (new, once) =
            (NewKey { account: caller.account, ..new }, IdempotentRequest::new(once, &|(): &()| Vec::new()));
        // One at a time, so that the second of two clicks finds the answer of the first.
        let _creating = self.context.create_lock.lock().await;
        if self.context.replayed_answer(&once)?.is_some() {
            return Ok(None);
        }
        let mut batch = Batch::new();
        self.context.store_answer(&once, &(), &mut batch)?;
        self.create_with(caller.into(), new, &mut batch).await.map(Some)
    }

    /// Lists the keys of the caller's account, oldest first.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`].
    pub async fn list_as_member(&self, caller: &Caller) -> ServiceResult<Vec<ApiKey>> {
        caller.require(Permission::ManageAccount)?;
        self.list(caller.account).await
    }

    /// Revokes a key of the caller's account at once.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::NotFound`] for a key that the account does not have.
    pub async fn revoke_as_member(
        &self,
        caller: &Caller,
        id: KeyId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        caller.require(Permission::ManageAccount)?;
        let revoked = self.context.commit_change(id.to_u128(), || async move {
            if let Some(answer) = self.context.replayed_answer(once)? {
                return Ok(((RequestOutcome::Replayed(answer), None), None));
            }
            let key = self.context.store().reader().key(id)?.map(|key| key.value);
            let key = key.filter(|key| key.account == caller.account).ok_or(ServiceError::NotFound)?;
            let mut batch = Batch::new();
            batch.expect(Expect::Key(id, Presence::Present)).write(Op::DeleteKey(id));
            self.context.record_undo(caller, once, || InverseChange::Key(Box::new(key.clone())), &mut batch);
            self.context.log_change(caller, &mut batch)?;
            self.context.store_answer(once, &(), &mut batch)?;
            Ok(((RequestOutcome::Fresh(()), Some(key)), Some(batch)))
        });
        let (outcome, key) = revoked.await?;
        key.iter().for_each(|key| self.evict(key));
        Ok(outcome)
    }

    /// Adds a key to the index, before it is stored.
    pub(crate) fn index(&self, key: &ApiKey) -> ServiceResult<()> {
        self.with_key_index(|names| names.insert(key.hash, key.id)).map(|_| ())
    }

    async fn create_with(
        &self,
        author: ChangeAuthor,
        new: NewKey,
        batch: &mut Batch,
    ) -> ServiceResult<(ApiKey, ApiKeyText)> {
        let name = text::line(&new.name, 1..=MAX_NAME).map_err(|rule| ValidationErrors::single("name", rule))?;
        batch.expect(Expect::Account(new.account, Presence::Present));
        if let Some(page) = new.page {
            let page = self.context.store().reader().page(page)?.ok_or(ServiceError::NotFound)?;
            if page.value.account != new.account {
                return Err(ServiceError::NotFound);
            }
            batch.expect(Expect::Page(page.value.id, Presence::Present));
        }
        self.context.store().reader().account(new.account)?.ok_or(ServiceError::NotFound)?;
        let account = new.account;
        if self.context.store().read(move |store| store.keys_of(account)).await?.len() >= MAX_KEYS {
            return Err(PlanLimitError::KeysFull.into());
        }
        let secret = ApiKeyText::new(rand::random());
        let hash = secret.hash();
        let key = ApiKey {
            id: KeyId::new(self.context.now(), rand::random()),
            account: new.account,
            name,
            access: new.access,
            page: new.page,
            hash,
            created_at: self.context.now(),
            last_used_at: None,
        };
        batch.expect(Expect::Key(key.id, Presence::Absent)).write(key.clone());
        self.context.log_change(author, batch)?;
        self.index(&key)?;
        self.context.store().commit(std::mem::take(batch)).await.inspect_err(|_| self.evict(&key))?;
        Ok((key, secret))
    }

    /// Lists an account's keys, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that does not exist.
    pub async fn list(&self, account: AccountId) -> ServiceResult<Vec<ApiKey>> {
        self.context.store().reader().account(account)?.ok_or(ServiceError::NotFound)?;
        let keys = self.context.store().read(move |store| store.keys_of(account)).await?;
        let mut keys: Vec<ApiKey> = keys.into_iter().map(|key| key.value).collect();
        keys.sort_by_key(|key| (key.created_at, key.id));
        Ok(keys)
    }

    /// Revokes a key at once and permanently; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a key that does not exist.
    pub async fn revoke(&self, id: KeyId) -> ServiceResult<()> {
        let key = self.context.store().reader().key(id)?.ok_or(ServiceError::NotFound)?.value;
        let mut batch = Batch::new();
        batch.write(Op::DeleteKey(id));
        self.context.log_change(ChangeAuthor::operator(key.account), &mut batch)?;
        self.context.commit(Some(batch)).await?;
        self.evict(&key);
        Ok(())
    }

    /// Removes a key from the caches, unless it is in the store: an undo may have brought it back meanwhile.
    pub(crate) fn evict(&self, key: &ApiKey) {
        let mut names = self.key_index.lock().unwrap_or_else(PoisonError::into_inner);
        // Where that can't be read, the entry stays.
        let is_gone = self.context.store().reader().key(key.id).is_ok_and(|record| record.is_none());
        if let Some(names) = names.as_mut().filter(|_| is_gone) {
            names.remove(&key.hash);
        }
        drop(names);
        self.last_used.remove(&key.id);
    }

    /// Finds the key with that hash. Look-up time reveals nothing about a hash of 256 random bits.
    fn key_by_hash(&self, hash: &[u8; 32]) -> ServiceResult<Option<KeyId>> {
        self.with_key_index(|names| names.get(hash).copied())
    }

    /// Accesses the index of key ids by hash, which is loaded from the store once.
    fn with_key_index<T>(&self, change: impl FnOnce(&mut BTreeMap<[u8; 32], KeyId>) -> T) -> ServiceResult<T> {
        let mut names = self.key_index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = names.as_mut() {
            return Ok(change(names));
        }
        let reader = self.context.store().reader();
        let mut read = BTreeMap::new();
        for account in reader.accounts()? {
            read.extend(reader.keys_of(account.value.id)?.into_iter().map(|key| (key.value.hash, key.value.id)));
        }
        Ok(change(names.insert(read)))
    }

    /// Records the key's use in the background, at most once a minute.
    fn record_use(&self, key: &VersionedValue<ApiKey>) {
        let (id, now) = (key.value.id, self.context.now());
        if key.value.last_used_at.is_some_and(|at| now.since(at) < MINUTE) || !self.last_used.begin(id, now) {
            return;
        }
        let mut batch = Batch::new();
        batch.expect(Expect::Key(id, Presence::At(key.revision)));
        batch.write(ApiKey { last_used_at: Some(now), ..key.value.clone() });
        let store = self.context.store().clone();
        tokio::spawn(async move {
            // Revoked in the meantime, or recorded by another request: nothing to do.
            if let Err(error) = store.commit(batch).await {
                tracing::debug!(key = %id, %error, "the last use of a key was not recorded");
            }
        });
    }
}
