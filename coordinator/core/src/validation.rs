//! Validation errors: every invalid field of a request, with the rule that it violates.

use std::fmt;

/// Rule as text that follows the field's name: `must be 1 new 80 characters`.
pub type Rule = String;

/// Field name used if no single field is at fault. Its rule is a complete sentence.
pub const WHOLE_REQUEST: &str = "$";

/// Invalid field and the rule that it violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Field name as the client sent it; a path if it is nested.
    pub field: String,
    /// Rule as text that follows the field's name.
    pub rule: Rule,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field == WHOLE_REQUEST { f.write_str(&self.rule) } else { write!(f, "{} {}", self.field, self.rule) }
    }
}

/// All errors of a request, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct ValidationErrors(Vec<FieldError>);

impl ValidationErrors {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Creates a list with one error.
    pub fn single(field: impl Into<String>, rule: impl Into<Rule>) -> Self {
        Self(vec![FieldError { field: field.into(), rule: rule.into() }])
    }

    /// Rejects a request as a whole; `rule` states the reason.
    pub fn whole_request(rule: impl Into<Rule>) -> Self {
        Self::single(WHOLE_REQUEST, rule)
    }

    /// Adds a field and the rule that it violates.
    pub fn add(&mut self, field: impl Into<String>, rule: impl Into<Rule>) {
        self.0.push(FieldError { field: field.into(), rule: rule.into() });
    }

    /// Adds the errors of another check.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the value, or records the rule that it violates.
    pub fn record<T>(&mut self, field: &str, value: Result<T, Rule>) -> Option<T> {
        value.map_err(|rule| self.add(field, rule)).ok()
    }

    /// Returns true if there are no errors.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &FieldError> {
        self.0.iter()
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, refusal) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            fmt::Display::fmt(refusal, f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_joined_into_one_sentence() {
        let mut faults = ValidationErrors::new();
        assert_eq!(faults.record("name", Ok::<_, Rule>(1)), Some(1));
        assert!(faults.is_empty());
        assert_eq!(faults.record::<u8>("name", Err("must be 1 to 80 characters".to_owned())), None);
        faults.add("port", "is required");
        assert_eq!(faults.to_string(), "name must be 1 to 80 characters; port is required");
        assert_eq!(
            ValidationErrors::whole_request("only a webhook has a secret").to_string(),
            "only a webhook has a secret"
        );
        assert_eq!(faults.iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), ["name", "port"]);
    }
}
