//! Visitors' passwords, hashed with argon2id: hashing is expensive, so only a few run at once, with a short queue.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::{ServiceError, ServiceResult};

/// Memory in KiB, passes and lanes of a hash (OWASP's first choice for argon2id with little memory).
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Maximum concurrent hashes.
const AT_ONCE: usize = 2;
/// Maximum hashes waiting in the queue.
const WAITING: usize = 16;
/// Seconds to wait before a retry when the queue is full.
const RETRY_SECONDS: u32 = 2;
/// Maximum bytes of a password; longer ones are never hashed.
const MAX_BYTES: usize = 1024;
/// Hash to verify against if a page has none, so that it takes the same time. No known password matches it: that
/// would need an input that hashes to zero.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The only queue of the process: hashing uses the host's memory.
static HASHER: LazyLock<Hasher> = LazyLock::new(Hasher::default);

/// Hashes a password with a new salt, as a PHC string.
///
/// # Errors
/// [`ServiceError::Busy`] if the queue is full.
pub async fn hash(password: &str) -> ServiceResult<String> {
    HASHER.hash(password).await
}

/// Verifies a password against a hash. Without a hash it takes the same time and returns false.
///
/// # Errors
/// [`ServiceError::Busy`] if the queue is full.
pub async fn verify(password: &str, hash: Option<&str>) -> ServiceResult<bool> {
    HASHER.verify(password, hash).await
}

/// The hasher with its queue.
#[derive(Debug, Clone)]
struct Hasher {
    /// Permits of hashes that run or wait.
    permits: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE + WAITING)), running: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Hasher {
    async fn hash(&self, password: &str) -> ServiceResult<String> {
        let (password, salt) = (password.to_owned(), rand::random::<[u8; 16]>());
        let hash = self.run(move || {
            let hash: PasswordHash = argon2()?.hash_password_with_salt(password.as_bytes(), &salt)?;
            Ok::<_, argon2::password_hash::Error>(hash.to_string())
        });
        hash.await?.map_err(|error| ServiceError::Internal(error.to_string()))
    }

    async fn verify(&self, password: &str, hash: Option<&str>) -> ServiceResult<bool> {
        let is_short = password.len() <= MAX_BYTES;
        let password = if is_short { password.to_owned() } else { String::new() };
        let hash = hash.filter(|hash| PasswordHash::new(hash).is_ok()).map(str::to_owned);
        let is_match = self
            .run(move || {
                let stored = PasswordHash::new(hash.as_deref().unwrap_or(DUMMY_HASH));
                let is_same = argon2().and_then(|argon2| argon2.verify_password(password.as_bytes(), &stored?));
                is_same.is_ok() && hash.is_some()
            })
            .await?;
        Ok(is_match && is_short)
    }

    /// Runs the work on a blocking thread when its turn comes. A cancelled caller's permits are released only when
    /// the work is done.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> ServiceResult<T> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| ServiceError::Busy { seconds: RETRY_SECONDS })?;
        let running_permit = Arc::clone(&self.running).acquire_owned().await;
        let running_permit = running_permit.map_err(|error| ServiceError::Internal(error.to_string()))?;
        let working = tokio::task::spawn_blocking(move || {
            let result = work();
            drop((permit, running_permit));
            result
        });
        working.await.map_err(|error| ServiceError::Internal(error.to_string()))
    }
}

fn argon2() -> std::result::Result<Argon2<'static>, argon2::password_hash::Error> {
    let (memory, passes, lanes) = COST;
    let params = Params::new(memory, passes, lanes, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_verified_against_its_hash() {
        let hasher = Hasher::default();
        let hash = hasher.hash("open sesame").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, hasher.hash("open sesame").await.unwrap(), "each has a salt of its own");
        assert!(hasher.verify("open sesame", Some(&hash)).await.unwrap());
        let too_long = "a".repeat(MAX_BYTES + 1);
        for invalid in ["", "open sesame ", "Open sesame", &too_long] {
            assert!(!hasher.verify(invalid, Some(&hash)).await.unwrap(), "{invalid:?}");
        }
        for none in [None, Some("$argon2id$"), Some(""), Some(DUMMY_HASH)] {
            assert!(!hasher.verify("", none).await.unwrap(), "{none:?}");
        }
        assert!(PasswordHash::new(DUMMY_HASH).is_ok(), "it costs as much as any other");
    }

    #[tokio::test]
    async fn a_full_queue_rejects_a_password_check_at_once() {
        let hasher = Hasher::default();
        let permits = Arc::clone(&hasher.running).acquire_many_owned(2).await.unwrap();
        let waiting: Vec<_> = (0..AT_ONCE + WAITING)
            .map(|_| {
                let hasher = hasher.clone();
                tokio::spawn(async move { hasher.verify("x", None).await })
            })
            .collect();
        while hasher.permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(hasher.verify("x", None).await, Err(ServiceError::Busy { seconds: RETRY_SECONDS }));
        drop(permits);
        for one in waiting {
            assert_eq!(one.await.unwrap(), Ok(false));
        }
        assert_eq!(hasher.verify("x", None).await, Ok(false), "the queue has a free slot again");
    }
}
