//! State of a person's second factor, as their screens show it.

use parallax_core::second_factor::{FEW_RECOVERY_CODES, RECOVERY_CODES};

use crate::views::format::FormattedTime;

/// Second factor on the screen with the password and sessions.
#[derive(Debug, Clone)]
pub(crate) struct FactorState {
    /// Time since which it is on; none if it is off.
    pub since: Option<FormattedTime>,
    /// Recovery codes left.
    pub codes_left: usize,
    /// True if an account of the person needs a second factor, and they have neither an app nor a passkey.
    pub is_missing: bool,
}

impl FactorState {
    /// Recovery codes left, in words.
    pub(super) fn codes_text(&self) -> String {
        format!("{} of {RECOVERY_CODES} left", self.codes_left)
    }

    /// True if the person should make new recovery codes.
    pub(super) const fn needs_codes(&self) -> bool {
        self.since.is_some() && self.codes_left <= FEW_RECOVERY_CODES
    }
}
