//! The mask that replaces secrets in responses.

use crate::validation::Rule;

/// Replaces secrets in responses. A value that contains it is rejected.
pub const MASK: &str = "***";

/// Rejects the mask that replaces secrets in responses.
pub(super) fn unmasked(text: &str) -> Result<&str, Rule> {
    if text.contains(MASK) {
        return Err("is masked: send the full value, or omit the field to keep it".to_owned());
    }
    Ok(text.trim())
}
