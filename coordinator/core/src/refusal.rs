//! Validation errors: every invalid field of a request, with the rule that it violates.

use std::fmt;

/// Rule as text that follows the field's name: `must be 1 to 80 characters`.
pub type Rule = String;

/// Field name used if no single field is at fault. Its rule is a complete sentence.
pub const WHOLE: &str = "$";

/// Invalid field and the rule that it violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Field name as the client sent it; a path if it is nested.
    pub field: String,
    /// Rule as text that follows the field's name.
    pub rule: Rule,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field == WHOLE { f.write_str(&self.rule) } else { write!(f, "{} {}", self.field, self.rule) }
    }
}

/// All errors of a request, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Refusals(Vec<Refusal>);

impl Refusals {
    /// Creates an empty list.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Creates a list with one error.
    pub fn one(field: impl Into<String>, rule: impl Into<Rule>) -> Self {
        Self(vec![Refusal { field: field.into(), rule: rule.into() }])
    }

    /// Rejects a request as a whole; `words` states the reason.
    pub fn whole(words: impl Into<Rule>) -> Self {
        Self::one(WHOLE, words)
    }

    /// Adds a field and the rule that it violates.
    pub fn add(&mut self, field: impl Into<String>, rule: impl Into<Rule>) {
        self.0.push(Refusal { field: field.into(), rule: rule.into() });
    }

    /// Returns the value, or records the rule that it violates.
    pub fn take<T>(&mut self, field: &str, value: Result<T, Rule>) -> Option<T> {
        value.map_err(|rule| self.add(field, rule)).ok()
    }

    /// Returns true if there are no errors.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &Refusal> {
        self.0.iter()
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, refusal) in self.0.iter().enumerate() {
            if place > 0 {
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
    fn every_fault_is_told_in_one_sentence() {
        let mut faults = Refusals::none();
        assert_eq!(faults.take("name", Ok::<_, Rule>(1)), Some(1));
        assert!(faults.is_empty());
        assert_eq!(faults.take::<u8>("name", Err("must be 1 to 80 characters".to_owned())), None);
        faults.add("port", "is required");
        assert_eq!(faults.to_string(), "name must be 1 to 80 characters; port is required");
        assert_eq!(Refusals::whole("only a webhook has a secret").to_string(), "only a webhook has a secret");
        assert_eq!(faults.iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), ["name", "port"]);
    }
}
