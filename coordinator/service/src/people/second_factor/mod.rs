//! Second factor of persons: codes of an authenticator app, recovery codes, and the accounts that need them.

mod factor_changes;
mod need;
mod pending_sign_ins;
mod recovery_code;
mod sign_in_step;
mod totp;

pub use self::factor_changes::FactorSetUp;
pub use self::need::FactorNeed;
pub(super) use self::pending_sign_ins::{PendingSignIns, SignInTarget};
pub(super) use self::sign_in_step::CompleteProof;
pub use self::sign_in_step::{CodeSignIn, SecondSteps, SignInStep};

/// Seconds for which a browser keeps the cookie of a sign-in that waits for its code.
pub const PENDING_SECONDS: i64 = pending_sign_ins::PENDING_LIFE / parallax_core::time::SECOND;
