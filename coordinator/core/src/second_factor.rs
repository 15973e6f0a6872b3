//! Second factor of a person: an authenticator app (TOTP, RFC 6238) with ten recovery codes.
//!
//! The rules of its states are here: each step of the app counts once, and each recovery code, too. What the codes of a
//! secret are is computed in the service, which hands over steps and hashes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::{DAY, HOUR, SECOND, Timestamp};

/// Recovery codes that a person gets.
pub const RECOVERY_CODES: usize = 10;
/// Recovery codes left at which the person is asked to make new ones.
pub const FEW_RECOVERY_CODES: usize = 2;
/// Time for which a code of the app is shown, in milliseconds.
const STEP: i64 = 30 * SECOND;
/// Steps before and after the present one whose codes count, too (RFC 6238, 5.2).
pub const STEP_SKEW: u16 = 1;
/// Time for which a secret waits for its first right code, in milliseconds.
const PENDING_FOR: i64 = HOUR;
/// Time that members have for their second factor once their account needs one, in milliseconds.
const GRACE: i64 = 7 * DAY;

/// Secret that a person's app shares with this installation: 160 bits, as RFC 4226, 4 recommends.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorSecret(pub [u8; 20]);

impl fmt::Debug for FactorSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FactorSecret(…)")
    }
}

/// Hash of a recovery code.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCodeHash(pub [u8; 32]);

impl fmt::Debug for RecoveryCodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCodeHash(…)")
    }
}

/// Second factor of a person: none, a secret that waits for its first right code, or an active one. A pending secret
/// beside an active one replaces it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    active: Option<ActiveFactor>,
    pending: Option<PendingFactor>,
}

/// An app that is asked for at each sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ActiveFactor {
    secret: FactorSecret,
    since: Timestamp,
    /// The newest step whose code was accepted: neither it nor an older one counts again.
    last_step: u64,
    /// Hashes of the recovery codes that were not used.
    recovery_codes: Vec<RecoveryCodeHash>,
}

/// A secret that was shown to the person, whose app has not proved that it has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PendingFactor {
    secret: FactorSecret,
    since: Timestamp,
}

impl SecondFactor {
    /// Returns true if sign-in asks for a code.
    pub const fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Time since which it is active.
    pub fn active_since(&self) -> Option<Timestamp> {
        self.active.as_ref().map(|active| active.since)
    }

    /// Secret of the active app.
    pub fn active_secret(&self) -> Option<&FactorSecret> {
        self.active.as_ref().map(|active| &active.secret)
    }

    /// Hashes of the recovery codes that were not used.
    pub fn recovery_codes(&self) -> &[RecoveryCodeHash] {
        self.active.as_ref().map_or(&[], |active| &active.recovery_codes)
    }

    /// Number of recovery codes that were not used.
    pub fn recovery_codes_left(&self) -> usize {
        self.recovery_codes().len()
    }

    /// Secret that waits for its first right code; none after an hour.
    pub fn pending_secret(&self, now: Timestamp) -> Option<&FactorSecret> {
        let pending = self.pending.as_ref()?;
        (0..PENDING_FOR).contains(&now.since(pending.since)).then_some(&pending.secret)
    }

    /// Forgets the secret that waits: someone else may have begun it.
    pub fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Begins to wait for the first right code of a new secret. An active app stays until then.
    pub fn begin(&mut self, secret: FactorSecret, now: Timestamp) {
        self.pending = Some(PendingFactor { secret, since: now });
    }

    /// Makes the pending secret the active one, after a right code of that step. Returns false if none is pending.
    pub fn activate(&mut self, step: u64, recovery_codes: Vec<RecoveryCodeHash>, now: Timestamp) -> bool {
        let Some(secret) = self.pending_secret(now).cloned() else { return false };
        *self =
            Self { active: Some(ActiveFactor { secret, since: now, last_step: step, recovery_codes }), pending: None };
        true
    }

    /// Accepts a right code of that step. Returns false if the step, or a newer one, was accepted before.
    pub fn accept_step(&mut self, step: u64, now: Timestamp) -> bool {
        let Some(active) = &mut self.active else { return false };
        // A step further ahead was accepted before the clock was set back; the person need not wait for it.
        let is_ahead = active.last_step > step_at(now) + u64::from(STEP_SKEW);
        if step <= active.last_step && !is_ahead {
            return false;
        }
        active.last_step = step;
        true
    }

    /// Uses a recovery code. Returns the number of those left; none if it is none of them.
    pub fn use_recovery_code(&mut self, hash: RecoveryCodeHash) -> Option<usize> {
        let codes = &mut self.active.as_mut()?.recovery_codes;
        let used = codes.iter().position(|code| *code == hash)?;
        codes.remove(used);
        Some(codes.len())
    }

    /// Replaces all recovery codes. Returns false without an active app.
    pub fn replace_recovery_codes(&mut self, recovery_codes: Vec<RecoveryCodeHash>) -> bool {
        let Some(active) = &mut self.active else { return false };
        active.recovery_codes = recovery_codes;
        true
    }

    /// Refuses every code that an app may show by now. A restored record does not know which were used since. Returns
    /// false if nothing changed.
    pub fn refuse_shown_codes(&mut self, now: Timestamp) -> bool {
        let Some(active) = &mut self.active else { return false };
        let newest = step_at(now) + u64::from(STEP_SKEW);
        let is_older = active.last_step < newest;
        active.last_step = active.last_step.max(newest);
        is_older
    }
}

/// Returns the number of the step at that time.
pub const fn step_at(now: Timestamp) -> u64 {
    let millis = now.as_millis();
    if millis < 0 { 0 } else { (millis / STEP).cast_unsigned() }
}

