//! Passkeys of persons (Web Authentication, level 3): added, renamed and removed, and a proof of identity at sign-in, as
//! second step and at a confirmation.
//!
//! The device verifies its owner by fingerprint, face or PIN before it signs, so one passkey is both factors. What is
//! signed names this dashboard's origin and a challenge that counts once; the state of each ceremony is in memory and
//! bound to the browser that asked.

pub(in crate::people) mod ceremonies;
mod changes;
mod proofs;
mod relying_party;
#[cfg(any(test, feature = "test-world"))]
pub mod soft_authenticator;
pub(in crate::people) mod verification;

pub use self::ceremonies::{PasskeyAnswer, PasskeyChallenge};
pub(super) use self::relying_party::RelyingParty;
