//! API keys: shown once, kept as a hash, found by it.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use parallax_core::id::{AccountId, KeyId, PageId};
use parallax_core::key::{Access, Key, MAX_KEYS};
use parallax_core::plan::PlanRefusal;
use parallax_core::refusal::Refusals;
use parallax_core::text;
use parallax_core::time::MINUTE;
use subtle::ConstantTimeEq;

use super::token::KeyText;
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Versioned};

/// Characters that a key's name may have.
const MAX_NAME: usize = 80;
/// How many keys' last use is held in memory.
const MAX_USED: usize = 10_000;

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Whose pages it reaches.
    pub account: AccountId,
    /// Its name, 1 to 80 characters.
    pub name: String,
    /// What it may do.
    pub access: Access,
    /// The one page it reaches, where it is bound to one.
    pub page: Option<PageId>,
}

impl Service {
    /// Who holds this key.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for text that is no good key.
    pub fn authenticate(&self, text: &str) -> Result<Caller> {
        let key = KeyText::parse(text).ok_or(Error::Unauthenticated)?;
        let hash = key.hash();
        let found = match self.key_named(&hash)? {
            Some(id) => self.store().reader().key(id)?,
            None => None,
        };
        // A key that is not there is compared like one that is.
        let stored = found.as_ref().map_or([0; 32], |key| key.value.hash);
        let is_same = bool::from(stored.ct_eq(&hash));
        let key = found.filter(|_| is_same).ok_or(Error::Unauthenticated)?;
        self.note_use(&key);
        Ok(Caller { key: key.value })
    }

    /// The operator makes a key. The text is given this once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an account or page that is not there, [`Error::Invalid`] for a bad name,
    /// [`Error::PlanLimit`] where the account has all the keys that it may have.
    pub async fn create_key(&self, new: NewKey) -> Result<(Key, KeyText)> {
        let name = text::line(&new.name, 1..=MAX_NAME).map_err(|rule| Refusals::one("name", rule))?;
        let mut batch = Batch::new();
        batch.expect(Expect::Account(new.account, Is::Present));
        if let Some(page) = new.page {
            let page = self.store().reader().page(page)?.ok_or(Error::NotFound)?;
            if page.value.account != new.account {
                return Err(Error::NotFound);
            }
            batch.expect(Expect::Page(page.value.id, Is::Present));
        }
        self.store().reader().account(new.account)?.ok_or(Error::NotFound)?;
        let account = new.account;
        if self.store().read(move |store| store.keys_of(account)).await?.len() >= MAX_KEYS {
            return Err(PlanRefusal::KeysFull.into());
        }
        let secret = KeyText::new(rand::random());
        let hash = secret.hash();
        let key = Key {
            id: KeyId::new(self.now(), rand::random()),
            account: new.account,
            name,
            access: new.access,
            page: new.page,
            hash,
            created_at: self.now(),
            last_used_at: None,
        };
        batch.expect(Expect::Key(key.id, Is::Absent)).write(key.clone());
        self.store().commit(batch).await?;
        self.with_names(|names| names.insert(key.hash, key.id))?;
        Ok((key, secret))
    }

    /// The operator's list of an account's keys, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an account that is not there.
    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>> {
        self.store().reader().account(account)?.ok_or(Error::NotFound)?;
        let keys = self.store().read(move |store| store.keys_of(account)).await?;
        let mut keys: Vec<Key> = keys.into_iter().map(|key| key.value).collect();
        keys.sort_by_key(|key| (key.created_at, key.id));
        Ok(keys)
    }

    /// The operator takes a key out of use, at once and for good.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a key that is not there.
    pub async fn revoke_key(&self, id: KeyId) -> Result<()> {
        let key = self.store().reader().key(id)?.ok_or(Error::NotFound)?.value;
        let mut batch = Batch::new();
        batch.write(Op::DeleteKey(id));
        self.store().commit(batch).await?;
        self.forget_key(&key);
        Ok(())
    }

    /// Lets go of what is held of a key that is no longer in the store.
    pub(super) fn forget_key(&self, key: &Key) {
        if let Some(names) = self.0.names.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            names.remove(&key.hash);
        }
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&key.id);
    }

    /// Which key has that hash. A hash of 256 random bits tells nothing by how long it is looked for.
    fn key_named(&self, hash: &[u8; 32]) -> Result<Option<KeyId>> {
        self.with_names(|names| names.get(hash).copied())
    }

    /// Every key's id by its hash: read from the store once, then kept up by whoever makes a key or takes one out.
    fn with_names<T>(&self, act: impl FnOnce(&mut BTreeMap<[u8; 32], KeyId>) -> T) -> Result<T> {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = names.as_mut() {
            return Ok(act(names));
        }
        let reader = self.store().reader();
        let mut read = BTreeMap::new();
        for account in reader.accounts()? {
            read.extend(
                reader.keys_of(account.value.id)?.into_iter().map(|key| (key.value.hash, key.value.id)),
            );
        }
        Ok(act(names.insert(read)))
    }

    /// Notes beside the request that the key was used, at most once a minute.
    fn note_use(&self, key: &Versioned<Key>) {
        let (id, now) = (key.value.id, self.now());
        let is_fresh = |at: parallax_core::time::Timestamp| now.since(at) < MINUTE;
        if key.value.last_used_at.is_some_and(is_fresh) {
            return;
        }
        {
            let Ok(mut used) = self.0.used.lock() else { return };
            if used.get(&id).copied().is_some_and(is_fresh) {
                return;
            }
            if used.len() >= MAX_USED {
                used.retain(|_, at| is_fresh(*at));
            }
            if used.len() < MAX_USED {
                used.insert(id, now);
            }
        }
        let mut batch = Batch::new();
        batch.expect(Expect::Key(id, Is::At(key.revision)));
        batch.write(Key { last_used_at: Some(now), ..key.value.clone() });
        let store = self.store().clone();
        tokio::spawn(async move {
            // Revoked meanwhile, or noted by another request: nothing to do.
            if let Err(error) = store.commit(batch).await {
                tracing::debug!(key = %id, %error, "the use of a key was not noted");
            }
        });
    }
}
