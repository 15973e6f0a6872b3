//! Acknowledgement of a running outage: somebody works on it, so its still-down alerts stop.
//!
//! It names the outage by its start and ends with it: the next outage has another start, so nothing has to be removed
//! at the recovery.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::patch::PatchField;
use crate::text;
use crate::time::Timestamp;
use crate::validation::ValidationErrors;

/// Maximum length of a note, in characters.
pub const MAX_NOTE: usize = 200;
/// Maximum length of an actor's name, in characters. A longer name is cut.
pub const MAX_ACTOR: usize = 80;

/// Name of the person or the API key that makes a change, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorName(String);

impl ActorName {
    /// Creates an actor of that name, cut to [`MAX_ACTOR`] characters.
    pub fn new(name: &str) -> Self {
        Self(name.chars().take(MAX_ACTOR).collect())
    }
}

impl fmt::Display for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Acknowledgement of one outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// Start of the outage.
    pub outage: Timestamp,
    /// Person or key that acknowledged it.
    pub by: ActorName,
    /// Time of the acknowledgement.
    pub at: Timestamp,
    /// Note of one line.
    pub note: Option<String>,
}

/// Withdrawal of an acknowledgement: still-down alerts go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcknowledgementWithdrawal {
    /// Start of the outage.
    pub outage: Timestamp,
    /// Person or key that withdrew it.
    pub by: ActorName,
}

/// Fields of an acknowledgement, as sent.
#[derive(Debug, Clone, Default)]
pub struct AcknowledgementRequest {
    /// Note of one line.
    pub note: PatchField<String>,
}

impl AcknowledgementRequest {
    /// Validates the fields and returns the note.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate(&self) -> Result<Option<String>, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let note = self.note.optional("note", None, &mut faults, |note| text::optional_line(note, MAX_NOTE));
        if faults.is_empty() { Ok(note) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_optional_line_of_200_characters() {
        let longest = "ü".repeat(MAX_NOTE);
        let too_long = format!("{longest}x");
        let validate =
            |note: PatchField<String>| AcknowledgementRequest { note }.validate().map_err(|faults| faults.to_string());
        for (note, expected) in [
            ("", Ok(None)),
            ("  ", Ok(None)),
            (" disk is full ", Ok(Some("disk is full".to_owned()))),
            (&longest, Ok(Some(longest.clone()))),
            (&too_long, Err("note must be at most 200 characters".to_owned())),
            ("a\nb", Err("note must not contain control characters".to_owned())),
        ] {
            assert_eq!(validate(PatchField::Value(note.to_owned())), expected, "{note}");
        }
        assert_eq!(validate(PatchField::Absent), Ok(None));
        assert_eq!(validate(PatchField::Null), Ok(None));
        assert!(validate(PatchField::Invalid("must be text".to_owned())).is_err());
    }

    #[test]
    fn a_long_name_of_an_actor_is_cut() {
        assert_eq!(ActorName::new("deploys").to_string(), "deploys");
        assert_eq!(ActorName::new(&"é".repeat(MAX_ACTOR + 1)).to_string(), "é".repeat(MAX_ACTOR));
    }
}