/// Returns the time from which a member without a second factor can use only the screen that sets one up, by the time
/// since which their account needs one; none if it does not. A member who joined later has as long.
pub fn factor_deadline(needed_since: Option<Timestamp>, joined_at: Timestamp) -> Option<Timestamp> {
    needed_since.map(|since| since.max(joined_at) + GRACE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MINUTE;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * SECOND)
    }

    fn hashes(numbers: std::ops::Range<u8>) -> Vec<RecoveryCodeHash> {
        numbers.map(|number| RecoveryCodeHash([number; 32])).collect()
    }

    fn active(step: u64, now: Timestamp) -> SecondFactor {
        let mut factor = SecondFactor::default();
        factor.begin(FactorSecret([7; 20]), now);
        assert!(factor.activate(step, hashes(0..10), now));
        factor
    }

    #[test]
    fn a_secret_waits_an_hour_for_its_first_code_and_an_active_one_stays_until_then() {
        let mut factor = SecondFactor::default();
        assert!(!factor.activate(1, Vec::new(), at(0)), "nothing is pending");
        factor.begin(FactorSecret([1; 20]), at(0));
        assert!(!factor.is_active());
        let last = Timestamp::from_millis(HOUR - 1);
        assert_eq!(factor.pending_secret(last), Some(&FactorSecret([1; 20])));
        assert_eq!((factor.pending_secret(last + 1), factor.pending_secret(at(-1))), (None, None));
        assert!(!factor.clone().activate(1, Vec::new(), last + 1));
        assert!(factor.activate(1, hashes(0..10), last));
        assert_eq!((factor.active_since(), factor.recovery_codes_left()), (Some(last), 10));
        factor.begin(FactorSecret([2; 20]), last);
        assert_eq!(factor.active_secret(), Some(&FactorSecret([1; 20])));
        assert!(factor.activate(2, hashes(0..10), last));
        assert_eq!((factor.active_secret(), factor.pending_secret(last)), (Some(&FactorSecret([2; 20])), None));
    }

    #[test]
    fn each_step_counts_once_and_none_before_it() {
        // Step 100 begins at second 3000.
        let mut factor = active(100, at(3000));
        assert!(!factor.accept_step(100, at(3000)), "its first code was used to turn it on");
        assert!(!factor.accept_step(99, at(3000)));
        assert!(factor.accept_step(101, at(3000)), "an app may be ahead by a step");
        assert!(!factor.accept_step(101, at(3030)) && !factor.accept_step(100, at(3030)));
        assert!(factor.accept_step(102, at(3030)));
        assert!(!SecondFactor::default().accept_step(1, at(30)), "no factor accepts nothing");
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nobody_out_and_repeats_no_code_in_reach() {
        let mut factor = active(100, at(3000));
        assert!(!factor.accept_step(100, at(2970)), "still in reach");
        assert!(factor.accept_step(50, at(1500)), "step 100 was accepted in a future that is none");
        assert!(!factor.accept_step(50, at(1500)));
    }

    #[test]
    fn after_a_restore_no_code_that_is_shown_by_then_counts() {
        let mut factor = active(100, at(3000));
        assert!(factor.refuse_shown_codes(at(3029)));
        for (step, now) in [(100, 3029), (101, 3029), (101, 3059)] {
            assert!(!factor.accept_step(step, at(now)), "{step} at {now}");
        }
        assert!(!factor.refuse_shown_codes(at(3000)), "it does not go back");
        assert!(factor.accept_step(102, at(3030)));
        assert!(!SecondFactor::default().refuse_shown_codes(at(3000)));
    }

    #[test]
    fn a_recovery_code_works_once() {
        let mut factor = active(100, at(3000));
        assert_eq!(factor.use_recovery_code(RecoveryCodeHash([10; 32])), None);
        assert_eq!(factor.use_recovery_code(RecoveryCodeHash([3; 32])), Some(9));
        assert_eq!(factor.use_recovery_code(RecoveryCodeHash([3; 32])), None);
        assert!(factor.replace_recovery_codes(hashes(20..30)));
        assert_eq!(factor.use_recovery_code(RecoveryCodeHash([4; 32])), None, "the old ones are gone");
        assert_eq!(factor.use_recovery_code(RecoveryCodeHash([20; 32])), Some(9));
        let mut none = SecondFactor::default();
        assert!(!none.replace_recovery_codes(hashes(0..10)));
        assert_eq!(none.use_recovery_code(RecoveryCodeHash([0; 32])), None);
    }

    #[test]
    fn steps_begin_each_thirty_seconds() {
        for (millis, step) in [(-1, 0), (0, 0), (29_999, 0), (30_000, 1), (59_999, 1), (1_111_111_109_000, 37_037_036)]
        {
            assert_eq!(step_at(Timestamp::from_millis(millis)), step, "{millis}");
        }
        assert_eq!(MINUTE / STEP, 2);
    }

    #[test]
    fn members_have_seven_days_from_the_setting_or_from_their_joining() {
        assert_eq!(factor_deadline(None, at(0)), None);
        assert_eq!(factor_deadline(Some(at(5)), at(0)), Some(at(5) + 7 * DAY));
        assert_eq!(factor_deadline(Some(at(5)), at(9)), Some(at(9) + 7 * DAY));
    }

    #[test]
    fn debug_output_has_no_secret() {
        let mut factor = active(100, at(3000));
        factor.begin(FactorSecret([8; 20]), at(3000));
        let text = format!("{factor:?}");
        assert!(!text.contains("7, 7") && !text.contains("8, 8") && !text.contains("3, 3"), "{text}");
    }
}
