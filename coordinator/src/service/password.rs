//! Passwords of pages: kept as Argon2id hashes in the PHC string format, made two at a time.

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::{Error, Result};

/// How many are hashed at once: each takes 19 MiB and some 20 ms of a core.
static TURNS: Semaphore = Semaphore::const_new(2);

/// The hash of a password: Argon2id with 19 MiB, two passes and one lane (RFC 9106; OWASP's least), and a new salt.
/// Waits for its turn, and blocks no task.
///
/// # Errors
/// [`Error::Internal`] where it can't be made.
pub async fn hash(password: &str) -> Result<String> {
    let password = password.to_owned();
    let _turn = TURNS.acquire().await.map_err(|_| internal())?;
    let hashed = tokio::task::spawn_blocking(move || hash_now(&password)).await;
    hashed.map_err(|_| internal())?
}

fn hash_now(password: &str) -> Result<String> {
    let salt = SaltString::encode_b64(&rand::random::<[u8; 16]>()).map_err(|_| internal())?;
    let hashed = hasher()?.hash_password(password.as_bytes(), &salt).map_err(|_| internal())?;
    Ok(hashed.to_string())
}

fn internal() -> Error {
    Error::Internal("a password can't be hashed".to_owned())
}

fn hasher() -> Result<Argon2<'static>> {
    let params = Params::new(19 << 10, 2, 1, None).map_err(|_| internal())?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_says_how_it_was_made_and_is_another_each_time() {
        let (one, other) = (hash("hunter2").await.unwrap(), hash("hunter2").await.unwrap());
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert!(one != other && !one.contains("hunter2"));
    }
}
