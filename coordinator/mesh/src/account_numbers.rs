//! Pseudonymous account numbers: agents divide their slots by them and learn nothing else.

use parallax_certs::mesh_secret::MeshSecret;
use parallax_core::id::AccountId;
use parallax_protocol::fair_slots::UNKNOWN_ACCOUNT;
use ring::hmac;

/// Derives a number per account from the installation's secret; it is the same after each start.
pub(super) struct AccountNumbers(hmac::Key);

impl AccountNumbers {
    pub(super) fn new(secret: &MeshSecret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &secret.secret_for("accounts on the mesh")))
    }

    /// Returns the number of an account, never the one for "no account". Two of 65,000 accounts may collide by
    /// chance and then share their slots.
    pub(super) fn number(&self, account: AccountId) -> u32 {
        let tag = hmac::sign(&self.0, &account.to_u128().to_be_bytes());
        let number = tag.as_ref().first_chunk().map_or(UNKNOWN_ACCOUNT, |first| u32::from_be_bytes(*first));
        if number == UNKNOWN_ACCOUNT { 1 } else { number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_numbers_are_stable_and_depend_on_the_secret() {
        let secret = MeshSecret::random().unwrap();
        let (numbers, reopened) = (AccountNumbers::new(&secret), AccountNumbers::new(&secret));
        let other = AccountNumbers::new(&MeshSecret::random().unwrap());
        let numbers_of = |numbers: &AccountNumbers| -> Vec<u32> {
            (0..50).map(|account| numbers.number(AccountId::from_u128(account))).collect()
        };
        let mut first = numbers_of(&numbers);
        assert_eq!(first, numbers_of(&reopened));
        assert_ne!(first, numbers_of(&other));
        first.sort_unstable();
        first.dedup();
        assert!(first.len() > 48 && !first.contains(&UNKNOWN_ACCOUNT));
    }
}
