//! Fields of a patch request: absent, null, a value, or a value of the wrong type.

use crate::validation::{Rule, ValidationErrors};

/// State of one field in a request. Its validity is decided later: a wrong value in a field that does not belong to
/// the monitor's type is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PatchField<T> {
    /// Absent: the current value stays.
    #[default]
    Absent,
    /// Null: cleared, or reset to its default.
    Null,
    /// Value of the right type; its bounds are not checked yet.
    Value(T),
    /// Value of the wrong type, with the rule that it violates.
    Invalid(Rule),
}

impl<T> PatchField<T> {
    /// Converts the value to another type.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> PatchField<U> {
        match self {
            Self::Absent => PatchField::Absent,
            Self::Null => PatchField::Null,
            Self::Value(value) => PatchField::Value(make(value)),
            Self::Invalid(rule) => PatchField::Invalid(rule),
        }
    }

    /// Resolves an optional field: absent keeps `before`, null clears it.
    pub fn optional<U>(
        &self,
        field: &str,
        before: Option<U>,
        faults: &mut ValidationErrors,
        read: impl FnOnce(&T) -> Result<Option<U>, Rule>,
    ) -> Option<U> {
        match self {
            Self::Absent => before,
            Self::Null => None,
            Self::Value(value) => faults.record(field, read(value)).flatten(),
            Self::Invalid(rule) => faults.record(field, Err(rule.clone())),
        }
    }

    /// Resolves a field with a default: absent keeps `before`, null sets the default. Returns none if an error was
    /// recorded.
    pub fn defaulted<U>(
        &self,
        field: &str,
        before: Option<U>,
        default: U,
        faults: &mut ValidationErrors,
        read: impl FnOnce(&T) -> Result<U, Rule>,
    ) -> Option<U> {
        match self {
            Self::Absent => Some(before.unwrap_or(default)),
            Self::Null => Some(default),
            Self::Value(value) => faults.record(field, read(value)),
            Self::Invalid(rule) => faults.record(field, Err(rule.clone())),
        }
    }

    /// Resolves a required field: absent keeps `before` if there is one; null is rejected. Returns none if an error
    /// was recorded.
    pub fn required<U>(
        &self,
        field: &str,
        before: Option<U>,
        faults: &mut ValidationErrors,
        read: impl FnOnce(&T) -> Result<U, Rule>,
    ) -> Option<U> {
        match self {
            Self::Absent if before.is_some() => before,
            Self::Null if before.is_some() => faults.record(field, Err("must not be null".to_owned())),
            Self::Absent | Self::Null => faults.record(field, Err("is required".to_owned())),
            Self::Value(value) => faults.record(field, read(value)),
            Self::Invalid(rule) => faults.record(field, Err(rule.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(value: &i64) -> Result<i64, Rule> {
        if *value < 10 { Ok(*value) } else { Err("must be small".to_owned()) }
    }

    #[test]
    fn the_four_ways_of_sending_a_field_are_distinguished() {
        let wrong = || PatchField::<i64>::Invalid("must be a number".to_owned());
        let mut faults = ValidationErrors::new();
        assert_eq!(PatchField::Absent.optional("a", Some(1), &mut faults, |v| small(v).map(Some)), Some(1));
        assert_eq!(PatchField::Null.optional("a", Some(1), &mut faults, |v| small(v).map(Some)), None);
        assert_eq!(PatchField::Value(3).optional("a", Some(1), &mut faults, |v| small(v).map(Some)), Some(3));
        assert_eq!(PatchField::Absent.defaulted("a", None, 7, &mut faults, small), Some(7));
        assert_eq!(PatchField::Absent.defaulted("a", Some(1), 7, &mut faults, small), Some(1));
        assert_eq!(PatchField::Null.defaulted("a", Some(1), 7, &mut faults, small), Some(7));
        assert_eq!(PatchField::Absent.required("a", Some(1), &mut faults, small), Some(1));
        assert!(faults.is_empty());
        assert_eq!(PatchField::Absent.required("b", None, &mut faults, small), None);
        assert_eq!(PatchField::Null.required("c", Some(1), &mut faults, small), None);
        assert_eq!(PatchField::Value(10).required("d", Some(1), &mut faults, small), None);
        assert_eq!(wrong().defaulted("e", Some(1), 7, &mut faults, small), None);
        assert_eq!(faults.to_string(), "b is required; c must not be null; d must be small; e must be a number");
    }
}
